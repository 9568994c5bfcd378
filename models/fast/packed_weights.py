"""A network's weights as one flat array, in the order in which an event meets them.

The torch module stays the source: this is a copy, laid out for compiled code. Matrices
are transposed, so that the inner loops of products run along the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor, nn

from infoset.models.attention import Favor, Hedgehog
from infoset.models.attention.feature_maps import Elu1, Relu, SquaredRelu
from infoset.models.blocks import CausalBlock, FeedForward, Readout
from infoset.models.heads import _LOCATION_RATE
from infoset.models.kernels import LinearKernel, SoftmaxKernel
from infoset.models.network import Network

from . import layout as at
from .linear_memory import layer_size, wide_room
from .softmax_memory import average_wide_room, rows_per_tile

_TYPES = {torch.float32, torch.int64, torch.bool}
_KINDS: dict[type, int] = {
    Elu1: at.ELU1,
    Relu: at.RELU,
    SquaredRelu: at.SQUARED_RELU,
    Favor: at.FAVOR,
    Hedgehog: at.HEDGEHOG,
}


@dataclass(frozen=True, eq=False)
class PackedWeights:
    """What compiled code needs to know of a network; never written to.

    Attributes
    ----------
    numbers : ndarray of shape (n,)
        All weights, each part on a cache line of its own.
    sizes : ndarray of shape (m,)
        Sizes, offsets and whole numbers, in the order of `layout`.
    """

    numbers: Float32[np.ndarray, " n"]
    sizes: Int64[np.ndarray, " m"]

    @property
    def kind(self) -> int:
        """Kind of attention, as in `layout`."""
        return int(self.sizes[at.MAP_KIND])

    @property
    def is_linear(self) -> bool:
        """Whether states have a fixed size."""
        return self.kind != at.SOFTMAX

    def same_as(self, other: PackedWeights) -> bool:
        """Return whether both hold the same weights."""
        return np.array_equal(self.sizes, other.sizes) and (
            self.numbers.tobytes() == other.numbers.tobytes()
        )


# A thousand streams of one network share one copy.
_LATEST: WeakKeyDictionary[Network, PackedWeights] = WeakKeyDictionary()


def packed_weights(network: Network) -> PackedWeights:
    """Return the weights as they are now.

    Raises
    ------
    ValueError
        If the network is not served, see `unserved`.
    """
    refused = unserved(network)
    if refused:
        raise ValueError(
            f"a network must be one that compiled streams know; got {refused}. "
            "Use streams of torch."
        )
    packed = _Packer().packed(network)
    latest = _LATEST.get(network)
    if latest is not None and latest.same_as(packed):
        return latest
    _LATEST[network] = packed
    return packed


def unserved(network: Network) -> str | None:
    """Return what compiled streams do not know of a network; None if they serve it.

    They serve float32 networks on the CPU whose width is a multiple of a block, and
    whose layers all have softmax attention, or all linear attention with the same of
    the maps elu1, relu, squared_relu, favor and hedgehog.
    """
    if type(network) is not Network:
        return f"a {type(network).__name__}"
    for name, x in (*network.named_parameters(), *network.named_buffers()):
        if x.device.type != "cpu" or x.dtype not in _TYPES:
            return f"{name} of {x.dtype} on {x.device}"
    if network.query.out_features % at.BLOCK:
        return f"width {network.query.out_features}"
    layers = _layers(network)
    for layer in layers:
        if _kind(layer.kernel) is None:
            return f"the kernel {layer.kernel}"
        if type(layer.feed_forward) is not FeedForward:
            return f"the feed-forward part {layer.feed_forward}"
    alike = {(_kind(layer.kernel), _num_features(layer)) for layer in layers}
    return None if len(alike) == 1 else "layers whose attention differs"


def _layers(network: Network) -> list[CausalBlock | Readout]:
    blocks = [block for block in network.blocks if isinstance(block, CausalBlock)]
    return [*blocks, network.readout]


def _kind(kernel: object) -> int | None:
    if type(kernel) is SoftmaxKernel:
        return at.SOFTMAX
    if type(kernel) is LinearKernel:
        return _KINDS.get(type(kernel.feature_map))
    return None


class _Packer:
    """Puts parts behind each other and notes where they are."""

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._end = 0
        self._whole: list[np.ndarray] = []
        self._sizes = np.zeros(0, np.int64)

    def packed(self, network: Network) -> PackedWeights:
        layers = _layers(network)
        self._sizes = np.zeros(
            at.LAYER_TABLE + len(layers) * at.LAYER_COLUMNS, np.int64
        )
        self._note_sizes(network, layers)
        self._add_embedding(network)
        for place, layer in enumerate(layers):
            self._add_layer(at.LAYER_TABLE + place * at.LAYER_COLUMNS, layer)
        self._add_forecast(network)
        sizes = np.concatenate([self._sizes, *self._whole])
        return PackedWeights(self._aligned(), sizes)

    def _note_sizes(
        self, network: Network, layers: Sequence[CausalBlock | Readout]
    ) -> None:
        sizes, first = self._sizes, layers[0]
        width, heads = network.query.out_features, first.heads.num_heads
        features = _num_features(first)
        sizes[at.WIDTH] = width
        sizes[at.HIDDEN] = _feed_forward(first)[0].out_features
        sizes[at.HEADS] = heads
        sizes[at.KEY] = width // heads
        sizes[at.FEATURES] = features
        sizes[at.PADDED_FEATURES] = _filled_up(features)
        sizes[at.LAYERS] = len(layers)
        sizes[at.MAP_KIND] = _kind(first.kernel) or at.ELU1
        sizes[at.QUANTILES] = network.head.base.shape[1]
        sizes[at.NUM_STREAMS] = network.embedding.stream.num_embeddings
        sizes[at.PADDED_KEY] = _filled_up(width // heads)
        if sizes[at.MAP_KIND] == at.SOFTMAX:
            sizes[at.LAYER_SIZE] = rows_per_tile(sizes)
            sizes[at.WIDE_ROOM] = average_wide_room(sizes)
        else:
            sizes[at.LAYER_SIZE] = layer_size(sizes)
            sizes[at.WIDE_ROOM] = wide_room(sizes)

    def _add_embedding(self, network: Network) -> None:
        sizes, embedding = self._sizes, network.embedding
        sizes[at.STREAM_ROWS] = self._add(embedding.stream.weight)
        sizes[at.CLOCK_ROWS] = self._add(embedding.clocks.weight.T)
        sizes[at.CLOCK_BIAS] = self._add(embedding.clocks.bias)
        sizes[at.CHANNEL_ROWS] = self._add(embedding.channels.weight.T)
        sizes[at.MEAN] = self._add(embedding.mean)
        sizes[at.DEVIATION] = self._add(embedding.deviation)
        sizes[at.CHANNEL_OFFSET] = self._add_whole(embedding.offset)
        sizes[at.NUM_VALUES] = self._add_whole(embedding.num_values)
        sizes[at.USED] = self._add_whole(embedding.used)

    def _add_layer(self, row: int, layer: CausalBlock | Readout) -> None:
        sizes, heads = self._sizes, layer.heads
        rise, fall = _feed_forward(layer)
        key_value = heads.key_value.weight
        if isinstance(layer, Readout):
            norm, projection = layer.events_norm, key_value
            sizes[at.QUERY_NORM] = self._add_norm(layer.query_norm)
            sizes[at.QUERY] = self._add_matrix(heads.query.weight)
        else:
            norm = layer.before_attention
            projection = torch.cat([heads.query.weight, key_value])
        sizes[row + at.NORM] = self._add_norm(norm)
        sizes[row + at.PROJECTION] = self._add_matrix(projection)
        sizes[row + at.RATE] = -1
        if layer.forgetting is not None:
            sizes[row + at.RATE] = self._add(layer.forgetting.log_rate.exp())
        sizes[row + at.MAP] = self._add_map(layer.kernel)
        sizes[row + at.FLOOR] = self._add(torch.tensor(_floor(layer.kernel)))
        sizes[row + at.OUTPUT] = self._add_matrix(heads.output.weight)
        sizes[row + at.FEED_NORM] = self._add_norm(layer.before_feed_forward)
        sizes[row + at.RISE] = self._add_matrix(rise.weight)
        sizes[row + at.RISE_BIAS] = self._add(rise.bias)
        sizes[row + at.FALL] = self._add_matrix(fall.weight)
        sizes[row + at.FALL_BIAS] = self._add(fall.bias)

    def _add_forecast(self, network: Network) -> None:
        sizes, head = self._sizes, network.head
        # The head's rate of moving is a factor of the first row.
        rate = torch.tensor([_LOCATION_RATE, 1.0])
        sizes[at.QUERY_ROWS] = self._add(network.query.weight.T)
        sizes[at.QUERY_BIAS] = self._add(network.query.bias)
        sizes[at.ENTITY_ROWS] = self._add(network.entity.weight)
        sizes[at.GAIN_ROWS] = self._add(network.entity_gain.weight)
        sizes[at.LAST_NORM] = self._add_norm(network.norm)
        sizes[at.ADJUST] = self._add(head.adjust.weight * rate[:, None])
        sizes[at.ADJUST_BIAS] = self._add(head.adjust.bias * rate)
        sizes[at.BASE] = self._add(head.base)

    def _add_norm(self, norm: nn.LayerNorm) -> int:
        epsilon = torch.tensor([norm.eps])
        return self._add(torch.cat([norm.weight, norm.bias, epsilon]))

    def _add_matrix(self, weight: Tensor) -> int:
        """Add a linear layer's matrix [out, in], transposed."""
        return self._add(weight.T)

    def _add_map(self, kernel: object) -> int:
        """Add the directions of favor or the matrices of hedgehog, head by head."""
        chosen = kernel.feature_map if isinstance(kernel, LinearKernel) else None
        if isinstance(chosen, Favor):
            padded = _filled_up(chosen.projection.shape[2])
            missing = padded - chosen.projection.shape[2]
            return self._add(
                _with_rows(nn.functional.pad(chosen.projection, (0, missing)))
            )
        if isinstance(chosen, Hedgehog):
            return self._add(_with_rows(chosen.weight))
        return -1

    def _add(self, part: Tensor) -> int:
        numbers = part.detach().to(torch.float32).contiguous().reshape(-1).numpy()
        start, used = self._end, len(numbers)
        # A product may read a block behind the last number.
        self._end += at.LINE * (-(-(used + at.BLOCK) // at.LINE))
        self._parts += [numbers, np.zeros(self._end - start - used, np.float32)]
        return start

    def _add_whole(self, part: Tensor) -> int:
        start = len(self._sizes) + sum(map(len, self._whole))
        self._whole.append(part.to(torch.int64).numpy())
        return start

    def _aligned(self) -> np.ndarray:
        """Return all parts in one array that starts on a cache line."""
        room = np.empty(self._end + at.LINE, np.float32)
        skipped = (-room.ctypes.data // room.itemsize) % at.LINE
        numbers = room[skipped : skipped + self._end]
        np.concatenate(self._parts, out=numbers)
        return numbers


def _feed_forward(layer: CausalBlock | Readout) -> tuple[nn.Linear, nn.Linear]:
    rise, fall = (part for part in layer.feed_forward if isinstance(part, nn.Linear))
    return rise, fall


def _num_features(layer: CausalBlock | Readout) -> int:
    """Return R of a layer; K where it does not matter."""
    width = layer.heads.query.out_features // layer.heads.num_heads
    chosen = layer.kernel.feature_map if type(layer.kernel) is LinearKernel else None
    if isinstance(chosen, Favor):
        return int(chosen.projection.shape[2])
    return 2 * width if isinstance(chosen, Hedgehog) else width


def _floor(kernel: object) -> float:
    return kernel.floor if isinstance(kernel, LinearKernel) else 0.0


def _filled_up(number: int) -> int:
    return at.BLOCK * (-(-number // at.BLOCK))


def _with_rows(matrix: Tensor) -> Tensor:
    """Return a matrix [..., in, out] with rows of zeros up to a whole block of them."""
    missing = _filled_up(matrix.shape[-2]) - matrix.shape[-2]
    return nn.functional.pad(matrix, (0, 0, 0, missing))
