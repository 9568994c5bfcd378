"""An event as a vector, from its raw values: `EventEmbedding`, compiled."""

from __future__ import annotations

import math

import numpy as np

from infoset.data.instants import NS_PER_DAY

from . import layout as at
from .compiled import Real, compiled

_NS_PER_DAY = float(NS_PER_DAY)


@compiled
def days_between(earlier: int, later: int) -> Real:
    """Return nanoseconds as days in float32."""
    passed = later - earlier
    if (passed < 0) != (later < earlier):  # more than 292 years do not fit
        return np.float32((float(later) - float(earlier)) / _NS_PER_DAY)
    return np.float32(passed / _NS_PER_DAY)


@compiled
def write_event(
    w: np.ndarray,
    sizes: np.ndarray,
    values: np.ndarray,
    numbers: np.ndarray,
    elapsed_days: Real,
    out: np.ndarray,
    out_at: int,
) -> None:
    """Write the vector of an event.

    Parameters
    ----------
    w, sizes : ndarray
        Packed weights.
    values, numbers : ndarray
        The event's values, NaN where missing, and its whole numbers (see `layout`).
    elapsed_days : float32
        Since the event before it; 0 for the first.
    out : ndarray
        Written from `out_at` on.
    """
    width, stream = sizes[at.WIDTH], numbers[at.STREAM]
    x = out[out_at : out_at + width]
    start = sizes[at.STREAM_ROWS] + stream * width
    row = w[start : start + width]
    bias = w[sizes[at.CLOCK_BIAS] : sizes[at.CLOCK_BIAS] + width]
    for j in range(width):
        x[j] = row[j] + bias[j]
    some = _add_channels(w, sizes, values, stream, x)
    lag = days_between(numbers[at.EVENT_TIME], numbers[at.AVAILABLE_AT])
    clocks = sizes[at.CLOCK_ROWS]
    _add_row(w, clocks, np.float32(math.log1p(elapsed_days)), x)
    distance = np.float32(math.log1p(abs(float(lag))))
    _add_row(w, clocks + width, -distance if lag < 0 else distance, x)
    revision = np.float32(numbers[at.REVISION])
    _add_row(w, clocks + 2 * width, np.float32(math.log1p(revision)), x)
    if not some:
        _add_row(w, clocks + 3 * width, np.float32(1), x)


@compiled
def _add_channels(
    w: np.ndarray, sizes: np.ndarray, values: np.ndarray, stream: int, x: np.ndarray
) -> bool:
    """Add what the values say; return whether there is one, be it used or not."""
    width = sizes[at.WIDTH]
    first = sizes[sizes[at.CHANNEL_OFFSET] + stream]
    own = sizes[sizes[at.NUM_VALUES] + stream]
    some = False
    for place in range(len(values)):
        value = values[place]
        if not math.isfinite(value):
            continue
        some = True
        channel = first + place
        if place < own and sizes[sizes[at.USED] + channel] != 0:
            mean = w[sizes[at.MEAN] + channel]
            standard = (np.float32(value) - mean) / w[sizes[at.DEVIATION] + channel]
            known = np.float32(math.asinh(standard))
            _add_row(w, sizes[at.CHANNEL_ROWS] + channel * width, known, x)
    return some


@compiled
def _add_row(w: np.ndarray, start: int, factor: Real, x: np.ndarray) -> None:
    row = w[start : start + len(x)]
    for j in range(len(x)):
        x[j] += factor * row[j]


@compiled
def add_to_scale(
    memory: np.ndarray, counters: np.ndarray, values: np.ndarray, numbers: np.ndarray
) -> None:
    """Add a first print of the entity's own change to the sums of its scale."""
    place = counters[at.SCALE_PLACE]
    if (
        numbers[at.OWN] == 0
        or numbers[at.REVISION] != 0
        or numbers[at.STREAM] != counters[at.SCALE_STREAM]
    ):
        return
    move = memory[at.UNIT] * values[place]
    if math.isfinite(move):
        decay = memory[at.DECAY]
        memory[at.WEIGHT] = decay * memory[at.WEIGHT] + 1.0
        memory[at.SQUARE] = decay * memory[at.SQUARE] + move * move
