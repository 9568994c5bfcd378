"""Percentiles of latencies, with intervals, and none that the times cannot tell."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float64, Int64

from .columns import PERCENTILES

# So many forecasts must lie beyond a percentile before it is told, or has an interval.
FEWEST_BEYOND = 10
FEWEST_FOR_P99_9 = 10_000
SHORTEST_BLOCK, REPS = 10, 1000
_AT_ONCE = 1_000_000  # drawn times held in memory
_INTERVAL = (2.5, 97.5)


def summary(times_us: Float64[np.ndarray, " n"]) -> dict[str, object]:
    """Return what the table says of single times.

    Percentiles are linear between the times [1]_. p99.9 needs 10,000 forecasts, the
    interval of any percentile ten forecasts beyond it.

    Parameters
    ----------
    times_us : ndarray of shape (n,)
        Microseconds, in the order in which they were taken; at least one.

    References
    ----------
    .. [1] Hyndman, Fan (1996), The American Statistician 50(4), definition 7
    """
    found: dict[str, object] = {"num_forecasts": len(times_us)}
    values = np.percentile(times_us, list(PERCENTILES.values()))
    ends = intervals(times_us)
    for name, value in zip(PERCENTILES, values.tolist(), strict=True):
        found[f"{name}_us"] = value
        if name in ends:
            found[f"{name}_low_us"], found[f"{name}_high_us"] = ends[name]
    if len(times_us) < FEWEST_FOR_P99_9:
        found["p99_9_us"] = math.nan
        found["p99_9_undefined"] = (
            f"p99.9 needs {FEWEST_FOR_P99_9:,} forecasts; there are {len(times_us):,}"
        )
    return found | {"max_us": float(times_us.max()), "times_us": times_us.tolist()}


def intervals(
    times_us: Float64[np.ndarray, " n"],
) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of each percentile that has ten forecasts beyond it.

    Blocks of successive forecasts are drawn, so that a slow stretch of the machine
    stays together: neighbouring latencies are alike.
    """
    num = len(times_us)
    told = {
        name: percent
        for name, percent in PERCENTILES.items()
        if name != "p95" and num * (100 - percent) / 100 >= FEWEST_BEYOND - 1e-9
    }
    if not told:
        return {}
    parts = [
        np.percentile(times_us[drawn], list(told.values()), axis=1)
        for drawn in block_draws(num, block=block_length(num))
    ]
    ends = np.percentile(np.concatenate(parts, axis=1), _INTERVAL, axis=1)
    return {
        name: (float(low), float(high))
        for name, low, high in zip(told, *ends, strict=True)
    }


def block_length(num: int) -> int:
    """Return how many successive forecasts stay together: n^(1/3), at least ten."""
    return max(SHORTEST_BLOCK, round(math.cbrt(num)))


def block_draws(
    num: int, *, block: int, reps: int = REPS, seed: int = 0
) -> Iterator[Int64[np.ndarray, "r n"]]:
    """Yield positions of bootstrap samples, some samples at a time.

    The moving blocks go round the end [1]_: every time is equally likely.

    References
    ----------
    .. [1] Politis, Romano (1992), A circular block-resampling procedure
    """
    generator = np.random.default_rng(seed)
    starts = generator.integers(0, num, size=(reps, math.ceil(num / block)))
    at_once = max(1, _AT_ONCE // num)
    for first in range(0, reps, at_once):
        part = starts[first : first + at_once]
        drawn = part[:, :, None] + np.arange(block)
        yield drawn.reshape(len(part), -1)[:, :num] % num
