"""What single streams remember, in arrays that compiled code writes to in place."""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int64
from torch import Tensor

from infoset.models.attention import SoftmaxState
from infoset.models.network import NetworkState

from . import layout as at
from .entries import Entries, linear_stream, softmax_stream
from .linear_rows import work_room
from .packed_weights import PackedWeights
from .single import single_arrays
from .softmax_row import softmax_work_room
from .states import (
    forget_all,
    linear_bytes,
    linear_layers,
    one_row,
    own_layers,
    put,
    put_linear_layers,
    sums_end,
)

_FEWEST_TILES = 2


@runtime_checkable
class Memory(Protocol):
    """The arrays of one stream.

    Attributes
    ----------
    reals : float64 ndarray
        Begins with the numbers of the scale, see `layout`.
    whole : int64 ndarray
        Begins with the numbers of the stream.
    values : float64 ndarray of shape (w,)
        Where an event's values are put before an update.
    """

    reals: Float64[np.ndarray, " n"]
    whole: Int64[np.ndarray, " m"]
    values: Float64[np.ndarray, " w"]

    def entries(self) -> Entries:
        """Return the compiled functions, bound to these arrays."""

    def make_room(self) -> None:
        """Make room for more events; the functions must be bound anew."""

    def fork(self) -> Memory:
        """Return a copy."""

    def layers(self) -> NetworkState:
        """Return what the layers remember, as a value."""

    def put_layers(self, state: NetworkState) -> None:
        """Remember that instead."""

    @property
    def num_bytes(self) -> int:
        """Memory of what `layers` returns."""


def memory_of(packed: PackedWeights, width: int) -> Memory:
    """Return the memory of a stream before any event, whose events have `width` values."""
    if packed.kind == at.SOFTMAX:
        return SoftmaxMemory(packed, width)
    return LinearMemory(packed, width)


class LinearMemory:
    """Sums of fixed size."""

    def __init__(self, packed: PackedWeights, width: int) -> None:
        self._packed = packed
        sizes, end = packed.sizes, sums_end(packed)
        arrays = single_arrays(sizes, width, end, work_room(sizes, 1))
        self.whole, self.reals, self.values = arrays
        forget_all(packed, self.reals[None, :end])

    def entries(self) -> Entries:
        """Return the compiled functions, bound to these arrays."""
        arrays = self._packed.numbers, self.whole, self.reals
        update, forecast = linear_stream()
        return Entries(partial(update, *arrays), partial(forecast, *arrays))

    def make_room(self) -> None:
        """Do nothing: sums do not grow."""

    def fork(self) -> LinearMemory:
        """Return a copy."""
        twin = LinearMemory(self._packed, len(self.values))
        twin.reals[:], twin.whole[:] = self.reals, self.whole
        return twin

    def layers(self) -> NetworkState:
        """Return what the layers remember, as a value."""
        return linear_layers(self._packed, self.reals, int(self.whole[at.COUNT]))

    def put_layers(self, state: NetworkState) -> None:
        """Remember that instead."""
        put_linear_layers(self._packed, self.reals, state)

    @property
    def num_bytes(self) -> int:
        """Memory of what `layers` returns."""
        return linear_bytes(self._packed)


class SoftmaxMemory:
    """A cache that doubles when it is full; see `softmax_memory` for its layout."""

    def __init__(self, packed: PackedWeights, width: int) -> None:
        self._packed = packed
        sizes = packed.sizes
        arrays = single_arrays(sizes, width, at.SUMS, softmax_work_room(sizes))
        self.whole, self.reals, self.values = arrays
        self._allocate(_FEWEST_TILES)

    def entries(self) -> Entries:
        """Return the compiled functions, bound to these arrays."""
        cache = self._kept.reshape(-1), self._ages.reshape(-1)
        arrays = self._packed.numbers, self.whole, self.reals, *cache
        update, forecast = softmax_stream()
        return Entries(partial(update, *arrays), partial(forecast, *arrays))

    def make_room(self) -> None:
        """Double the room; the events stay."""
        kept, ages = self._kept, self._ages
        tiles = kept.shape[1]
        self._allocate(2 * tiles)
        self._kept[:, :tiles], self._ages[:, :tiles] = kept, ages

    def fork(self) -> SoftmaxMemory:
        """Return a copy."""
        twin = SoftmaxMemory(self._packed, len(self.values))
        twin.reals[:], twin.whole[:] = self.reals, self.whole
        twin._kept, twin._ages = self._kept.copy(), self._ages.copy()
        return twin

    def layers(self) -> NetworkState:
        """Return what the layers remember, as a value."""
        count = int(self.whole[at.COUNT])
        states = []
        for layer in range(len(self._kept)):
            keys, values, ages = (
                in_order(part)[:, :count] for part in self._parts(layer)
            )
            states.append(
                SoftmaxState(
                    keys=one_row(keys),
                    values=one_row(values),
                    cumulative_decay=(
                        one_row(ages[..., 0]) if self._forgets(layer) else None
                    ),
                )
            )
        return NetworkState(tuple(states[:-1]), states[-1])

    def put_layers(self, state: NetworkState) -> None:
        """Remember that instead."""
        states = own_layers(self._packed, state, SoftmaxState)
        count = states[0].keys.shape[2]
        self._allocate(max(_FEWEST_TILES, 2 * -(-count // at.TILE)))
        for layer, of_layer in enumerate(states):
            keys, values, ages = self._parts(layer)
            put_in_tiles(keys, of_layer.keys[0])
            put_in_tiles(values, of_layer.values[0])
            if of_layer.cumulative_decay is not None:
                put_in_tiles(ages, of_layer.cumulative_decay[0, ..., None])

    @property
    def num_bytes(self) -> int:
        """Memory of what `layers` returns; twice that may be allocated."""
        sizes, count = self._packed.sizes, int(self.whole[at.COUNT])
        per_event = 0
        for layer in range(int(sizes[at.LAYERS])):
            per_event += 2 * int(sizes[at.WIDTH]) * self._kept.itemsize
            if self._forgets(layer):
                per_event += int(sizes[at.HEADS]) * self._ages.itemsize
        return count * per_event

    def _allocate(self, tiles: int) -> None:
        sizes = self._packed.sizes
        layers, heads = int(sizes[at.LAYERS]), int(sizes[at.HEADS])
        rows = int(sizes[at.LAYER_SIZE])
        self._kept = np.zeros((layers, tiles, rows, at.TILE), np.float32)
        self._ages = np.zeros((layers, tiles, heads, at.TILE))
        self.whole[at.CAPACITY] = tiles

    def _parts(self, layer: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return views of keys [N, H, K, T], values [N, H, V, T] and ages [N, H, 1, T]."""
        sizes = self._packed.sizes
        heads, key = int(sizes[at.HEADS]), int(sizes[at.KEY])
        padded = int(sizes[at.PADDED_KEY])
        keys, values = np.split(self._kept[layer], [heads * padded], axis=1)
        tiles = len(keys)
        return (
            keys.reshape(tiles, heads, padded, at.TILE)[:, :, :key],
            values.reshape(tiles, heads, key, at.TILE),
            self._ages[layer][:, :, None],
        )

    def _forgets(self, layer: int) -> bool:
        row = at.LAYER_TABLE + layer * at.LAYER_COLUMNS
        return bool(self._packed.sizes[row + at.RATE] >= 0)


def in_order(tiles: np.ndarray) -> np.ndarray:
    """Return tiles [N, H, K, T] as rows in order of time [H, N * T, K]."""
    number, heads, width, length = tiles.shape
    return tiles.transpose(1, 0, 3, 2).reshape(heads, number * length, width)


def put_in_tiles(tiles: np.ndarray, rows: Tensor) -> None:
    """Copy rows [H, S, K] into tiles [N, H, K, T].

    Raises
    ------
    ValueError
        If there are other heads, or they have another width.
    """
    number, heads, width, length = tiles.shape
    room = np.zeros((heads, number * length, width), tiles.dtype)
    put(room[:, : rows.shape[1]], rows)
    tiles[...] = room.reshape(heads, number, length, width).transpose(1, 0, 3, 2)
