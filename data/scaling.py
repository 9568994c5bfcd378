"""Scales known at the forecast time: the volatility of the target, seen causally."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64


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
    """

    decay: float
    weight: Float64[np.ndarray, " m"]
    square: Float64[np.ndarray, " m"]
    count: Int64[np.ndarray, " m"]

    @classmethod
    def along(
        cls,
        changes: Float64[np.ndarray, " n"],
        used: Bool[np.ndarray, " n"],
        *,
        decay: float,
    ) -> EwmaSums:
        """Sum the squares of `changes` where `used`; other events leave the sums."""
        kept = np.flatnonzero(used & np.isfinite(changes))
        count = np.zeros(len(changes) + 1, dtype=np.int64)
        count[kept + 1] = 1
        count = np.cumsum(count)
        weights = np.zeros(len(kept) + 1)
        squares = np.zeros(len(kept) + 1)
        for place, row in enumerate(kept):
            weights[place + 1] = decay * weights[place] + 1.0
            squares[place + 1] = decay * squares[place] + changes[row] ** 2
        return cls(decay, weights[count], squares[count], count)

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
        square = self.square[stop] - faded * self.square[start]
        # The subtraction may leave a rounding error below zero.
        total = prior_weight * prior + np.maximum(square, 0.0)
        variance: np.ndarray = total / (prior_weight + np.maximum(weight, 0.0))
        return variance
