"""Scales known at the forecast time: the volatility of the target, seen causally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

# Of what precedes a slice to the slice itself: beyond it ten digits are not left.
_LARGEST_RATIO = 1e5


@dataclass(frozen=True, eq=False)
class EwmaSums:
    """Exponentially weighted sums of squared changes along one timeline.

    Attributes
    ----------
    decay : float
        Weight of a change relative to the next one, in (0, 1).
    weight, square : ndarray of shape (n + 1,)
        Sums over the changes among the first i events.
    count : ndarray of shape (n + 1,)
        Number of such changes.
    squares : ndarray of shape (changes,)
        Each of them, squared.
    """

    decay: float
    weight: Float64[np.ndarray, " m"]
    square: Float64[np.ndarray, " m"]
    count: Int64[np.ndarray, " m"]
    squares: Float64[np.ndarray, " c"]

    @classmethod
    def along(
        cls,
        changes: Float64[np.ndarray, " n"],
        used: Bool[np.ndarray, " n"],
        *,
        decay: float,
    ) -> EwmaSums:
        """Sum the squares of `changes` where `used`; other events leave the sums."""
        # It takes a second or two to import, and most commands need no scale.
        from scipy.signal import lfilter  # noqa: PLC0415

        kept = np.flatnonzero(used & np.isfinite(changes))
        count = np.zeros(len(changes) + 1, dtype=np.int64)
        count[kept + 1] = 1
        count = np.cumsum(count)
        fade = [1.0, -decay]
        weights = lfilter([1.0], fade, np.ones(len(kept)))
        squares = lfilter([1.0], fade, changes[kept] ** 2)
        return cls(
            decay,
            np.concatenate([[0.0], weights])[count],
            np.concatenate([[0.0], squares])[count],
            count,
            changes[kept] ** 2,
        )

    def variance(
        self,
        start: Int64[np.ndarray, " k"],
        stop: Int64[np.ndarray, " k"],
        *,
        prior: float,
        prior_weight: float,
    ) -> Float64[np.ndarray, " k"]:
        """Return the weighted mean square of the changes in each slice [start, stop).

        Only the slice counts: what lies before `start` is taken out again, so that
        equal information sets have equal scales. `prior` enters with the weight of
        `prior_weight` newest changes and is the answer for an empty slice.
        """
        faded = self.decay ** (self.count[stop] - self.count[start]).astype(float)
        weight = self.weight[stop] - faded * self.weight[start]
        before = faded * self.square[start]
        square = self.square[stop] - before
        # Where almost everything is taken out again, its rounding would remain.
        for row in np.flatnonzero(before > _LARGEST_RATIO * square):
            square[row] = self._summed(int(start[row]), int(stop[row]))
        total = prior_weight * prior + square
        variance: np.ndarray = total / (prior_weight + np.maximum(weight, 0.0))
        return variance

    def _summed(self, start: int, stop: int) -> float:
        own = self.squares[self.count[start] : self.count[stop]]
        return float(own @ self.decay ** np.arange(len(own) - 1, -1, -1.0))
