"""The two clocks of a source: from stamps in a file to UTC nanoseconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64

from infoset.data.calendars import next_sessions, session_zone, sessions
from infoset.data.durations import duration_ns

from .cells import SourceTable, matches, text_cells
from .declared_clocks import (
    AfterDays,
    AfterLag,
    AfterSessions,
    AvailableColumn,
    BarOpen,
    DateStamp,
    InstantStamp,
    KnownVintage,
    PeriodEnd,
    PeriodStart,
)
from .epochs import epoch_instants
from .local_times import ClockColumn, local_instants
from .periods import ends_of_named, ends_of_started
from .stamp_patterns import cells_pattern, has_offset

_INSTANT = (
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$"
)
_OFFSET = r"(Z|[+-]\d{2}:?\d{2})$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
YEARS = (1678, 2261)  # what 64-bit nanoseconds hold in full


def event_times(
    table: SourceTable,
    stamp: InstantStamp | BarOpen | DateStamp | PeriodEnd | PeriodStart,
    *,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    """Return when each row's event was, in UTC nanoseconds; missing where not given.

    Parameters
    ----------
    table : SourceTable
    stamp : InstantStamp, BarOpen, DateStamp, PeriodEnd or PeriodStart
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
    if isinstance(stamp, PeriodEnd):
        return _first_instants(where, ends_of_named(where), stamp.zone)
    if isinstance(stamp, PeriodStart):
        dates = _dates(where, stamp.format)
        ends = ends_of_started(where, dates, stamp.period)
        return _first_instants(where, ends, stamp.zone)
    if isinstance(stamp, DateStamp):
        return _at(where, _dates(where, stamp.format), stamp.at, stamp.zone)
    stamps = _instants(where, stamp, series)
    if isinstance(stamp, BarOpen):
        return _later(stamps, stamp.bar)
    return stamps


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
        return _at(where, days, rule.at, rule.zone)
    if isinstance(rule, AfterSessions):
        return _after_sessions(where, events, rule)
    dates = _local_dates(events, rule.zone) + pd.Timedelta(days=rule.days)
    return _at(where, dates, rule.at, rule.zone)


def _given(
    where: ClockColumn, rule: AvailableColumn, series: Int64[np.ndarray, " n"]
) -> pd.Series:
    if rule.zone is not None and rule.stamp is not None:
        return _first_instants(where, ends_of_named(where), rule.zone)
    if rule.at is None or rule.zone is None:
        return _instants(where, rule, series)
    return _at(where, _dates(where, rule.format), rule.at, rule.zone)


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
        return _at(where, dates, rule.at, zone)
    known = dates.dropna()
    if known.empty:
        return _utc_nanoseconds(where, dates.dt.tz_localize("UTC"))
    schedule = sessions(rule.calendar, known.min(), known.max()).set_index("session")
    bounds = schedule[rule.bound].reindex(pd.DatetimeIndex(dates))
    return _utc_nanoseconds(where, pd.Series(bounds.array, index=dates.index))


def _sessions_after(name: str, dates: pd.Series, rule: AfterSessions) -> pd.Series:
    try:
        later = next_sessions(rule.calendar, dates, rule.sessions)
    except ValueError as error:
        raise ValueError(f"available_at of {name}: {error}") from error
    return pd.Series(later, index=dates.index)


def _instants(
    where: ClockColumn,
    written: InstantStamp | BarOpen | AvailableColumn,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    zone, pattern = written.zone, written.format
    cells = where.table.cells(where.column)
    if written.epoch is not None:
        stamps = epoch_instants(where.table, where.column, written.epoch).to_pandas()
    elif pa.types.is_timestamp(cells.type):
        _require_no_pattern(where, pattern)
        stamps = cells.to_pandas()
    elif pattern is not None:
        stamps = _by_pattern(where, pattern)
    else:
        stamps = _iso_instants(where)
    if stamps.dt.tz is None:
        given = stamps.notna().to_numpy()
        if zone is None:
            where.require(
                ~given,
                "must be timezone-aware",
                f"Declare `{where.clock}.zone` for this source.",
            )
        stamps = local_instants(where, stamps, zone=zone or "UTC", series=series)
    return _utc_nanoseconds(where, stamps)


def _iso_instants(where: ClockColumn) -> pd.Series:
    cells = text_cells(where.table, where.column)
    rule = "must be an instant such as 2024-03-01T16:00:00Z"
    remedy = f"Declare `{where.clock}.format` for another layout, or that it is a date."
    where.require(matches(cells, _INSTANT), rule, remedy)
    given = cells.is_valid().to_numpy()
    aware = matches(cells, _OFFSET) & given
    if aware.any():
        where.require(
            aware | ~given,
            "must have an offset in all rows or in none",
            "Give UTC or an offset in every row.",
        )
    stamps: pd.Series = pd.to_datetime(
        cells.to_pandas(), format="ISO8601", utc=bool(aware.any()), errors="coerce"
    )
    where.require(stamps.notna().to_numpy() | ~given, rule, remedy)
    return stamps


def _by_pattern(where: ClockColumn, pattern: str) -> pd.Series:
    cells = text_cells(where.table, where.column)
    try:
        stamps: pd.Series = pd.to_datetime(
            cells.to_pandas(), format=pattern, utc=has_offset(pattern), errors="coerce"
        )
    except ValueError as error:
        raise ValueError(
            f"{where.clock}.format must hold strptime directives; got {pattern!r} "
            f"({error}). Correct it."
        ) from error
    described = matches(cells, cells_pattern(pattern))
    where.require(
        (stamps.notna() | cells.is_null().to_pandas()).to_numpy() & described,
        f"must match the format {pattern!r}",
        f"Correct the row, or `{where.clock}.format`.",
    )
    return stamps


def _dates(where: ClockColumn, pattern: str | None) -> pd.Series:
    """Return dates as naive midnights."""
    cells = where.table.cells(where.column)
    dates: pd.Series
    if pa.types.is_timestamp(cells.type) or pa.types.is_date(cells.type):
        _require_no_pattern(where, pattern)
        is_date = pa.types.is_date(cells.type)
        dates = (cells.cast(pa.timestamp("ms")) if is_date else cells).to_pandas()
    else:
        if pattern is None:
            where.require(
                matches(text_cells(where.table, where.column), _DATE),
                "must be a date such as 2024-03-01",
                f"Declare `{where.clock}.format` for another layout, or an instant.",
            )
        dates = _by_pattern(where, pattern or "%Y-%m-%d")
    midnight = dates.isna() | (dates == dates.dt.normalize())
    where.require(
        midnight.to_numpy() & (dates.dt.tz is None),
        "must be a date without a time of day or a zone",
        "Declare an instant instead.",
    )
    return dates


def _require_no_pattern(where: ClockColumn, pattern: str | None) -> None:
    if pattern is not None:
        raise ValueError(
            f"{where.clock}.format must be left out where the file holds datetimes; "
            f"got {pattern!r} (column {where.column!r} of {where.table.name}). "
            "Remove it."
        )


def _first_instants(where: ClockColumn, local: pd.Series, zone: str) -> pd.Series:
    """Return the first instant of days that are given as midnights."""
    # Where the clocks skip or repeat midnight: the first instant after the period.
    instants = local.dt.tz_localize(
        zone,
        ambiguous=np.ones(len(local), dtype=bool),
        nonexistent="shift_forward",
    )
    return _utc_nanoseconds(where, instants)


def _at(where: ClockColumn, dates: pd.Series, at: str, zone: str) -> pd.Series:
    """Return the instants at a local time of day on each date."""
    local = dates + pd.Timedelta(at if at.count(":") == 2 else f"{at}:00")
    instants = local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    where.require(
        (instants.notna() | local.isna()).to_numpy(),
        f"must be one instant at {at} in {zone}",
        f"The clocks change then: declare another `{where.clock}.at`.",
    )
    return _utc_nanoseconds(where, instants)


def _utc_nanoseconds(where: ClockColumn, instants: pd.Series) -> pd.Series:
    utc = instants.dt.tz_convert("UTC")
    where.require(
        (utc.isna() | utc.dt.year.between(*YEARS)).to_numpy(),
        f"must lie in the years {YEARS[0]} to {YEARS[1]}",
        "Correct or remove the row.",
    )
    exact: pd.Series = utc.dt.as_unit("ns")
    return exact
