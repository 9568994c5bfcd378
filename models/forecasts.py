"""What a forecaster gives and what it must be able to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from infoset.data.sequences import Samples

LEVELS = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Quantile forecasts, one row per sample, in the target's unit.

    Attributes
    ----------
    quantiles : ndarray of shape (n, q)
        Ascending in each row.
    levels : tuple of float
        Ascending, in (0, 1).

    Raises
    ------
    ValueError
        If the shapes disagree, a level is out of order, a quantile is not finite, or
        quantiles cross.
    """

    quantiles: Float64[np.ndarray, "n q"]
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        if self.quantiles.shape[1] != len(self.levels):
            raise ValueError(
                f"quantiles must have {len(self.levels)} columns, one per level; got "
                f"{self.quantiles.shape[1]}."
            )
        if not np.all(np.diff([0.0, *self.levels, 1.0]) > 0):
            raise ValueError(f"levels must ascend within (0, 1); got {self.levels}.")
        finite = np.isfinite(self.quantiles).all(axis=1)
        if not finite.all():
            raise ValueError(
                "quantiles must be finite; got "
                f"{self.quantiles[~finite][0]} in row {int((~finite).argmax())}."
            )
        crossing = (np.diff(self.quantiles, axis=1) < 0).any(axis=1)
        if crossing.any():
            row = int(crossing.argmax())
            raise ValueError(
                f"quantiles must ascend in each row; got {self.quantiles[row]} in row "
                f"{row}. Sort them along the last axis."
            )

    def __len__(self) -> int:
        return len(self.quantiles)

    @property
    def mean(self) -> Float64[np.ndarray, " n"]:
        """Mean of the piecewise linear quantile function with flat tails."""
        edges = np.array([0.0, *self.levels, 1.0])
        padded = np.concatenate(
            [self.quantiles[:, :1], self.quantiles, self.quantiles[:, -1:]], axis=1
        )
        mean: np.ndarray = np.trapezoid(padded, edges, axis=1)
        return mean


@runtime_checkable
class Forecaster(Protocol):
    """Anything that learns from samples and forecasts others.

    `train` and `validation` carry targets; what `forecast` is given does not. An
    optional attribute `digest` (text that changes whenever the forecaster would answer
    differently) lets a run keep its results; without it they are computed each time.
    """

    def fit(self, train: Samples, validation: Samples) -> None:
        """Learn. Both sets are ordered by forecast time and never empty."""

    def forecast(self, samples: Samples) -> Forecasts:
        """Forecast every sample, also one with an empty information set."""
