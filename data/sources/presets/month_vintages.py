"""Vintages that are named by their month alone."""

from __future__ import annotations

from abc import ABC

from infoset.data.sources.clock_settings import Zone
from infoset.data.sources.declared_clocks import (
    Availability,
    AvailableColumn,
    EventTime,
    PeriodStart,
)

from .vintage_source import VintageSource


class MonthVintages(VintageSource, ABC):
    """A vintage table of months, each vintage known when its month is over.

    Attributes
    ----------
    zone : str
        IANA zone in which months begin and end.
    """

    zone: Zone = "America/New_York"

    @property
    def availability(self) -> Availability:
        """The first instant after the month of the vintage."""
        return AvailableColumn(column="vintage", stamp="period_end", zone=self.zone)

    def event_time(self, date_column: str) -> EventTime:
        """Return the end of the month that begins on a date."""
        return PeriodStart(
            column=date_column, stamp="period_start", period="month", zone=self.zone
        )
