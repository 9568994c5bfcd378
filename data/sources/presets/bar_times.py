"""When a bar closes: from a stamp at its open, at its close, or on its session's date."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64
from pydantic import model_validator

from infoset.data.calendars import calendar_complaint
from infoset.data.durations import PositiveDuration, duration_ns
from infoset.data.instants import nanoseconds
from infoset.data.sources.cells import SourceTable, matches, text_cells
from infoset.data.sources.clock_settings import EpochUnit, StampPattern, Zone
from infoset.data.sources.clocks import event_times, session_closes_on
from infoset.data.sources.declared_clocks import (
    BarOpen,
    DateStamp,
    InstantStamp,
)
from infoset.data.sources.epochs import epoch_instants, utc_instants
from infoset.data.sources.local_times import ClockColumn
from infoset.data.sources.stamp_patterns import has_offset, pattern_complaint
from infoset.data.strict import Strict

_DAY = duration_ns("1d")
_DATE = r"^\d{4}-\d{2}-\d{2}$"
_WRITTEN_MIDNIGHT = r"^(\d{4}-\d{2}-\d{2})[T ]00:00(:00(\.0+)?)?(Z|[+-]\d{2}:?\d{2})?$"


class BarClock(Strict):
    """What the time of a bar means.

    Attributes
    ----------
    stamped : str
        Whether it is when the bar opens (`open`), when it closes (`close`), or the
        date of its `session`.
    bar : str
        Length of a bar, such as ``1min``. An open stamp plus this length is the close;
        with close stamps it serves to find bars that overlap.
    calendar : str
        Whose sessions the dates are: a bar closes when its session does, on a half day
        early. A calendar of `exchange_calendars`, such as XNYS.
    zone : str, optional
        IANA zone of stamps without an offset. For session stamps that are instants:
        the zone in which they are midnights.
    time_format : str, optional
        Strptime directives, for another layout than ISO 8601.
    epoch : str, optional
        What whole-number stamps count since 1970: s, ms, us or ns.
    """

    stamped: Literal["open", "close", "session"]
    bar: PositiveDuration | None = None
    calendar: str | None = None
    zone: Zone | None = None
    time_format: StampPattern | None = None
    epoch: EpochUnit | None = None

    @model_validator(mode="before")
    @classmethod
    def _stamped(cls, given: object) -> object:
        if isinstance(given, dict) and "stamped" not in given:
            raise ValueError(
                "must say by `stamped` whether the time of a bar is its `open`, its "
                "`close` or the date of its `session`: a bar taken as known at its open "
                "stamp shows a signal up to a full bar of the future"
            )
        return given

    @model_validator(mode="after")
    def _complete(self) -> BarClock:
        if self.stamped == "session":
            _require_session_settings(self)
        else:
            _require_bar_settings(self)
        if self.epoch is not None and self.time_format is not None:
            raise ValueError(
                "must have `time_format` or `epoch`, as a stamp is text or a whole "
                f"number; got {self.time_format!r} and {self.epoch!r}"
            )
        return self

    def closes(
        self, table: SourceTable, column: str, *, series: Int64[np.ndarray, " n"]
    ) -> pa.Array:
        """Return when each bar closes, in UTC; missing where no time is given.

        Parameters
        ----------
        table : SourceTable
        column : str
            Where the times stand.
        series : ndarray of shape (n,)
            Which entity a row is of; see `local_instants`.

        Raises
        ------
        ValueError, TypeError
            See `event_times`; also for a date that is no session of the calendar.
        """
        if self.epoch is not None:
            instants = epoch_instants(table, column, self.epoch)
            table = table.with_columns({column: instants})
        try:
            if self.calendar is not None:
                dates = self._session_dates(table, column, series)
                where = ClockColumn(table, column, "event_time")
                closes = session_closes_on(where, dates, self.calendar)
            else:
                closes = event_times(table, self._stamp(column), series=series)
        except ValueError as error:
            # The settings of `event_time` stand at the top of a preset.
            said = str(error).replace("event_time.format", "time_format")
            said = said.replace("event_time.zone", "zone")
            raise ValueError(said.replace("event_time", column)) from error
        given = closes.notna().to_numpy()
        return utc_instants(nanoseconds(closes), given)

    def _stamp(self, column: str) -> InstantStamp | BarOpen:
        zone, pattern = self.zone, self.time_format
        if self.stamped == "open" and self.bar is not None:
            return BarOpen(
                column=column,
                stamp="bar_open",
                bar=self.bar,
                zone=zone,
                format=pattern,
            )
        return InstantStamp(column=column, stamp="instant", zone=zone, format=pattern)

    @property
    def _reads_days(self) -> bool:
        pattern = self.time_format
        return pattern is not None and bool(pattern_complaint(pattern, ("time",)))

    def _session_dates(
        self, table: SourceTable, column: str, series: Int64[np.ndarray, " n"]
    ) -> pd.Series:
        """Return the dates of sessions as midnights without a zone."""
        kind, zone = table.cells(column).type, self.zone
        if pa.types.is_timestamp(kind):
            zone = zone or kind.tz
        elif pa.types.is_date(kind) or self._reads_days:
            zone = None
        elif self.time_format is None:
            cells = text_cells(table, column)
            if zone is None:  # a midnight with an offset is the date that is written
                cells = pc.replace_substring_regex(cells, _WRITTEN_MIDNIGHT, r"\1")
                table = table.with_columns({column: cells})
            elif matches(cells, _DATE).all():
                zone = None
        if zone is None:
            stamp = DateStamp(
                column=column,
                stamp="date",
                at="00:00",
                zone="UTC",
                format=self.time_format,
            )
            midnights = event_times(table, stamp, series=series)
            dates: pd.Series = midnights.dt.tz_localize(None)
            return dates
        instants = event_times(table, self._stamp(column), series=series)
        local: pd.Series = instants.dt.tz_convert(zone).dt.tz_localize(None)
        table.require(
            (local.isna() | (local == local.dt.normalize())).to_numpy(),
            column,
            f"{column} must be a midnight in {zone}, as it stands for a date",
            "Correct `zone`, or declare another `stamped`.",
        )
        return local


def _require_session_settings(clock: BarClock) -> None:
    if clock.calendar is None:
        raise ValueError(
            "must have a `calendar` such as XNYS for bars stamped by session: sessions "
            "close at different hours, half days early, and no hour is built in"
        )
    complaint = calendar_complaint(clock.calendar)
    if complaint is not None:
        raise ValueError(f"calendar {complaint}")
    if clock.bar is not None:
        raise ValueError(
            "must not have `bar` for bars stamped by session, as the calendar says how "
            f"long they are; got {clock.bar!r}"
        )
    offset = clock.time_format is not None and has_offset(clock.time_format)
    if clock.zone is None and (clock.epoch is not None or offset):
        raise ValueError(
            "must have the `zone` in which session stamps are midnights, where they "
            f"are instants; got none with {clock.epoch or clock.time_format!r}"
        )


def _require_bar_settings(clock: BarClock) -> None:
    if clock.calendar is not None:
        raise ValueError(
            "must have a `calendar` for `stamped: session` only; got "
            f"{clock.calendar!r} with {clock.stamped!r}"
        )
    if clock.bar is None:
        raise ValueError(
            "must have the length of a `bar`, such as 1min; got none with `stamped: "
            f"{clock.stamped}`"
        )
    if clock.stamped == "close" and clock.time_format is not None:
        complaint = pattern_complaint(clock.time_format, ("time",))
        if complaint is not None:
            raise ValueError(f"time_format {complaint}; got {clock.time_format!r}")
    if clock.epoch is not None and clock.zone is not None:
        raise ValueError(
            "must not have a `zone` for stamps that count since 1970, which is UTC; "
            f"got {clock.zone!r}"
        )
    fixed = clock.zone is None or clock.zone == "UTC" or clock.zone.startswith("Etc/")
    if clock.stamped == "open" and duration_ns(clock.bar) >= _DAY and not fixed:
        raise ValueError(
            "must have an opening stamp in UTC for bars of a day or more, as local days "
            f"have 23 to 25 hours; got {clock.zone!r} with {clock.bar!r}. For bars of "
            "an exchange declare `stamped: session`"
        )
