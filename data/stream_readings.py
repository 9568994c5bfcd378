"""What one stream says about its newest period: prints, revisions, lag, silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from .arrays import EventArrays
from .latest_rows import newest_known
from .timeline import Timeline

NUM_GAPS = 12  # a year of a monthly stream, two weeks and a half of daily closes


@dataclass(frozen=True, eq=False)
class Readings:
    """A stream as it read at k forecast times, beside its values.

    Where nothing was known, `row` is -1 and the whole numbers say nothing.

    Attributes
    ----------
    row : ndarray of shape (k,)
        Position in the event arrays of the event that `as_of` would use.
    since_first, since_previous : ndarray of shape (k, c)
        Value minus the first print, and minus the print before, of the same period;
        NaN where a value is missing, or there is no such print in the slice.
    num_revisions : ndarray of shape (k,)
        How often the period has been revised so far.
    age, lag : ndarray of shape (k,)
        Forecast time minus availability, and availability minus event time;
        nanoseconds.
    interval : ndarray of shape (k,)
        Median of the newest gaps between instants at which the stream told anything,
        `NUM_GAPS` at most; nanoseconds; NaN without a gap.
    staleness : ndarray of shape (k,)
        Time since the stream last told anything, in such intervals.
    """

    row: Int64[np.ndarray, " k"]
    since_first: Float64[np.ndarray, "k c"]
    since_previous: Float64[np.ndarray, "k c"]
    num_revisions: Int64[np.ndarray, " k"]
    age: Int64[np.ndarray, " k"]
    lag: Int64[np.ndarray, " k"]
    interval: Float64[np.ndarray, " k"]
    staleness: Float64[np.ndarray, " k"]

    @property
    def known(self) -> Bool[np.ndarray, " k"]:
        """Where anything was known."""
        return self.row >= 0


def stream_readings(
    line: Timeline,
    stream: int,
    columns: Sequence[str],
    *,
    start: Int64[np.ndarray, " k"],
    stop: Int64[np.ndarray, " k"],
    times: Int64[np.ndarray, " k"],
) -> Readings:
    """Read one stream from slices of a timeline, and from nothing outside them.

    Parameters
    ----------
    line : Timeline
    stream : int
        Code of the stream.
    columns : sequence of str
        Its numeric values that are compared with earlier prints.
    start, stop : ndarray of shape (k,)
        The slices.
    times : ndarray of shape (k,)
        Forecast times, UTC nanoseconds.
    """
    arrays = line.arrays
    places = np.flatnonzero(arrays.stream[line.rows] == stream)
    rows = line.rows[places]
    if not len(rows):
        return _nothing(len(stop), len(columns))
    first = np.searchsorted(places, start, side="left")
    last = np.searchsorted(places, stop, side="left")
    newest = _newest_period(arrays.event_time[rows], first, last)
    known, here = newest >= 0, np.maximum(newest, 0)
    previous, original = _earlier_prints(arrays, rows)
    name, available = arrays.streams[stream], arrays.available_at[rows]
    values = arrays.values[rows][:, [arrays.value_index(name, c) for c in columns]]
    interval = _usual_interval(available, first, last)
    silence = times - available[np.maximum(last - 1, 0)]
    return Readings(
        row=np.where(known, rows[here], -1),
        since_first=_since(values, here, original[here], known, first),
        since_previous=_since(values, here, previous[here], known, first),
        num_revisions=arrays.revision[rows][here].astype(np.int64),
        age=times - available[here],
        lag=available[here] - arrays.event_time[rows][here],
        interval=interval,
        staleness=silence / interval,
    )


def _nothing(num_points: int, num_columns: int) -> Readings:
    none, zero = np.full(num_points, -1, np.int64), np.zeros(num_points, np.int64)
    nan, block = np.full(num_points, np.nan), np.full((num_points, num_columns), np.nan)
    return Readings(none, block, block, zero, zero, zero, nan, nan)


def _newest_period(
    event_time: Int64[np.ndarray, " m"],
    start: Int64[np.ndarray, " k"],
    stop: Int64[np.ndarray, " k"],
) -> Int64[np.ndarray, " k"]:
    """Return the position of the event to use in each slice of a stream, or -1."""
    found = newest_known(event_time)[np.maximum(stop - 1, 0)]
    # Where the newest period of all the past lies before the slice, its own is sought.
    outside = (stop > start) & (found < start)
    if outside.any():
        found[outside] = _last_maximum(event_time, start[outside], stop[outside])
    return np.where(stop > start, found, -1)


def _last_maximum(
    values: Int64[np.ndarray, " m"],
    start: Int64[np.ndarray, " k"],
    stop: Int64[np.ndarray, " k"],
) -> Int64[np.ndarray, " k"]:
    """Return the last position of the largest value in each slice, none of them empty.

    Two spans of a power of two cover any slice; their maxima are built by doubling.
    """
    order = np.lexsort((np.arange(len(values)), values))
    table = np.empty(len(values), dtype=np.int64)
    table[order] = np.arange(len(values))
    power = np.frexp((stop - start).astype(np.float64))[1] - 1
    largest = np.empty(len(start), dtype=np.int64)
    for exponent in range(int(power.max()) + 1):
        width, mine = 2**exponent, power == exponent
        largest[mine] = np.maximum(table[start[mine]], table[stop[mine] - width])
        table = np.maximum(table[:-width], table[width:])
    return order[largest]


def _earlier_prints(
    arrays: EventArrays, rows: Int64[np.ndarray, " m"]
) -> tuple[Int64[np.ndarray, " m"], Int64[np.ndarray, " m"]]:
    """Return where the print before (-1: none) and the first print of each event are."""
    owner, period = arrays.entity[rows], arrays.event_time[rows]
    order = np.lexsort((np.arange(len(rows)), period, owner))
    same = (np.diff(owner[order]) == 0) & (np.diff(period[order]) == 0)
    begins = np.concatenate([[True], ~same])
    first = order[np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))]
    before = np.where(begins, -1, np.concatenate([[-1], order[:-1]]))
    previous, original = np.empty_like(order), np.empty_like(order)
    previous[order], original[order] = before, first
    return previous, original


def _since(
    values: Float64[np.ndarray, "m c"],
    here: Int64[np.ndarray, " k"],
    earlier: Int64[np.ndarray, " k"],
    known: Bool[np.ndarray, " k"],
    start: Int64[np.ndarray, " k"],
) -> Float64[np.ndarray, "k c"]:
    told = known & (earlier >= start)  # -1, and prints before the slice, are not
    change: np.ndarray = values[here] - values[np.maximum(earlier, 0)]
    return np.where(told[:, None], change, np.nan)


def _usual_interval(
    available: Int64[np.ndarray, " m"],
    start: Int64[np.ndarray, " k"],
    stop: Int64[np.ndarray, " k"],
) -> Float64[np.ndarray, " k"]:
    """Return the median of the newest gaps between the instants inside each slice."""
    instant, number = np.unique(available, return_inverse=True)
    gaps = np.concatenate([[0], np.diff(instant)]).astype(np.float64)
    ends = number[np.maximum(stop - 1, 0)][:, None] - np.arange(NUM_GAPS)
    begins = number[np.minimum(start, len(number) - 1)][:, None]
    inside = (ends > begins) & (stop > start)[:, None]
    ordered = np.sort(np.where(inside, gaps[np.maximum(ends, 0)], np.nan), axis=1)
    count = inside.sum(axis=1)  # a missing gap is sorted behind every other
    middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
    middle = np.minimum(middle, NUM_GAPS - 1)
    median: np.ndarray = np.take_along_axis(ordered, middle, axis=1).mean(axis=1)
    return np.where(count > 0, median, np.nan)
