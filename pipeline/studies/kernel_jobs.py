"""The parts of the study that can run side by side, and their results by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from infoset.data.sequences import Samples
from infoset.models.attention import ExponentialMap
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.walk_forward import FoldData

from .attention_calls import attention_calls
from .kernel_errors import (
    KernelError,
    RatioError,
    measured_kernel_error,
    measured_ratio_error,
)
from .kernel_replacement import (
    Replacement,
    forecast_replaced,
    forecast_tuned,
    layer_maps,
)
from .kernel_settings import KernelSettings, RecallSettings
from .recall import RecallAccuracy, recall_accuracies

# Draws that measure errors are others than those that forecast.
_FIRST_ERROR_SEED = 1000


@dataclass(frozen=True)
class LayerErrors:
    """The errors of one layer's attention.

    Attributes
    ----------
    layer : str
    kernel : KernelError, optional
        None for a replacement that estimates no kernel.
    ratio : RatioError
    """

    layer: str
    kernel: KernelError | None
    ratio: RatioError


@dataclass(frozen=True)
class Part:
    """One part: the errors of a replacement, or its forecasts from one draw.

    Attributes
    ----------
    replacement : Replacement
    seed : int, optional
        None for the errors, which draw many.
    tuned : bool
    """

    replacement: Replacement
    seed: int | None = None
    tuned: bool = False


@dataclass(frozen=True, eq=False)
class Results:
    """What the parts have given.

    Attributes
    ----------
    errors : Mapping[Replacement, list of LayerErrors]
    forecasts : Mapping[Part, ndarray of shape (n, q)]
    """

    errors: Mapping[Replacement, list[LayerErrors]]
    forecasts: Mapping[Part, Float64[np.ndarray, "n q"]]

    def of(
        self, replacement: Replacement, *, tuned: bool
    ) -> dict[int, Float64[np.ndarray, "n q"]]:
        """Return a replacement's forecasts by seed."""
        return {
            part.seed: quantiles
            for part, quantiles in self.forecasts.items()
            if part.seed is not None
            and (part.replacement, part.tuned) == (replacement, tuned)
        }


def replacements(settings: KernelSettings) -> tuple[Replacement, ...]:
    """Return what is put in the place of softmax, the controls first."""
    sizes = sorted(set(settings.num_features))
    favors = [Replacement("favor", number) for number in sizes]
    return (Replacement("softmax"), Replacement("mean"), *favors)


def submit_recall(
    pool: Executor, settings: RecallSettings
) -> list[Future[list[RecallAccuracy]]]:
    """Start the recall task: one part per map and seed."""
    return [
        pool.submit(recall_accuracies, name, seed, settings)
        for name in settings.maps
        for seed in range(settings.num_seeds)
    ]


def planned_parts(settings: KernelSettings) -> list[Part]:
    """Return the parts of the replacement, the longest first."""
    parts: list[Part] = []
    for replacement in reversed(replacements(settings)):
        number = replacement.num_features
        if settings.tuning.num_steps:
            seeds = settings.tuning.num_seeds if number else 1
            parts += [Part(replacement, seed, tuned=True) for seed in range(seeds)]
        if replacement.kind != "softmax":
            seeds = settings.num_draws(number) if number else 1
            parts += [Part(replacement, seed) for seed in range(seeds)]
            parts.append(Part(replacement))
    return parts


def run_parts(
    pool: Executor, folder: Path, data: FoldData, settings: KernelSettings
) -> Iterator[tuple[Part, object]]:
    """Yield each part with its result as it is done; `results` sorts them.

    Parameters
    ----------
    pool : Executor
    folder : Path
        Of the saved softmax forecaster.
    data : FoldData
    settings : KernelSettings
    """
    started = {
        _submitted(pool, part, folder, data, settings): part
        for part in planned_parts(settings)
    }
    for done in as_completed(started):
        yield started[done], done.result()


def results(settings: KernelSettings, done: Mapping[Part, object]) -> Results:
    """Sort what `run_parts` has yielded into errors and forecasts, in planned order."""
    errors: dict[Replacement, list[LayerErrors]] = {}
    forecasts: dict[Part, Float64[np.ndarray, "n q"]] = {}
    for part in planned_parts(settings):
        found = done[part]
        if isinstance(found, np.ndarray):
            forecasts[part] = found
        elif isinstance(found, list):
            errors[part.replacement] = found
    return Results(errors, forecasts)


def attention_errors(
    folder: Path, samples: Samples, replacement: Replacement, settings: KernelSettings
) -> list[LayerErrors]:
    """Measure each layer's errors on the calls of a saved softmax forecaster."""
    softmax = AttentionForecaster.load(folder)
    calls = attention_calls(softmax, samples, num_sets=settings.error_sets)
    draws = [
        layer_maps(softmax, replacement, _FIRST_ERROR_SEED + seed)
        for seed in range(settings.error_seeds)
    ]
    found = []
    for call, maps in zip(calls, zip(*draws, strict=True), strict=True):
        exponential = [phi for phi in maps if isinstance(phi, ExponentialMap)]
        kernel = measured_kernel_error(call, exponential) if exponential else None
        found.append(LayerErrors(call.layer, kernel, measured_ratio_error(call, maps)))
    return found


def _submitted(
    pool: Executor,
    part: Part,
    folder: Path,
    data: FoldData,
    settings: KernelSettings,
) -> Future[object]:
    replacement, seed = part.replacement, part.seed
    if seed is None:
        return pool.submit(attention_errors, folder, data.test, replacement, settings)
    if part.tuned:
        return pool.submit(
            forecast_tuned, folder, data, replacement, seed, settings.tuning
        )
    return pool.submit(forecast_replaced, folder, data.test, replacement, seed)
