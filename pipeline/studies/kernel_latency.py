"""What a fresh forecast takes with each attention, at the scored history and a long one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from infoset.data.sequences import CausalScale, Samples, prepare_samples
from infoset.data.timeline import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.config import Experiment, LatencyOptions
from infoset.pipeline.preparation import Prepared, with_changes
from infoset.pipeline.single_forecasts import measure_single_forecasts

_FEW = 10


@dataclass(frozen=True)
class Latency:
    """Times of single forecasts from a window of so many events, on one thread.

    Attributes
    ----------
    name : str
        Of the attention.
    num_events : int
    num_forecasts : int
    p50_us, p95_us : float, optional
        Microseconds; None where undefined.
    undefined : str, optional
        Why there is no time.
    """

    name: str
    num_events: int
    num_forecasts: int
    p50_us: float | None
    p95_us: float | None
    undefined: str | None


def measured_latency(
    forecasters: Mapping[str, AttentionForecaster],
    experiment: Experiment,
    prepared: Prepared,
    test: Samples,
    *,
    num_forecasts: int,
) -> list[Latency]:
    """Time every forecaster at the scored history and at the longest one configured.

    At the longest one a forecaster is left out, with the reason, once one before it
    was slower than the first.

    Parameters
    ----------
    forecasters : Mapping[str, AttentionForecaster]
        Fitted, by name: softmax first, then by growing cost.
    experiment : Experiment
        With `history: last n`.
    prepared : Prepared
    test : Samples
        Of the scored history, scaled.
    num_forecasts : int
        Timed at the scored history; at the longest one ten are.
    """
    options = experiment.latency.model_copy(
        update={"num_forecasts": num_forecasts, "num_warm_up": num_forecasts // 10}
    )
    longest = max(options.history_lengths, default=0)
    scored = experiment.history.last or 0
    found = _timed(forecasters, test, scored, options)
    if longest <= scored:
        return found
    few = options.model_copy(update={"num_forecasts": _FEW, "num_warm_up": 1})
    samples = _with_history(experiment, prepared, test, longest)
    slower: str | None = None
    for name, forecaster in forecasters.items():
        if slower is not None:
            reason = f"not measured: {slower} was slower than {next(iter(forecasters))}"
            found.append(Latency(name, longest, 0, None, None, reason))
            continue
        [one] = _timed({name: forecaster}, samples, longest, few)
        found.append(one)
        [first] = [each for each in found if each.num_events == longest][:1]
        if (one.p50_us or 0.0) > (first.p50_us or math.inf):
            slower = name
    return found


def _timed(
    forecasters: Mapping[str, AttentionForecaster],
    samples: Samples,
    length: int,
    options: LatencyOptions,
) -> list[Latency]:
    full = samples.take(np.flatnonzero(samples.num_events == length))
    if not len(full):
        most = int(samples.num_events.max(initial=0))
        reason = f"no information set of the test span holds {length} events; {most} do"
        return [Latency(name, length, 0, None, None, reason) for name in forecasters]
    table = measure_single_forecasts(forecasters, full, options)
    return [
        Latency(
            name=str(row["forecaster"]),
            num_events=length,
            num_forecasts=int(row["num_forecasts"]),
            p50_us=float(row["p50_us"]),
            p95_us=float(row["p95_us"]),
            undefined=None,
        )
        for row in table.to_dict("records")
    ]


def _with_history(
    experiment: Experiment, prepared: Prepared, test: Samples, last: int
) -> Samples:
    """Cut longer information sets at the newest test forecasts."""
    scale = test.causal_scale
    if not isinstance(scale, CausalScale):
        raise ValueError(  # noqa: TRY004 (a state, not an argument's type)
            "test samples must be scaled; got them without a scale. Use `fold_data`."
        )
    log = with_changes(experiment, prepared.log)
    points = test.points.tail(_FEW * len(experiment.entities))
    samples = prepare_samples(
        log,
        points.reset_index(drop=True),
        experiment.targets,
        history=History(last=last),
        boundary=experiment.boundary,
    )
    return scale.apply(samples)
