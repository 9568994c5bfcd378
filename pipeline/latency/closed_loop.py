"""The closed loop: the next request comes when the one before has been answered."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .open_loop import US_PER_SECOND
from .turns import Turns, service_us

K = TypeVar("K", bound=Hashable)
# Warming up may take this share of the time, and so may one round of blocks.
_WARM_UP = _ROUND = 0.1
# Forecasts of a block, and those before it that are thrown away: so many, as long as
# they take no longer. Forecasts that take longer find little of use in caches.
_BLOCK, _REHEARSED, _REHEARSED_US = 20, 10, 10_000.0


@dataclass(frozen=True)
class LoopLimits:
    """When a loop ends.

    Attributes
    ----------
    num_forecasts, num_warm_up : int
        Timed ones, and those before them that are thrown away.
    seconds : float
        For all forecasters of a loop together; slow ones then make fewer forecasts,
        but `fewest` at least.
    fewest : int
    """

    num_forecasts: int
    num_warm_up: int
    seconds: float
    fewest: int


def closed_loop(turns: Mapping[K, Turns], limits: LoopLimits) -> dict[K, np.ndarray]:
    """Return the service times of single forecasts, in microseconds.

    The forecasters take turns in short blocks, and who begins changes: whatever else the
    machine does meanwhile meets them alike, and each makes as many forecasts as the
    others. Before its block a forecaster answers some requests untimed: the other one
    has left its own data in the caches.

    Parameters
    ----------
    turns : Mapping[K, Turns]
    limits : LoopLimits
    """
    names = list(turns)
    usual = _warmed_up(turns, limits)
    times: dict[K, list[float]] = {name: [] for name in names}
    done, begun = 0, time.monotonic()
    while done < limits.num_forecasts:
        size = min(_block(usual, limits), limits.num_forecasts - done)
        for name in names:
            if len(names) > 1:
                turns[name].rehearse(_rehearsed(usual[name]))
            block = [service_us(*turns[name].ready()) for _ in range(size)]
            usual[name] = float(np.median(block))
            times[name] += block
        names.append(names.pop(0))
        done += size
        late = time.monotonic() - begun > limits.seconds
        if late and done >= limits.fewest:
            break
    return {name: np.array(taken) for name, taken in times.items()}


def _warmed_up(turns: Mapping[K, Turns], limits: LoopLimits) -> dict[K, float]:
    """Make some forecasts of each in turn; return what the last ones took (µs)."""
    begun = time.monotonic()
    usual = dict.fromkeys(turns, 0.0)
    for _ in range(max(1, limits.num_warm_up)):
        for name, each in turns.items():
            usual[name] = service_us(*each.ready())
        if time.monotonic() - begun > _WARM_UP * limits.seconds:
            break
    return usual


def _block(usual: Mapping[K, float], limits: LoopLimits) -> int:
    """Return how many forecasts each makes in a round that is short beside the loop."""
    affordable = _ROUND * limits.seconds * US_PER_SECOND / max(sum(usual.values()), 1.0)
    return max(1, min(_BLOCK, int(affordable)))


def _rehearsed(usual_us: float) -> int:
    return min(_REHEARSED, int(_REHEARSED_US / max(usual_us, 1.0)))
