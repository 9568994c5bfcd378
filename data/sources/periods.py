"""Periods by their names, or by the day on which they begin, and their ends."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .cells import matches, text_cells
from .local_times import ClockColumn

_PERIOD = r"^\d{4}([-:]?Q[1-4]|[-:](0[1-9]|1[0-2]))?$"
_MONTHS = {"month": 1, "quarter": 3, "half_year": 6, "year": 12}


def ends_of_named(where: ClockColumn) -> pd.Series:
    """Return the local midnight after each year, quarter or month that is named.

    ``2008``, ``2008-Q1``, ``2008Q1``, ``2008:Q1``, ``2008-01`` and ``2008:01`` are names.

    Raises
    ------
    ValueError
        For a cell that is none.
    """
    cells = text_cells(where.table, where.column)
    where.require(
        matches(cells, _PERIOD),
        "must be a month such as 2008-01, a quarter such as 2008-Q1 or a year",
        f"Correct the row, or declare another `{where.clock}.stamp`.",
    )
    codes, periods = pd.factorize(cells.to_pandas())
    starts = [_month_after(period) for period in periods] + ["NaT"]
    return pd.Series(np.array(starts, dtype="datetime64[s]")[codes])


def _month_after(period: str) -> str:
    year, part = int(period[:4]), period[4:].lstrip("-:") or "12"
    last = 3 * int(part[1]) if part.startswith("Q") else int(part)
    return f"{year + last // 12:04d}-{last % 12 + 1:02d}"


def ends_of_started(where: ClockColumn, dates: pd.Series, period: str) -> pd.Series:
    """Return the local midnight after the period that begins on each date.

    Parameters
    ----------
    where : ClockColumn
        Where the dates stand, for messages.
    dates : Series
        Naive midnights; missing ones stay missing.
    period : {'month', 'quarter', 'half_year', 'year'}

    Raises
    ------
    ValueError
        For a date on which no such period begins.
    """
    days = dates.to_numpy().astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    length = _MONTHS[period]
    begins = (months.astype("datetime64[D]") == days) & (
        months.astype(np.int64) % length == 0
    )
    where.require(
        begins | np.isnat(days),
        f"must be the first day of a {period.replace('_', '-')}",
        "Correct the row, or declare what its dates stand for.",
    )
    return pd.Series((months + length).astype("datetime64[s]"))
