"""The two clocks of a source: from stamps in a file to UTC nanoseconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
from jaxtyping import Int64

from infoset.data.calendars import next_sessions, session_zone, sessions
from infoset.data.durations import duration_ns
from infoset.data.session_closes import nearest_sessions, session_closes

from .cells import SourceTable
from .declared_clocks import (
    AfterDays,
    AfterLag,
    AfterSessions,
    AvailableColumn,
    BarOpen,
    DateStamp,
    KnownVintage,
    LocalMidnight,
    PeriodEnd,
    PeriodStart,
    SessionClose,
    Stamp,
)
from .local_times import ClockColumn
from .periods import ends_of_named, ends_of_started
from .stamp_cells import (
    dates_in,
    first_instants,
    instants_in,
    local_times_on,
    utc_nanoseconds,
)


def event_times(
    table: SourceTable,
    stamp: Stamp,
    *,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    """Return when each row's event was, in UTC nanoseconds; missing where not given.

    Parameters
    ----------
    table : SourceTable
    stamp : Stamp
    series : ndarray of shape (n,)
        Which series (stream and entity) a row belongs to; see `local_instants`.

    Raises
    ------
    ValueError
        For a stamp that is not of the declared kind, has neither offset nor zone, or
        does not name one instant.
    TypeError
        For a Parquet column of another kind.
    """
    where = ClockColumn(table, stamp.column, "event_time")
    match stamp:
        case PeriodEnd():
            return first_instants(where, ends_of_named(where), stamp.zone)
        case PeriodStart():
            dates = dates_in(where, stamp.format)
            ends = ends_of_started(where, dates, stamp.period)
            return first_instants(where, ends, stamp.zone)
        case SessionClose():
            dates = dates_in(where, stamp.format)
            return session_closes_on(where, dates, stamp.calendar)
        case LocalMidnight():
            return _next_midnights(where, stamp, series)
        case DateStamp():
            dates = dates_in(where, stamp.format)
            return local_times_on(where, dates, stamp.at, stamp.zone)
    stamps = instants_in(where, stamp, series)
    return _later(stamps, stamp.bar) if isinstance(stamp, BarOpen) else stamps


def availabilities(
    table: SourceTable,
    rule: AvailableColumn | KnownVintage | AfterSessions | AfterDays | AfterLag,
    events: pd.Series,
    *,
    event_column: str,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    """Return when each row became available, in UTC nanoseconds.

    Parameters
    ----------
    table : SourceTable
    rule : AvailableColumn, KnownVintage, AfterSessions, AfterDays or AfterLag
    events : Series
        Event times, which all rules but the first two start from.
    event_column : str
        The column that the events came from, for messages.
    series : ndarray of shape (n,)
        See `event_times`.

    Raises
    ------
    ValueError, TypeError
        See `event_times`; also for a date outside of what the calendar covers.
    """
    if isinstance(rule, AvailableColumn):
        return _given(ClockColumn(table, rule.column, "available_at"), rule, series)
    if isinstance(rule, AfterLag):
        return _later(events, rule.lag)
    where = ClockColumn(table, event_column, "available_at")
    if isinstance(rule, KnownVintage):
        days = pd.Series(pd.Timestamp(rule.vintage).as_unit("s"), index=events.index)
        return local_times_on(where, days, rule.at, rule.zone)
    if isinstance(rule, AfterSessions):
        return _after_sessions(where, events, rule)
    dates = _local_dates(events, rule.zone) + pd.Timedelta(days=rule.days)
    return local_times_on(where, dates, rule.at, rule.zone)


def _given(
    where: ClockColumn, rule: AvailableColumn, series: Int64[np.ndarray, " n"]
) -> pd.Series:
    if rule.zone is not None and rule.stamp is not None:
        return first_instants(where, ends_of_named(where), rule.zone)
    if rule.at is None or rule.zone is None:
        return instants_in(where, rule, series)
    return local_times_on(where, dates_in(where, rule.format), rule.at, rule.zone)


def session_closes_on(where: ClockColumn, dates: pd.Series, calendar: str) -> pd.Series:
    """Return when the session of each date closes, in UTC; missing dates stay so.

    Raises
    ------
    ValueError
        For a date that is no session, or outside of what the calendar covers.
    """
    try:
        closes = pd.Series(session_closes(calendar, dates), index=dates.index)
    except ValueError as error:
        raise ValueError(f"{where.clock} of {where.table.name}: {error}") from error
    unknown = (closes.isna() & dates.notna()).to_numpy()
    if unknown.any():
        near = nearest_sessions(calendar, dates.iloc[int(unknown.argmax())])
        where.require(
            ~unknown,
            f"must be the date of a session of {calendar}",
            f"The nearest are {' and '.join(near)}: correct the row, or `calendar`.",
        )
    return closes


def _next_midnights(
    where: ClockColumn, stamp: LocalMidnight, series: Int64[np.ndarray, " n"]
) -> pd.Series:
    midnights = instants_in(where, stamp, series).dt.tz_convert(stamp.zone)
    local = midnights.dt.tz_localize(None)
    where.require(
        (local.isna() | (local == local.dt.normalize())).to_numpy(),
        f"must be a midnight in {stamp.zone}",
        "Declare another `event_time.stamp`, or the zone of the midnights.",
    )
    return first_instants(where, local + pd.Timedelta(days=1), stamp.zone)


def _later(instants: pd.Series, duration: str) -> pd.Series:
    return instants + pd.Timedelta(duration_ns(duration), unit="ns")


def _local_dates(instants: pd.Series, zone: str) -> pd.Series:
    dates: pd.Series = instants.dt.tz_convert(zone).dt.tz_localize(None).dt.normalize()
    return dates


def _after_sessions(
    where: ClockColumn, events: pd.Series, rule: AfterSessions
) -> pd.Series:
    zone = rule.zone or session_zone(rule.calendar)
    dates = _sessions_after(where.table.name, _local_dates(events, zone), rule)
    if rule.bound is None:
        return local_times_on(where, dates, rule.at, zone)
    known = dates.dropna()
    if known.empty:
        return utc_nanoseconds(where, dates.dt.tz_localize("UTC"))
    schedule = sessions(rule.calendar, known.min(), known.max()).set_index("session")
    bounds = schedule[rule.bound].reindex(pd.DatetimeIndex(dates))
    return utc_nanoseconds(where, pd.Series(bounds.array, index=dates.index))


def _sessions_after(name: str, dates: pd.Series, rule: AfterSessions) -> pd.Series:
    try:
        later = next_sessions(rule.calendar, dates, rule.sessions)
    except ValueError as error:
        raise ValueError(f"available_at of {name}: {error}") from error
    return pd.Series(later, index=dates.index)
