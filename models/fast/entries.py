"""The functions that Python calls, each compiled for one signature on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from . import layout as at
from .compiled import entry, sources_digest
from .linear_rows import forecast_rows, update_rows
from .single import is_before, real_parts, refusal, whole_parts
from .softmax_row import forecast_row, update_row

# What a single stream has of whole numbers and of reals lies in one array each (see
# `single`): each array that Python hands over costs a tenth of a microsecond.
_STREAM = "float32[::1], int64[::1], float64[::1]"
_CACHE = "float32[::1], float64[::1]"
_POINT = "int64, int64, float64[:, ::1]"
_ROWS = "float32[::1], int64[::1], float64[:, ::1], int64[:, ::1]"
_ROOM = "float32[::1], float64[::1]"


class Entries(NamedTuple):
    """An update and a forecast; both return a code of `layout`, 0 where all is well."""

    update: Callable[..., int]
    forecast: Callable[..., int]


@cache
def linear_stream() -> Entries:
    """Return the functions of a single stream with linear attention."""
    sources = sources_digest()

    @entry(f"int64({_STREAM})")
    def update(w: np.ndarray, whole: np.ndarray, reals: np.ndarray) -> int:
        _ = sources
        counters, numbers, sizes = whole_parts(whole)
        code = refusal(sizes, counters, numbers)
        if code == at.DONE:
            memory, values, wide, work = real_parts(sizes, reals)
            update_rows(
                w,
                sizes,
                memory.reshape(1, len(memory)),
                counters.reshape(1, len(counters)),
                values.reshape(1, len(values)),
                numbers.reshape(1, len(numbers)),
                work,
                wide,
            )
        return code

    @entry(f"int64({_STREAM}, {_POINT})")
    def forecast(
        w: np.ndarray,
        whole: np.ndarray,
        reals: np.ndarray,
        forecast_time: int,
        period: int,
        out: np.ndarray,
    ) -> int:
        _ = sources
        counters, _numbers, sizes = whole_parts(whole)
        if is_before(forecast_time, counters):
            return at.LATE
        memory, _values, wide, work = real_parts(sizes, reals)
        good = forecast_rows(
            w,
            sizes,
            memory.reshape(1, len(memory)),
            counters.reshape(1, len(counters)),
            forecast_time,
            period,
            work,
            wide,
            out,
        )
        return at.DONE if good else at.NOT_A_FORECAST

    return Entries(update, forecast)


@cache
def softmax_stream() -> Entries:
    """Return the functions of a single stream with softmax attention."""
    sources = sources_digest()

    @entry(f"int64({_STREAM}, {_CACHE})")
    def update(
        w: np.ndarray,
        whole: np.ndarray,
        reals: np.ndarray,
        kept: np.ndarray,
        ages: np.ndarray,
    ) -> int:
        _ = sources
        counters, numbers, sizes = whole_parts(whole)
        code = refusal(sizes, counters, numbers)
        if code == at.DONE:
            scale, values, wide, work = real_parts(sizes, reals)
            code = update_row(
                w, sizes, scale, counters, values, numbers, work, wide, kept, ages
            )
        return code

    @entry(f"int64({_STREAM}, {_CACHE}, {_POINT})")
    def forecast(
        w: np.ndarray,
        whole: np.ndarray,
        reals: np.ndarray,
        kept: np.ndarray,
        ages: np.ndarray,
        forecast_time: int,
        period: int,
        out: np.ndarray,
    ) -> int:
        _ = sources
        counters, _numbers, sizes = whole_parts(whole)
        if is_before(forecast_time, counters):
            return at.LATE
        scale, _values, wide, work = real_parts(sizes, reals)
        good = forecast_row(
            w,
            sizes,
            scale,
            counters,
            work,
            wide,
            kept,
            ages,
            forecast_time,
            period,
            out[0],
        )
        return at.DONE if good else at.NOT_A_FORECAST

    return Entries(update, forecast)


@cache
def linear_streams() -> Entries:
    """Return the functions of many streams, which let other threads run meanwhile."""
    sources = sources_digest()

    @entry(f"int64({_ROWS}, float64[:, ::1], int64[:, ::1], {_ROOM})", nogil=True)
    def update(
        w: np.ndarray,
        sizes: np.ndarray,
        memory: np.ndarray,
        counters: np.ndarray,
        values: np.ndarray,
        numbers: np.ndarray,
        work: np.ndarray,
        wide: np.ndarray,
    ) -> int:
        _ = sources
        for start in range(0, len(numbers), at.BLOCK_ROWS):
            part = slice(start, start + at.BLOCK_ROWS)
            update_rows(
                w, sizes, memory, counters, values[part], numbers[part], work, wide
            )
        return at.DONE

    @entry(f"int64({_ROWS}, int64, int64, {_ROOM}, float64[:, ::1])", nogil=True)
    def forecast(
        w: np.ndarray,
        sizes: np.ndarray,
        memory: np.ndarray,
        counters: np.ndarray,
        forecast_time: int,
        period: int,
        work: np.ndarray,
        wide: np.ndarray,
        out: np.ndarray,
    ) -> int:
        _ = sources
        good = True
        for start in range(0, len(out), at.BLOCK_ROWS):
            part = slice(start, start + at.BLOCK_ROWS)
            good &= forecast_rows(
                w,
                sizes,
                memory[part],
                counters[part],
                forecast_time,
                period,
                work,
                wide,
                out[part],
            )
        return at.DONE if good else at.NOT_A_FORECAST

    return Entries(update, forecast)
