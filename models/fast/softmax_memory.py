"""The cache of softmax attention: one event appended, or a query answered.

Equations (13) and (15) of docs/attention.md. A tile of a layer's cache holds the keys
[H, K, T] and values [H, V, T] of T events in float32, K filled up to a multiple of a
block, and beside it the sums of ages [H, T] in float64. Within a tile everything runs
along the events in vector code; tiles are read from the first to the last, as memory
likes it.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int64

from . import layout as at
from .arithmetic import exponential32, fill
from .compiled import Real, compiled, pasted

_LANES = 16


def rows_per_tile(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many rows of T numbers a layer has in a tile."""
    return int(sizes[at.HEADS] * (sizes[at.PADDED_KEY] + sizes[at.KEY]))


def average_room(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many float32 numbers `average` works in."""
    return int(sizes[at.PADDED_KEY] + at.TILE + _LANES)


def average_wide_room(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many float64 numbers `average` works in."""
    return int(sizes[at.WIDTH] + 2 * sizes[at.HEADS])


@pasted
def append_event(
    w: np.ndarray,
    sizes: np.ndarray,
    layer: int,
    kept: np.ndarray,
    ages: np.ndarray,
    counters: np.ndarray,
    elapsed_days: Real,
    key_value: np.ndarray,
) -> None:
    """Write an event behind the ones in the cache; the caller counts it.

    Parameters
    ----------
    key_value : float32 ndarray of shape (2 D,)
        Keys and values of all heads.
    """
    heads, width, padded = sizes[at.HEADS], sizes[at.KEY], sizes[at.PADDED_KEY]
    count = counters[at.COUNT]
    tile, place = count // at.TILE, count % at.TILE
    first = layer * counters[at.CAPACITY] + tile
    keys = first * sizes[at.LAYER_SIZE] * at.TILE + place
    values = keys + heads * padded * at.TILE
    rate = sizes[at.LAYER_TABLE + layer * at.LAYER_COLUMNS + at.RATE]
    for head in range(heads):
        for i in range(width):
            own = head * width + i
            kept[keys + (head * padded + i) * at.TILE] = key_value[own]
            kept[values + own * at.TILE] = key_value[heads * width + own]
        if rate >= 0:
            row = (first * heads + head) * at.TILE
            before = ages[row + place - 1] if place else 0.0
            if tile and not place:
                before = ages[row - heads * at.TILE + at.TILE - 1]
            ages[row + place] = before + np.float64(w[rate + head] * elapsed_days)


@pasted
def average(
    sizes: np.ndarray,
    layer: int,
    kept: np.ndarray,
    ages: np.ndarray,
    num_events: int,
    capacity: int,
    query: np.ndarray,
    work: np.ndarray,
    wide: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write what a query reads from a layer's cache of one event or more.

    The running maximum of each head's logits keeps the weights in range.

    Parameters
    ----------
    capacity : int
        Tiles that there is room for.
    query, out : float32 ndarray of shape (D,)
        Of all heads.
    work, wide : ndarray
        Room to work in: `average_room` float32, `average_wide_room` float64 numbers.
    """
    heads, width, padded = sizes[at.HEADS], sizes[at.KEY], sizes[at.PADDED_KEY]
    fades = sizes[at.LAYER_TABLE + layer * at.LAYER_COLUMNS + at.RATE] >= 0
    fill(wide, 0.0)
    sums, totals = wide[: heads * width], wide[heads * width :]
    room = work[: padded + at.TILE + _LANES]
    for head in range(heads):
        totals[2 * head] = -np.inf  # the highest logit so far; behind it the total
    newest = num_events - 1
    last = layer * capacity + newest // at.TILE
    for tile in range(newest // at.TILE + 1):
        number = min(at.TILE, num_events - tile * at.TILE)
        first = layer * capacity + tile
        keys = first * sizes[at.LAYER_SIZE] * at.TILE
        values = keys + heads * padded * at.TILE
        for head in range(heads):
            row = (first * heads + head) * at.TILE
            level = ages[(last * heads + head) * at.TILE + newest % at.TILE]
            _add_tile(
                query[head * width : (head + 1) * width],
                kept[keys + head * padded * at.TILE :],
                kept[values + head * width * at.TILE :],
                ages[row : row + number] if fades else ages[:0],
                level,
                number,
                room,
                sums[head * width : (head + 1) * width],
                totals[2 * head : 2 * head + 2],
            )
    for i in range(heads * width):
        out[i] = np.float32(sums[i] / totals[2 * (i // width) + 1])


@compiled
def _add_tile(
    query: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    ages: np.ndarray,
    level: Real,
    number: int,
    work: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add the weighted values of one head's events in a tile, and their weights."""
    padded = len(work) - at.TILE - _LANES
    scaled, tops = work[:padded], work[padded : padded + _LANES]
    logits = work[padded + _LANES : padded + _LANES + number]
    fill(scaled, np.float32(0))
    scale = np.float32(1.0 / math.sqrt(len(query)))
    for i in range(len(query)):
        scaled[i] = query[i] * scale
    _write_logits(scaled, keys, ages, level, logits)
    highest = np.float64(_largest(logits, tops))
    if highest > totals[0]:
        left = math.exp(totals[0] - highest)
        for i in range(len(sums)):
            sums[i] *= left
        totals[1] *= left
        totals[0] = highest
    top = np.float32(totals[0])
    for j in range(number):
        logits[j] = exponential32(logits[j] - top)
    total = np.float32(0)
    for j in range(number):
        total += logits[j]
    totals[1] += total
    for i in range(len(sums)):
        row = values[i * at.TILE : i * at.TILE + number]
        part = np.float32(0)
        for j in range(number):
            part += logits[j] * row[j]
        sums[i] += part


@compiled
def _write_logits(
    query: np.ndarray, keys: np.ndarray, ages: np.ndarray, level: Real, out: np.ndarray
) -> None:
    """Write q . k / sqrt(K) minus the age, which is counted from the newest event."""
    number = len(out)
    fill(out, np.float32(0))
    for j in range(len(ages)):
        out[j] = np.float32(ages[j] - level)
    for i in range(0, len(query), at.BLOCK):
        q = query[i : i + at.BLOCK]
        q0, q1, q2, q3, q4, q5, q6, q7 = q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]
        k = keys[i * at.TILE : (i + at.BLOCK) * at.TILE]
        for j in range(number):
            out[j] += (
                (q0 * k[j] + q1 * k[at.TILE + j])
                + (q2 * k[2 * at.TILE + j] + q3 * k[3 * at.TILE + j])
            ) + (
                (q4 * k[4 * at.TILE + j] + q5 * k[5 * at.TILE + j])
                + (q6 * k[6 * at.TILE + j] + q7 * k[7 * at.TILE + j])
            )


@compiled
def _largest(x: np.ndarray, tops: np.ndarray) -> Real:
    """Return the largest of some numbers: lane by lane, which needs no reordering."""
    fill(tops, np.float32(-np.inf))
    whole = len(x) - len(x) % _LANES
    for start in range(0, whole, _LANES):
        part = x[start : start + _LANES]
        for lane in range(_LANES):
            tops[lane] = part[lane] if part[lane] > tops[lane] else tops[lane]
    top = np.float32(-np.inf)
    for lane in range(_LANES):
        top = tops[lane] if tops[lane] > top else top
    for j in range(whole, len(x)):
        top = x[j] if x[j] > top else top
    return top
