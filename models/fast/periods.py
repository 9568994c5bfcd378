"""When the period of an instant began, asked again and again by a stream."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from infoset.data.timeline import History, period_starts

_NS_PER_HOUR = 3_600_000_000_000
_HOURS_AHEAD = np.arange(24 * 32) * _NS_PER_HOUR
NO_PERIOD = int(np.iinfo(np.int64).min)


class Periods:
    """The periods of a history `since`; calendars are asked once a month or so.

    A period's start never falls as time passes. So between two instants that have the
    same start, all have it.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._from, self._to, self._start = 0, -1, NO_PERIOD

    def start(self, at: int) -> int:
        """Return the start of an instant's period; both UTC nanoseconds."""
        if not self._from <= at <= self._to:
            self._ask(at)
        return self._start

    def starts(self, at: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        """Return the starts of several instants' periods."""
        first, last = int(at.min()), int(at.max())
        start = self.start(first)
        if last <= self._to:
            return np.full(len(at), start)
        return period_starts(at, self._history)

    def _ask(self, at: int) -> None:
        if self._history.since is None:
            self._from, self._to = NO_PERIOD, int(np.iinfo(np.int64).max)
            return
        ahead = at + _HOURS_AHEAD
        try:
            starts = period_starts(ahead, self._history)
        except ValueError:  # a calendar that ends within the month
            ahead = ahead[:1]
            starts = period_starts(ahead, self._history)
        self._start = int(starts[0])
        self._from, self._to = at, int(ahead[starts == self._start][-1])
