"""The point-in-time query: what was known of each stream at a forecast time."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64

from .arrays import NO_SEQUENCE
from .events import MARKET_WIDE, Boundary, EventLog
from .instants import nanoseconds
from .validation import utc_instants

_NOTHING = -1


def as_of(
    log: EventLog, points: pd.DataFrame, *, boundary: Boundary = "inclusive"
) -> pd.DataFrame:
    """Return what was known of every stream at each point.

    First everything unavailable at the forecast time is cut off; then the newest
    `event_time` is taken; among its revisions the last available, then the highest
    sequence. An entity also sees the market-wide `*`.

    Parameters
    ----------
    log : EventLog
    points : DataFrame
        Columns `entity` and `forecast_time` (timezone-aware).
    boundary : {'inclusive', 'strict'}
        Whether an event that becomes available at the forecast time itself is known.

    Returns
    -------
    DataFrame
        One row per point and stream, in the order of the points, streams sorted:
        entity, forecast_time, stream, event_time, available_at, revision, age
        (forecast_time - available_at) and the values of all streams; missing where
        nothing was known.

    Raises
    ------
    ValueError
        For a naive forecast time or a missing column.
    """
    checked = checked_points(points)
    parts = [
        _as_of_stream(log, stream, place, checked, boundary)
        for place, stream in enumerate(log.streams)
    ]
    if not parts:
        return pd.DataFrame(columns=["entity", "forecast_time", "stream"])
    answer = pd.concat(parts, ignore_index=True)
    answer = answer.sort_values(["_point", "_place"], ignore_index=True)
    return answer.drop(columns=["_point", "_place"])


def vintage(
    log: EventLog,
    stream: str,
    *,
    entity: str,
    forecast_time: pd.Timestamp,
    boundary: Boundary = "inclusive",
) -> pd.DataFrame:
    """Return a stream as it read at one instant: the last known value of each period.

    Returns
    -------
    DataFrame
        event_time, available_at, revision and the stream's values, oldest period
        first; empty where nothing was known.
    """
    known = log.until(forecast_time, boundary=boundary).table(stream)
    mine = pa.compute.is_in(known["entity"], pa.array([entity, MARKET_WIDE]))
    frame: pd.DataFrame = known.filter(mine).to_pandas()
    ordered = frame.sort_values(["event_time", "available_at", "sequence"])
    last = ordered.drop_duplicates("event_time", keep="last")
    return last.drop(columns=["entity", "sequence"]).reset_index(drop=True)


def checked_points(points: pd.DataFrame) -> pd.DataFrame:
    """Return the points with `forecast_time` in UTC nanoseconds.

    Raises
    ------
    ValueError
        For a missing column or a naive forecast time.
    """
    for name in ("entity", "forecast_time"):
        if name not in points.columns:
            raise ValueError(
                f"points must have the column {name!r}; got "
                f"{', '.join(map(str, points.columns))}."
            )
        missing = points[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"points must have no missing {name}; got one in row "
                f"{int(missing.argmax())}. Remove the row."
            )
    clock = points["forecast_time"].reset_index(drop=True)
    return pd.DataFrame(
        {
            "entity": points["entity"].reset_index(drop=True).astype("str"),
            "forecast_time": utc_instants(clock, name="forecast_time", where="points"),
        }
    )


def newest_known(event_time: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """Return, at each place of an availability-ordered stream, the event to use there.

    It is the last one among those with the newest `event_time` so far: a late
    arrival about an older period does not pass for news.
    """
    newest = np.maximum.accumulate(event_time)
    candidates = np.where(event_time == newest, np.arange(len(event_time)), 0)
    return np.maximum.accumulate(candidates)


def _as_of_stream(
    log: EventLog, stream: str, place: int, points: pd.DataFrame, boundary: Boundary
) -> pd.DataFrame:
    table = log.table(stream)
    clocks = _clocks(table)
    own = _latest_rows(clocks, points["entity"], points, boundary)
    everyone = pd.Series(MARKET_WIDE, index=points.index, dtype="str")
    market = _latest_rows(clocks, everyone, points, boundary)
    rows = _newer(clocks, own, market)
    known = rows != _NOTHING
    taken = table.take(pa.array(np.where(known, rows, 0), mask=~known)).to_pandas()
    answer = pd.DataFrame(
        {
            "_point": np.arange(len(points)),
            "_place": place,
            "entity": points["entity"],
            "forecast_time": points["forecast_time"],
            "stream": stream,
            "event_time": taken["event_time"],
            "available_at": taken["available_at"],
            "revision": taken["revision"].astype("Int32"),
            "age": points["forecast_time"] - taken["available_at"],
        }
    )
    for name in log.values_of(stream):
        answer[name] = taken[name]
    return answer


def _clocks(table: pa.Table) -> pd.DataFrame:
    frame = table.select(["entity", "event_time", "available_at"]).to_pandas()
    return pd.DataFrame(
        {
            "entity": frame["entity"].astype("str"),
            "event_time": nanoseconds(frame["event_time"]),
            "available_at": nanoseconds(frame["available_at"]),
            "sequence": table["sequence"].fill_null(NO_SEQUENCE).to_numpy(),
        }
    )


def _latest_rows(
    clocks: pd.DataFrame, entity: pd.Series, points: pd.DataFrame, boundary: Boundary
) -> Int64[np.ndarray, " p"]:
    """Return the row to use for each point among the events of `entity`, or -1."""
    answer = np.full(len(points), _NOTHING, dtype=np.int64)
    times = nanoseconds(points["forecast_time"])
    side: Literal["left", "right"] = "right" if boundary == "inclusive" else "left"
    groups = clocks.groupby("entity", sort=False).indices
    for name, asked in points.groupby(entity, sort=False).indices.items():
        rows = groups.get(name)
        if rows is None:
            continue
        # A stream's table is ordered by (entity, available_at, event_time, sequence).
        available = clocks["available_at"].to_numpy()[rows]
        best = newest_known(clocks["event_time"].to_numpy()[rows])
        stop = np.searchsorted(available, times[asked], side=side)
        answer[asked] = np.where(stop > 0, rows[best[stop - 1]], _NOTHING)
    return answer


def _newer(
    clocks: pd.DataFrame,
    own: Int64[np.ndarray, " p"],
    market: Int64[np.ndarray, " p"],
) -> Int64[np.ndarray, " p"]:
    """Choose between an entity's event and the market-wide one; a full tie is its own."""
    order = np.lexsort(
        (
            clocks["entity"] != MARKET_WIDE,
            clocks["sequence"],
            clocks["available_at"],
            clocks["event_time"],
        )
    )
    rank = np.empty(len(clocks) + 1, dtype=np.int64)
    rank[order] = np.arange(1, len(clocks) + 1)
    rank[_NOTHING] = 0  # the last place, which -1 addresses: nothing is known
    return np.where(rank[own] >= rank[market], own, market)
