"""When the periods of XBRL facts ended, and when the facts were known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float64, Int64

from infoset.data.instants import NS_PER_DAY, nanoseconds
from infoset.data.sources.cells import Fault, SourceTable, number_cells
from infoset.data.sources.declaration import TextFormat

from .edgar_acceptance import FilingClocks
from .edgar_dates import DateRule, days_ended, known_after, noons
from .edgar_files import NEVER, rows_at
from .edgar_filings import Filings


@dataclass(frozen=True, eq=False)
class FactClocks:
    """The clocks of facts.

    Attributes
    ----------
    event_time, available_at : ndarray of shape (n,)
        UTC nanoseconds since 1970; `NEVER` where a fact has none.
    days : ndarray of shape (n,)
        Length of the period, first and last day included; NaN for an instant.
    values : ndarray of shape (n,)
    num_accepted : int
        Facts that are dated by the acceptance of their filing.
    faults : tuple of Fault
    """

    event_time: Int64[np.ndarray, " n"]
    available_at: Int64[np.ndarray, " n"]
    days: Float64[np.ndarray, " n"]
    values: Float64[np.ndarray, " n"]
    num_accepted: int
    faults: tuple[Fault, ...]

    @property
    def is_sound(self) -> Bool[np.ndarray, " n"]:
        """Whether each fact has no fault."""
        sound: np.ndarray = ~np.logical_or.reduce([fault.at for fault in self.faults])
        return sound


def readable_from(lists: Iterable[tuple[Filings, FilingClocks]]) -> pd.Series:
    """Return when filings could be read, by accession number.

    Where lists disagree, the latest is the safe bound.

    Returns
    -------
    Series
        UTC nanoseconds since 1970; filings without an hour are left out.
    """
    known = [pd.Series(np.empty(0, dtype=np.int64), index=pd.Index([], dtype="str"))]
    for filings, clocks in lists:
        sound = ~np.logical_or.reduce([fault.at for fault in clocks.faults])
        sound &= clocks.available_at != NEVER
        accessions = filings.table.cells("accessionNumber").filter(sound).to_pandas()
        known.append(pd.Series(clocks.available_at[sound], index=accessions))
    return pd.concat(known).groupby(level=0).max()


def fact_clocks(
    facts: SourceTable, readable: pd.Series, date_only: DateRule | None
) -> FactClocks:
    """Return the clocks and the values of facts.

    Parameters
    ----------
    facts : SourceTable
        See `CompanyFacts`.
    readable : Series
        See `readable_from`.
    date_only : AfterSessions or AfterDays, optional
        When a filing of which only the date is known counts as known.

    Raises
    ------
    ValueError
        For a cell that is no date or no number.
    """
    place = readable.index.get_indexer(facts.cells("accn").to_pandas())
    known = np.full(len(facts), NEVER)
    known[place >= 0] = readable.to_numpy()[place[place >= 0]]
    filed = facts.cells("filed").is_valid().to_numpy()
    if date_only is not None:
        rest = np.flatnonzero((place < 0) & filed)
        known[rest] = nanoseconds(known_after(rows_at(facts, rest), "filed", date_only))
    ended = nanoseconds(days_ended(facts, "end"))
    days = _lengths(facts)
    values = number_cells(facts, "val", TextFormat(), setting="val")
    faults = (
        Fault(known == NEVER, "accn", "no acceptance in `submissions`, no `date_only`"),
        Fault(ended == NEVER, "end", "missing"),
        Fault(ended > known, "end", "a period that ends after it was known"),
        Fault(days < 1, "start", "a period that starts after it ends"),
        Fault(np.isnan(values), "val", "no value"),
    )
    return FactClocks(ended, known, days, values, int((place >= 0).sum()), faults)


def _lengths(facts: SourceTable) -> Float64[np.ndarray, " n"]:
    first, last = (nanoseconds(noons(facts, column)) for column in ("start", "end"))
    # Rounded, as a day on which the clocks change has another length.
    days: np.ndarray = np.round((last - first) / NS_PER_DAY) + 1
    days[(first == NEVER) | (last == NEVER)] = np.nan
    return days
