"""No look-ahead, shown on this run: rebuild inputs and forecasts without the future."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd
import torch

from infoset.data.events import EventLog
from infoset.data.module import Batch, SampleDataset
from infoset.data.sequences import CausalScale, Samples, prepare_samples
from infoset.models.attention_forecaster import AttentionForecaster

from .config import Experiment
from .preparation import Prepared, with_changes

# What may change in a forecast when its batch is padded otherwise: float32 rounding.
ALLOWED_FORECAST_CHANGE = 1e-6


@dataclass(frozen=True)
class Check:
    """One thing that was tried.

    Attributes
    ----------
    level : {'data', 'model'}
    name : str
    num_points, num_failures : int
    largest_change, allowed_change : float
    detail : str
        What was tried, in words.
    """

    level: str
    name: str
    num_points: int
    num_failures: int
    largest_change: float
    allowed_change: float
    detail: str


@dataclass(frozen=True)
class Certificate:
    """The checks of a run."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing changed that must not."""
        return all(check.num_failures == 0 for check in self.checks)

    def to_json(self) -> dict[str, object]:
        """Return what `certificate.json` holds."""
        checks = [asdict(check) for check in self.checks]
        return {"passed": self.passed, "checks": checks}


def certify(
    experiment: Experiment,
    prepared: Prepared,
    forecasters: Mapping[str, AttentionForecaster],
) -> Certificate:
    """Delete everything after sampled forecast times of the last fold, and compare.

    The times are spread evenly over the test span. Changes and scales are derived
    anew from what is left of the log.

    Parameters
    ----------
    experiment : Experiment
    prepared : Prepared
    forecasters : Mapping[str, AttentionForecaster]
        As fitted on the last fold.

    Returns
    -------
    Certificate
        Inputs must be bit-identical, forecasts within `ALLOWED_FORECAST_CHANGE` of the
        scale.
    """
    samples, fold = prepared.samples[str(experiment.history)], prepared.folds[-1]
    places = np.linspace(0, len(fold.test) - 1, experiment.certificate.num_points)
    rows = fold.test[np.unique(places.astype(np.int64))]
    scale = CausalScale.fit(
        samples.take(fold.train),
        decay=experiment.scale.decay,
        prior_weight=experiment.scale.prior_weight,
    )
    whole = scale.apply(samples.take(rows).without_targets())
    cuts = [
        scale.apply(_without_future(experiment, prepared.log, whole, row))
        for row in range(len(whole))
    ]
    changed = [
        not same_inputs(whole.take(np.array([row])), cut)
        for row, cut in enumerate(cuts)
    ]
    checks = [
        Check(
            level="data",
            name="inputs without the future",
            num_points=len(rows),
            num_failures=sum(changed),
            largest_change=float(any(changed)),
            allowed_change=0.0,
            detail="All events unavailable at the forecast time were deleted and the "
            "inputs rebuilt: fingerprint, scale and every tensor, bit for bit.",
        )
    ]
    for name, forecaster in forecasters.items():
        checks.append(_forecast_check(name, forecaster, whole, cuts))
    return Certificate(tuple(checks))


def same_inputs(first: Samples, second: Samples) -> bool:
    """Whether two sets of samples give a forecaster the very same input, bit for bit."""
    if first.fingerprint.tolist() != second.fingerprint.tolist():
        return False
    if first.scale.tobytes() != second.scale.tobytes():
        return False
    every = list(range(len(first)))
    one, other = SampleDataset(first)[every], SampleDataset(second)[every]
    return all(
        torch.equal(getattr(one, f.name), getattr(other, f.name))
        for f in fields(Batch)
        if f.name != "target"
    )


def _without_future(
    experiment: Experiment, log: EventLog, samples: Samples, row: int
) -> Samples:
    point: pd.DataFrame = samples.points.iloc[[row]]
    cut = log.until(point["forecast_time"].iloc[0], boundary=experiment.boundary)
    return prepare_samples(
        with_changes(experiment, cut),
        point,
        experiment.targets,
        history=samples.history,
        boundary=experiment.boundary,
    )


def _forecast_check(
    name: str, forecaster: AttentionForecaster, whole: Samples, cuts: list[Samples]
) -> Check:
    together = forecaster.forecast(whole).quantiles / whole.scale[:, None]
    alone = np.concatenate(
        [forecaster.forecast(cut).quantiles / cut.scale[:, None] for cut in cuts]
    )
    change = np.abs(together - alone).max(axis=1)
    return Check(
        level="model",
        name=f"forecasts of {name} without the future",
        num_points=len(whole),
        num_failures=int((change > ALLOWED_FORECAST_CHANGE).sum()),
        largest_change=float(change.max(initial=0.0)),
        allowed_change=ALLOWED_FORECAST_CHANGE,
        detail="The same forecasts, made alone from the cut log instead of in a batch "
        "beside others; largest change of a quantile in units of the scale.",
    )
