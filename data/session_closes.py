"""When sessions close: that of a date, and the first one from an instant on.

Half days and holidays are those of the calendar; there is no built-in closing hour.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Int64

from .calendars import known_dates, sessions
from .instants import instants, nanoseconds

# Longer than any closing of an exchange that a calendar of `exchange_calendars` holds.
_LONGEST_CLOSING = pd.Timedelta(days=200)


def session_closes(
    calendar: str, dates: pd.Series | pd.DatetimeIndex
) -> pd.DatetimeIndex:
    """Return when the session of each date closes; missing where there is none.

    Parameters
    ----------
    calendar : str
        See `sessions`.
    dates : Series or DatetimeIndex
        Dates (midnights without a zone) in the calendar's own zone; missing ones stay
        missing.

    Returns
    -------
    DatetimeIndex
        UTC nanoseconds, as long as `dates`.

    Raises
    ------
    ValueError
        For an unknown calendar, dates outside of what it covers, or a time of day.
    """
    asked, known = pd.DatetimeIndex(dates), known_dates(dates)
    if not len(known):
        return pd.DatetimeIndex([pd.NaT] * len(asked)).tz_localize("UTC").as_unit("ns")
    found = sessions(calendar, known.min(), known.max())
    closes = pd.Series(found["close"].array, index=pd.DatetimeIndex(found["session"]))
    return pd.DatetimeIndex(closes.reindex(asked).array)


def nearest_sessions(calendar: str, day: pd.Timestamp) -> tuple[str, ...]:
    """Return the dates of the sessions before and after a day, for messages."""
    around = pd.Timedelta(days=30)
    labels = sessions(calendar, day - around, day + around)["session"]
    near = [*labels[labels < day].tail(1), *labels[labels > day].head(1)]
    return tuple(f"{label:%Y-%m-%d}" for label in near)


def first_closes(calendar: str, instants_ns: Int64[np.ndarray, " n"]) -> pd.DataFrame:
    """Return the first session that closes at or after each instant.

    Parameters
    ----------
    calendar : str
        See `sessions`.
    instants_ns : ndarray of shape (n,)
        UTC nanoseconds since 1970.

    Returns
    -------
    DataFrame
        session (date, without a zone) and close (UTC), a row for each instant.

    Raises
    ------
    ValueError
        For an unknown calendar, or an instant without such a session.
    """
    if not len(instants_ns):
        none = instants(instants_ns)
        return pd.DataFrame({"session": none.tz_localize(None), "close": none})
    asked = instants(instants_ns)
    found = sessions(calendar, asked.min(), asked.max() + _LONGEST_CLOSING)
    place = np.searchsorted(nanoseconds(found["close"]), instants_ns, side="left")
    if place.max() >= len(found):
        raise ValueError(
            f"calendar {calendar!r} must have a session that closes at or after "
            f"{asked.max()}; got none. Use earlier times, or another calendar."
        )
    return found[["session", "close"]].iloc[place].reset_index(drop=True)
