"""Lengths of time in a config: calendar terms, or counts of forecast dates."""

import re
from datetime import date
from typing import NamedTuple

import pandas as pd

DAY = 86_400_000_000_000  # nanoseconds
_UNITS = {"Y": (12, 0), "M": (1, 0), "W": (0, 7), "D": (0, 1)}


class Term(NamedTuple):
    """A calendar term."""

    months: int
    days: int

    def shift(self, time: int, count: int) -> int:
        """Move an instant (UTC nanoseconds) by `count` terms at once.

        At once, because steps do not add up: 31 January plus two months is 31 March,
        but 31 January plus a month is 28 February, and a month later it is the 28th.
        """
        moved = self.after(pd.DatetimeIndex([time], tz="UTC"), count)
        return int(moved.as_unit("ns").asi8[0])

    def after(self, times: pd.DatetimeIndex, count: int = 1) -> pd.DatetimeIndex:
        """Move instants by `count` terms."""
        return times + pd.DateOffset(months=self.months * count, days=self.days * count)


def parse_size(size: int | str, name: str, *, least: int = 1) -> int | Term:
    """Read a size: a count of forecast dates stays an int, a text becomes a `Term`.

    Parameters
    ----------
    size : int or str
        For example 250, "2Y", "6M", "1W" or "90D".
    name : str
        Setting to name in the message.
    least : int
        Smallest count allowed.

    Raises
    ------
    ValueError
        If `size` is neither, or less than `least`.
    """
    found = re.fullmatch(r"(\d+)([YMWD])", size) if isinstance(size, str) else None
    count = size if isinstance(size, int) else int(found[1]) if found else None
    if count is None or isinstance(size, bool) or count < least:
        raise ValueError(
            f"{name} must be a calendar term or a count of forecast dates, at least"
            f" {least}; got {size!r}. Write for example 2Y, 6M, 1W, 90D or 250."
        )
    if found is None:
        return count
    months, days = _UNITS[found[2]]
    return Term(months * count, days * count)


def parse_date(value: str | date, name: str) -> int:
    """Midnight UTC of a date, in nanoseconds.

    Raises
    ------
    ValueError
        If `value` is not a date, or carries a time of day.
    """
    message = (
        f"{name} must be a date (UTC); got {value!r}. Write for example 2012-01-01."
    )
    try:
        time = pd.Timestamp(value)
    except ValueError as error:
        raise ValueError(message) from error
    if pd.isna(time):
        raise ValueError(message)
    time = time.tz_localize("UTC") if time.tzinfo is None else time.tz_convert("UTC")
    if time != time.normalize():
        raise ValueError(message)
    return int(time.as_unit("ns").value)


def date_text(time: int) -> str:
    """Write the UTC date of an instant in nanoseconds, for messages."""
    return str(pd.Timestamp(time, unit="ns", tz="UTC").date())
