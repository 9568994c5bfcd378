"""What the layers have in common, whatever their attention: for some rows at once.

Rows lie behind each other in flat float32 arrays.
"""

from __future__ import annotations

import numpy as np

from . import layout as at
from .arithmetic import add_products, fill, gelu_all, normalise
from .compiled import compiled, pasted


@pasted
def rooms(sizes: np.ndarray, work: np.ndarray, num_rows: int) -> tuple[np.ndarray, ...]:
    """Share out room to work in: rows, normal rows, projections, hidden rows, the rest."""
    one = num_rows * sizes[at.WIDTH]
    qkv_end = 5 * one
    hidden_end = qkv_end + num_rows * sizes[at.HIDDEN]
    return (
        work[:one],
        work[one : 2 * one],
        work[2 * one : qkv_end],
        work[qkv_end:hidden_end],
        work[hidden_end:],
    )


@compiled
def project(
    w: np.ndarray,
    sizes: np.ndarray,
    norm: int,
    matrix: int,
    num_outputs: int,
    num_rows: int,
    x: np.ndarray,
    normal: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write layer norms of x times a matrix, such as queries, keys and values."""
    width = sizes[at.WIDTH]
    for row in range(num_rows):
        normalise(x, row * width, w, norm, normal, row * width, width)
    fill(out[: num_rows * num_outputs], np.float32(0))
    add_products(out, normal, w, matrix, width, num_outputs, num_rows)


@compiled
def add_attended(
    w: np.ndarray,
    sizes: np.ndarray,
    layer: int,
    num_rows: int,
    normal: np.ndarray,
    x: np.ndarray,
    hidden: np.ndarray,
) -> None:
    """Add to x what the heads have read, and then what the feed-forward part makes.

    Parameters
    ----------
    normal : float32 ndarray
        What the heads have read; then room for layer norms.
    hidden : float32 ndarray
        Room for the hidden rows.
    """
    width, inner = sizes[at.WIDTH], sizes[at.HIDDEN]
    table = at.LAYER_TABLE + layer * at.LAYER_COLUMNS
    add_products(x, normal, w, sizes[table + at.OUTPUT], width, width, num_rows)
    for row in range(num_rows):
        norm = sizes[table + at.FEED_NORM]
        normalise(x, row * width, w, norm, normal, row * width, width)
    rise = w[sizes[table + at.RISE_BIAS] : sizes[table + at.RISE_BIAS] + inner]
    fall = w[sizes[table + at.FALL_BIAS] : sizes[table + at.FALL_BIAS] + width]
    for row in range(num_rows):
        inside = hidden[row * inner : (row + 1) * inner]
        for i in range(inner):
            inside[i] = rise[i]
        part = x[row * width : (row + 1) * width]
        for i in range(width):
            part[i] += fall[i]
    add_products(hidden, normal, w, sizes[table + at.RISE], width, inner, num_rows)
    gelu_all(hidden[: num_rows * inner])
    add_products(x, hidden, w, sizes[table + at.FALL], inner, width, num_rows)
