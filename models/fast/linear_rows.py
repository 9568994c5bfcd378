"""Streams with linear attention: some of them at once, one event or forecast each.

A block of rows goes through a layer before the next one, so that its weights are read
once for all of them; a single stream is a block of one row.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from infoset.data.clock_features import NUM_CLOCK_FEATURES

from . import layout as at
from .arithmetic import fill
from .compiled import Real, pasted
from .event_vector import add_to_scale, days_between, write_event
from .layers import add_attended, project, rooms
from .linear_memory import add_and_read, forget, read
from .quantiles import write_forecast
from .query_vector import is_empty, write_point


def work_room(sizes: Int64[np.ndarray, " m"], num_rows: int) -> int:
    """Return how many float32 numbers the functions below work in, zeros at first."""
    per_row = 5 * sizes[at.WIDTH] + sizes[at.HIDDEN] + 1
    return int(num_rows * per_row + NUM_CLOCK_FEATURES)


@pasted
def update_rows(
    w: np.ndarray,
    sizes: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    values: np.ndarray,
    numbers: np.ndarray,
    work: np.ndarray,
    wide: np.ndarray,
) -> None:
    """Put an event into each of some streams' memories.

    Parameters
    ----------
    w, sizes : ndarray
        Packed weights.
    memory, counters : ndarray of shape (streams, n)
    values, numbers : ndarray of shape (rows, n)
        Of the events; each stream at most once, none of them late.
    work, wide : ndarray
        Room to work in: `work_room` float32 and `wide_room` float64 numbers.
    """
    width, num_rows, last = sizes[at.WIDTH], len(numbers), sizes[at.LAYERS] - 1
    x, normal, qkv, hidden, elapsed = rooms(sizes, work, num_rows)
    for row in range(num_rows):
        stream = numbers[row, at.WHOSE]
        elapsed[row] = _begin(sizes, memory[stream], counters[stream], numbers[row])
        write_event(w, sizes, values[row], numbers[row], elapsed[row], x, row * width)
    for layer in range(last + 1):
        table = at.LAYER_TABLE + layer * at.LAYER_COLUMNS
        norm, matrix = sizes[table + at.NORM], sizes[table + at.PROJECTION]
        # Of an event, the readout asks nothing.
        queries = 0 if layer == last else width
        outputs = queries + 2 * width
        project(w, sizes, norm, matrix, outputs, num_rows, x, normal, qkv)
        for row in range(num_rows):
            sums = memory[numbers[row, at.WHOSE]]
            part = qkv[row * outputs : (row + 1) * outputs]
            key = part[queries : queries + width]
            value = part[queries + width :]
            query, attended = part[:queries], normal[row * width : (row + 1) * width]
            add_and_read(
                w, sizes, layer, sums, elapsed[row], key, value, query, wide, attended
            )
        if queries:
            add_attended(w, sizes, layer, num_rows, normal, x, hidden)
    for row in range(num_rows):
        stream = numbers[row, at.WHOSE]
        add_to_scale(memory[stream], counters[stream], values[row], numbers[row])
        counters[stream, at.COUNT] += 1
        counters[stream, at.NEWEST] = numbers[row, at.AVAILABLE_AT]


@pasted
def forecast_rows(
    w: np.ndarray,
    sizes: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    forecast_time: int,
    period: int,
    work: np.ndarray,
    wide: np.ndarray,
    out: np.ndarray,
) -> bool:
    """Write the quantiles of some streams; nothing else changes.

    Parameters
    ----------
    memory, counters : ndarray of shape (rows, n)
    forecast_time : int
        UTC nanoseconds.
    period : int
        Start of the forecast's period: what is older has been forgotten.
    work, wide : ndarray
        As for `update_rows`.
    out : float64 ndarray of shape (rows, Q)
        In the unit of the targets.

    Returns
    -------
    bool
        Whether all quantiles are finite and ascend.
    """
    width, num_rows, last = sizes[at.WIDTH], len(out), sizes[at.LAYERS] - 1
    x, normal, asked, hidden, clock = rooms(sizes, work, num_rows)
    for row in range(num_rows):
        write_point(
            w, sizes, counters[row], forecast_time, period, clock, x, row * width
        )
    norm, matrix = sizes[at.QUERY_NORM], sizes[at.QUERY]
    project(w, sizes, norm, matrix, width, num_rows, x, normal, asked)
    for row in range(num_rows):
        attended = normal[row * width : (row + 1) * width]
        if is_empty(counters[row], period):
            fill(attended, np.float32(0))
        else:
            query = asked[row * width : (row + 1) * width]
            read(w, sizes, last, memory[row], query, wide, attended)
    add_attended(w, sizes, last, num_rows, normal, x, hidden)
    good = True
    for row in range(num_rows):
        place = row * width
        good &= write_forecast(
            w, sizes, memory[row], counters[row], period, x, place, normal, out[row]
        )
    return good


@pasted
def _begin(
    sizes: np.ndarray, memory: np.ndarray, counters: np.ndarray, numbers: np.ndarray
) -> Real:
    """Forget what an event's period does not hold; return the days since the last."""
    if numbers[at.EVENT_PERIOD] > counters[at.PERIOD]:
        forget(sizes, memory)
        counters[at.COUNT] = 0
        counters[at.PERIOD] = numbers[at.EVENT_PERIOD]
    if counters[at.COUNT] == 0:
        return np.float32(0)
    return days_between(counters[at.NEWEST], numbers[at.AVAILABLE_AT])
