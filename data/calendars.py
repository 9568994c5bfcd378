"""Sessions of exchanges, and business days of the Federal Reserve.

All venues come from `exchange_calendars` by their name there, half days and holidays
included; there is no built-in closing hour. Two calendars are added:

- `us_federal`: the Federal Reserve Banks. A holiday that falls on a Saturday is not
  moved, one on a Sunday moves to Monday.
- `us_federal_board`: the Board of Governors in Washington, which publishes the
  statistical releases (H.15 among them). It is also closed on the Friday before a
  Saturday holiday, on Inauguration Day, and on the listed closings.
"""

from __future__ import annotations

import warnings
from datetime import date
from difflib import get_close_matches
from functools import cache

import exchange_calendars
import numpy as np
import pandas as pd
from jaxtyping import Int64

from .federal_reserve import FederalReserveBanks, FederalReserveBoard
from .instants import instants, nanoseconds

_SESSIONS_A_YEAR = 200
_SHOWN = 100  # letters of a message that may list thousands of days


_OWN = {kind.name: kind for kind in (FederalReserveBanks, FederalReserveBoard)}


def sessions(
    calendar: str, start: str | date | pd.Timestamp, end: str | date | pd.Timestamp
) -> pd.DataFrame:
    """Return the sessions of a calendar from `start` to `end`, both included.

    Parameters
    ----------
    calendar : str
        Any name of exchange_calendars (``XNYS``), `us_federal` or `us_federal_board`.
    start, end : str, date or Timestamp
        Dates of sessions; or, where timezone-aware, instants: then the sessions that
        are open at some time between them.

    Returns
    -------
    DataFrame
        session (date, without a zone), open and close (UTC), oldest first.

    Raises
    ------
    ValueError
        For an unknown calendar, or dates outside of what it covers.
    """
    first, last = _bound(start, "start"), _bound(end, "end")
    if (first.tz is None) != (last.tz is None):
        raise ValueError(
            "start and end must be both dates or both instants; "
            f"got {start!r} and {end!r}."
        )
    schedule = _schedule_around(calendar, first, last)
    if first.tz is None:
        inside = schedule["session"].between(first, last)
    else:
        inside = (schedule["open"] <= last) & (schedule["close"] >= first)
    return schedule[inside].reset_index(drop=True)


def next_sessions(
    calendar: str, dates: pd.Series | pd.DatetimeIndex, n: int
) -> pd.DatetimeIndex:
    """Return the n-th session strictly after each local date.

    Parameters
    ----------
    calendar : str
        See `sessions`.
    dates : Series or DatetimeIndex
        Dates (midnights without a zone) in the calendar's own zone; missing ones stay
        missing. They need not be sessions.
    n : int
        1 for the next session, 2 for the one after it.

    Returns
    -------
    DatetimeIndex
        Session dates, as long as `dates`.

    Raises
    ------
    ValueError
        For an unknown calendar, `n` below 1, or dates outside of what it covers.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}.")
    asked, known = pd.DatetimeIndex(dates), known_dates(dates)
    answer = pd.DatetimeIndex(np.full(len(asked), np.datetime64("NaT", "ns")))
    if not len(known):
        return answer
    ahead = pd.DateOffset(years=n // _SESSIONS_A_YEAR)
    schedule = _schedule_around(calendar, known.min(), known.max() + ahead)
    labels = pd.DatetimeIndex(schedule["session"])
    place = labels.searchsorted(known.as_unit("ns"), side="right") + n - 1
    if place.max() >= len(labels):
        raise ValueError(
            f"calendar {calendar!r} must cover {n} sessions after {known.max():%Y-%m-%d}; "
            f"it ends on {labels[-1]:%Y-%m-%d}. Use fewer sessions, or another calendar."
        )
    found = answer.to_numpy().copy()
    found[asked.notna()] = labels.to_numpy()[place]
    return pd.DatetimeIndex(found)


def known_dates(dates: pd.Series | pd.DatetimeIndex) -> pd.DatetimeIndex:
    """Return the dates that are not missing.

    Raises
    ------
    ValueError
        If one has a zone or a time of day.
    """
    asked = pd.DatetimeIndex(dates)
    known = asked[asked.notna()]
    if known.tz is not None or (known != known.normalize()).any():
        raise ValueError(
            f"dates must be midnights without a zone; got {known[0]}. "
            "Convert to the calendar's zone and normalise."
        )
    return known


def session_zone(calendar: str) -> str:
    """Return the zone in which the sessions of a calendar are dated.

    Raises
    ------
    ValueError
        For an unknown calendar.
    """
    complaint = calendar_complaint(calendar)
    if complaint is not None:
        raise ValueError(f"calendar {complaint}")
    if calendar in _OWN:
        return str(_OWN[calendar].tz)
    return str(
        _built(calendar, pd.Timestamp(2024, 1, 1), pd.Timestamp(2024, 12, 31)).tz
    )


def session_opens_before(
    calendar: str, instants_ns: Int64[np.ndarray, " n"]
) -> Int64[np.ndarray, " n"]:
    """Return the open of the latest session that opened at or before each instant.

    Parameters
    ----------
    calendar : str
        See `sessions`.
    instants_ns : ndarray of shape (n,)
        UTC nanoseconds since 1970.

    Returns
    -------
    ndarray of shape (n,)
        UTC nanoseconds since 1970.

    Raises
    ------
    ValueError
        For an unknown calendar, or an instant before its first session.
    """
    if not len(instants_ns):
        return instants_ns.copy()
    asked = instants(instants_ns)
    opens = nanoseconds(_schedule_around(calendar, asked.min(), asked.max())["open"])
    place = np.searchsorted(opens, instants_ns, side="right") - 1
    if place.min() < 0:
        raise ValueError(
            f"calendar {calendar!r} must have a session before {asked.min()}; its first "
            f"opens at {instants(opens[:1])[0]}. Use later times, or another calendar."
        )
    return opens[place]


def calendar_complaint(calendar: str) -> str | None:
    """Return what is wrong with the name of a calendar, with similar names, or None."""
    names = [*_OWN, *exchange_calendars.get_calendar_names()]
    if calendar in names:
        return None
    by_case = {name.lower(): name for name in names}
    near = get_close_matches(calendar.lower(), by_case, n=4, cutoff=0.5)
    hint = ", ".join(by_case[name] for name in near) or "XNYS, XLON or 24/7"
    return (
        "must be us_federal, us_federal_board or a name of exchange_calendars; "
        f"got {calendar!r}. Did you mean {hint}?"
    )


def _bound(given: str | date | pd.Timestamp, name: str) -> pd.Timestamp:
    bound = pd.Timestamp(given)
    if bound.tz is None and bound != bound.normalize():
        raise ValueError(
            f"{name} must be a date, or an instant with a zone; got {given!r}."
        )
    return bound


def _schedule_around(
    calendar: str, first: pd.Timestamp, last: pd.Timestamp
) -> pd.DataFrame:
    """Return the sessions of the years of `first` to `last`, and a year on each side."""
    complaint = calendar_complaint(calendar)
    if complaint is not None:
        raise ValueError(f"calendar {complaint}")
    earliest, latest = _covered(calendar)
    start, end = first.tz_localize(None), last.tz_localize(None)
    if start < earliest or end > latest:
        raise ValueError(
            f"calendar {calendar!r} covers {earliest:%Y-%m-%d} to {latest:%Y-%m-%d}; "
            f"got {start:%Y-%m-%d} to {end:%Y-%m-%d}. "
            "Use times inside, or another calendar."
        )
    return _schedule(
        calendar,
        max(earliest, pd.Timestamp(start.year - 1, 1, 1)),
        min(latest, pd.Timestamp(end.year + 1, 12, 31)),
    )


@cache
def _covered(calendar: str) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Return the first and last day that a calendar may be asked for."""
    if calendar in _OWN:
        made = _OWN[calendar]
    else:  # its bounds do not depend on the year that is built here
        made = _built(calendar, pd.Timestamp(2024, 1, 1), pd.Timestamp(2024, 12, 31))
    earliest, latest = made.bound_min(), made.bound_max()
    return (
        pd.Timestamp(1900, 1, 1) if earliest is None else earliest,
        pd.Timestamp(2200, 1, 1) if latest is None else latest,
    )


@cache
def _schedule(calendar: str, start: pd.Timestamp, end: pd.Timestamp) -> pd.DataFrame:
    schedule = _built(calendar, start, end).schedule
    return pd.DataFrame(
        {
            "session": schedule.index,
            "open": schedule["open"].array,
            "close": schedule["close"].array,
        }
    )


def _built(
    calendar: str, start: pd.Timestamp, end: pd.Timestamp
) -> exchange_calendars.ExchangeCalendar:
    with warnings.catch_warnings():
        # exchange_calendars 4.13 reads a Series in a way that pandas 4 will change.
        warnings.filterwarnings(
            "ignore", message="Series.values returning", category=DeprecationWarning
        )
        try:
            if calendar in _OWN:
                return _OWN[calendar](start, end)
            return exchange_calendars.get_calendar(calendar, start=start, end=end)
        except ValueError as error:
            raise ValueError(
                f"calendar {calendar!r} must have sessions from {start:%Y-%m-%d} to "
                f"{end:%Y-%m-%d}; exchange_calendars says: {str(error)[:_SHOWN]}. "
                "Use other times, or another calendar."
            ) from error
