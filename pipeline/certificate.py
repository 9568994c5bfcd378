"""No look-ahead, shown on this run: rebuild inputs and forecasts without the future."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
import pandas as pd
import torch

from infoset.data.events import EventLog
from infoset.data.module import Batch, SampleDataset
from infoset.data.sequences import CausalScale, Samples, prepare_samples
from infoset.data.timeline import History
from infoset.models.embedding import ChannelStatistics
from infoset.models.forecasts import Forecaster

from .config import Experiment
from .look_ahead import early_test_forecasts, used_encodings
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
    forecasters: Mapping[str, Forecaster],
) -> Certificate:
    """Delete the future of sampled forecast times of the last fold, and compare.

    The times are spread evenly over the test span. For each, everything unavailable
    then is deleted from the log as the sources gave it, and changes, information set
    and inputs are made anew from the rest; the scale comes from a log that ends where
    the fold's test span begins.

    Parameters
    ----------
    experiment : Experiment
    prepared : Prepared
    forecasters : Mapping[str, Forecaster]
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
    train = samples.take(fold.train)
    past = _rebuilt(experiment, prepared.log, train.points, fold.cut, samples.history)
    scale, past_scale = _scale(experiment, train), _scale(experiment, past)
    whole = scale.apply(samples.take(rows).without_targets())
    cuts = []
    for row in range(len(whole)):
        point: pd.DataFrame = whole.points.iloc[[row]]
        time = point["forecast_time"].iloc[0]
        cut = _rebuilt(experiment, prepared.log, point, time, samples.history)
        cuts.append(past_scale.apply(cut))
    return Certificate(
        (
            _statistics_check(train, past, scale, past_scale),
            _inputs_check(whole, cuts),
            *_training_checks(experiment, prepared),
            *(
                _forecast_check(name, forecaster, whole, cuts)
                for name, forecaster in forecasters.items()
            ),
        )
    )


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


def _rebuilt(
    experiment: Experiment,
    log: EventLog,
    points: pd.DataFrame,
    time: pd.Timestamp,
    history: History,
) -> Samples:
    """Return samples made from what the log held at an instant."""
    return prepare_samples(
        with_changes(experiment, log.until(time, boundary=experiment.boundary)),
        points,
        experiment.targets,
        history=history,
        boundary=experiment.boundary,
    )


def _scale(experiment: Experiment, train: Samples) -> CausalScale:
    return CausalScale.fit(
        train,
        decay=experiment.scale.decay,
        prior_weight=experiment.scale.prior_weight,
    )


def _statistics_check(
    train: Samples, past: Samples, scale: CausalScale, past_scale: CausalScale
) -> Check:
    whole, cut = ChannelStatistics.fit(train), ChannelStatistics.fit(past)
    pairs = [
        (
            np.array(list(scale.prior.values())),
            np.array(list(past_scale.prior.values())),
        ),
        (whole.mean, cut.mean),
        (whole.deviation, cut.deviation),
        (whole.used, cut.used),
        (train.fingerprint, past.fingerprint),
    ]
    changed = [one.tobytes() != other.tobytes() for one, other in pairs]
    return Check(
        level="data",
        name="training statistics without the test span",
        num_points=len(pairs),
        num_failures=sum(changed),
        largest_change=float(any(changed)),
        allowed_change=0.0,
        detail="All events after the last fold's first test forecast were deleted: the "
        "scale's prior, each channel's mean, deviation and use, and the training "
        "fingerprints, bit for bit.",
    )


def _inputs_check(whole: Samples, cuts: list[Samples]) -> Check:
    changed = [
        not same_inputs(whole.take(np.array([row])), cut)
        for row, cut in enumerate(cuts)
    ]
    return Check(
        level="data",
        name="inputs without the future",
        num_points=len(cuts),
        num_failures=sum(changed),
        largest_change=float(any(changed)),
        allowed_change=0.0,
        detail="All events unavailable at the forecast time were deleted and the inputs "
        "rebuilt: fingerprint, scale and every tensor, bit for bit.",
    )


def _training_checks(experiment: Experiment, prepared: Prepared) -> list[Check]:
    """Count the test forecasts of all folds that an encoder's training reaches beyond."""
    checks = []
    for encoding in used_encodings(prepared):
        if encoding.training_cutoff is None:
            continue  # it learned from no text: there is nothing to see ahead in
        early, total = early_test_forecasts(experiment, prepared, encoding)
        checks.append(
            Check(
                level="data",
                name=f"training of encoder {encoding.name}",
                num_points=total,
                num_failures=early,
                largest_change=early / total,
                allowed_change=0.0,
                detail=f"encoder {encoding.name} was trained on texts until "
                f"{encoding.training_cutoff.isoformat()}: {early} of {total} test "
                "forecasts are before it. What it says of earlier texts it may have "
                "learned from what came later; their share stands as the change.",
            )
        )
    return checks


def _forecast_check(
    name: str, forecaster: Forecaster, whole: Samples, cuts: list[Samples]
) -> Check:
    together = forecaster.forecast(whole).quantiles / whole.scale[:, None]
    alone = np.concatenate(
        [forecaster.forecast(cut).quantiles / cut.scale[:, None] for cut in cuts]
    )
    change = np.abs(together - alone).max(axis=1)
    moved = _moved_by_newest_events(forecaster, whole)
    return Check(
        level="model",
        name=f"forecasts of {name} without the future",
        num_points=len(whole),
        num_failures=int((change > ALLOWED_FORECAST_CHANGE).sum()),
        largest_change=float(change.max(initial=0.0)),
        allowed_change=ALLOWED_FORECAST_CHANGE,
        detail="The same forecasts, made alone from the cut log instead of in a batch "
        "beside others; largest change of a quantile in units of the scale. For "
        f"comparison: without the newest 16 visible events they move by up to {moved:.2g}.",
    )


def _moved_by_newest_events(forecaster: Forecaster, whole: Samples) -> float:
    """Return how far forecasts move that must move: a check that cannot fail is none."""
    causal = whole.causal_scale
    shorter = replace(whole, stop=np.maximum(whole.stop - 16, whole.start))
    if causal is None:
        return float("nan")
    before = forecaster.forecast(causal.apply(shorter)).quantiles
    after = forecaster.forecast(whole).quantiles
    return float((np.abs(after - before) / whole.scale[:, None]).max(initial=0.0))
