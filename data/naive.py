"""The oracle: the same questions answered by obvious double loops.

Nothing here is fast. The fast code is held against it by property tests.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Any

import pandas as pd

from .arrays import NO_SEQUENCE
from .asof import checked_points
from .events import MARKET_WIDE, Boundary, EventLog
from .stream_readings import NUM_GAPS
from .timeline import History

Event = dict[str, object]


def as_of(
    log: EventLog, points: pd.DataFrame, *, boundary: Boundary = "inclusive"
) -> pd.DataFrame:
    """Answer `asof.as_of` by looking at every event for every point."""
    events = {stream: _events(log, stream) for stream in log.streams}
    rows = []
    for entity, time in checked_points(points).itertuples(index=False):
        point: Event = {"entity": entity, "forecast_time": time}
        for stream in log.streams:
            known = [
                event
                for event in events[stream]
                if event["entity"] in (point["entity"], MARKET_WIDE)
                and _visible(event, time, boundary)
            ]
            rows.append(_answer(log, stream, point, known))
    return pd.DataFrame(rows)


def information_set(
    log: EventLog,
    entity: str,
    forecast_time: pd.Timestamp,
    *,
    history: History,
    boundary: Boundary = "inclusive",
) -> list[Event]:
    """Return the events of an information set, oldest availability first."""
    known = [
        event
        for stream in log.streams
        for event in _events(log, stream)
        if event["entity"] in (entity, MARKET_WIDE)
        and _visible(event, forecast_time, boundary)
    ]
    known.sort(key=_timeline_key)
    if history.last is not None:
        return known[-history.last :]
    if history.since is not None:
        start = _period_start(forecast_time, history.since)
        return [event for event in known if not _visible(event, start, "strict")]
    return known


def revision_features(
    log: EventLog, points: pd.DataFrame, *, boundary: Boundary = "inclusive"
) -> pd.DataFrame:
    """Answer `revision_features.revision_features` event by event."""
    events = {stream: _events(log, stream) for stream in log.streams}
    rows = []
    for entity, time in checked_points(points).itertuples(index=False):
        for stream in log.streams:
            known: list[dict[str, Any]] = [
                event
                for event in events[stream]
                if event["entity"] in (entity, MARKET_WIDE)
                and _visible(event, time, boundary)
            ]
            row: Event = {"entity": entity, "forecast_time": time, "stream": stream}
            if known:
                row |= _publication(known, time, log.values_of(stream))
            rows.append(row)
    return pd.DataFrame(rows)


def _publication(
    known: list[dict[str, Any]], time: pd.Timestamp, values: tuple[str, ...]
) -> Event:
    best = max(known, key=_recency)
    prints = [
        event
        for event in known
        if (event["entity"], event["event_time"])
        == (best["entity"], best["event_time"])
    ]
    prints.sort(key=_recency)
    row: Event = {
        "event_time": best["event_time"],
        "available_at": best["available_at"],
        "num_revisions": len(prints) - 1,
        "age": time - best["available_at"],
        "lag": best["available_at"] - best["event_time"],
    }
    for name in (n for n in values if isinstance(best[n], float)):
        row[f"{name}_since_first_print"] = prints[-1][name] - prints[0][name]
        if len(prints) > 1:
            row[f"{name}_since_previous_print"] = prints[-1][name] - prints[-2][name]
    told = sorted({event["available_at"] for event in known})
    gaps = [(later - one).value for one, later in pairwise(told)]
    if gaps:
        interval = median(gaps[-NUM_GAPS:])
        row["usual_interval"] = pd.Timedelta(round(interval), "ns")
        row["staleness"] = (time - told[-1]).value / interval
    return row


def _events(log: EventLog, stream: str) -> list[Event]:
    return [
        {str(name): value for name, value in record.items()} | {"stream": stream}
        for record in log.to_pandas(stream).to_dict("records")
    ]


def _visible(event: Event, limit: pd.Timestamp, boundary: Boundary) -> bool:
    available = event["available_at"]
    if not isinstance(available, pd.Timestamp):
        raise TypeError(f"available_at must be an instant; got {available!r}.")
    return available <= limit if boundary == "inclusive" else available < limit


def _sequence(event: Event) -> int:
    """Return the sequence; no sequence comes before every one."""
    missing = event["sequence"] is pd.NA
    return NO_SEQUENCE if missing else int(str(event["sequence"]))


def _timeline_key(event: Event) -> tuple[object, ...]:
    return (
        event["available_at"],
        event["stream"],
        event["event_time"],
        _sequence(event),
        event["entity"] != MARKET_WIDE,
    )


def _recency(event: Event) -> tuple[object, ...]:
    return (
        event["event_time"],
        event["available_at"],
        _sequence(event),
        event["entity"] != MARKET_WIDE,
    )


def _answer(log: EventLog, stream: str, point: Event, known: list[Event]) -> Event:
    row: Event = {
        "entity": point["entity"],
        "forecast_time": point["forecast_time"],
        "stream": stream,
    }
    if not known:
        return row
    best = max(known, key=_recency)
    for name in ("event_time", "available_at", "revision", *log.values_of(stream)):
        row[name] = best[name]
    row["age"] = point["forecast_time"] - best["available_at"]  # type: ignore[operator]
    return row


def _period_start(time: pd.Timestamp, period: str) -> pd.Timestamp:
    day = time.tz_convert("UTC").normalize()
    month = {"month": day.month, "quarter": 3 * ((day.month - 1) // 3) + 1, "year": 1}
    return day.replace(month=month[period], day=1)
