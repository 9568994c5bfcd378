"""What a forecast's own clock says: features of the query, none of an event's value."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int64

from .instants import NS_PER_DAY
from .sequences import Samples

_WEEK = 7 * NS_PER_DAY
_MONDAY = 3 * NS_PER_DAY  # 1970-01-01 was a Thursday, three days into its week
_NUM_CELLS = 7 * 5
NUM_CLOCK_FEATURES = 2 + 2 + _NUM_CELLS + 2


def clock_features(
    forecast_time: Int64[np.ndarray, " n"],
    newest: Int64[np.ndarray, " n"],
    num_events: Int64[np.ndarray, " n"],
) -> Float32[np.ndarray, "n F"]:
    """Return the clock features of forecast points.

    Phases of the day and the year (sine and cosine); which weekday of the month the
    day ahead is, such as its first Friday, because scheduled releases keep to it (one
    of 35 cells, one column each); the logarithm of the days since the newest visible
    event (0 for an empty information set); and whether the information set is empty.

    Parameters
    ----------
    forecast_time, newest : ndarray of shape (n,)
        UTC nanoseconds; availability of the newest visible event, ignored where the
        information set is empty.
    num_events : ndarray of shape (n,)
    """
    # By NumPy's own calendar: a pandas index costs a live forecast a millisecond.
    empty = num_events == 0
    age = np.where(empty, 0.0, (forecast_time - newest) / NS_PER_DAY)
    columns = [
        *_wave((forecast_time % NS_PER_DAY) / NS_PER_DAY),
        *_wave(_year_phase(forecast_time.view("datetime64[ns]"))),
        _day_ahead(forecast_time),
        np.log1p(age),
        empty.astype(np.float64),
    ]
    return np.column_stack(columns).astype(np.float32)


def query_features(samples: Samples) -> Float32[np.ndarray, "n F"]:
    """Return `clock_features` of each sample."""
    newest = samples.forecast_time.copy()
    for name, line in samples.timelines.items():
        rows = np.flatnonzero((samples.entity == name) & (samples.num_events > 0))
        newest[rows] = line.available_at[samples.stop[rows] - 1]
    return clock_features(samples.forecast_time, newest, samples.num_events)


def _day_ahead(forecast_time: Int64[np.ndarray, " n"]) -> np.ndarray:
    """Return one column per weekday of the month; 1 where the day 24 hours on is it."""
    ahead = forecast_time + NS_PER_DAY
    weekday = ((ahead + _MONDAY) % _WEEK) // NS_PER_DAY
    day = ahead.view("datetime64[ns]").astype("datetime64[D]")
    in_month = (day - day.astype("datetime64[M]").astype("datetime64[D]")).astype(int)
    cell = 5 * weekday + in_month // 7
    one_hot: np.ndarray = cell[:, None] == np.arange(_NUM_CELLS)
    return one_hot.astype(np.float64)


def _year_phase(times: np.ndarray) -> np.ndarray:
    """Return how much of its calendar year has passed at each instant."""
    year = times.astype("datetime64[Y]")
    begin, end = (y.astype("datetime64[ns]") for y in (year, year + 1))
    passed: np.ndarray = (times - begin) / (end - begin)
    return passed


def _wave(phase: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)
