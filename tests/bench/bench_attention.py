"""Training of linear attention against softmax (SDPA), side by side in one run.

Forward and backward, feature map included, D = 64, batch x heads = 8. The two are timed
in turn, so that a machine that slows down slows both; medians and their ratio count.
Exits with 1 if a bar is missed: `make bench-attention`.
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


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend by ours."""
    y, _ = linear_attention(q, k, v, feature_map=feature_map("elu1"))
    return y


def compare(num_events: int) -> tuple[float, float]:
    """Return the median seconds of linear and of softmax."""
    inputs = [
        torch.randn(1, HEADS, num_events, WIDTH, requires_grad=True) for _ in range(3)
    ]
    times: dict[str, list[float]] = {"linear": [], "softmax": []}
    for _ in range(3):
        step(linear, inputs)
        step(softmax, inputs)
    until = time.perf_counter() + SECONDS_PER_CELL
    while len(times["linear"]) < FEWEST_RUNS or time.perf_counter() < until:
        times["linear"].append(step(linear, inputs))
        times["softmax"].append(step(softmax, inputs))
    return statistics.median(times["linear"]), statistics.median(times["softmax"])


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    table = Table(
        title=f"Forward and backward, D = {WIDTH}, B*H = {HEADS}, {THREADS} threads"
    )
    for name in ("events", "linear ms", "softmax ms", "ratio", "bar", ""):
        table.add_column(name, justify="right")
    missed = 0
    for num_events, bar in BARS.items():
        ours, theirs = compare(num_events)
        ratio = theirs / ours
        missed += ratio < bar
        table.add_row(
            f"{num_events:,}",
            f"{1e3 * ours:.2f}",
            f"{1e3 * theirs:.2f}",
            f"{ratio:.2f}",
            f"{bar:.0f}",
            "PASS" if ratio >= bar else "FAIL",
        )
    Console(width=90).print(table)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
