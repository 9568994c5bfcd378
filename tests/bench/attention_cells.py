"""The cells of the attention benchmark: width, length, with or without backward.

Every form of a cell gets the same numbers and is timed in turn with the others. So is
a large matrix product, whose rate is the ceiling that shares are taken of.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import attention_peers as peers
import torch
from in_turn import Seconds, Timed, in_turn
from torch import Tensor

from infoset.models.attention import FeatureMap, feature_map, linear_attention

HEADS = 8
WIDTHS = (64, 32, 16)
LENGTHS = (256, 1024, 4096, 16384, 65536)
THREADS = 2
_GEMM = 1024  # rows and columns of both factors
_LONGEST_SOFTMAX = 16384  # one pass over four times as many takes a minute
_PERFORMER = (64, 4096)  # width and length
Attend = Callable[..., Tensor]
Form = tuple[Attend, list[Tensor]]


@dataclass(frozen=True)
class Cell:
    """What is measured side by side.

    Attributes
    ----------
    width : int
        D = R = V, of a head.
    num_events : int
        N.
    backward : bool
        Forward with backward; else forward alone, without gradients.
    """

    width: int
    num_events: int
    backward: bool

    @property
    def mode(self) -> str:
        """In words."""
        return "forward + backward" if self.backward else "forward"

    @property
    def floor_flops(self) -> float:
        """What the best known algorithm computes, in chunks of C = D tokens.

        Per token and head, forward 4 C D + 4 D^2, with backward 14 D (C + D).
        """
        each = 28 * self.width**2 if self.backward else 8 * self.width**2
        return float(HEADS * self.num_events * each)


def prepare_process() -> None:
    """Fix threads and seed, and let the C library keep freed memory."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    # Once a tensor of this size was freed, the C library keeps such memory for the
    # process, as it does in any training run. Before, every output is fresh pages.
    torch.empty(31 * 2**18)


def measured(cell: Cell, *, budget: float) -> dict[str, Seconds]:
    """Return the seconds of every form of a cell, and of `gemm`."""
    shape = (1, HEADS, cell.num_events, cell.width)
    upstream = torch.randn(shape) if cell.backward else None
    timed = {name: _timed(form, upstream) for name, form in forms(cell).items()}
    timed["gemm"] = _gemm()
    return in_turn(timed, budget=budget)


def gemm_flops_per_second(seconds: Seconds) -> float:
    """Return the rate of the matrix product."""
    return 2 * _GEMM**3 / seconds.median


def share_of_floor(cell: Cell, seconds: dict[str, Seconds], form: str) -> float:
    """Return how much of the time of a form the matrix product would need too."""
    floor = cell.floor_flops / gemm_flops_per_second(seconds["gemm"])
    return floor / seconds[form].median


def forms(cell: Cell) -> dict[str, Form]:
    """Return what is compared, ours first: name, attention, inputs."""
    shape = (1, HEADS, cell.num_events, cell.width)
    raw = [_input(torch.randn(shape), cell) for _ in range(3)]
    # Relu leaves features as they are, for it finds nothing negative in them.
    mapped = [_input(x.detach().abs(), cell) for x in raw[:2]]
    decay = _input(torch.rand(shape[:3]) / cell.width, cell)
    directions = feature_map("favor", width=cell.width, num_heads=HEADS)
    found: dict[str, tuple[Attend | None, list[Tensor]]] = {
        "elu1": (linear("elu1"), raw),
        "mapped": (linear("relu"), [*mapped, raw[2]]),
        "strict": (linear("elu1", inclusive=False), raw),
        "favor": (linear(directions), raw),
        "decay": (faded, [*raw, decay]),
    }
    if cell.num_events <= _LONGEST_SOFTMAX:
        found["sdpa"] = peers.softmax, raw
    found["fast_transformers"] = peers.fast_transformers(), raw
    found["fast_transformers_module"] = (
        peers.fast_transformers_module(cell.width),
        [_input(x.detach().transpose(1, 2), cell) for x in raw],
    )
    if (cell.width, cell.num_events) == _PERFORMER:
        found["performer"] = peers.performer(cell.width), raw
    return {name: (attend, x) for name, (attend, x) in found.items() if attend}


def linear(phi: FeatureMap | str, *, inclusive: bool = True) -> Attend:
    """Return our attention with a feature map."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, feature_map=phi, inclusive=inclusive)[0]

    return attend


def faded(q: Tensor, k: Tensor, v: Tensor, decay: Tensor) -> Tensor:
    """Attend with `elu1` and forgetting, whose rates are learned too."""
    return linear_attention(q, k, v, feature_map="elu1", decay=decay)[0]


def run_once(attend: Attend, inputs: list[Tensor], upstream: Tensor | None) -> float:
    """Return the seconds of a pass; with backward if there is an upstream gradient."""
    for tensor in inputs:
        tensor.grad = None
    with torch.set_grad_enabled(upstream is not None):
        before = time.perf_counter()
        y = attend(*inputs)
        if upstream is not None:
            y.backward(upstream)
        return time.perf_counter() - before


def _timed(form: Form, upstream: Tensor | None) -> Timed:
    attend, inputs = form
    if upstream is not None:
        upstream = upstream.view(inputs[2].shape)  # some peer has time before heads
    return lambda: run_once(attend, inputs, upstream)


def _gemm() -> Timed:
    left, right, product = (torch.randn(_GEMM, _GEMM) for _ in range(3))

    def run() -> float:
        before = time.perf_counter()
        torch.mm(left, right, out=product)
        return time.perf_counter() - before

    return run


def _input(x: Tensor, cell: Cell) -> Tensor:
    return x.contiguous().requires_grad_(cell.backward)
