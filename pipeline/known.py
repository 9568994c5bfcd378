"""What was known at an instant, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from infoset.data.asof import vintage
from infoset.data.changes import CHANGE, change_between
from infoset.data.events import MARKET_WIDE, EventLog
from infoset.data.instants import nanoseconds

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
        ISO 8601 with a zone; a bare date is midnight UTC at its end.
    entity, stream : str, optional
        Restrict the table.
    periods : int
        Rows per entity and stream, at most.

    Raises
    ------
    ValueError
        For an instant without a zone, or an unknown entity or stream.
    """
    experiment, base = load_experiment(config, overrides)
    log = load_log(experiment, base)
    time = _instant(at)
    names = (MARKET_WIDE, *log.entities)
    if entity is not None and entity not in names:
        raise ValueError(
            f"entity must be one of {', '.join(names)}; got {entity!r}. "
            "Check the `entity` of the sources."
        )
    streams = log.streams if stream is None else (stream,)
    rows: list[dict[str, object]] = []
    for name in streams:
        for owner in _owners(log, name, entity):
            rows += _rows(
                experiment, log, stream=name, owner=owner, time=time, periods=periods
            )
    answer = pd.DataFrame(rows, columns=list(COLUMNS))
    answer.attrs["at"] = time.isoformat()
    return answer


def _instant(text: str) -> pd.Timestamp:
    try:
        time = pd.Timestamp(text)
    except ValueError as error:
        raise ValueError(
            f"--at must be an instant such as 2008-02-01T18:00-05:00; got {text!r}."
        ) from error
    if time.tzinfo is None:
        if len(text.strip()) > len("2008-02-01"):
            raise ValueError(
                f"--at must be timezone-aware; got {text!r}. Add an offset or Z."
            )
        # A bare date means its whole UTC day.
        return time.tz_localize("UTC") + pd.Timedelta(days=1) - pd.Timedelta(1, "ns")
    return time.tz_convert("UTC")


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
    read = vintage(log, stream, entity=owner, forecast_time=time)
    if read.empty:
        nothing: dict[str, object] = dict.fromkeys(COLUMNS, "nothing known")
        return [nothing | {"entity": owner, "stream": stream}]
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
