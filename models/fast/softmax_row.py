"""A stream with softmax attention: one event or one forecast."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from infoset.data.clock_features import NUM_CLOCK_FEATURES

from . import layout as at
from .arithmetic import fill
from .compiled import Real, pasted
from .event_vector import add_to_scale, days_between, write_event
from .layers import add_attended, project, rooms
from .quantiles import write_forecast
from .query_vector import is_empty, write_point
from .softmax_memory import append_event, average, average_room


def softmax_work_room(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many float32 numbers the functions below work in, zeros at first."""
    rows = 5 * sizes[at.WIDTH] + sizes[at.HIDDEN]
    return int(rows + max(NUM_CLOCK_FEATURES, average_room(sizes)))


@pasted
def update_row(
    w: np.ndarray,
    sizes: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    values: np.ndarray,
    numbers: np.ndarray,
    work: np.ndarray,
    wide: np.ndarray,
    kept: np.ndarray,
    ages: np.ndarray,
) -> int:
    """Append an event, if there is room.

    Parameters
    ----------
    memory : float64 ndarray
        The numbers of the scale.
    values, numbers : ndarray
        Of the event.
    work, wide : ndarray
        Room to work in: `softmax_work_room` float32, `average_wide_room` float64
        numbers.
    kept, ages : ndarray
        The cache, see `softmax_memory`.

    Returns
    -------
    int
        A code of `layout`.
    """
    width, last = sizes[at.WIDTH], sizes[at.LAYERS] - 1
    forgets = numbers[at.EVENT_PERIOD] > counters[at.PERIOD]
    if not forgets and counters[at.COUNT] == counters[at.CAPACITY] * at.TILE:
        return at.FULL
    if forgets:
        memory[at.WEIGHT] = 0.0
        memory[at.SQUARE] = 0.0
        counters[at.COUNT] = 0
        counters[at.PERIOD] = numbers[at.EVENT_PERIOD]
    elapsed: Real = np.float32(0)
    if counters[at.COUNT]:
        elapsed = days_between(counters[at.NEWEST], numbers[at.AVAILABLE_AT])
    x, normal, qkv, hidden, rest = rooms(sizes, work, 1)
    write_event(w, sizes, values, numbers, elapsed, x, 0)
    for layer in range(last + 1):
        table = at.LAYER_TABLE + layer * at.LAYER_COLUMNS
        norm, matrix = sizes[table + at.NORM], sizes[table + at.PROJECTION]
        queries = 0 if layer == last else width
        project(w, sizes, norm, matrix, queries + 2 * width, 1, x, normal, qkv)
        part = qkv[queries : queries + 2 * width]
        append_event(w, sizes, layer, kept, ages, counters, elapsed, part)
        if queries:
            number, room = counters[at.COUNT] + 1, counters[at.CAPACITY]
            query = qkv[:width]
            average(sizes, layer, kept, ages, number, room, query, rest, wide, normal)
            add_attended(w, sizes, layer, 1, normal, x, hidden)
    add_to_scale(memory, counters, values, numbers)
    counters[at.COUNT] += 1
    counters[at.NEWEST] = numbers[at.AVAILABLE_AT]
    return at.DONE


@pasted
def forecast_row(
    w: np.ndarray,
    sizes: np.ndarray,
    memory: np.ndarray,
    counters: np.ndarray,
    work: np.ndarray,
    wide: np.ndarray,
    kept: np.ndarray,
    ages: np.ndarray,
    forecast_time: int,
    period: int,
    out: np.ndarray,
) -> bool:
    """Write the quantiles of a forecast; see `forecast_rows` for the arguments."""
    width, last = sizes[at.WIDTH], sizes[at.LAYERS] - 1
    x, normal, asked, hidden, rest = rooms(sizes, work, 1)
    # Used one after the other: features of the clock, tiles of the cache.
    write_point(w, sizes, counters, forecast_time, period, rest, x, 0)
    norm, matrix = sizes[at.QUERY_NORM], sizes[at.QUERY]
    project(w, sizes, norm, matrix, width, 1, x, normal, asked)
    if is_empty(counters, period):
        fill(normal, np.float32(0))
    else:
        number, room = counters[at.COUNT], counters[at.CAPACITY]
        query = asked[:width]
        average(sizes, last, kept, ages, number, room, query, rest, wide, normal)
    add_attended(w, sizes, last, 1, normal, x, hidden)
    return write_forecast(w, sizes, memory, counters, period, x, 0, normal, out)
