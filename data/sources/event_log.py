"""From declared sources to one event log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Discriminator, Tag

from infoset.data.events import EventLog

from .declared_clocks import entry
from .load import empty_log
from .source import Source
from .tabular_source import TabularSource

_TABULAR = "tabular"


def _preset(given: object) -> str:
    preset = entry(given, "preset")
    return _TABULAR if preset is None else str(preset)


# A source without `preset` is a table whose columns are declared.
AnySource = Annotated[
    Annotated[TabularSource, Tag(_TABULAR)],
    Discriminator(_preset),
]


def event_log(sources: Sequence[Source], *, base: Path) -> EventLog:
    """Read sources into one log.

    Parameters
    ----------
    sources : sequence of Source
    base : Path
        Folder that relative paths start from.

    Returns
    -------
    EventLog
        See `Source.log`.

    Raises
    ------
    ValueError
        If a file, row or cell is not what its source says, or two sources of one
        stream declare it differently.
    TypeError
        If a column is of another kind.
    """
    log = empty_log()
    firsts: dict[str, Source] = {}
    for source in sources:
        addition = source.log(base=base)
        for stream in addition.streams:
            first = firsts.setdefault(stream, source)
            _require_same_change(stream, first, source)
            if stream in log.streams:
                one, other = (stream in of.scheduled for of in (log, addition))
                _require_agreement(
                    "scheduled", stream, (first.name, one), (source.name, other)
                )
        try:
            log = log.append(addition)
        except ValueError as error:
            raise ValueError(f"{source.name}: {error}") from error
    for source in sources:
        if source.change is not None:
            for stream in source.streams(log):
                _require_same_change(stream, firsts[stream], source)
    return log


def _require_same_change(stream: str, first: Source, second: Source) -> None:
    _require_agreement(
        "change", stream, (first.name, first.change), (second.name, second.change)
    )


def _require_agreement(
    setting: str,
    stream: str,
    first: tuple[str, object],
    second: tuple[str, object],
) -> None:
    if first[1] != second[1]:
        raise ValueError(
            f"{setting} of stream {stream!r} must be the same in all its sources; "
            f"got {first[1]!r} from {first[0]} and {second[1]!r} from {second[0]}. "
            "Declare it alike, or name another stream."
        )
