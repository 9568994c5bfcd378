"""An entity's events in order of availability: information sets are its slices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Int64, UInt64
from pydantic import Field, model_validator

from .arrays import EventArrays
from .calendars import session_opens_before
from .events import MARKET_WIDE, Boundary
from .fingerprints import hexadecimal, prefix_sums, subtracted
from .instants import instants
from .strict import Strict

_PERIODS = {"month": "M", "quarter": "Q", "year": "Y"}


class History(Strict):
    """How much of the past belongs to an information set.

    Attributes
    ----------
    last : int, optional
        Only the newest `last` events.
    since : {'session', 'month', 'quarter', 'year'}, optional
        Only events available since the start of that UTC month, quarter or year of the
        forecast time, or since the last session open. With neither, all the past
        belongs.
    calendar : str, optional
        Whose sessions; needed by ``since: session`` only.
    """

    last: int | None = Field(default=None, ge=1)
    since: Literal["session", "month", "quarter", "year"] | None = None
    calendar: str | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> History:
        if self.last is not None and self.since is not None:
            raise ValueError(
                "must have `last`, `since` or neither; got both. Remove one."
            )
        if (self.since == "session") != (self.calendar is not None):
            raise ValueError(
                "must name a `calendar` for `since: session` and only there; got "
                f"{self.calendar!r} with since {self.since!r}."
            )
        return self

    def __str__(self) -> str:
        if self.last is not None:
            return f"last {self.last}"
        return f"since {self.since}" if self.since else "all"


@dataclass(frozen=True, eq=False)
class Timeline:
    """The events of one entity and of the whole market, in order of availability.

    The order is (available_at, stream, event_time, sequence). What became available
    later comes later, so the information set at any instant is a slice that ends at
    one position, and appending events never moves an earlier one.

    Attributes
    ----------
    entity : str
    arrays : EventArrays
        The events; shared by all timelines, never copied.
    """

    entity: str
    arrays: EventArrays

    def __len__(self) -> int:
        return sum(block.stop - block.start for block in self._blocks)

    @cached_property
    def rows(self) -> Int64[np.ndarray, " n"]:
        """Positions of the events in `arrays`."""
        rows = np.concatenate([np.r_[block] for block in self._blocks])
        return self.arrays.in_timeline_order(rows)

    @property
    def _blocks(self) -> list[slice]:
        # At a full tie the market's event comes first.
        names = dict.fromkeys((MARKET_WIDE, self.entity))
        return [self.arrays.block(name) for name in names]

    @cached_property
    def available_at(self) -> Int64[np.ndarray, " n"]:
        """UTC nanoseconds, ascending."""
        available: np.ndarray = self.arrays.available_at[self.rows]
        return available

    @cached_property
    def _sums(self) -> UInt64[np.ndarray, "m 2"]:
        return prefix_sums(self.arrays.digests[self.rows])

    def stop(
        self,
        forecast_time: Int64[np.ndarray, " k"],
        *,
        boundary: Boundary = "inclusive",
    ) -> Int64[np.ndarray, " k"]:
        """Return how many events are visible at each forecast time (nanoseconds)."""
        if boundary == "inclusive":
            return np.searchsorted(self.available_at, forecast_time, side="right")
        return np.searchsorted(self.available_at, forecast_time, side="left")

    def start(
        self,
        stop: Int64[np.ndarray, " k"],
        forecast_time: Int64[np.ndarray, " k"],
        history: History,
    ) -> Int64[np.ndarray, " k"]:
        """Return the position at which each information set starts."""
        if history.last is not None:
            start: np.ndarray = np.maximum(stop - history.last, 0)
            return start
        if history.since is None:
            return np.zeros_like(stop)
        begins = period_starts(forecast_time, history)
        since = np.searchsorted(self.available_at, begins, side="left")
        bounded: np.ndarray = np.minimum(since, stop)
        return bounded

    def fingerprints(
        self, start: Int64[np.ndarray, " k"], stop: Int64[np.ndarray, " k"]
    ) -> np.ndarray:
        """Return the 32-digit fingerprint of each slice [start, stop)."""
        return hexadecimal(subtracted(self._sums[stop], self._sums[start]))


def timeline(arrays: EventArrays, entity: str) -> Timeline:
    """Return an entity's timeline.

    Raises
    ------
    ValueError
        If no event mentions the entity.
    """
    if entity not in arrays.entities:
        known = ", ".join(name for name in arrays.entities if name != MARKET_WIDE)
        raise ValueError(
            f"entity must be one of {known or '(none)'}; got {entity!r}. "
            "Check the `entity` of the sources."
        )
    return timeline_of(arrays, entity)


def timeline_of(arrays: EventArrays, entity: str) -> Timeline:
    """Return the timeline of an entity that may not have had an event yet."""
    return Timeline(entity=entity, arrays=arrays)


def period_starts(
    nanos: Int64[np.ndarray, " k"], history: History
) -> Int64[np.ndarray, " k"]:
    """Return when the `since` period of each instant began (UTC nanoseconds)."""
    if history.calendar is not None:
        return session_opens_before(history.calendar, nanos)
    naive = instants(nanos).tz_localize(None)
    begins = naive.to_period(_PERIODS[str(history.since)]).start_time
    return begins.as_unit("ns").to_numpy(dtype="datetime64[ns]").astype(np.int64)
