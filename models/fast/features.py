"""Features of queries and keys: equations (8) to (12) of docs/attention.md, compiled.

A NaN stays one: comparisons are written so that it falls through.
"""

from __future__ import annotations

import math

import numpy as np

from . import layout as at
from .arithmetic import add_product, exponential, fill
from .compiled import compiled, pasted


@compiled
def write_features(
    w: np.ndarray,
    sizes: np.ndarray,
    layer: int,
    x: np.ndarray,
    wide: np.ndarray,
    out: np.ndarray,
) -> None:
    """Write the features of all heads of a query or a key; of favor the exponents.

    Parameters
    ----------
    x : float32 ndarray of shape (D,)
    wide : float64 ndarray of `wide_room` numbers
        Room to work in; begins with room for two sets of features.
    out : float64 ndarray of shape (H * R,)
        Those that fill up R stay zeros.
    """
    heads, width, rows = sizes[at.HEADS], sizes[at.KEY], sizes[at.PADDED_FEATURES]
    kind = sizes[at.MAP_KIND]
    weights = sizes[at.LAYER_TABLE + layer * at.LAYER_COLUMNS + at.MAP]
    given = wide[2 * heads * rows :]
    for i in range(heads * width):
        given[i] = x[i]
    if kind < at.FAVOR and rows == width:  # number by number: all heads at once
        write_pointwise(kind, given[: heads * width], out)
        return
    for head in range(heads):
        part = given[head * width : (head + 1) * width]
        features = out[head * rows : (head + 1) * rows]
        if kind == at.FAVOR:
            _write_favor(w, sizes, weights, given, head, features)
        elif kind == at.HEDGEHOG:
            _write_hedgehog(w, sizes, weights, given, head, features)
        else:
            write_pointwise(kind, part, features)


@compiled
def write_pointwise(kind: int, x: np.ndarray, out: np.ndarray) -> None:
    """Write elu1, relu or squared_relu of each number: (8) and (9)."""
    for i in range(len(x)):
        out[i] = 0.0 if x[i] < 0.0 else x[i]
    if kind == at.SQUARED_RELU:
        for i in range(len(x)):
            out[i] *= out[i]
    elif kind == at.ELU1:
        for i in range(len(x)):
            out[i] += exponential(x[i] if x[i] < 0.0 else 0.0)


@pasted
def _write_favor(
    w: np.ndarray,
    sizes: np.ndarray,
    directions: int,
    given: np.ndarray,
    head: int,
    out: np.ndarray,
) -> None:
    """Write w . x' - |x'|^2 / 2 - log(R) / 2: (10)."""
    width, number, rows = sizes[at.KEY], sizes[at.FEATURES], sizes[at.PADDED_FEATURES]
    scale = np.float64(width) ** -0.25
    x = given[head * width : (head + 1) * width]
    square = 0.0
    for i in range(width):
        square += x[i] * x[i]
    fill(out, 0.0)
    start = directions + head * sizes[at.PADDED_KEY] * rows
    add_product(out, 0, given, head * width, w, start, width, rows)
    less = square * (scale * scale / 2) + math.log(number) / 2
    for r in range(number):
        out[r] = scale * out[r] - less


@pasted
def _write_hedgehog(
    w: np.ndarray,
    sizes: np.ndarray,
    matrices: int,
    given: np.ndarray,
    head: int,
    out: np.ndarray,
) -> None:
    """Write softmax([W x, -W x]): (12)."""
    width = sizes[at.KEY]
    fill(out, 0.0)
    start = matrices + head * sizes[at.PADDED_KEY] * width
    add_product(out, 0, given, head * width, w, start, width, width)
    top = 0.0
    for i in range(width):
        top = abs(out[i]) if abs(out[i]) > top else top
    for i in range(width):
        out[width + i] = exponential(-out[i] - top)
        out[i] = exponential(out[i] - top)
    total = 0.0
    for i in range(2 * width):
        total += out[i]
    for i in range(2 * width):
        out[i] /= total


@compiled
def as_query(sizes: np.ndarray, features: np.ndarray) -> None:
    """Make exponents of favor features whose largest is one, head by head: (11)."""
    if sizes[at.MAP_KIND] != at.FAVOR:
        return
    rows, number = sizes[at.PADDED_FEATURES], sizes[at.FEATURES]
    for head in range(sizes[at.HEADS]):
        part = features[head * rows : (head + 1) * rows]
        top = -np.inf
        for r in range(number):
            top = part[r] if part[r] > top else top
        for r in range(number):
            part[r] = exponential(part[r] - top)
