"""The closed loop: the next request comes when the one before has been answered."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .turns import Turns, service_us

K = TypeVar("K", bound=Hashable)
# Warming up may take this share of the time.
_WARM_UP = 0.1


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

    The forecasters take turns, and who begins changes: whatever else the machine does
    meanwhile meets them alike. Each therefore makes as many forecasts as the others.

    Parameters
    ----------
    turns : Mapping[K, Turns]
    limits : LoopLimits
    """
    names = list(turns)
    times: dict[K, list[float]] = {name: [] for name in names}
    begun = time.monotonic()
    for _ in range(limits.num_warm_up):
        for name in names:
            service_us(*turns[name].ready())
        if time.monotonic() - begun > _WARM_UP * limits.seconds:
            break
    begun = time.monotonic()
    for turn in range(limits.num_forecasts):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(service_us(*turns[name].ready()))
        late = time.monotonic() - begun > limits.seconds
        if late and turn + 1 >= limits.fewest:
            break
    return {name: np.array(taken) for name, taken in times.items()}
