"""What `study.json` holds: every number of the study, and what it means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from infoset.pipeline.config import Experiment

from .fixed_width import least_forgotten, one_hot_forgotten, softmax_forgotten
from .kernel_errors import pooled_kernel_error, pooled_ratio_error
from .kernel_jobs import LayerErrors, Results, replacements
from .kernel_latency import Latency
from .kernel_measurements import Measurements
from .kernel_replacement import Replacement
from .kernel_scores import Change, Scoring
from .kernel_settings import KernelSettings, RecallSettings
from .recall import recall_table, state_width
from .trained_softmax import TrainedSoftmax

_UNTRAINED = "untrained"
CONVENTIONS = {
    "kernel_error": (
        "Relative error of phi(q).phi(k) against exp(q.k/sqrt(K)) on the queries and "
        "keys of real test information sets, over every pair that is read. typical: "
        "median of the absolute value over pairs and draws of the features; rms: root "
        "mean square; bias: mean, with its standard error over draws (zero in expectation; "
        "short of it where pairs are out of reach); out_of_reach: share of pairs whose "
        "relative standard deviation over draws is above one by lemma 2 of arXiv "
        "2009.14794. Mean over layers."
    ),
    "ratio_error": (
        "Error of the attention output against exact softmax attention on the same "
        "queries, keys, values and forgetting, divided by the root mean square of the "
        "exact output. error^2 = squared_bias + spread^2; the squared bias is that of "
        "the mean over draws, less the variance of that mean, with a jackknife standard "
        "error. bias: its root, given where it is above two standard errors; otherwise "
        "bias_bound is the root of the estimate plus two standard errors. Mean of "
        "squares over layers."
    ),
    "drift": (
        "Mean absolute change of a quantile against the softmax forecaster, over test "
        "forecasts and all levels, each divided by the width of that softmax forecast's "
        "own 5 % to 95 % interval; mean over draws, with the lowest and highest draw. "
        "tuned: all weights trained some steps more, without dropout, against softmax "
        "as it was; "
        "tuned_alike: against softmax after the same steps."
    ),
    "loss": (
        "Scaled pinball loss of the test span as in a run (divided by the standard "
        "deviation of the entity's training targets). percent: change of the mean over "
        "forecast times, of losses averaged over draws and entities, against softmax; "
        "95 % interval by stationary bootstrap. Diebold-Mariano as in a run: positive "
        "where softmax is better, rectangular kernel up to the lag that is given."
    ),
    "latency": (
        "Median of single forecasts from a fresh window, scale included, one thread; at "
        "the long history only until an attention was slower than softmax."
    ),
    "recall": (
        "Share of questions answered with the right symbol, on new sequences; mean over "
        "seeds, with the lowest and highest."
    ),
    "forgotten": (
        "Mean squared error of n orthonormal values of length one, each asked for once "
        "after all are stored. least: 1 - R/n, which no map and no training can go "
        "below (Eckart-Young); one_hot and softmax: measured without training."
    ),
}


def study_record(
    experiment: Experiment, settings: KernelSettings, measured: Measurements
) -> dict[str, Any]:
    """Score what was measured, and return the record of it all."""
    subject, found = measured.subject, measured.results
    scoring = Scoring(experiment, subject.data, subject.fold, subject.after)
    each = replacements(settings)
    as_is = {r.name: found.of(r, tuned=False) for r in each}
    changes = scoring.changes(
        {_UNTRAINED: {0: subject.before}} | {k: v for k, v in as_is.items() if v}
    )
    tuned, alike = _tuned_changes(scoring, each, found)
    return {
        "study": "kernels",
        "config": experiment.name,
        "settings": settings.model_dump(mode="json"),
        "conventions": CONVENTIONS,
        "forecaster": _about(experiment, settings, subject, scoring, changes),
        "replacement": _replacement_records(
            each, found, (changes, tuned, alike), measured.latencies
        ),
        "recall": {
            "chance": 1 / settings.recall.num_symbols,
            "accuracy": recall_table(measured.recall),
            "forgotten": _forgotten_records(settings.recall),
        },
    }


def _tuned_changes(
    scoring: Scoring, replaced: Sequence[Replacement], found: Results
) -> tuple[dict[str, Change], dict[str, Change]]:
    """Compare what was tuned with softmax as it was, and with softmax tuned alike."""
    # A name of its own: softmax as it was is called softmax.
    names = {f"{each.name}, tuned": each for each in replaced}
    tuned = {name: found.of(each, tuned=True) for name, each in names.items()}
    tuned = {name: by_seed for name, by_seed in tuned.items() if by_seed}
    if not tuned:
        return {}, {}
    [softmax] = [name for name, each in names.items() if each.kind == "softmax"]
    against_tuned = replace(scoring, exact=tuned[softmax][0])
    others = {name: by_seed for name, by_seed in tuned.items() if name != softmax}
    plain, alike = scoring.changes(tuned), against_tuned.changes(others)
    return (
        {names[name].name: change for name, change in plain.items()},
        {names[name].name: change for name, change in alike.items()},
    )


def _about(
    experiment: Experiment,
    settings: KernelSettings,
    subject: TrainedSoftmax,
    scoring: Scoring,
    changes: dict[str, Change],
) -> dict[str, Any]:
    first, last = subject.test_span
    training, size = experiment.training, experiment.network
    return {
        "fold": subject.fold,
        "test_span": [first.isoformat(), last.isoformat()],
        "num_forecasts": len(subject.data.test),
        "num_forecast_times": len(np.unique(subject.data.test.forecast_time)),
        "history": str(experiment.history),
        "width": size.width,
        "num_layers": size.num_layers,
        "num_heads": size.num_heads,
        "key_width": size.width // size.num_heads,
        "num_steps": settings.num_steps,
        "learning_rate": training.learning_rate,
        "batch_size": training.batch_size,
        "seed": experiment.seeds[0],
        "causal_scale": settings.causal_scale,
        "validation_loss_before": subject.validation_before,
        "validation_loss_after": subject.validation_after,
        "loss": scoring.loss,
        "untrained": asdict(changes[_UNTRAINED]),
    }


def _replacement_records(
    replacements: Sequence[Replacement],
    results: Results,
    changes: tuple[Mapping[str, Change], ...],
    latencies: Sequence[Latency],
) -> list[dict[str, Any]]:
    """Return one record per attention; `changes` are as it is, tuned, tuned alike."""
    as_is, tuned, alike = changes
    return [
        {
            "name": each.name,
            "num_features": each.num_features,
            **_errors(results.errors.get(each, [])),
            "as_is": _change(as_is.get(each.name)),
            "tuned": _change(tuned.get(each.name)),
            "tuned_alike": _change(alike.get(each.name)),
            "latency": [asdict(one) for one in latencies if one.name == each.name],
        }
        for each in replacements
    ]


def _forgotten_records(settings: RecallSettings) -> list[dict[str, Any]]:
    """Return the training-free check: the bound, and what is measured, by width."""
    widths = sorted({state_width(name, settings.width) or 0 for name in settings.maps})
    records: list[dict[str, Any]] = [
        {
            "num_features": width,
            "num_pairs": num_pairs,
            "least": least_forgotten(num_pairs, width),
            "one_hot": one_hot_forgotten(num_pairs, width),
        }
        for width in widths
        if width
        for num_pairs in settings.num_pairs
    ]
    softmax = [
        {
            "num_features": None,
            "num_pairs": num_pairs,
            "softmax": softmax_forgotten(num_pairs, settings.width),
        }
        for num_pairs in settings.num_pairs
    ]
    return records + softmax


def metrics(study: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a study for a tracker; undefined ones are left out."""
    found: dict[str, float | None] = {}
    for row in study["replacement"]:
        name = row["name"].replace(" ", "-")
        kernel, ratio = row["kernel_error"] or {}, row["ratio_error"] or {}
        found[f"{name}.kernel_error"] = kernel.get("typical")
        found[f"{name}.kernel_bias"] = kernel.get("bias")
        found[f"{name}.ratio_error"] = ratio.get("error")
        found[f"{name}.ratio_bias"] = ratio.get("bias")
        for when in ("as_is", "tuned", "tuned_alike"):
            change = row[when] or {}
            for key in ("drift", "percent", "p_value"):
                found[f"{name}.{when}.{key}"] = change.get(key)
        for one in row["latency"]:
            found[f"{name}.fresh_us.{one['num_events']}_events"] = one["p50_us"]
    for cell in study["recall"]["accuracy"]:
        found[f"recall.{cell['map']}.{cell['num_pairs']}_pairs"] = cell["accuracy"]
    return {name: value for name, value in found.items() if value is not None}


def finite(content: object) -> Any:  # noqa: ANN401 (any value of JSON)
    """Return plain values in which numbers that are not finite are null."""
    if isinstance(content, Mapping):
        return {str(key): finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content


def _errors(layers: Sequence[LayerErrors]) -> dict[str, Any]:
    if not layers:
        return {"kernel_error": None, "ratio_error": None, "layers": []}
    kernels = [layer.kernel for layer in layers if layer.kernel is not None]
    ratio = pooled_ratio_error([layer.ratio for layer in layers])
    return {
        "kernel_error": asdict(pooled_kernel_error(kernels)) if kernels else None,
        "ratio_error": {
            **asdict(ratio),
            "bias": ratio.bias,
            "bias_error": ratio.bias_error,
            "bias_bound": ratio.bias_bound,
        },
        "layers": [asdict(layer) for layer in layers],
    }


def _change(change: Change | None) -> dict[str, Any] | None:
    return None if change is None else asdict(change)
