"""What was known at an instant, as a table for people."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from infoset.data.asof import vintage
from infoset.data.changes import CHANGE, change_between
from infoset.data.events import MARKET_WIDE, EventLog
from infoset.data.instants import nanoseconds
from infoset.data.sources.nearest import did_you_mean

from .config import Experiment, load_experiment
from .preparation import declared_changes, load_log

COLUMNS = (
    "entity",
    "stream",
    "event_time",
    "available_at",
    "age_days",
    "revision",
    "values",
    "change",
)
NOTHING = "nothing known"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def known_at(
    config: str,
    *,
    at: str,
    entity: str | None = None,
    stream: str | None = None,
    periods: int = 1,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the newest periods of each stream as they read at an instant.

    A change is taken inside the vintage: the period's value minus the value of the
    period before, both as known at the instant.

    Parameters
    ----------
    config : str
    at : str
        ISO 8601 with a zone; a bare date means the end of that UTC day.
    entity, stream : str, optional
        Restrict the table.
    periods : int
        Rows per entity and stream, at most.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. `attrs["at"]` names the instant.

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
    rows: list[dict[str, object]] = []
    for name in log.streams if stream is None else (stream,):
        for owner in _owners(log, name, entity):
            rows += _rows(
                experiment, log, stream=name, owner=owner, time=time, periods=periods
            )
    answer = pd.DataFrame(rows, columns=list(COLUMNS))
    is_date = _DATE.fullmatch(at.strip())
    answer.attrs["at"] = f"{at.strip()}, end of the UTC day" if is_date else str(time)
    return answer


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


def _rows(
    experiment: Experiment,
    log: EventLog,
    *,
    stream: str,
    owner: str,
    time: pd.Timestamp,
    periods: int,
) -> list[dict[str, object]]:
    read = vintage(
        log,
        stream,
        entity=owner,
        forecast_time=time,
        boundary=experiment.boundary,
    )
    if read.empty:
        blank: dict[str, object] = dict.fromkeys(COLUMNS, "")
        return [blank | {"entity": owner, "stream": stream, "values": NOTHING}]
    rule = declared_changes(experiment, log).get(stream)
    if rule is not None:
        level = read[rule.column].to_numpy(np.float64)
        before = np.concatenate([[np.nan], level[:-1]])
        known = rule.is_known(
            nanoseconds(read["event_time"]), nanoseconds(read["available_at"])
        )
        moved = change_between(before, level, rule.kind)
        read[CHANGE] = np.where(known, moved, np.nan)
    values = [n for n in log.values_of(stream) if not n.startswith("text_")]
    return [
        {
            "entity": owner,
            "stream": stream,
            "event_time": record["event_time"].isoformat(),
            "available_at": record["available_at"].isoformat(),
            "age_days": f"{(time - record['available_at']) / pd.Timedelta('1D'):.1f}",
            "revision": record["revision"],
            "values": ", ".join(f"{n} {_shown(record[n])}" for n in values),
            "change": _shown(record[CHANGE]) if CHANGE in record else "",
        }
        for record in read.tail(periods).to_dict("records")
    ]


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "missing" if np.isnan(value) else f"{value:.10g}"
    return "missing" if value is None else str(value)
