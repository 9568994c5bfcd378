"""Which event of a stream is the one to use at each point: two sorted lists, merged.

Both the events of a stream and the asked points are ordered by entity, then by time.
Counting time in asked instants makes one whole number of both, so that one search finds
the last visible event of every point.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from .arrays import NO_SEQUENCE
from .events import MARKET_WIDE, Boundary, EventLog
from .instants import nanoseconds, nanoseconds_of

NOTHING = -1
_DENSE = 4
# Kept beside the log, not in it: a copy in another process makes its own.
_MADE: WeakKeyDictionary[EventLog, dict[str, StreamRows]] = WeakKeyDictionary()


class Asked:
    """Points in the order of (entity, forecast_time).

    Attributes
    ----------
    order : ndarray of shape (p,)
        The place of each of them in what was given.
    entities : ndarray of str
        Sorted; `entity` counts in it.
    instants : ndarray of shape (u,)
        Distinct forecast times, ascending; `instant` counts in it.
    """

    def __init__(self, points: pd.DataFrame, boundary: Boundary) -> None:
        self.boundary: Boundary = boundary
        entity, self.entities = _ranked(points["entity"])
        instant, instants = _ranked(pd.Series(nanoseconds(points["forecast_time"])))
        self.instants = np.array(instants, dtype=np.int64)
        if (instant[1:] >= instant[:-1]).all():
            narrow = entity.astype(np.min_scalar_type(len(self.entities)))
            self.order = np.argsort(narrow, kind="stable")  # counts, not compares
        else:
            self.order = np.lexsort((instant, entity))
        self.entity, self.instant = entity[self.order], instant[self.order]

    def __len__(self) -> int:
        return len(self.order)

    def first_seen(self, available_at: Int64[np.ndarray, " n"]) -> np.ndarray:
        """Return the first asked instant that sees each event; their number if none."""
        side = "left" if self.boundary == "inclusive" else "right"
        return np.searchsorted(self.instants, available_at, side=side)  # type: ignore[call-overload, no-any-return] # numpy wants literals


def stream_rows(log: EventLog, stream: str) -> StreamRows:
    """Return a stream's events as `as_of` needs them, made once for each log.

    A log never changes, and what is the newest event at each place of a stream does not
    depend on what is asked.
    """
    made = _MADE.setdefault(log, {})
    if stream not in made:
        made[stream] = StreamRows(log.table(stream))
    return made[stream]


class StreamRows:
    """A stream's events, ordered by (entity, available_at, event_time, sequence)."""

    def __init__(self, table: pa.Table) -> None:
        self.sequence = table["sequence"]
        self.event_time = nanoseconds_of(table["event_time"])
        self.available_at = nanoseconds_of(table["available_at"])
        runs = pc.run_end_encode(table["entity"].combine_chunks())
        self.entities: list[str] = runs.values.to_pylist()
        stops = runs.run_ends.to_numpy().astype(np.int64)
        self.starts = np.concatenate([[0], stops])[:-1].astype(np.int64)
        self.lengths = stops - self.starts
        group = np.repeat(np.arange(len(stops)), self.lengths)
        # The place after all rows, which -1 addresses: nothing is known.
        self._best = np.append(newest_known(self.event_time, group), NOTHING)

    def latest(self, asked: Asked) -> Int64[np.ndarray, " p"]:
        """Return the row to use for each point, in the order of `asked`; or `NOTHING`.

        First everything unavailable is cut off, then the newest `event_time` is taken,
        then its last revision.
        """
        if not self.entities:
            return np.full(len(asked), NOTHING, dtype=np.int64)
        seen = asked.first_seen(self.available_at)
        best = self._best
        if self.entities == [MARKET_WIDE]:
            place = np.searchsorted(seen, asked.instant, "right") - 1
            return np.take(best, place, mode="wrap")
        own = np.take(best, self._last_own(asked, seen), mode="wrap")
        if MARKET_WIDE not in self.entities:
            return own
        block = self.entities.index(MARKET_WIDE)
        start = self.starts[block]
        stop = start + self.lengths[block]
        number = np.searchsorted(seen[start:stop], asked.instant, side="right")
        market = best[np.where(number > 0, start + number - 1, NOTHING)]
        return self._newer(own, market)

    def _last_own(
        self, asked: Asked, seen: Int64[np.ndarray, " n"]
    ) -> Int64[np.ndarray, " p"]:
        """Return the entity's last visible row of each point; `NOTHING` if none."""
        both = sorted({*asked.entities, *self.entities})
        place = {name: code for code, name in enumerate(both)}
        rows = np.array([place[name] for name in self.entities])
        points = np.array([place[name] for name in asked.entities], dtype=np.int64)
        width = len(asked.instants) + 1
        row_keys = np.repeat(rows * width, self.lengths) + seen
        point_keys = np.take(points * width, asked.entity) + asked.instant
        last = _number_up_to(row_keys, point_keys, len(both) * width) - 1
        starts = np.full(len(both), len(row_keys), dtype=np.int64)
        starts[rows] = self.starts
        first = np.take(starts[points], asked.entity)
        return np.where(last >= first, last, NOTHING)

    def _newer(
        self, own: Int64[np.ndarray, " p"], market: Int64[np.ndarray, " p"]
    ) -> Int64[np.ndarray, " p"]:
        """Choose between an entity's event and the market's; a full tie is its own."""
        answer = np.where(own == NOTHING, market, own)
        both = np.flatnonzero((own != NOTHING) & (market != NOTHING))
        first, second = own[both], market[both]
        mine = np.ones(len(both), dtype=bool)
        sequence = self.sequence.fill_null(NO_SEQUENCE).to_numpy()
        for key in (sequence, self.available_at, self.event_time):
            ours, others = key[first], key[second]
            mine = (ours > others) | ((ours == others) & mine)
        answer[both] = np.where(mine, first, second)
        return answer


def _ranked(values: pd.Series) -> tuple[Int64[np.ndarray, " p"], list[Any]]:
    """Return the place of each value among the distinct ones in order, and those."""
    codes, distinct = pd.factorize(values)
    given = list(distinct)
    order = sorted(range(len(given)), key=given.__getitem__)
    rank = np.empty(len(given), dtype=np.int64)
    rank[order] = np.arange(len(given))
    return rank[codes], [given[place] for place in order]


def _number_up_to(
    keys: Int64[np.ndarray, " n"], wanted: Int64[np.ndarray, " p"], limit: int
) -> Int64[np.ndarray, " p"]:
    """Return how many keys are not above each wanted one; all ascend below `limit`."""
    if limit <= _DENSE * (len(keys) + len(wanted)):
        # A table of all possible keys is read faster than the list is searched.
        return np.take(np.cumsum(np.bincount(keys, minlength=limit)), wanted)
    return np.searchsorted(keys, wanted, side="right")


def newest_known(
    event_time: Int64[np.ndarray, " n"], group: Int64[np.ndarray, " n"] | None = None
) -> Int64[np.ndarray, " n"]:
    """Return, at each place of availability-ordered events, the one to use there.

    It is the last one among those with the newest `event_time` so far: a late
    arrival about an older period does not pass for news. With `group`, ascending, each
    group is on its own.
    """
    if group is None:
        newest = np.maximum.accumulate(event_time)
    else:
        newest = pd.Series(event_time).groupby(group, sort=False).cummax().to_numpy()
    candidates = np.where(event_time == newest, np.arange(len(event_time)), 0)
    return np.maximum.accumulate(candidates)
