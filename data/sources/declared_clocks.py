"""How a source declares its two clocks: when an event was, and when it was known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from infoset.data.durations import Duration, PositiveDuration
from infoset.data.strict import Strict

from .clock_settings import (
    Calendar,
    DatePattern,
    Day,
    EpochUnit,
    InstantPattern,
    PeriodPattern,
    SessionTime,
    StampPattern,
    TimeOfDay,
    Zone,
    date_pattern,
    instant_pattern,
)


class _Counted(Strict):
    """A stamp that may be a whole number: what it counts since 1970, in UTC."""

    # Not written where it is not used: such configurations keep their digests.
    epoch: EpochUnit | None = Field(
        default=None, exclude_if=lambda given: given is None
    )

    @model_validator(mode="after")
    def _counts_in_utc(self) -> _Counted:
        other = entry(self, "format") or entry(self, "zone")
        if self.epoch is not None and other is not None:
            raise ValueError(
                f"must not have `format` or `zone` with `epoch: {self.epoch}`, which "
                f"counts since 1970 in UTC; got {other!r}"
            )
        return self


class InstantStamp(_Counted):
    """A date and time; the close of a bar is one. `zone` is for stamps without offset."""

    column: str
    stamp: Literal["instant", "bar_close"]
    zone: Zone | None = None
    format: InstantPattern | None = None


class BarOpen(_Counted):
    """A bar stamped when it opens: its event is its close, a bar length later."""

    column: str
    stamp: Literal["bar_open"]
    bar: PositiveDuration
    zone: Zone | None = None
    format: StampPattern | None = None


class DateStamp(Strict):
    """A date, meaning that day `at` a local time."""

    column: str
    stamp: Literal["date"]
    at: TimeOfDay
    zone: Zone
    format: DatePattern | None = None


class SessionClose(Strict):
    """A date, meaning the close of that day's session, also on a half day."""

    column: str
    stamp: Literal["session_close"]
    calendar: Calendar
    format: DatePattern | None = None


class LocalMidnight(Strict):
    """A date and time that is the local midnight at which the day it describes begins.

    Its event is the end of that day: the next local midnight.
    """

    column: str
    stamp: Literal["local_midnight"]
    zone: Zone
    format: StampPattern | None = None
    epoch: None = Field(default=None, exclude=True)


class PeriodEnd(Strict):
    """A month (2008-01), quarter (2008-Q1) or year: the first local instant after it."""

    column: str
    stamp: Literal["period_end"]
    zone: Zone


class PeriodStart(Strict):
    """A date that stands for the period which begins on it: its event is that end."""

    column: str
    stamp: Literal["period_start"]
    period: Literal["month", "quarter", "half_year", "year"]
    zone: Zone
    format: PeriodPattern | None = None


def entry(given: Any, key: str) -> Any:  # noqa: ANN401 (any YAML value)
    """Return an entry of a mapping, or an attribute of a model; None if it has none."""
    return given.get(key) if isinstance(given, Mapping) else getattr(given, key, None)


def _stamp(given: Any) -> str | None:  # noqa: ANN401
    stamp = entry(given, "stamp")
    known = (
        "instant",
        "bar_close",
        "bar_open",
        "date",
        "session_close",
        "local_midnight",
        "period_end",
        "period_start",
    )
    if stamp not in known:
        return None
    return "instant" if stamp == "bar_close" else str(stamp)


def _rule(given: Any) -> str | None:  # noqa: ANN401
    for key in ("column", "vintage", "sessions", "days", "lag"):
        if entry(given, key) is not None:
            return key
    return None


Stamp = (
    InstantStamp
    | BarOpen
    | DateStamp
    | SessionClose
    | LocalMidnight
    | PeriodEnd
    | PeriodStart
)
EventTime = Annotated[
    Annotated[InstantStamp, Tag("instant")]
    | Annotated[BarOpen, Tag("bar_open")]
    | Annotated[DateStamp, Tag("date")]
    | Annotated[SessionClose, Tag("session_close")]
    | Annotated[LocalMidnight, Tag("local_midnight")]
    | Annotated[PeriodEnd, Tag("period_end")]
    | Annotated[PeriodStart, Tag("period_start")],
    Discriminator(
        _stamp,
        custom_error_type="stamp",
        custom_error_message=(
            "a mapping whose `stamp` is instant, date, session_close, local_midnight, "
            "period_end, period_start, bar_open or bar_close"
        ),
    ),
]


class AvailableColumn(_Counted):
    """The file says when: an instant; with `at` a date; with `stamp` a period's end."""

    column: str
    stamp: Literal["period_end"] | None = Field(
        default=None, exclude_if=lambda given: given is None
    )
    zone: Zone | None = None
    at: TimeOfDay | None = None
    format: StampPattern | None = None

    @model_validator(mode="after")
    def _dated(self) -> AvailableColumn:
        if self.stamp is not None and self.zone is None:
            raise ValueError("must have a `zone` for its period's end; got none")
        if self.stamp is not None and (self.at or self.format) is not None:
            raise ValueError(
                "must not have `at` or `format` with `stamp: period_end`; got "
                f"{self.at or self.format!r}"
            )
        if self.at is not None and self.zone is None:
            raise ValueError(f"must have a `zone` for its `at`; got {self.at!r} alone")
        if self.format is not None:
            (instant_pattern if self.at is None else date_pattern)(self.format)
        return self


class KnownVintage(Strict):
    """All rows are one vintage: known from the local time of that day on."""

    vintage: Day
    at: TimeOfDay
    zone: Zone


class AfterSessions(Strict):
    """At a local time of the n-th session after the event's local date.

    `session_open` and `session_close` are the session's own, also on a half day; the
    calendar's zone then tells the local date.
    """

    sessions: Annotated[int, Field(ge=1, le=1000)]
    calendar: Calendar
    at: SessionTime
    zone: Zone | None = None

    @property
    def bound(self) -> Literal["open", "close"] | None:
        """The session's own instant that `at` names, if it names one."""
        if self.at == "session_open":
            return "open"
        return "close" if self.at == "session_close" else None

    @model_validator(mode="after")
    def _zoned(self) -> AfterSessions:
        if self.bound is not None and self.zone is not None:
            raise ValueError(
                f"must not have a `zone` with `at: {self.at}`, as the calendar has its "
                f"own; got {self.zone!r}"
            )
        if self.bound is None and self.zone is None:
            raise ValueError(f"must have a `zone` for its `at`; got {self.at!r} alone")
        return self


class AfterDays(Strict):
    """At a local time, a number of calendar days after the event's local date."""

    days: Annotated[int, Field(ge=0, le=10_000)]
    at: TimeOfDay
    zone: Zone


class AfterLag(Strict):
    """A fixed time after the event; ``0s`` for at once."""

    lag: Duration


Availability = Annotated[
    Annotated[AvailableColumn, Tag("column")]
    | Annotated[KnownVintage, Tag("vintage")]
    | Annotated[AfterSessions, Tag("sessions")]
    | Annotated[AfterDays, Tag("days")]
    | Annotated[AfterLag, Tag("lag")],
    Discriminator(
        _rule,
        custom_error_type="availability",
        custom_error_message=(
            "a mapping with `column`, `vintage`, `sessions`, `days` or `lag`"
        ),
    ),
]
