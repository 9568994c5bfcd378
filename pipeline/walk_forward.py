"""One task: fit a forecaster on a fold's past, forecast its test span."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pandas as pd

from infoset.data.sequences import CausalScale, Samples
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.forecasts import LEVELS, Forecaster, Forecasts

from .config import Experiment
from .folds import Fold
from .forecaster_specs import build_forecaster
from .plan import Task
from .preparation import Prepared


@dataclass(frozen=True, eq=False)
class FoldData:
    """The scaled samples of one fold; the test part carries no target.

    Attributes
    ----------
    train, validation : Samples
    test : Samples
        Targets withheld.
    test_target : ndarray of shape (n,)
        For scoring, after the forecasts are made.
    target_scale : Mapping[str, float]
        Standard deviation of each entity's training targets.
    """

    train: Samples
    validation: Samples
    test: Samples
    test_points: pd.DataFrame
    target_scale: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What a task leaves behind.

    Attributes
    ----------
    task : Task
    forecasts : DataFrame
        See `forecast_frame`.
    forecaster : Forecaster
        Fitted.
    curve : tuple of (step, validation loss)
        Empty for forecasters without steps.
    denominators : Mapping[str, float]
        What linear attention divided by on the test span, see `DenominatorRecord`;
        empty for other forecasters.
    started, ended : float
        Unix seconds.
    """

    task: Task
    forecasts: pd.DataFrame
    forecaster: Forecaster
    curve: tuple[tuple[int, float], ...]
    denominators: Mapping[str, float]
    started: float
    ended: float


def fold_data(experiment: Experiment, samples: Samples, fold: Fold) -> FoldData:
    """Scale a fold's samples by what its training span knows."""
    train = samples.take(fold.train)
    scale = CausalScale.fit(
        train,
        decay=experiment.scale.decay,
        prior_weight=experiment.scale.prior_weight,
    )
    test = samples.take(fold.test)
    spread = {
        name: float(np.std(train.target[train.entity == name])) or float("nan")
        for name in train.entities
        if (train.entity == name).any()
    }
    return FoldData(
        train=scale.apply(train),
        validation=scale.apply(samples.take(fold.validation)),
        test=scale.apply(test.without_targets()),
        test_points=test.points,
        target_scale=spread,
    )


def run_task(
    experiment: Experiment,
    prepared: Prepared,
    task: Task,
    own: Mapping[str, Forecaster],
) -> TaskResult:
    """Fit and forecast."""
    started = time.time()
    samples = prepared.samples[str(task.history)]
    data = fold_data(experiment, samples, prepared.folds[task.fold])
    forecaster = task_forecaster(experiment, task, own)
    forecaster.fit(data.train, data.validation)
    forecasts = forecaster.forecast(data.test)
    record = getattr(forecaster, "record", None)
    return TaskResult(
        task=task,
        forecasts=forecast_frame(task, data, forecasts),
        forecaster=forecaster,
        curve=record.validation_curve if record else (),
        denominators=_denominators(forecaster, data.test),
        started=started,
        ended=time.time(),
    )


def _denominators(forecaster: Forecaster, test: Samples) -> dict[str, float]:
    if not isinstance(forecaster, AttentionForecaster):
        return {}
    record = forecaster.denominators(test)
    return record.metrics() if record else {}


def task_forecaster(
    experiment: Experiment, task: Task, own: Mapping[str, Forecaster]
) -> Forecaster:
    """Return the task's forecaster, not yet fitted to its fold."""
    if task.forecaster in own:
        # A copy for each task: what one fold taught must not reach another.
        return deepcopy(own[task.forecaster])
    return build_forecaster(
        experiment.forecasters[task.forecaster],
        network=experiment.network,
        training=experiment.training,
        seed=task.seed,
    )


def forecast_frame(task: Task, data: FoldData, forecasts: Forecasts) -> pd.DataFrame:
    """Return one row per test forecast, with its information set's fingerprint.

    Raises
    ------
    ValueError
        If the forecaster did not answer every sample, or at other levels.
    """
    if len(forecasts) != len(data.test):
        raise ValueError(
            f"forecaster {task.forecaster!r} must forecast every sample; got "
            f"{len(forecasts)} forecasts for {len(data.test)} samples."
        )
    if forecasts.levels != LEVELS:
        raise ValueError(
            f"forecaster {task.forecaster!r} must forecast the levels {LEVELS}; got "
            f"{forecasts.levels}. Forecasts of other levels cannot be compared."
        )
    points = data.test_points
    frame = pd.DataFrame(
        {
            "forecaster": task.forecaster,
            "history": str(task.history),
            "fold": task.fold,
            "seed": task.seed,
            "entity": points["entity"],
            "forecast_time": points["forecast_time"],
            "target_start": points["target_start"],
            "target_end": points["target_end"],
            "fingerprint": data.test.fingerprint.astype(object),
            "num_events": data.test.num_events,
            "mean": forecasts.mean,
        }
    )
    for place, level in enumerate(forecasts.levels):
        frame[quantile_column(level)] = forecasts.quantiles[:, place]
    frame["target"] = points["target"]
    frame["target_scale"] = points["entity"].map(dict(data.target_scale))
    return frame


def quantile_column(level: float) -> str:
    """Return the column name of a level: 0.05 is ``q05``, 0.975 is ``q975``."""
    return (
        f"q{level:.2f}".replace("0.", "", 1)
        if round(level, 2) == level
        else (f"q{level}".replace("0.", "", 1))
    )
