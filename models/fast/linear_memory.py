"""The sums of linear attention: events added, queries answered, head by head.

Equations (3) to (7), (11), (14) and (17) of docs/attention.md, all in float64: sums of a
million events drift in float32. A layer's part of a stream's memory is
S [H, R, V], z [H, R], m [H], with R filled up to a multiple of a block.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Int64

from . import layout as at
from .arithmetic import add_product, exponential, fill
from .compiled import Real, pasted
from .features import as_query, write_features


def layer_size(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many numbers a layer keeps, in whole cache lines."""
    per_head = sizes[at.PADDED_FEATURES] * (sizes[at.KEY] + 1) + 1
    return at.WIDE_LINE * (-(-int(sizes[at.HEADS] * per_head) // at.WIDE_LINE))


def wide_room(sizes: Int64[np.ndarray, " m"]) -> int:
    """Return how many float64 numbers the functions below work in, zeros at first."""
    features = sizes[at.HEADS] * sizes[at.PADDED_FEATURES]
    return int(2 * features + sizes[at.WIDTH] + at.BLOCK + sizes[at.KEY])


@pasted
def forget(sizes: np.ndarray, memory: np.ndarray) -> None:
    """Return a memory to what it was before any event."""
    memory[at.WEIGHT] = 0.0
    memory[at.SQUARE] = 0.0
    rows = sizes[at.HEADS] * sizes[at.PADDED_FEATURES]
    for layer in range(sizes[at.LAYERS]):
        start = at.SUMS + layer * sizes[at.LAYER_SIZE]
        m_start = start + rows * (sizes[at.KEY] + 1)
        fill(memory[start:m_start], 0.0)
        fill(memory[m_start : m_start + sizes[at.HEADS]], -np.inf)


@pasted
def add_and_read(
    w: np.ndarray,
    sizes: np.ndarray,
    layer: int,
    memory: np.ndarray,
    elapsed_days: Real,
    key: np.ndarray,
    value: np.ndarray,
    query: np.ndarray,
    wide: np.ndarray,
    out: np.ndarray,
) -> None:
    """Fade a layer's sums, add an event and let a query read them.

    Parameters
    ----------
    key, value : float32 ndarray of shape (D,)
        Of all heads.
    query, out : float32 ndarray of shape (D,)
        Without numbers where nothing is asked; otherwise see `read`.
    wide : float64 ndarray of `wide_room` numbers
        Room to work in.
    """
    heads, width, rows = sizes[at.HEADS], sizes[at.KEY], sizes[at.PADDED_FEATURES]
    start = at.SUMS + layer * sizes[at.LAYER_SIZE]
    z_start = start + heads * rows * width
    table = at.LAYER_TABLE + layer * at.LAYER_COLUMNS
    rate, floor = sizes[table + at.RATE], w[sizes[table + at.FLOOR]]
    keys, queries = wide[: heads * rows], wide[heads * rows : 2 * heads * rows]
    write_features(w, sizes, layer, key, wide, keys)
    if len(query):
        write_features(w, sizes, layer, query, wide, queries)
        as_query(sizes, queries)
    sums = wide[len(wide) - width :]
    for head in range(heads):
        k = keys[head * rows : (head + 1) * rows]
        q = queries[head * rows : (head + 1) * rows]
        decay = np.float64(w[rate + head] * elapsed_days) if rate >= 0 else 0.0
        fade = _fade(sizes, decay, k, memory, z_start + heads * rows + head)
        z = memory[z_start + head * rows : z_start + (head + 1) * rows]
        total = 0.0
        for r in range(rows):
            z[r] = z[r] * fade + k[r]
            total += q[r] * z[r]
        fill(sums, 0.0)
        v = value[head * width : (head + 1) * width]
        for r in range(0, rows, 4):
            place = start + (head * rows + r) * width
            _add_and_read_four(memory, place, k, q, r, v, fade, sums)
        if len(query):
            _write_ratio(sums, total, floor, out[head * width : (head + 1) * width])


@pasted
def _fade(
    sizes: np.ndarray, decay: Real, key: np.ndarray, memory: np.ndarray, m_at: int
) -> Real:
    """Return what is left of a head's sums: (14), and (11) where features need it."""
    exponent = decay
    if sizes[at.MAP_KIND] == at.FAVOR:
        exponent = decay + _rescaled(key, sizes[at.FEATURES], memory, m_at)
    return 1.0 if exponent == 0.0 else math.exp(-exponent)


@pasted
def _add_and_read_four(
    memory: np.ndarray,
    start: int,
    k: np.ndarray,
    q: np.ndarray,
    r: int,
    v: np.ndarray,
    fade: Real,
    sums: np.ndarray,
) -> None:
    """Add four rows of an outer product to S, and what a query makes of them to sums."""
    k0, k1, k2, k3 = k[r], k[r + 1], k[r + 2], k[r + 3]
    q0, q1, q2, q3 = q[r], q[r + 1], q[r + 2], q[r + 3]
    width = len(v)
    row0 = memory[start : start + width]
    row1 = memory[start + width : start + 2 * width]
    row2 = memory[start + 2 * width : start + 3 * width]
    row3 = memory[start + 3 * width : start + 4 * width]
    for j in range(width):
        x = np.float64(v[j])
        s0, s1 = row0[j] * fade + k0 * x, row1[j] * fade + k1 * x
        s2, s3 = row2[j] * fade + k2 * x, row3[j] * fade + k3 * x
        row0[j], row1[j], row2[j], row3[j] = s0, s1, s2, s3
        sums[j] += (q0 * s0 + q1 * s1) + (q2 * s2 + q3 * s3)


@pasted
def _rescaled(features: np.ndarray, number: int, memory: np.ndarray, m_at: int) -> Real:
    """Make a key's exponents features relative to m; return by how much m grew."""
    old, new = memory[m_at], memory[m_at]
    for r in range(number):
        new = features[r] if features[r] > new else new
    for r in range(number):
        features[r] = exponential(features[r] - new)
    memory[m_at] = new
    return 0.0 if old == -np.inf else new - old


@pasted
def read(
    w: np.ndarray,
    sizes: np.ndarray,
    layer: int,
    memory: np.ndarray,
    query: np.ndarray,
    wide: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write what a query reads from a layer's sums: (4) and (17).

    Parameters
    ----------
    query : float32 ndarray of shape (D,)
        Of all heads.
    wide : float64 ndarray of `wide_room` numbers
        Room to work in.
    out : float32 ndarray of shape (D,)
        Zeros where the denominator is zero.
    """
    heads, width, rows = sizes[at.HEADS], sizes[at.KEY], sizes[at.PADDED_FEATURES]
    start = at.SUMS + layer * sizes[at.LAYER_SIZE]
    z_start = start + heads * rows * width
    floor = w[sizes[at.LAYER_TABLE + layer * at.LAYER_COLUMNS + at.FLOOR]]
    queries = wide[: heads * rows]
    write_features(w, sizes, layer, query, wide, queries)
    as_query(sizes, queries)
    sums = wide[len(wide) - width :]
    for head in range(heads):
        q = queries[head * rows : (head + 1) * rows]
        z = memory[z_start + head * rows : z_start + (head + 1) * rows]
        total = 0.0
        for r in range(rows):
            total += q[r] * z[r]
        fill(sums, 0.0)
        add_product(sums, 0, q, 0, memory, start + head * rows * width, rows, width)
        _write_ratio(sums, total, floor, out[head * width : (head + 1) * width])


@pasted
def _write_ratio(sums: np.ndarray, total: Real, floor: Real, out: np.ndarray) -> None:
    divisor = np.float64(floor) if total < floor else total
    share = 0.0 if divisor == 0.0 else 1.0 / divisor
    for j in range(len(out)):
        out[j] = np.float32(sums[j] * share)
