"""The study's subject: a softmax forecaster that was really trained, on one fold."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float64

from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.config import Experiment, ScaleOptions
from infoset.pipeline.preparation import Prepared
from infoset.pipeline.walk_forward import FoldData, fold_data

from .fixed_steps import mean_loss, train_steps, untrained
from .kernel_settings import KernelSettings

# So many changes count as the prior that no change moves the scale.
_CONSTANT = 1e12


@dataclass(frozen=True, eq=False)
class TrainedSoftmax:
    """A trained forecaster with its fold.

    Attributes
    ----------
    fold : int
    data : FoldData
        With the forecast times that are scored.
    forecaster : AttentionForecaster
    before, after : ndarray of shape (n, q)
        Test forecasts of the untrained and of the trained network.
    validation_before, validation_after : float
        Mean pinball loss of the scaled target.
    test_span : tuple of Timestamp
        First and last forecast time.
    """

    fold: int
    data: FoldData
    forecaster: AttentionForecaster
    before: Float64[np.ndarray, "n q"]
    after: Float64[np.ndarray, "n q"]
    validation_before: float
    validation_after: float
    test_span: tuple[pd.Timestamp, pd.Timestamp]


def studied(experiment: Experiment, settings: KernelSettings) -> Experiment:
    """Return the experiment as the study prepares it.

    One history, and (unless the settings keep the causal scale) a scale that stays at
    its prior, so that forecasts know the volatility from the events alone.

    Raises
    ------
    ValueError
        If the history is not `last: n`.
    """
    if experiment.history.last is None:
        raise ValueError(
            "history must be `last: n` in this study, which compares all pairs of an "
            f"information set; got {experiment.history}. Add --set history.last=64."
        )
    update: dict[str, object] = {"history_lengths": ()}
    if not settings.causal_scale:
        decay = experiment.scale.decay
        update["scale"] = ScaleOptions(decay=decay, prior_weight=_CONSTANT)
    return experiment.model_copy(update=update)


def trained_softmax(
    experiment: Experiment, prepared: Prepared, settings: KernelSettings
) -> TrainedSoftmax:
    """Train the experiment's network for a fixed number of steps.

    Early stopping would keep the untrained network where validation favours it, whose
    forecasts no attention can move.

    Raises
    ------
    ValueError
        If there is no such fold.
    """
    number = _newest_whole(experiment, prepared)
    if settings.fold is not None:
        number = settings.fold
    if number >= len(prepared.folds):
        raise ValueError(
            f"study.fold must be one of 0 to {len(prepared.folds) - 1}; got {number}. "
            "Leave it out for the newest that tests every entity."
        )
    fold = prepared.folds[number]
    data = thinned(
        fold_data(experiment, prepared.samples[str(experiment.history)], fold),
        settings.num_times,
    )
    seed = experiment.seeds[0]
    forecaster = untrained(
        AttentionForecaster(
            "softmax", size=experiment.network, training=experiment.training, seed=seed
        ),
        data.train,
        data.validation,
    )
    before = forecaster.forecast(data.test).quantiles
    validation_before = mean_loss(forecaster, data.validation)
    train_steps(
        forecaster,
        data.train,
        data.validation,
        num_steps=settings.num_steps,
        seed=seed,
    )
    return TrainedSoftmax(
        fold=number,
        data=data,
        forecaster=forecaster,
        before=before,
        after=forecaster.forecast(data.test).quantiles,
        validation_before=validation_before,
        validation_after=mean_loss(forecaster, data.validation),
        test_span=fold.test_span,
    )


def thinned(data: FoldData, num_times: int) -> FoldData:
    """Keep some of the test span's forecast times, evenly, with all their entities."""
    times = data.test.forecast_time
    distinct = np.unique(times)
    if len(distinct) <= num_times:
        return data
    places = np.linspace(0, len(distinct) - 1, num_times).round().astype(np.int64)
    rows = np.flatnonzero(np.isin(times, distinct[places]))
    points = data.test_points.iloc[rows].reset_index(drop=True)
    return replace(data, test=data.test.take(rows), test_points=points)


def _newest_whole(experiment: Experiment, prepared: Prepared) -> int:
    """Return the newest fold whose test span has every entity, or the newest of all."""
    entity = prepared.points["entity"].to_numpy(dtype=object)
    whole = [
        number
        for number, fold in enumerate(prepared.folds)
        if set(entity[fold.test]) == set(experiment.entities)
    ]
    return whole[-1] if whole else len(prepared.folds) - 1
