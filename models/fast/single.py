"""How the arrays of a single stream are shared out.

Whole numbers: those of the stream, those of an event, the sizes of the network.
Reals: the scale and the sums, the values of an event, room to work in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from . import layout as at
from .compiled import pasted

EVENT_START = at.NUM_COUNTERS
_SIZES_START = EVENT_START + at.NUM_EVENT_NUMBERS


class Single(NamedTuple):
    """The arrays of a single stream, before any event.

    Attributes
    ----------
    whole : int64 ndarray
    reals : float64 ndarray
        Zeros.
    values : float64 ndarray of shape (w,)
        The part of `reals` where an event's values are put.
    """

    whole: Int64[np.ndarray, " n"]
    reals: Float64[np.ndarray, " m"]
    values: Float64[np.ndarray, " w"]


def single_arrays(
    sizes: Int64[np.ndarray, " k"], event_width: int, num_sums: int, num_work: int
) -> Single:
    """Lay out the arrays of a stream.

    Parameters
    ----------
    sizes : ndarray
        Of the packed weights.
    event_width : int
        Values of an event.
    num_sums : int
        Reals for the scale and the sums.
    num_work : int
        float32 numbers of room to work in.
    """
    whole = np.concatenate([np.zeros(_SIZES_START, np.int64), sizes])
    own = whole[_SIZES_START:]
    own[at.EVENT_WIDTH] = event_width
    own[at.VALUES_START] = whole_lines(num_sums)
    own[at.WIDE_START] = own[at.VALUES_START] + whole_lines(event_width)
    own[at.WORK_START] = own[at.WIDE_START] + whole_lines(int(sizes[at.WIDE_ROOM]))
    reals = aligned_zeros(int(own[at.WORK_START]) + (num_work + 1) // 2)
    start = int(own[at.VALUES_START])
    return Single(whole, reals, reals[start : start + event_width])


def aligned_zeros(number: int) -> Float64[np.ndarray, " n"]:
    """Return zeros that begin with a cache line."""
    room = np.zeros(number + at.WIDE_LINE)
    skipped = (-room.ctypes.data // room.itemsize) % at.WIDE_LINE
    return room[skipped : skipped + number]


def whole_lines(number: int) -> int:
    """Return how many reals are in the cache lines that hold so many."""
    return at.WIDE_LINE * (-(-number // at.WIDE_LINE))


@pasted
def whole_parts(whole: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the numbers of the stream, those of an event, and the sizes."""
    return whole[:EVENT_START], whole[EVENT_START:_SIZES_START], whole[_SIZES_START:]


@pasted
def real_parts(sizes: np.ndarray, reals: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return scale and sums, an event's values, wide room and room to work in."""
    values, wide = sizes[at.VALUES_START], sizes[at.WIDE_START]
    return (
        reals[: at.SUMS + sizes[at.LAYERS] * sizes[at.LAYER_SIZE]],
        reals[values : values + sizes[at.EVENT_WIDTH]],
        reals[wide : wide + sizes[at.WIDE_ROOM]],
        reals[sizes[at.WORK_START] :].view(np.float32),
    )


@pasted
def refusal(sizes: np.ndarray, counters: np.ndarray, numbers: np.ndarray) -> int:
    """Return why an event cannot be taken in, or that it can."""
    if is_before(numbers[at.AVAILABLE_AT], counters):
        return at.LATE
    if numbers[at.STREAM] < 0 or numbers[at.STREAM] >= sizes[at.NUM_STREAMS]:
        return at.UNKNOWN_STREAM
    return at.DONE


@pasted
def is_before(instant: int, counters: np.ndarray) -> bool:
    """Return whether an instant lies before the newest event, if there was one."""
    newest = counters[at.NEWEST]
    return bool(newest != 0 and instant < newest)
