"""A forecast's vector as quantiles in its target's unit: `QuantileHead`, compiled."""

from __future__ import annotations

import math

import numpy as np

from . import layout as at
from .arithmetic import normalise
from .compiled import compiled
from .query_vector import is_empty


@compiled
def write_forecast(
    w: np.ndarray,
    sizes: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    period: int,
    x: np.ndarray,
    x_at: int,
    normal: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write the quantiles of a stream, in its target's unit.

    Parameters
    ----------
    x : float32 ndarray
        What the readout has made of the query, from `x_at` on.
    normal : float32 ndarray
        Room for one row.
    out : float64 ndarray of shape (Q,)

    Returns
    -------
    bool
        Whether they are finite and ascend.
    """
    _write_quantiles(w, sizes, counters[at.ENTITY], x, x_at, normal, out)
    weight, square = memory[at.WEIGHT], memory[at.SQUARE]
    if is_empty(counters, period):
        weight, square = 0.0, 0.0
    scale = math.sqrt(
        (memory[at.PRIOR_WEIGHT] * memory[at.PRIOR] + square)
        / (memory[at.PRIOR_WEIGHT] + weight)
    )
    good, before = True, -np.inf
    for q in range(len(out)):
        out[q] *= scale
        good = good and math.isfinite(out[q]) and out[q] >= before
        before = out[q]
    return good


@compiled
def _write_quantiles(
    w: np.ndarray,
    sizes: np.ndarray,
    entity: int,
    x: np.ndarray,
    x_at: int,
    normal: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write them in units of the scale: `QuantileHead`."""
    width, number = sizes[at.WIDTH], sizes[at.QUANTILES]
    normalise(x, x_at, w, sizes[at.LAST_NORM], normal, 0, width)
    row, adjust = normal[:width], sizes[at.ADJUST]
    by_location = w[adjust : adjust + width]
    by_spread = w[adjust + width : adjust + 2 * width]
    location, spread = w[sizes[at.ADJUST_BIAS]], w[sizes[at.ADJUST_BIAS] + 1]
    for i in range(width):
        location += row[i] * by_location[i]
        spread += row[i] * by_spread[i]
    factor = np.float32(math.exp(spread))
    base = sizes[at.BASE] + entity * number
    for q in range(number):
        out[q] = np.float32(w[base + q] * factor + location)
