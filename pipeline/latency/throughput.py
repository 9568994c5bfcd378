"""The largest rate of requests that keeps the 99th percentile under a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

TOLERANCE = 0.05
# At its capacity a queue grows without end, however short a trial looks.
BUSIEST = 0.98


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
        What one server can do without a pause; `BUSIEST` of it is the largest rate
        tried.
    tolerance : float
        Relative, inside (0, 1); also the smallest share of the capacity tried.

    Returns
    -------
    Throughput
        `BUSIEST` of the capacity where even there the limit holds; undefined where it
        holds at no rate tried.
    """
    kept, broken = 0.0, BUSIEST * capacity_hz
    if p99_at(broken) <= limit_us:
        return Throughput(broken)
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


def lasting_p99(response_us: Float64[np.ndarray, " n"]) -> float:
    """Return p99 of all response times or of their second half, whichever is larger.

    Where a queue still grows, the second half has waited longer.
    """
    half = response_us[len(response_us) // 2 :]
    return max(float(np.percentile(part, 99)) for part in (response_us, half))
