"""From declared sources to one event log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, get_args

from pydantic import BeforeValidator, Discriminator, Tag

from infoset.data.events import EventLog

from .backfills import backfill_notices
from .declared_clocks import entry
from .load import empty_log
from .nearest import did_you_mean
from .presets.alfred import AlfredSource
from .presets.bars import BarsSource
from .presets.binance import BinanceSource
from .presets.databento import DatabentoSource
from .presets.edgar_facts import EdgarCompanyFacts
from .presets.edgar_index import EdgarIndex
from .presets.edgar_submissions import EdgarSubmissions
from .presets.fred_md import FredMdSource
from .presets.histdata import HistDataSource
from .presets.lobster import LobsterSource
from .presets.rtdsm import RtdsmSource
from .presets.store_source import StoreSource
from .presets.tardis import TardisSource
from .source import Source
from .tabular_source import TabularSource

_TABULAR = "tabular"


def _preset(given: object) -> str:
    preset = entry(given, "preset")
    return _TABULAR if preset is None else str(preset)


def _known_preset(given: object) -> object:
    presets = {kind.__metadata__[0].tag for kind in get_args(_Kinds)} - {_TABULAR}
    preset = entry(given, "preset")
    if preset is not None and str(preset) not in presets:
        raise ValueError(
            f"must have as `preset` one of {', '.join(sorted(presets))}; got "
            f"{preset!r}. {did_you_mean(str(preset), presets)}"
        )
    return given


# A source without `preset` is a table whose columns are declared.
_Kinds = (
    Annotated[TabularSource, Tag(_TABULAR)]
    | Annotated[AlfredSource, Tag("alfred")]
    | Annotated[BarsSource, Tag("bars")]
    | Annotated[BinanceSource, Tag("binance")]
    | Annotated[DatabentoSource, Tag("databento")]
    | Annotated[EdgarCompanyFacts, Tag("edgar_companyfacts")]
    | Annotated[EdgarIndex, Tag("edgar_index")]
    | Annotated[EdgarSubmissions, Tag("edgar_submissions")]
    | Annotated[FredMdSource, Tag("fred_md")]
    | Annotated[HistDataSource, Tag("histdata")]
    | Annotated[LobsterSource, Tag("lobster")]
    | Annotated[RtdsmSource, Tag("rtdsm")]
    | Annotated[StoreSource, Tag("store")]
    | Annotated[TardisSource, Tag("tardis")]
)
AnySource = Annotated[_Kinds, Discriminator(_preset), BeforeValidator(_known_preset)]


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
    return replace(log, notices=(*log.notices, *backfill_notices(log)))


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
