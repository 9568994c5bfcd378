"""When forecasts are made: rules that give (entity, forecast_time) points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import pandas as pd
from pydantic import Field

from .asof import checked_points
from .calendars import sessions
from .declared_file import DeclaredFile
from .durations import Duration, PositiveDuration, duration_ns
from .events import EventLog
from .instants import instants, nanoseconds
from .strict import Strict
from .validation import utc_instants


class SessionClose(Strict):
    """At the close of each session of a calendar, plus an offset."""

    kind: Literal["session_close"]
    calendar: str
    offset: Duration = "0min"

    def times(self, log: EventLog) -> pd.DatetimeIndex:
        """Return the forecast times within the log's span."""
        first, last = span(log)
        closes = sessions(self.calendar, first, last)["close"]
        return _clock(pd.DatetimeIndex(closes) + _timedelta(self.offset))


class FixedInterval(Strict):
    """Every `interval`, counted from midnight UTC of the day of the first event."""

    kind: Literal["interval"]
    interval: PositiveDuration

    def times(self, log: EventLog) -> pd.DatetimeIndex:
        """Return the forecast times within the log's span."""
        first, last = span(log)
        step = _timedelta(self.interval)
        return _clock(pd.date_range(first.normalize(), last, freq=step))


class AfterEvents(Strict):
    """After each instant at which an event of a stream became available."""

    kind: Literal["after_events"]
    stream: str
    offset: Duration = "0min"

    def times(self, log: EventLog) -> pd.DatetimeIndex:
        """Return the forecast times, one for each distinct availability."""
        available = log.table(self.stream)["available_at"].to_pandas().unique()
        return _clock(pd.DatetimeIndex(available) + _timedelta(self.offset))


class TimeTable(DeclaredFile):
    """An explicit table: a CSV or Parquet file with `entity` and `forecast_time`."""

    SETTING: ClassVar[str] = "forecast_times"
    kind: Literal["table"]

    def points(self) -> pd.DataFrame:
        """Read the points.

        Raises
        ------
        ValueError
            If the file cannot be read, lacks a column, or its times carry no zone.
        """
        file = self.file
        try:
            frame = (
                pd.read_parquet(file)
                if file.suffix == ".parquet"
                else pd.read_csv(file, dtype="str")
            )
            if "forecast_time" in frame and frame["forecast_time"].dtype == "str":
                frame["forecast_time"] = pd.to_datetime(frame["forecast_time"])
            return checked_points(frame)
        except (OSError, ValueError) as error:
            raise ValueError(
                "forecast_times.path must be a CSV or Parquet table of entity and "
                f"forecast_time; got {file}: {error}"
            ) from error


ForecastTimes = Annotated[
    SessionClose | FixedInterval | AfterEvents | TimeTable,
    Field(discriminator="kind"),
]


def forecast_points(
    rule: SessionClose | FixedInterval | AfterEvents | TimeTable,
    log: EventLog,
    entities: Sequence[str],
) -> pd.DataFrame:
    """Return the points of a rule, ordered by (forecast_time, entity).

    Parameters
    ----------
    rule : forecast-time rule
    log : EventLog
        Bounds the rule in time; which events it holds never moves a point.
    entities : sequence of str
        Who is forecast; a table names its entities itself and is restricted to these.

    Returns
    -------
    DataFrame
        Columns entity, forecast_time; distinct.
    """
    if isinstance(rule, TimeTable):
        points = rule.points()
        points = points[points["entity"].isin(list(entities))]
    else:
        index = pd.MultiIndex.from_product(
            [rule.times(log), sorted(entities)], names=["forecast_time", "entity"]
        )
        points = index.to_frame(index=False)[["entity", "forecast_time"]]
    ordered = points.drop_duplicates().sort_values(["forecast_time", "entity"])
    return ordered.reset_index(drop=True)


def span(log: EventLog) -> tuple[pd.Timestamp, pd.Timestamp]:
    """Return the first and the last availability of a log.

    Raises
    ------
    ValueError
        If the log has no event.
    """
    if not len(log):
        raise ValueError(
            "the event log must hold an event; got none. Check the sources and their "
            "quarantine."
        )
    tables = [table for table in log.tables.values() if table.num_rows]
    available = pd.concat([t["available_at"].to_pandas() for t in tables])
    return available.min(), available.max()


def _timedelta(duration: str) -> pd.Timedelta:
    return pd.Timedelta(duration_ns(duration), "ns")


def _clock(times: pd.DatetimeIndex) -> pd.DatetimeIndex:
    utc = utc_instants(pd.Series(times), name="forecast_time")
    return instants(nanoseconds(utc)).sort_values()
