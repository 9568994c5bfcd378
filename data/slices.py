"""Information sets of millions of points, as ranges of stored events: nothing is copied.

Market-wide events are stored once. The information set of a point is therefore two
ranges, its entity's events and the market's, each of which ends where its last visible
event is. Its fingerprint is the sum of both ranges' digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int32, Int64, UInt64

from .arrays import EventArrays
from .asof import checked_points
from .events import MARKET_WIDE, Boundary
from .fingerprints import added, hexadecimal, subtracted
from .instants import nanoseconds
from .timeline import History, period_starts

_UNKNOWN = -1
_BLOCK = 16_384  # points whose positions stay in the processor's cache


@dataclass(frozen=True, eq=False)
class InformationSlices:
    """The information sets of p points.

    Attributes
    ----------
    arrays : EventArrays
        The events that the ranges point into.
    own_start, own_stop, market_start, market_stop : ndarray of shape (p,)
        Ranges of the entity's own and of the market-wide events.
    """

    arrays: EventArrays
    own_start: Int64[np.ndarray, " p"]
    own_stop: Int64[np.ndarray, " p"]
    market_start: Int64[np.ndarray, " p"]
    market_stop: Int64[np.ndarray, " p"]

    def __len__(self) -> int:
        return len(self.own_stop)

    @property
    def num_events(self) -> Int64[np.ndarray, " p"]:
        """How many events each information set has."""
        own = self.own_stop - self.own_start
        total: np.ndarray = own + self.market_stop - self.market_start
        return total

    @property
    def fingerprint_words(self) -> UInt64[np.ndarray, "p 2"]:
        """The fingerprints as 128-bit numbers (hi, lo)."""
        sums = self.arrays.sums
        own = subtracted(sums[self.own_stop], sums[self.own_start])
        return added(own, subtracted(sums[self.market_stop], sums[self.market_start]))

    @property
    def fingerprints(self) -> np.ndarray:
        """The fingerprints as 32 hexadecimal digits each."""
        return hexadecimal(self.fingerprint_words)

    def rows(self, point: int) -> Int64[np.ndarray, " n"]:
        """Return the positions of one information set's events, in timeline order."""
        market = np.arange(self.market_start[point], self.market_stop[point])
        own = np.arange(self.own_start[point], self.own_stop[point])
        return self.arrays.in_timeline_order(np.concatenate([market, own]))


def information_slices(
    arrays: EventArrays,
    points: pd.DataFrame,
    *,
    history: History,
    boundary: Boundary = "inclusive",
) -> InformationSlices:
    """Return what belongs to the information set of each point.

    Parameters
    ----------
    arrays : EventArrays
    points : DataFrame
        Columns `entity` and `forecast_time` (timezone-aware). An entity without events
        sees the market's.
    history : History
    boundary : {'inclusive', 'strict'}

    Raises
    ------
    ValueError
        For a naive forecast time or a missing column.
    """
    checked = checked_points(points)
    times = nanoseconds(checked["forecast_time"])
    codes = _entity_codes(arrays, checked["entity"])
    order = np.argsort(codes, kind="stable")
    # Grouped by entity, each search stays in a short stretch of memory.
    grouped = _Grouped(arrays, codes[order], times[order])
    side: Literal["left", "right"] = "right" if boundary == "inclusive" else "left"
    own_stop, market_stop = grouped.positions(grouped.times, side)
    if history.last is not None:
        own_start, market_start = _last(
            grouped, own_stop, market_stop, limit=history.last
        )
    elif history.since is not None:
        begins = period_starts(grouped.times, history)
        own_start, market_start = grouped.positions(begins, "left")
        own_start = np.minimum(own_start, own_stop)
        market_start = np.minimum(market_start, market_stop)
    else:
        own_start, market_start = grouped.first, grouped.market_first
    return InformationSlices(
        arrays,
        *(
            _scattered(place, order)
            for place in (own_start, own_stop, market_start, market_stop)
        ),
    )


class _Grouped:
    """Points in the order of their entities, and where these entities' events are."""

    def __init__(
        self,
        arrays: EventArrays,
        codes: Int32[np.ndarray, " p"],
        times: Int64[np.ndarray, " p"],
    ) -> None:
        self.arrays, self.times = arrays, times
        market = arrays.block(MARKET_WIDE)
        self.market = market
        sees_own = (codes >= 0) & (codes != arrays.entity_code(MARKET_WIDE))
        self.first = np.where(sees_own, arrays.offsets[codes], 0)
        self.market_first = np.full_like(self.first, market.start)
        starts = np.flatnonzero(np.diff(codes, prepend=_UNKNOWN - 1))
        stops = np.append(starts, len(codes))[1:]
        self.groups = [
            (slice(start, stop), arrays.offsets[codes[start] :][:2])
            for start, stop in zip(starts, stops, strict=True)
            if sees_own[start]
        ]

    def positions(
        self, instants: Int64[np.ndarray, " p"], side: Literal["left", "right"]
    ) -> tuple[Int64[np.ndarray, " p"], Int64[np.ndarray, " p"]]:
        """Return where each instant falls among the own and the market's events."""
        available, market = self.arrays.available_at, self.market
        own = np.zeros(len(instants), dtype=np.int64)
        for asked, (first, last) in self.groups:
            found = np.searchsorted(available[first:last], instants[asked], side=side)
            own[asked] = first + found
        found = np.searchsorted(available[market], instants, side=side)
        return own, market.start + found


def _last(
    grouped: _Grouped,
    own_stop: Int64[np.ndarray, " p"],
    market_stop: Int64[np.ndarray, " p"],
    *,
    limit: int,
) -> tuple[Int64[np.ndarray, " p"], Int64[np.ndarray, " p"]]:
    """Return where the newest `limit` events of both ranges together start.

    Bisects for how many of them are the entity's own: the largest number for which its
    oldest one is still later than the newest of the market's that is left out.
    """
    num_own = own_stop - grouped.first
    num_market = market_stop - grouped.market_first
    total = np.minimum(num_own + num_market, limit)
    kept = np.empty_like(total)
    for start in range(0, len(total), _BLOCK):
        block = slice(start, start + _BLOCK)
        kept[block] = _num_own_kept(
            grouped.arrays,
            (own_stop[block], num_own[block]),
            (market_stop[block], num_market[block]),
            total[block],
        )
    return own_stop - kept, market_stop - (total - kept)


def _num_own_kept(
    arrays: EventArrays,
    own: tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]],
    market: tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]],
    total: Int64[np.ndarray, " k"],
) -> Int64[np.ndarray, " k"]:
    """Bisect for the entity's share of the newest `total` events of (stop, number)."""
    (own_stop, num_own), (market_stop, num_market) = own, market
    low: np.ndarray = np.maximum(total - num_market, 0)
    high = np.minimum(total, num_own)
    open_ = np.flatnonzero(low < high)
    while len(open_):
        tried = (low[open_] + high[open_] + 1) // 2
        oldest_kept = own_stop[open_] - tried
        newest_left_out = market_stop[open_] - (total[open_] - tried) - 1
        holds = _is_later(arrays, oldest_kept, newest_left_out)
        low[open_[holds]] = tried[holds]
        high[open_[~holds]] = tried[~holds] - 1
        open_ = open_[low[open_] < high[open_]]
    return low


def _is_later(
    arrays: EventArrays, own: Int64[np.ndarray, " k"], market: Int64[np.ndarray, " k"]
) -> Bool[np.ndarray, " k"]:
    """Return whether own events come after the market's in a timeline."""
    mine, theirs = arrays.available_at[own], arrays.available_at[market]
    later = np.empty(len(own), dtype=bool)
    np.greater(mine, theirs, out=later)
    tied = np.flatnonzero(mine == theirs)
    if len(tied):
        keys = (arrays.stream, arrays.event_time, arrays.sequence)
        first = [key[own[tied]] for key in keys]
        second = [key[market[tied]] for key in keys]
        # The market's event comes first at a full tie.
        after = np.ones(len(tied), dtype=bool)
        for ours, others in zip(first[::-1], second[::-1], strict=True):
            after &= ours == others
            after |= ours > others
        later[tied] = after
    return later


def _scattered(
    grouped: Int64[np.ndarray, " p"], order: Int64[np.ndarray, " p"]
) -> Int64[np.ndarray, " p"]:
    answer = np.empty_like(grouped)
    answer[order] = grouped
    return answer


def _entity_codes(arrays: EventArrays, entity: pd.Series) -> Int32[np.ndarray, " p"]:
    places, names = pd.factorize(entity)
    known = np.array([arrays.entity_code(str(name)) for name in names], dtype=np.int32)
    return known[places] if len(known) else np.empty(0, dtype=np.int32)
