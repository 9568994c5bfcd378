"""Dates of EDGAR: they are days in New York, and say no hour."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Discriminator, Tag

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.clocks import availabilities, event_times
from infoset.data.sources.declared_clocks import (
    AfterDays,
    AfterSessions,
    DateStamp,
    entry,
)

from .edgar_clock import NEW_YORK


def _rule_kind(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    for key in ("sessions", "days"):
        if entry(given, key) is not None:
            return key
    return None


DateRule = Annotated[
    Annotated[AfterSessions, Tag("sessions")] | Annotated[AfterDays, Tag("days")],
    Discriminator(
        _rule_kind,
        custom_error_type="date_only",
        custom_error_message="a mapping with `sessions` or `days`",
    ),
]


def days_ended(table: SourceTable, column: str) -> pd.Series:
    """Return the ends of dates in New York, in UTC nanoseconds."""
    return _at(table, column, "24:00")


def mornings(table: SourceTable, column: str) -> pd.Series:
    """Return when EDGAR opens on dates, in UTC nanoseconds."""
    return _at(table, column, "06:00")


def noons(table: SourceTable, column: str) -> pd.Series:
    """Return noon in New York on dates: the same date from Alaska to Moscow."""
    return _at(table, column, "12:00")


def known_after(
    table: SourceTable, column: str, rule: AfterSessions | AfterDays
) -> pd.Series:
    """Return when filings of which only the date is known count as known.

    Raises
    ------
    ValueError
        For a cell that is no date, one outside of what the calendar covers, or a rule
        that would know a filing before its day is over.
    """
    known = availabilities(
        table,
        rule,
        noons(table, column),
        event_column=column,
        series=np.zeros(len(table), dtype=np.int64),
    )
    early = (known < days_ended(table, column)).to_numpy()
    table.require(
        ~early,
        column,
        "date_only must lie after the end of a filing's day in New York",
        "Declare a later one: some sessions open on the evening before their day.",
    )
    return known


def _at(table: SourceTable, column: str, at: str) -> pd.Series:
    return event_times(
        table,
        DateStamp(column=column, stamp="date", at=at, zone=NEW_YORK),
        series=np.zeros(len(table), dtype=np.int64),
    )
