"""Seconds of several forms of one computation, run in turn.

A machine that slows down slows each form, so ratios stay what they are.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

FEWEST_RUNS = 5
_SLOW = 5.0
Timed = Callable[[], float]


@dataclass(frozen=True)
class Seconds:
    """What one form took.

    Attributes
    ----------
    median, least : float
        Seconds.
    runs : int
    """

    median: float
    least: float
    runs: int


def in_turn(forms: Mapping[str, Timed], *, budget: float) -> dict[str, Seconds]:
    """Run every form again and again for about `budget` seconds.

    Each run returns its own seconds, so that a form can prepare itself untimed. The
    first round warms up. Forms that are several times slower than the first one sit
    out once they have run often enough for a median.

    Parameters
    ----------
    forms : mapping of name to run
    budget : float
        Seconds of all runs together; every form runs `FEWEST_RUNS` times at least.
    """
    for run in forms.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in forms}
    order = list(forms)
    until = time.perf_counter() + budget
    rounds = 0
    while rounds < FEWEST_RUNS or time.perf_counter() < until:
        # Each form runs as often after any other: what one leaves in the caches and
        # in the allocator is the next one's luck.
        order.append(order.pop(0))
        if rounds == FEWEST_RUNS:
            order = _without_slow(order, taken)
        for name in order:
            taken[name].append(forms[name]())
        rounds += 1
    return {
        name: Seconds(statistics.median(times), min(times), len(times))
        for name, times in taken.items()
    }


def _without_slow(order: list[str], taken: Mapping[str, list[float]]) -> list[str]:
    first = statistics.median(next(iter(taken.values())))
    return [name for name in order if min(taken[name]) < _SLOW * first]
