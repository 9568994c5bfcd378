"""When filings were accepted by EDGAR, and when they could be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from infoset.data.instants import nanoseconds
from infoset.data.sources.cells import Fault, SourceTable, text_cells
from infoset.data.sources.clocks import event_times
from infoset.data.sources.declared_clocks import InstantStamp

from .edgar_clock import (
    HOURS,
    NEW_YORK,
    Clock,
    clock_reading,
    evidence,
    in_hours,
    is_date_only,
)
from .edgar_dates import DateRule, days_ended, known_after, mornings
from .edgar_files import NEVER, rows_at, with_columns
from .edgar_filings import STAMP
from .edgar_forms import NOT_BY_FILERS, PUBLISHED_LATER
from .edgar_source import EdgarSource

Released = Literal["filing_day", "acceptance"]
_SHOWN = 3
_STAMP = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$"


class StampedSource(EdgarSource):
    """Files whose events are dated by acceptance stamps.

    Attributes
    ----------
    clock : str or Mapping[str, str]
        `detect`: the reading (UTC or New York) under which a filer's stamps lie in
        EDGAR's hours; `utc` or `new_york` for all filers; or a mapping of CIKs to one
        of these, the others being detected.
    released : str
        `filing_day`: a filing that EDGAR dates on a later day than it was accepted
        (most are, after 17:30 New York) is known from 06:00 New York of that day, when
        EDGAR publishes it. `acceptance`: at its acceptance all the same.
    stamp_column : str
        What a flat table of filings calls the stamps.
    """

    clock: Clock = "detect"
    released: Released = "filing_day"
    stamp_column: str = STAMP


@dataclass(frozen=True, eq=False)
class FilingClocks:
    """The two clocks of filings.

    Attributes
    ----------
    event_time, available_at : ndarray of shape (n,)
        UTC nanoseconds since 1970; `NEVER` where a filing has none.
    is_late : ndarray of shape (n,)
        Whether EDGAR dates a filing on a later day than it was accepted.
    is_dated : ndarray of shape (n,)
        Whether its stamp is a date without a time.
    is_published_later : ndarray of shape (n,)
    faults : tuple of Fault
    notices : tuple of str
        How the stamps of each filer were read, and why.
    """

    event_time: Int64[np.ndarray, " n"]
    available_at: Int64[np.ndarray, " n"]
    is_late: Bool[np.ndarray, " n"]
    is_dated: Bool[np.ndarray, " n"]
    is_published_later: Bool[np.ndarray, " n"]
    faults: tuple[Fault, ...]
    notices: tuple[str, ...]


def filing_clocks(
    filings: SourceTable,
    *,
    clock: Clock,
    released: Released,
    date_only: DateRule | None,
) -> FilingClocks:
    """Return when filings were accepted and when they could be read.

    Parameters
    ----------
    filings : SourceTable
        See `Filings`.
    clock, released
        See `StampedSource`.
    date_only : AfterSessions or AfterDays, optional
        When filings whose stamp is a date alone count as known; without it they are
        set aside.

    Raises
    ------
    ValueError
        For a stamp or a date in another layout, or a filer whose clock is not told.
    """
    event_time, dated, notices = _accepted(filings, clock)
    available_at = event_time.copy()
    opens = nanoseconds(mornings(filings, "filingDate"))
    late = (event_time < opens) & (event_time != NEVER)
    if released == "filing_day":
        available_at[late] = opens[late]
        available_at[opens == NEVER] = NEVER
    if date_only is not None:
        some = rows_at(filings, np.flatnonzero(dated))
        event_time[dated] = nanoseconds(days_ended(some, "filingDate"))
        available_at[dated] = nanoseconds(known_after(some, "filingDate", date_only))
    later = pc.is_in(filings.cells("form"), pa.array(PUBLISHED_LATER)).to_numpy()
    no_hour = dated if date_only is None else np.zeros(len(filings), dtype=bool)
    faults = (
        Fault(later, "form", "published later than its stamp, on a day unknown"),
        Fault(no_hour, STAMP, "a date without a time"),
    )
    return FilingClocks(
        event_time, available_at, late, dated, later, faults, tuple(notices)
    )


def _without_offset(filings: SourceTable) -> SourceTable:
    cells = text_cells(filings, STAMP)
    matching = pc.fill_null(pc.match_substring_regex(cells, _STAMP), True)  # noqa: FBT003
    filings.require(
        matching.to_numpy(),
        STAMP,
        "acceptance must be a stamp such as 2020-10-30T18:01:14.000Z",
        "Correct the row, or name another column in `stamp_column`.",
    )
    return with_columns(filings, {STAMP: pc.replace_substring(cells, "Z", "")})


def _accepted(
    filings: SourceTable, clock: Clock
) -> tuple[Int64[np.ndarray, " n"], Bool[np.ndarray, " n"], list[str]]:
    """Return acceptances filer by filer, which are a date alone, and the notices."""
    naive = _without_offset(filings)
    stamps: pd.Series = pd.to_datetime(
        naive.cells(STAMP).to_pandas(), format="ISO8601", errors="coerce"
    )
    dated = is_date_only(stamps)
    timed = naive.cells(STAMP).is_valid().to_numpy() & ~dated
    telling = ~pc.is_in(naive.cells("form"), pa.array(NOT_BY_FILERS)).to_numpy()
    accepted = np.full(len(naive), NEVER)
    ciks = naive.cells("cik").to_pandas()
    notices: list[str] = []
    for cik, positions in ciks.groupby(ciks).indices.items():
        mine = positions[timed[positions]]
        if not len(mine):
            continue
        found = evidence(stamps.iloc[mine[telling[mine]]])
        reading, why = clock_reading(clock, found, cik=str(cik), name=naive.name)
        zone = "UTC" if reading == "utc" else NEW_YORK
        instants = event_times(
            rows_at(naive, mine),
            InstantStamp(column=STAMP, stamp="instant", zone=zone),
            series=np.zeros(len(mine), dtype=np.int64),
        )
        accepted[mine] = nanoseconds(instants)
        stray = mine[~in_hours(stamps.iloc[mine], reading)]
        notices += [why, *_stray_notice(rows_at(filings, stray))]
    return accepted, dated, notices


def _stray_notice(stray: SourceTable) -> list[str]:
    if not len(stray):
        return []
    listed = ", ".join(
        f"{one['accessionNumber']} ({one['form']}) {one[STAMP]}"
        for one in stray.columns.slice(0, _SHOWN).to_pylist()
    )
    more = " ..." if len(stray) > _SHOWN else ""
    return [
        f"{stray.name}: {len(stray):,} stamps outside of EDGAR's "
        f"hours ({HOURS}), used as read: {listed}{more}"
    ]
