"""Training of linear attention against softmax (SDPA), side by side in one run.

Forward and backward, D = 64, batch x heads = 8. Attention alone: queries and keys are
features already (non-negative, through `relu`, which leaves them as they are); beside
it the same with the feature map `elu1` of raw inputs. All are timed in turn, so that a
machine that slows down slows each; medians and their ratios count. Exits with 1 if
attention alone misses a bar: `make bench-attention`. Run it on an idle machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from infoset.models.attention import feature_map, linear_attention

BARS = {256: 1.0, 1024: 2.0, 4096: 7.0}  # events: times as fast as SDPA, at least
WIDTH, HEADS = 64, 8
THREADS = 2
SECONDS_PER_CELL = 6.0
FEWEST_RUNS = 9
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def step(
    attend: Callable[[Tensor, Tensor, Tensor], Tensor], inputs: list[Tensor]
) -> float:
    """Return the seconds of one forward and backward pass."""
    for tensor in inputs:
        tensor.grad = None
    before = time.perf_counter()
    attend(*inputs).sum().backward()
    return time.perf_counter() - before


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend by torch's own kernel."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def linear(name: str) -> Attend:
    """Return our attention with a feature map."""
    phi = feature_map(name)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y, _ = linear_attention(q, k, v, feature_map=phi)
        return y

    return attend


def compare(num_events: int) -> dict[str, float]:
    """Return the median seconds of each form."""
    raw = [torch.randn(1, HEADS, num_events, WIDTH) for _ in range(3)]
    mapped = [raw[0].abs(), raw[1].abs(), raw[2]]
    forms: dict[str, tuple[Attend, list[Tensor]]] = {
        "alone": (linear("relu"), [x.clone().requires_grad_() for x in mapped]),
        "elu1": (linear("elu1"), [x.clone().requires_grad_() for x in raw]),
        "softmax": (softmax, [x.clone().requires_grad_() for x in raw]),
    }
    times: dict[str, list[float]] = {name: [] for name in forms}
    for attend, inputs in [*forms.values()] * 3:
        step(attend, inputs)
    until = time.perf_counter() + SECONDS_PER_CELL
    order = list(forms)
    while len(times["alone"]) < FEWEST_RUNS or time.perf_counter() < until:
        # Each form runs as often after any other: what one leaves in the caches and
        # in the allocator is the next one's luck.
        order.append(order.pop(0))
        for name in order:
            times[name].append(step(*forms[name]))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    # Once a tensor of this size was freed, the C library keeps such memory for the
    # process, as it does in any training run. Before, every output is fresh pages.
    torch.empty(31 * 2**18)
    table = Table(
        title=f"Forward and backward, D = {WIDTH}, B*H = {HEADS}, {THREADS} threads"
    )
    for name in ("events", "alone ms", "elu1 ms", "softmax ms", "elu1 x", "alone x"):
        table.add_column(name, justify="right")
    table.add_column("bar")
    missed = 0
    for num_events, bar in BARS.items():
        seconds = compare(num_events)
        ratio = seconds["softmax"] / seconds["alone"]
        missed += ratio < bar
        table.add_row(
            f"{num_events:,}",
            *(f"{1e3 * seconds[name]:.2f}" for name in ("alone", "elu1", "softmax")),
            f"{seconds['softmax'] / seconds['elu1']:.2f}",
            f"{ratio:.2f}",
            f"{bar:.0f} {'PASS' if ratio >= bar else 'FAIL'}",
        )
    Console(width=90).print(table)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
