"""The largest rate of requests that keeps the 99th percentile under a limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

TOLERANCE = 0.05
# Nearer to the capacity a queue grows for longer than a trial lasts.
BUSIEST = 0.95
_SEARCHED = (0, 1)  # draws of the arrivals that a rate has to bear in the search
_GROWTH = 0.25


@dataclass(frozen=True)
class Throughput:
    """What a search over rates has found.

    Attributes
    ----------
    rate_hz : float
        Requests a second: the largest rate tried that kept the limit, also with arrivals
        that the search had not seen. NaN where undefined.
    undefined : str or None
        Why there is none.
    """

    rate_hz: float
    undefined: str | None = None


def throughput_at_limit(
    holds_at: Callable[[float, int], bool],
    *,
    limit_us: float,
    capacity_hz: float,
    lowest_hz: float = 0.0,
    tolerance: float = TOLERANCE,
) -> Throughput:
    """Search the largest rate that keeps a limit, and confirm it with other arrivals.

    The interval of rates is halved until its ends differ by less than the tolerance.
    A rate that is not confirmed is lowered by the tolerance until one is.

    Parameters
    ----------
    holds_at : callable
        Whether the limit holds at a rate (1/s) with a draw of the arrivals.
    limit_us : float
        What it is, for the reason.
    capacity_hz : float
        What one server can do without a pause; `BUSIEST` of it is the largest rate
        tried.
    lowest_hz : float
        No rate below it is tried.
    tolerance : float
        Relative, inside (0, 1); also the smallest share of the capacity tried.

    Returns
    -------
    Throughput
        `BUSIEST` of the capacity where even there the limit holds; undefined where it
        holds at no rate tried.
    """
    highest = BUSIEST * capacity_hz
    lowest = max(lowest_hz, tolerance * capacity_hz)
    tried = [highest]

    def keeps(rate_hz: float) -> bool:
        tried.append(rate_hz)
        return all(holds_at(rate_hz, draw) for draw in _SEARCHED)

    kept = _largest(keeps, lowest, highest, tolerance)
    draw = len(_SEARCHED)
    while kept >= lowest and not holds_at(kept, draw):
        kept, draw = kept * (1 - tolerance), draw + 1
        tried.append(kept)
    if kept >= lowest:
        return Throughput(kept)
    least = min(rate for rate in tried if rate >= min(lowest, highest))
    return Throughput(
        math.nan,
        f"p99 does not stay under {limit_us:,.0f} µs even at {least:.3g} requests a second",
    )


def _largest(
    keeps: Callable[[float], bool], lowest: float, highest: float, tolerance: float
) -> float:
    """Return the largest rate that keeps the limit; 0 where none does."""
    if keeps(highest):
        return highest
    kept, broken = 0.0, highest
    while broken - kept > tolerance * broken:
        middle = (kept + broken) / 2
        if middle < lowest:
            break
        if keeps(middle):
            kept = middle
        else:
            broken = middle
    return kept


def stays_under(response_us: Float64[np.ndarray, " n"], limit_us: float) -> bool:
    """Return whether p99 is under a limit and would be so if the trial went on.

    It has to be under it in the second half too. The backlog must not grow: from the
    first half to the last quarter the median may rise by a quarter of the limit.
    """
    num = len(response_us)
    first, second = response_us[: num // 2], response_us[num // 2 :]
    rise = np.median(response_us[-(num // 4) :]) - np.median(first)
    highest = max(np.percentile(part, 99) for part in (response_us, second))
    return bool(highest <= limit_us and rise <= _GROWTH * limit_us)
