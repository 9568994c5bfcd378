"""What streams remember: as a value that can be kept, and as numbers in compiled memory.

A row of reals holds the scale's numbers and then the sums of each linear layer; a row of
whole numbers says whose stream it is and what it has seen. See `layout`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from infoset.models.attention import LinearState, SoftmaxState
from infoset.models.fitted import StreamScale
from infoset.models.network import NetworkState
from infoset.models.streaming import StreamState

from . import layout as at
from .packed_weights import PackedWeights
from .periods import NO_PERIOD

S = TypeVar("S", LinearState, SoftmaxState)


def set_up(
    reals: Float64[np.ndarray, " n"],
    whole: Int64[np.ndarray, " m"],
    *,
    entity: int,
    scale: StreamScale,
) -> None:
    """Write down a new stream's entity, by number, and how its scale is computed."""
    reals[at.UNIT], reals[at.DECAY] = scale.unit, scale.decay
    reals[at.PRIOR], reals[at.PRIOR_WEIGHT] = scale.prior, scale.prior_weight
    whole[at.PERIOD] = NO_PERIOD
    whole[at.ENTITY] = entity
    whole[at.SCALE_STREAM], whole[at.SCALE_PLACE] = scale.stream, scale.place


def state_of(
    layers: NetworkState,
    reals: Float64[np.ndarray, " n"],
    whole: Int64[np.ndarray, " m"],
) -> StreamState:
    """Return layers and numbers as a value."""
    return StreamState(
        layers,
        count=int(whole[at.COUNT]),
        newest=int(whole[at.NEWEST]),
        period=int(whole[at.PERIOD]),
        weight=float(reals[at.WEIGHT]),
        square=float(reals[at.SQUARE]),
    )


def put_numbers(
    state: StreamState,
    reals: Float64[np.ndarray, " n"],
    whole: Int64[np.ndarray, " m"],
) -> None:
    """Write a value's numbers into the arrays."""
    whole[at.COUNT], whole[at.NEWEST] = state.count, state.newest
    whole[at.PERIOD] = state.period
    reals[at.WEIGHT], reals[at.SQUARE] = state.weight, state.square


def number_bytes() -> int:
    """Return the memory of these numbers in a `StreamState`."""
    return 5 * np.dtype(np.float64).itemsize


def sums_end(packed: PackedWeights) -> int:
    """Return how many numbers the scale and the sums of all layers take."""
    return int(at.SUMS + packed.sizes[at.LAYERS] * packed.sizes[at.LAYER_SIZE])


def forget_all(packed: PackedWeights, rows: Float64[np.ndarray, "n m"]) -> None:
    """Return rows to what they are before any event; the scales' settings stay."""
    rows[:, [at.WEIGHT, at.SQUARE]] = 0
    rows[:, at.SUMS : sums_end(packed)] = 0
    for row in rows:
        for _, _, m in _parts(packed, row):
            m[:] = -np.inf


def linear_layers(
    packed: PackedWeights, row: Float64[np.ndarray, " m"], count: int
) -> NetworkState:
    """Return what the layers remember, as a value."""
    keeps_maximum = packed.kind == at.FAVOR
    states = [
        LinearState(
            S=one_row(S),
            z=one_row(z),
            count=torch.tensor([count]),
            m=one_row(m) if keeps_maximum else None,
        )
        for S, z, m in _parts(packed, row)
    ]
    return NetworkState(tuple(states[:-1]), states[-1])


def put_linear_layers(
    packed: PackedWeights, row: Float64[np.ndarray, " m"], state: NetworkState
) -> None:
    """Write a value's numbers into a row."""
    states = own_layers(packed, state, LinearState)
    for (S, z, m), of_layer in zip(_parts(packed, row), states, strict=True):
        put(S, of_layer.S[0])
        put(z, of_layer.z[0])
        if of_layer.m is not None:
            put(m, of_layer.m[0])


def linear_bytes(packed: PackedWeights) -> int:
    """Return the memory of what `linear_layers` returns."""
    sizes = packed.sizes
    per_head = int(sizes[at.FEATURES] * (sizes[at.KEY] + 1))
    per_head += packed.kind == at.FAVOR
    per_layer = int(sizes[at.HEADS]) * per_head + 1  # and the count
    return int(sizes[at.LAYERS]) * per_layer * np.dtype(np.float64).itemsize


def own_layers(packed: PackedWeights, state: NetworkState, kind: type[S]) -> list[S]:
    """Return the states of all layers.

    Raises
    ------
    TypeError
        If one is not of this kind.
    ValueError
        If there are more or fewer layers.
    """
    states, own = (*state.blocks, state.readout), []
    if len(states) != packed.sizes[at.LAYERS]:
        raise ValueError(
            f"a state must have {packed.sizes[at.LAYERS]} layers; got {len(states)}. "
            "A state belongs to the network that made it."
        )
    for each in states:
        if not isinstance(each, kind):
            raise TypeError(
                f"state must be a {kind.__name__}; got {type(each).__name__}. "
                "A state belongs to the kernel that made it."
            )
        own.append(each)
    return own


def put(place: np.ndarray, numbers: Tensor) -> None:
    """Copy numbers to their place.

    Raises
    ------
    ValueError
        If they do not fit.
    """
    if place.shape != numbers.shape:
        raise ValueError(
            f"a state must fit the network; got a part of shape {tuple(numbers.shape)} "
            f"for {place.shape}. A state belongs to the network that made it."
        )
    place[...] = numbers.numpy()


def one_row(part: np.ndarray) -> Tensor:
    """Return a copy as a tensor with a batch axis."""
    return torch.from_numpy(np.array(part, order="C"))[None]


def _parts(
    packed: PackedWeights, row: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield views of S [H, R, V], z [H, R] and m [H] of each layer."""
    sizes = packed.sizes
    heads, value = int(sizes[at.HEADS]), int(sizes[at.KEY])
    padded, features = int(sizes[at.PADDED_FEATURES]), int(sizes[at.FEATURES])
    size, rows = int(sizes[at.LAYER_SIZE]), heads * padded
    for layer in range(int(sizes[at.LAYERS])):
        part = row[at.SUMS + layer * size :][:size]
        S = part[: rows * value].reshape(heads, padded, value)
        z = part[rows * value :][:rows].reshape(heads, padded)
        m = part[rows * (value + 1) :][:heads]
        yield S[:, :features], z[:, :features], m
