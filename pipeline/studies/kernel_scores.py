"""Scores of replaced forecasters against the softmax one, and how far they moved."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float64

from infoset.models.forecasts import LEVELS, Forecasts
from infoset.pipeline.config import Experiment
from infoset.pipeline.evaluation.metrics import row_scores
from infoset.pipeline.evaluation.significance import compare_pairs
from infoset.pipeline.evaluation.summary import LOSS, resolution_horizon
from infoset.pipeline.plan import Task
from infoset.pipeline.walk_forward import FoldData, forecast_frame

from .kernel_replacement import forecast_drift

BASELINE = "softmax"
Quantiles = Float64[np.ndarray, "n q"]


@dataclass(frozen=True)
class Change:
    """What a change of the attention did to the forecasts.

    Attributes
    ----------
    drift, drift_lowest, drift_highest : float
        Mean absolute change of all quantiles in widths of the softmax forecast's own
        90 % interval: mean, lowest and highest over seeds.
    median_drift : float
        That of the median alone.
    loss : float
        Scaled pinball loss, averaged over seeds.
    percent, percent_low, percent_high : float
        Change of the loss against softmax in %, with a 95 % interval (stationary
        bootstrap); NaN where undefined.
    statistic, p_value : float
        Diebold-Mariano, positive where softmax is better; NaN where undefined.
    kernel : str
        Weights of its autocovariances.
    lag, num_times, num_seeds : int
    undefined : str, optional
        Why there is no test, or no interval.
    """

    drift: float
    drift_lowest: float
    drift_highest: float
    median_drift: float
    loss: float
    percent: float
    percent_low: float
    percent_high: float
    statistic: float
    p_value: float
    kernel: str
    lag: int
    num_times: int
    num_seeds: int
    undefined: str | None


@dataclass(frozen=True, eq=False)
class Scoring:
    """Against what, and on which test span, forecasts are scored.

    Attributes
    ----------
    experiment : Experiment
    data : FoldData
    fold : int
    exact : ndarray of shape (n, q)
        The softmax forecasts.
    """

    experiment: Experiment
    data: FoldData
    fold: int
    exact: Quantiles

    def changes(
        self, forecasts: Mapping[str, Mapping[int, Quantiles]]
    ) -> dict[str, Change]:
        """Return the change of each set of forecasts (by name, then seed)."""
        if not forecasts:
            return {}
        named = {BASELINE: {0: self.exact}, **forecasts}
        frame = pd.concat(
            [
                self._frame(name, seed, quantiles)
                for name, by_seed in named.items()
                for seed, quantiles in by_seed.items()
            ],
            ignore_index=True,
        )
        scored = frame.assign(**{LOSS: row_scores(frame)[LOSS]})
        table = compare_pairs(
            scored, loss=LOSS, horizon=self.horizon, baseline=BASELINE
        )
        pairs = {row["forecaster"]: row for row in table.to_dict("records")}
        reference = self._loss(scored, BASELINE)
        return {
            name: self._change(pairs[name], reference, forecasts[name])
            for name in forecasts
        }

    @property
    def horizon(self) -> int:
        """Scored forecast times until a target is known, which decides the lag."""
        return resolution_horizon(self.data.test_points)

    @property
    def loss(self) -> float:
        """Scaled pinball loss of the softmax forecasts."""
        frame = self._frame(BASELINE, 0, self.exact)
        return self._loss(frame.assign(**{LOSS: row_scores(frame)[LOSS]}), BASELINE)

    def _frame(self, name: str, seed: int, quantiles: Quantiles) -> pd.DataFrame:
        task = Task(name, self.experiment.history, self.fold, seed, "")
        return forecast_frame(task, self.data, Forecasts(quantiles))

    @staticmethod
    def _loss(scored: pd.DataFrame, name: str) -> float:
        mine = scored[scored["forecaster"] == name]
        return float(mine.groupby("forecast_time")[LOSS].mean().mean())

    def _change(
        self,
        pair: Mapping[Hashable, Any],
        reference: float,
        by_seed: Mapping[int, Quantiles],
    ) -> Change:
        moved = [forecast_drift(self.exact, q, LEVELS) for q in by_seed.values()]
        drifts = [each["all_quantiles"] for each in moved]
        return Change(
            drift=float(np.mean(drifts)),
            drift_lowest=min(drifts),
            drift_highest=max(drifts),
            median_drift=float(np.mean([each["median"] for each in moved])),
            loss=reference + float(pair["mean_difference"]),
            percent=100 * float(pair["mean_difference"]) / reference,
            percent_low=100 * float(pair["low"]) / reference,
            percent_high=100 * float(pair["high"]) / reference,
            statistic=float(pair["statistic"]),
            p_value=float(pair["p_value"]),
            kernel=str(pair["kernel"]),
            lag=int(pair["lag"]),
            num_times=int(pair["num_times"]),
            num_seeds=len(by_seed),
            undefined=None if pair["undefined"] is None else str(pair["undefined"]),
        )
