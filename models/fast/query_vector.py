"""A forecast's own clock as a query: `data.clock_features`, compiled.

The calendar is computed by Howard Hinnant's `days_from_civil` and its inverse ("chrono-
Compatible Low-Level Date Algorithms", 2013), which hold for any year of the proleptic
Gregorian calendar, as NumPy's calendar does.
"""

from __future__ import annotations

import math

import numpy as np

from infoset.data.clock_features import NUM_CLOCK_FEATURES
from infoset.data.instants import NS_PER_DAY

from . import layout as at
from .compiled import Real, compiled

_NS_PER_DAY = NS_PER_DAY
_THURSDAY = 3  # 1970-01-01, counted from Monday
_DAYS_PER_ERA, _YEARS_PER_ERA = 146_097, 400
_TO_MARCH_0000 = 719_468
_FIRST_CELL = 4


@compiled
def civil_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since 1970-01-01."""
    shifted = days + _TO_MARCH_0000
    era = shifted // _DAYS_PER_ERA
    of_era = shifted - era * _DAYS_PER_ERA
    year_of_era = (
        of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096
    ) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * from_march + 2) // 5 + 1
    month = from_march + 3 if from_march < 10 else from_march - 9
    year = year_of_era + era * _YEARS_PER_ERA
    return (year + 1 if month <= 2 else year), month, day


@compiled
def days_before_year(year: int) -> int:
    """Return the number of days from 1970-01-01 to the first of January of a year."""
    last = year - 1
    return 365 * (year - 1970) + (
        last // 4 - last // 100 + last // 400 - (1969 // 4 - 1969 // 100 + 1969 // 400)
    )


@compiled
def write_clock(forecast_time: int, newest: int, empty: bool, out: np.ndarray) -> None:  # noqa: FBT001
    """Write what `clock_features` returns for one forecast point."""
    for i in range(NUM_CLOCK_FEATURES):
        out[i] = np.float32(0)
    day = forecast_time // _NS_PER_DAY
    _write_wave((forecast_time - day * _NS_PER_DAY) / _NS_PER_DAY, out, 0)
    year, _, _ = civil_from_days(day)
    begin, end = days_before_year(year), days_before_year(year + 1)
    passed = (forecast_time - begin * _NS_PER_DAY) / ((end - begin) * _NS_PER_DAY)
    _write_wave(passed, out, 2)
    _, _, of_month = civil_from_days(day + 1)
    weekday = (day + 1 + _THURSDAY) % 7
    out[_FIRST_CELL + 5 * weekday + (of_month - 1) // 7] = np.float32(1)
    if empty:
        out[NUM_CLOCK_FEATURES - 1] = np.float32(1)
    else:
        age = (forecast_time - newest) / _NS_PER_DAY
        out[NUM_CLOCK_FEATURES - 2] = np.float32(math.log1p(age))


@compiled
def _write_wave(phase: Real, out: np.ndarray, start: int) -> None:
    out[start] = np.float32(math.sin(2 * math.pi * phase))
    out[start + 1] = np.float32(math.cos(2 * math.pi * phase))


@compiled
def _write_query(
    w: np.ndarray,
    sizes: np.ndarray,
    entity: int,
    clock: np.ndarray,
    out: np.ndarray,
    out_at: int,
) -> None:
    """Write the query of an entity's forecast, given its clock features."""
    width = sizes[at.WIDTH]
    x = out[out_at : out_at + width]
    bias = w[sizes[at.QUERY_BIAS] : sizes[at.QUERY_BIAS] + width]
    for j in range(width):
        x[j] = bias[j]
    for i in range(NUM_CLOCK_FEATURES):
        feature = clock[i]
        if feature != 0:  # all cells but one are
            start = sizes[at.QUERY_ROWS] + i * width
            row = w[start : start + width]
            for j in range(width):
                x[j] += feature * row[j]
    start = sizes[at.GAIN_ROWS] + entity * width
    gain = w[start : start + width]
    start = sizes[at.ENTITY_ROWS] + entity * width
    own = w[start : start + width]
    for j in range(width):
        x[j] = own[j] + x[j] * gain[j]


@compiled
def is_empty(counters: np.ndarray, period: int) -> bool:
    """Return whether a forecast whose period starts at `period` sees no event."""
    return bool(counters[at.COUNT] == 0 or period > counters[at.PERIOD])


@compiled
def write_point(
    w: np.ndarray,
    sizes: np.ndarray,
    counters: np.ndarray,
    forecast_time: int,
    period: int,
    clock: np.ndarray,
    x: np.ndarray,
    x_at: int,
) -> None:
    """Write the query of a stream's forecast; `clock` is room for its features."""
    empty = is_empty(counters, period)
    write_clock(forecast_time, counters[at.NEWEST], empty, clock)
    _write_query(w, sizes, counters[at.ENTITY], clock, x, x_at)
