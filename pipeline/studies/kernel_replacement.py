"""A trained softmax forecaster with another attention in its place, weights unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from infoset.data.sequences import Samples
from infoset.models.attention import Favor, FeatureMap
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.embedding import ChannelStatistics
from infoset.models.kernels import LinearKernel
from infoset.models.network import Network
from infoset.models.settings import LinearAttention
from infoset.pipeline.walk_forward import FoldData

from .attention_calls import trained_network
from .fixed_steps import train_steps
from .kernel_settings import TuningSettings

# Features that are worked on together should fit into the processor's cache: measured,
# 1,024 features are then twice as fast.
_ROWS_TIMES_FEATURES = 4096


@dataclass(frozen=True)
class Replacement:
    """What takes the place of softmax in every layer and in the readout.

    Attributes
    ----------
    kind : str
        ``favor``; ``mean`` for equal weights (still faded by elapsed time), which is
        what is left when attention attends to nothing; ``softmax`` for no change.
    num_features : int, optional
        R of favor.
    """

    kind: str
    num_features: int | None = None

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.kind if self.num_features is None else f"favor {self.num_features}"


class EqualWeights:
    """The feature map of a plain mean: one feature, which is one."""

    def __call__(self, x: Float[Tensor, "B H T K"], /) -> Float[Tensor, "B H T 1"]:
        """Return ones."""
        return torch.ones_like(x[..., :1])


def layer_maps(
    softmax: AttentionForecaster, replacement: Replacement, seed: int
) -> list[FeatureMap]:
    """Return the feature map of each block, and of the readout last.

    Favor's draws are those that a favor forecaster of that seed would have.
    """
    size = softmax.size
    count = size.num_layers + 1
    if replacement.kind == "mean":
        return [EqualWeights() for _ in range(count)]
    width = size.width // size.num_heads
    num_features = replacement.num_features or width
    return [
        Favor(width, num_features, num_heads=size.num_heads, seed=int(each))
        for each in np.random.SeedSequence(seed).generate_state(count)
    ]


def replaced(
    softmax: AttentionForecaster, replacement: Replacement, seed: int
) -> AttentionForecaster:
    """Return the forecaster with its attention replaced and all its weights copied.

    Raises
    ------
    ValueError
        If a weight other than the features' directions is missing or left over.
    """
    source = trained_network(softmax)
    if replacement.kind == "softmax":
        return _like(softmax, deepcopy(source), replacement)
    about = softmax.fitted_on()
    with torch.random.fork_rng(devices=[]):  # initial weights, all of them replaced
        network = Network(
            [LinearKernel(phi) for phi in layer_maps(softmax, replacement, seed)],
            softmax.size,
            ChannelStatistics.blank(about.channels, about.streams),
            base=torch.zeros(len(about.entities), len(softmax.levels)),
        )
    copy_weights(source.state_dict(), network)
    return _like(softmax, network.eval(), replacement)


def copy_weights(weights: Mapping[str, Tensor], network: Network) -> None:
    """Copy a softmax network's weights into one that differs by its kernels.

    Raises
    ------
    ValueError
        If a weight other than the features' directions is missing or left over.
    """
    found = network.load_state_dict(dict(weights), strict=False)
    own = "kernel.feature_map.projection"
    wrong = [name for name in found.missing_keys if not name.endswith(own)]
    wrong += found.unexpected_keys
    if wrong:
        raise ValueError(
            "the networks must differ by the features' directions alone; got a "
            f"difference in {', '.join(wrong)}. Build both from one size."
        )


def forecast_replaced(
    folder: Path, samples: Samples, replacement: Replacement, seed: int
) -> Float64[np.ndarray, "n q"]:
    """Return the quantiles of a saved softmax forecaster under another attention."""
    softmax = AttentionForecaster.load(folder)
    return replaced(softmax, replacement, seed).forecast(samples).quantiles


def forecast_tuned(
    folder: Path,
    data: FoldData,
    replacement: Replacement,
    seed: int,
    tuning: TuningSettings,
) -> Float64[np.ndarray, "n q"]:
    """Return the same after training all weights for some steps more.

    Without dropout, so that every attention is tuned by the same batches and nothing
    else: of a few steps, its noise would be a large part.
    """
    forecaster = replaced(AttentionForecaster.load(folder), replacement, seed)
    as_loaded = forecaster.training
    forecaster.training = as_loaded.model_copy(
        update={
            "learning_rate": tuning.learning_rate,
            "batch_size": tuning.batch_size,
        }
    )
    train_steps(
        forecaster,
        data.train,
        data.validation,
        num_steps=tuning.num_steps,
        seed=seed,
        rows_at_once=_rows_at_once(replacement),
        with_dropout=False,
    )
    forecaster.training = as_loaded
    return forecaster.forecast(data.test).quantiles


def forecast_drift(
    exact: Float64[np.ndarray, "n q"],
    other: Float64[np.ndarray, "n q"],
    levels: tuple[float, ...],
) -> dict[str, float]:
    """Return by how much forecasts moved, in widths of the exact 90 % interval.

    Returns
    -------
    dict
        all_quantiles: mean absolute change over forecasts and levels, each forecast's
        divided by the distance of its own outer quantiles (5 % and 95 %) under exact
        softmax; median: that of the median alone.

    Raises
    ------
    ValueError
        If an exact interval has no width.
    """
    width = exact[:, -1] - exact[:, 0]
    if not (width > 0).all():
        row = int((width <= 0).argmax())
        raise ValueError(
            f"an interval must have a width; got {width[row]:g} in row {row}. Train on "
            "more rows."
        )
    moved = np.abs(other - exact) / width[:, None]
    middle = levels.index(0.5)
    return {
        "all_quantiles": float(moved.mean()),
        "median": float(moved[:, middle].mean()),
    }


def _rows_at_once(replacement: Replacement) -> int:
    return max(2, _ROWS_TIMES_FEATURES // (replacement.num_features or 16))


def _like(
    softmax: AttentionForecaster, network: Network, replacement: Replacement
) -> AttentionForecaster:
    """Return a forecaster that differs from a fitted one by its network."""
    num_features = replacement.num_features
    linear = LinearAttention()
    if num_features is not None:
        linear = LinearAttention(feature_map="favor", num_features=num_features)
    # Forecasts are made for two batches at once.
    batch_size = min(softmax.training.batch_size, _rows_at_once(replacement) // 2)
    forecaster = AttentionForecaster(
        "softmax" if replacement.kind == "softmax" else "linear",
        linear=linear,
        size=softmax.size,
        training=softmax.training.model_copy(update={"batch_size": batch_size}),
        seed=softmax.seed,
        levels=softmax.levels,
    )
    forecaster.network, forecaster.about = network, softmax.about
    return forecaster
