"""Cells of a clock's column as instants and dates, strictly read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64

from .cells import matches, text_cells
from .declared_clocks import AvailableColumn, BarOpen, InstantStamp, LocalMidnight
from .epochs import epoch_instants
from .local_times import ClockColumn, local_instants
from .stamp_patterns import cells_pattern, has_offset

_INSTANT = (
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$"
)
_OFFSET = r"(Z|[+-]\d{2}:?\d{2})$"
_DATE = r"^\d{4}-\d{2}-\d{2}$"
YEARS = (1678, 2261)  # what 64-bit nanoseconds hold in full


def instants_in(
    where: ClockColumn,
    written: InstantStamp | BarOpen | LocalMidnight | AvailableColumn,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    """Return stamps as UTC instants; one without offset needs a declared zone."""
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
    return utc_nanoseconds(where, stamps)


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


def dates_in(where: ClockColumn, pattern: str | None) -> pd.Series:
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


def first_instants(where: ClockColumn, local: pd.Series, zone: str) -> pd.Series:
    """Return the first instant of days that are given as midnights."""
    # Where the clocks skip or repeat midnight: the first instant after the period.
    instants = local.dt.tz_localize(
        zone,
        ambiguous=np.ones(len(local), dtype=bool),
        nonexistent="shift_forward",
    )
    return utc_nanoseconds(where, instants)


def local_times_on(
    where: ClockColumn, dates: pd.Series, at: str, zone: str
) -> pd.Series:
    """Return the instants at a local time of day on each date."""
    local = dates + pd.Timedelta(at if at.count(":") == 2 else f"{at}:00")
    instants = local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    where.require(
        (instants.notna() | local.isna()).to_numpy(),
        f"must be one instant at {at} in {zone}",
        f"The clocks change then: declare another `{where.clock}.at`.",
    )
    return utc_nanoseconds(where, instants)


def utc_nanoseconds(where: ClockColumn, instants: pd.Series) -> pd.Series:
    """Return instants in UTC nanoseconds; those that 64 bits cannot hold are refused."""
    utc = instants.dt.tz_convert("UTC")
    where.require(
        (utc.isna() | utc.dt.year.between(*YEARS)).to_numpy(),
        f"must lie in the years {YEARS[0]} to {YEARS[1]}",
        "Correct or remove the row.",
    )
    exact: pd.Series = utc.dt.as_unit("ns")
    return exact
