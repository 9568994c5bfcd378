"""Arithmetic on flat arrays, written so that compilers turn it into vector code.

Inner loops run along slices: with offsets in the index they are not vectorised.
"""

from __future__ import annotations

import math

import numpy as np

from . import layout as at
from .compiled import Real, compiled

_LOG2_E = 1.4426950408889634
_HALF = np.float32(0.5)
_ONE = np.float32(1)
_ROOT_HALF = np.float32(math.sqrt(0.5))
_ERF_END = np.float32(4)


@compiled
def exponential(x: Real) -> Real:
    """Return exp(x) in float64, to the last digit or two; 1e-307 below -707.

    Cody and Waite's reduction and the rational function of Cephes (`exp.c`): unlike a
    call of the C library it can stand in a loop of vector code.
    """
    x = -707.0 if x < -707.0 else x
    power = np.floor(x * _LOG2_E + 0.5)
    rest = x - power * 6.93145751953125e-1 - power * 1.42860682030941723212e-6
    square = rest * rest
    top = rest * (
        (1.26177193074810590878e-4 * square + 3.02994407707441961300e-2) * square + 1.0
    )
    bottom = (
        (3.00198505138664455042e-6 * square + 2.52448340349684104192e-3) * square
        + 2.27265548208155028766e-1
    ) * square + 2.0
    bits = np.int64((np.int64(power) + 1023) << 52)
    return float((1.0 + 2.0 * top / (bottom - top)) * bits.view(np.float64))


_F_LOG2_E = np.float32(_LOG2_E)
_F_SMALLEST = np.float32(-87)
_F_HIGH = np.float32(0.693359375)
_F_LOW = np.float32(-2.12194440e-4)
_F5 = np.float32(1.9875691500e-4)
_F4 = np.float32(1.3981999507e-3)
_F3 = np.float32(8.3334519073e-3)
_F2 = np.float32(4.1665795894e-2)
_F1 = np.float32(1.6666665459e-1)
_F0 = np.float32(5.0000001201e-1)


@compiled
def exponential32(x: Real) -> Real:
    """Return exp(x) in float32 for x up to 80; 1e-38 below -87. Cephes, `expf.c`."""
    x = _F_SMALLEST if x < _F_SMALLEST else x
    power = np.floor(x * _F_LOG2_E + _HALF)
    rest = x - power * _F_HIGH - power * _F_LOW
    tail = (((_F5 * rest + _F4) * rest + _F3) * rest + _F2) * rest + _F1
    tail = (tail * rest + _F0) * rest * rest + rest + _ONE
    bits = np.int32((np.int32(power) + np.int32(127)) << np.int32(23))
    return np.float32(tail * bits.view(np.float32))


_P6 = np.float32(-2.72614225801306e-10)
_P5 = np.float32(2.77068142495902e-08)
_P4 = np.float32(-2.10102402082508e-06)
_P3 = np.float32(-5.69250639462346e-05)
_P2 = np.float32(-7.34990630326855e-04)
_P1 = np.float32(-2.95459980854025e-03)
_P0 = np.float32(-1.60960333262415e-02)
_Q4 = np.float32(-1.45660718464996e-05)
_Q3 = np.float32(-2.13374055278905e-04)
_Q2 = np.float32(-1.68282697438203e-03)
_Q1 = np.float32(-7.37332916720468e-03)
_Q0 = np.float32(-1.42647390514189e-02)


@compiled
def gelu(x: Real) -> Real:
    """Return x (1 + erf(x / sqrt 2)) / 2 in float32.

    erf is the rational function that Eigen and XLA use for float32; it is off by
    less than 4e-7.
    """
    u = x * _ROOT_HALF
    u = -_ERF_END if u < -_ERF_END else u
    u = _ERF_END if u > _ERF_END else u
    s = u * u
    top = ((((((_P6 * s + _P5) * s + _P4) * s + _P3) * s + _P2) * s + _P1) * s) + _P0
    bottom = (((_Q4 * s + _Q3) * s + _Q2) * s + _Q1) * s + _Q0
    return x * _HALF * (_ONE + u * top / bottom)


@compiled
def fill(x: np.ndarray, value: Real) -> None:
    """Set all numbers; assigning to a slice takes a second to compile."""
    for i in range(len(x)):
        x[i] = value


@compiled
def gelu_all(x: np.ndarray) -> None:
    """Put each number through `gelu`."""
    for i in range(len(x)):
        x[i] = gelu(x[i])


@compiled
def add_product(
    y: np.ndarray,
    y_at: int,
    x: np.ndarray,
    x_at: int,
    w: np.ndarray,
    w_at: int,
    n: int,
    m: int,
) -> None:
    """Add x W to y, for W of n x m numbers and n up to a multiple of `BLOCK`.

    Eight rows of W at a time: y is read and written once for all of them. What lies
    behind the n numbers of x meets rows of zeros, and must be finite for that.
    """
    out = y[y_at : y_at + m]
    for i in range(0, n, at.BLOCK):
        k = x[x_at + i : x_at + i + at.BLOCK]
        k0, k1, k2, k3, k4, k5, k6, k7 = k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7]
        rows = w[w_at + i * m : w_at + (i + at.BLOCK) * m]
        for j in range(m):
            out[j] += (
                (k0 * rows[j] + k1 * rows[m + j])
                + (k2 * rows[2 * m + j] + k3 * rows[3 * m + j])
            ) + (
                (k4 * rows[4 * m + j] + k5 * rows[5 * m + j])
                + (k6 * rows[6 * m + j] + k7 * rows[7 * m + j])
            )


@compiled
def add_two_products(
    y: np.ndarray,
    y_at: int,
    x: np.ndarray,
    x_at: int,
    w: np.ndarray,
    w_at: int,
    n: int,
    m: int,
) -> None:
    """Do that for two rows of x, which lie n apart, and of y, which lie m apart.

    The rows of W are loaded once for both.
    """
    out = y[y_at : y_at + 2 * m]
    for i in range(0, n, at.BLOCK):
        k = x[x_at + i : x_at + i + at.BLOCK]
        k0, k1, k2, k3, k4, k5, k6, k7 = k[0], k[1], k[2], k[3], k[4], k[5], k[6], k[7]
        q = x[x_at + n + i : x_at + n + i + at.BLOCK]
        q0, q1, q2, q3, q4, q5, q6, q7 = q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]
        rows = w[w_at + i * m : w_at + (i + at.BLOCK) * m]
        for j in range(m):
            w0, w1, w2, w3 = rows[j], rows[m + j], rows[2 * m + j], rows[3 * m + j]
            w4, w5 = rows[4 * m + j], rows[5 * m + j]
            w6, w7 = rows[6 * m + j], rows[7 * m + j]
            out[j] += ((k0 * w0 + k1 * w1) + (k2 * w2 + k3 * w3)) + (
                (k4 * w4 + k5 * w5) + (k6 * w6 + k7 * w7)
            )
            out[m + j] += ((q0 * w0 + q1 * w1) + (q2 * w2 + q3 * w3)) + (
                (q4 * w4 + q5 * w5) + (q6 * w6 + q7 * w7)
            )


@compiled
def add_products(
    y: np.ndarray,
    x: np.ndarray,
    w: np.ndarray,
    w_at: int,
    n: int,
    m: int,
    num_rows: int,
) -> None:
    """Add X W to Y, row by row."""
    for row in range(0, num_rows - 1, 2):
        add_two_products(y, row * m, x, row * n, w, w_at, n, m)
    if num_rows % 2:
        add_product(y, (num_rows - 1) * m, x, (num_rows - 1) * n, w, w_at, n, m)


@compiled
def normalise(
    x: np.ndarray,
    x_at: int,
    w: np.ndarray,
    w_at: int,
    out: np.ndarray,
    out_at: int,
    width: int,
) -> None:
    """Write a layer norm of x: `w` holds its gains, its offsets and its epsilon."""
    row = x[x_at : x_at + width]
    total = np.float32(0)
    for i in range(width):
        total += row[i]
    mean = total / np.float32(width)
    square = np.float32(0)
    for i in range(width):
        square += (row[i] - mean) * (row[i] - mean)
    spread = _ONE / np.sqrt(square / np.float32(width) + w[w_at + 2 * width])
    gain = w[w_at : w_at + width]
    offset = w[w_at + width : w_at + 2 * width]
    normal = out[out_at : out_at + width]
    for i in range(width):
        normal[i] = (row[i] - mean) * spread * gain[i] + offset[i]
