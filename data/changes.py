"""The change of a value against the period before, inside one vintage.

A base-year change moves every level of a series at once. A change must therefore be
taken between two levels *as both were known at one instant*: the new print, and the
period before it as it read when the new print came out.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64

from .durations import Duration, duration_ns
from .events import EventLog
from .instants import nanoseconds
from .strict import Strict

ChangeKind = Literal["difference", "percent", "log"]
CHANGE = "change"


class Change(Strict):
    """A change that is taken of a value, inside one vintage.

    Attributes
    ----------
    column : str
    kind : {'difference', 'percent', 'log'}
    max_age : str, optional
        Duration such as ``385d``. A change whose period ended longer before its
        availability is missing: for files that carry revisions only for so long, where
        the period before the oldest one was revised too and the file does not say so.
    """

    column: str
    kind: ChangeKind
    max_age: Duration | None = None

    def is_known(
        self,
        event_time: Int64[np.ndarray, " n"],
        available_at: Int64[np.ndarray, " n"],
    ) -> Bool[np.ndarray, " n"]:
        """Return where `max_age` allows a change (clocks in UTC nanoseconds)."""
        if self.max_age is None:
            return np.ones(len(event_time), dtype=bool)
        age = available_at - event_time
        known: np.ndarray = age <= duration_ns(self.max_age)
        return known


def change_between(
    before: Float64[np.ndarray, " n"],
    after: Float64[np.ndarray, " n"],
    kind: ChangeKind,
) -> Float64[np.ndarray, " n"]:
    """Return after - before, 100 (after / before - 1), or log(after / before).

    The ratio kinds are missing (NaN) unless both values are positive.
    """
    if kind == "difference":
        difference: np.ndarray = after - before
        return difference
    positive = (before > 0) & (after > 0)
    ratio = np.divide(after, before, out=np.full_like(after, np.nan), where=positive)
    relative: np.ndarray = 100 * (ratio - 1) if kind == "percent" else np.log(ratio)
    return relative


def with_change(log: EventLog, stream: str, change: Change) -> EventLog:
    """Return the log with the value column `change` added to a stream.

    Each event gets the change of its value from the period before it (the newest
    earlier `event_time` of the entity), as both read at the event's availability.
    The first period's change is missing.

    Raises
    ------
    ValueError
        If the stream has no such numeric column, or has a `change` already.
    """
    table = log.table(stream)
    values = log.values_of(stream)
    column = change.column
    if column not in values or table.schema.field(column).type != "double":
        raise ValueError(
            f"change.column must be a numeric value of stream {stream!r} "
            f"({', '.join(values)}); got {column!r}."
        )
    if CHANGE in values:
        raise ValueError(
            f"stream {stream!r} must not have a value named {CHANGE!r} already. "
            "Rename it, or declare no change."
        )
    after = table[column].to_numpy(zero_copy_only=False)
    before = np.full(len(after), np.nan)
    event_time = nanoseconds(table["event_time"].to_pandas())
    entity = table["entity"].to_pandas()
    for rows in entity.groupby(entity).indices.values():
        before[rows] = _value_before(event_time[rows], after[rows])
    available_at = nanoseconds(table["available_at"].to_pandas())
    known = change.is_known(event_time, available_at)
    changes = np.where(known, change_between(before, after, change.kind), np.nan)
    # An Arrow null, not a NaN, is what the log holds for a missing value.
    array = pa.array(changes, mask=np.isnan(changes))
    changed = log.with_table(stream, table.append_column(CHANGE, array))
    return replace(changed, levels=changed.levels | {(stream, column)})


def _value_before(
    event_time: Int64[np.ndarray, " n"], value: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Return the value of the period before, as it read at each event's availability.

    The events come in the log's order, so at one instant the older period is revised
    before the newer one is read.
    """
    if np.all(np.diff(event_time) > 0):  # no revision: the row before is the answer
        return np.concatenate([[np.nan], value[:-1]]) if len(value) else value
    periods: list[int] = []
    latest: dict[int, float] = {}
    before = np.full(len(value), np.nan)
    for row, period in enumerate(event_time.tolist()):
        place = bisect_left(periods, period)
        if place:
            before[row] = latest[periods[place - 1]]
        if period not in latest:
            insort(periods, period)
        latest[period] = float(value[row])
    return before
