"""The point-in-time query: what was known of each stream at a forecast time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int32, Int64

from .events import MARKET_WIDE, Boundary, EventLog
from .instants import instants
from .latest_rows import NOTHING, Asked, StreamRows, stream_rows
from .validation import utc_instants

_NO_INSTANT = int(np.iinfo(np.int64).min)  # what pandas reads as missing


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
    return known_at_points(log, points, boundary=boundary).frame()


def known_at_points(
    log: EventLog, points: pd.DataFrame, *, boundary: Boundary = "inclusive"
) -> KnownValues:
    """Answer `as_of` with one array per column, for millions of points.

    Arguments and errors are those of `as_of`.
    """
    checked = checked_points(points)
    known = _room_for_answers(log, checked)
    # Searching and copying leave the interpreter to others: streams side by side.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        prepared = [pool.submit(stream_rows, log, stream) for stream in log.streams]
        asked = Asked(checked, boundary)
        done = [
            pool.submit(_fill, known, place, log.table(stream), rows.result(), asked)
            for place, (stream, rows) in enumerate(
                zip(log.streams, prepared, strict=True)
            )
        ]
        for one in done:
            one.result()
    return known


@dataclass(frozen=True, eq=False)
class KnownValues:
    """What was known of each of s streams at each of p points.

    Attributes
    ----------
    points : DataFrame
        `entity` and `forecast_time`, as asked.
    streams : tuple of str
    event_time, available_at : ndarray of shape (s, p)
        UTC nanoseconds; the smallest number where nothing was known.
    revision : ndarray of shape (s, p)
        -1 where nothing was known.
    values : Mapping[str, ndarray of shape (s, p)]
        By value column, missing where nothing was known or a stream has no such column.
    """

    points: pd.DataFrame
    streams: tuple[str, ...]
    event_time: Int64[np.ndarray, "s p"]
    available_at: Int64[np.ndarray, "s p"]
    revision: Int32[np.ndarray, "s p"]
    values: Mapping[str, np.ndarray]

    def frame(self) -> pd.DataFrame:
        """Return one row per point and stream, in the order of the points."""
        num_streams, num_points = self.event_time.shape
        point = np.repeat(np.arange(num_points), num_streams)
        place = np.tile(np.arange(num_streams), num_points)
        times = self.points["forecast_time"].take(point).reset_index(drop=True)
        available_at = pd.Series(instants(self.available_at.T.ravel()))
        revision = self.revision.T.ravel()
        streams = pd.Series(list(self.streams), dtype="str")
        answer = {
            "entity": self.points["entity"].take(point).reset_index(drop=True),
            "forecast_time": times,
            "stream": streams.take(place).reset_index(drop=True),
            "event_time": instants(self.event_time.T.ravel()),
            "available_at": available_at,
            "revision": pd.arrays.IntegerArray(revision, revision == NOTHING),
            "age": times - available_at,
        }
        for name, values in self.values.items():
            answer[name] = _column(values.T.ravel())
        return pd.DataFrame(answer)


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
    known = log.until(forecast_time, boundary=boundary).to_pandas(stream)
    mine = known[known["entity"].isin([entity, MARKET_WIDE])]
    # As in `as_of`: no sequence comes first, and at a full tie the entity's own last.
    ordered = mine.assign(_own=mine["entity"] != MARKET_WIDE).sort_values(
        ["event_time", "available_at", "sequence", "_own"], na_position="first"
    )
    last = ordered.drop_duplicates("event_time", keep="last")
    return last.drop(columns=["entity", "sequence", "_own"]).reset_index(drop=True)


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


def _room_for_answers(log: EventLog, points: pd.DataFrame) -> KnownValues:
    shape = len(log.streams), len(points)
    kinds: dict[str, set[pa.DataType]] = {}
    for stream in log.streams:
        for name in log.values_of(stream):
            kinds.setdefault(name, set()).add(log.table(stream).field(name).type)
    return KnownValues(
        points=points,
        streams=log.streams,
        event_time=np.empty(shape, dtype=np.int64),
        available_at=np.empty(shape, dtype=np.int64),
        revision=np.empty(shape, dtype=np.int32),
        values={
            name: np.empty(shape, dtype=float if found == {pa.float64()} else object)
            for name, found in kinds.items()
        },
    )


def _fill(
    known: KnownValues, place: int, table: pa.Table, rows: StreamRows, asked: Asked
) -> None:
    """Write the answers of one stream."""
    latest = np.empty(len(asked), dtype=np.int64)
    latest[asked.order] = rows.latest(asked)
    unknown = np.flatnonzero(latest == NOTHING)
    revision = table["revision"].to_numpy()
    _take(rows.event_time, latest, unknown, known.event_time[place], _NO_INSTANT)
    _take(rows.available_at, latest, unknown, known.available_at[place], _NO_INSTANT)
    _take(revision, latest, unknown, known.revision[place], NOTHING)
    for name, values in known.values.items():
        missing = None if values.dtype == object else np.nan
        if name in table.column_names and table.num_rows:
            _take(table[name].to_numpy(), latest, unknown, values[place], missing)
        else:
            values[place] = missing


def _take(
    column: np.ndarray,
    rows: Int64[np.ndarray, " p"],
    unknown: Int64[np.ndarray, " u"],
    answer: np.ndarray,
    missing: object,
) -> None:
    """Write the cells of `rows`, and `missing` at the places `unknown`."""
    if len(unknown) < len(rows):
        # `clip` writes in place; what it takes for -1 is overwritten.
        cells = column.astype(answer.dtype, copy=False)
        np.take(cells, rows, out=answer, mode="clip")
    answer[unknown] = missing


def _column(values: np.ndarray) -> pd.Series:
    """Return values as a column: texts as `str`, unless there are numbers among them."""
    if values.dtype != object:
        return pd.Series(values)
    present = values[pd.notna(values)]
    is_text = all(isinstance(value, str) for value in present)
    return pd.Series(values, dtype="str" if is_text else object)
