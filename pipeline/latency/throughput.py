"""The largest rate of requests that keeps the 99th percentile under a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

TOLERANCE = 0.05


@dataclass(frozen=True)
class Throughput:
    """What a search over rates has found.

    Attributes
    ----------
    rate_hz : float
        Requests a second: the largest rate tried whose p99 stayed under the limit; the
        next one tried that did not is at most `TOLERANCE` above it. NaN where undefined.
    undefined : str or None
        Why there is none.
    """

    rate_hz: float
    undefined: str | None = None


def throughput_at_limit(
    p99_at: Callable[[float], float],
    *,
    limit_us: float,
    capacity_hz: float,
    tolerance: float = TOLERANCE,
) -> Throughput:
    """Halve the interval of rates until its ends differ by less than the tolerance.

    Parameters
    ----------
    p99_at : callable
        99th percentile of the response time (microseconds) at a rate (1/s).
    limit_us : float
    capacity_hz : float
        What one server can do without a pause: the largest rate tried.
    tolerance : float
        Relative, inside (0, 1); also the smallest share of the capacity tried.

    Returns
    -------
    Throughput
        The capacity itself where even there the limit holds; undefined where it holds
        at no rate tried.
    """
    if p99_at(capacity_hz) <= limit_us:
        return Throughput(capacity_hz)
    kept, broken = 0.0, capacity_hz
    while broken - kept > tolerance * broken:
        middle = (kept + broken) / 2
        if middle < tolerance * capacity_hz:
            return Throughput(
                math.nan,
                f"p99 is above {limit_us:,.0f} µs even at {broken:.3g} requests a second",
            )
        if p99_at(middle) <= limit_us:
            kept = middle
        else:
            broken = middle
    return Throughput(kept)
