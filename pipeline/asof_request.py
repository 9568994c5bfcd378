"""What `infoset asof` is asked: an experiment's events, an instant, and about whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from infoset.data.events import MARKET_WIDE, EventLog
from infoset.data.sources.nearest import did_you_mean

from .config import Experiment, load_experiment
from .preparation import load_log

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, eq=False)
class AsOfRequest:
    """A question about an instant.

    Attributes
    ----------
    experiment : Experiment
    log : EventLog
    time : Timestamp
        UTC.
    title : str
        The instant as people wrote it.
    subjects : tuple of (stream, entity)
        What is shown, in order; `*` is an entity of its own.
    """

    experiment: Experiment
    log: EventLog
    time: pd.Timestamp
    title: str
    subjects: tuple[tuple[str, str], ...]

    @classmethod
    def read(
        cls,
        config: str,
        *,
        at: str,
        entity: str | None,
        stream: str | None,
        overrides: Sequence[str],
    ) -> AsOfRequest:
        """Read the configuration's sources and check the question.

        Raises
        ------
        ValueError
            For an instant without a zone, an unknown entity or stream, or a stream that
            never tells anything about the entity.
        """
        experiment, base = load_experiment(config, overrides)
        time = _instant(at)
        log = load_log(experiment, base)
        _require_known(log, entity, stream)
        subjects = tuple(
            (name, owner)
            for name in (log.streams if stream is None else (stream,))
            for owner in _owners(log, name, entity)
        )
        is_date = _DATE.fullmatch(at.strip())
        title = f"{at.strip()}, end of the UTC day" if is_date else str(time)
        return cls(experiment, log, time, title, subjects)


def _instant(text: str) -> pd.Timestamp:
    wanted = (
        "--at must be an instant with a zone such as 2008-02-01T18:00-05:00, or a date "
        f"such as 2008-02-01; got {text!r}."
    )
    try:
        time = pd.Timestamp(text.strip()).as_unit("ns")
    except ValueError as error:
        raise ValueError(wanted) from error
    if pd.isna(time):
        raise ValueError(wanted)
    if _DATE.fullmatch(text.strip()):
        return time.tz_localize("UTC") + pd.Timedelta("1D") - pd.Timedelta(1, "ns")
    if time.tzinfo is None:
        raise ValueError(
            f"--at must be timezone-aware; got {text!r}. Add an offset or Z, or give a "
            "date alone."
        )
    return time.tz_convert("UTC")


def _require_known(log: EventLog, entity: str | None, stream: str | None) -> None:
    entities = (MARKET_WIDE, *log.entities)
    if entity is not None and entity not in entities:
        raise ValueError(
            f"entity must be one of {', '.join(entities)}; got {entity!r}. "
            f"{did_you_mean(entity, entities)}Check the `entity` of the sources."
        )
    if stream is None:
        return
    if stream not in log.streams:
        raise ValueError(
            f"stream must be one of {', '.join(log.streams)}; got {stream!r}. "
            f"{did_you_mean(stream, log.streams)}Check the `stream` of the sources."
        )
    if not _owners(log, stream, entity):
        owners = ", ".join(_owners(log, stream, None)) or "nobody"
        raise ValueError(
            f"stream must have events of the entity; got {stream!r}, which is about "
            f"{owners}, for {entity!r}. Leave out --stream or --entity."
        )


def _owners(log: EventLog, stream: str, entity: str | None) -> tuple[str, ...]:
    found = sorted(set(log.table(stream)["entity"].to_pylist()))
    if entity is None:
        return tuple(found)
    return tuple(name for name in found if name in (entity, MARKET_WIDE))
