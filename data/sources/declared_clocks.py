"""How a source declares its two clocks: when an event was, and when it was known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from infoset.data.calendars import calendar_complaint
from infoset.data.durations import Duration, PositiveDuration
from infoset.data.strict import Strict

from .nearest import did_you_mean

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def _time_of_day(given: object) -> object:
    if not isinstance(given, str) or not _TIME_OF_DAY.fullmatch(given):
        raise ValueError(
            f"must be quoted text such as '15:30'; got {given!r} "
            "(YAML reads 15:30 without quotes as a number)"
        )
    return given


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        hint = did_you_mean(name, available_timezones())
        raise ValueError(
            f"must be an IANA zone such as America/New_York; got {name!r}. {hint}"
        ) from error
    return name


def _calendar(name: str) -> str:
    complaint = calendar_complaint(name)
    if complaint is not None:
        raise ValueError(complaint)
    return name


def _pattern(pattern: str) -> str:
    if "%" not in pattern or "%Z" in pattern:
        raise ValueError(
            "must hold strptime directives such as '%d.%m.%Y %H:%M', with %z for an "
            f"offset and without %Z; got {pattern!r}"
        )
    return pattern


def _date_pattern(pattern: str) -> str:
    if "%z" in pattern:
        raise ValueError(f"must not hold %z, as a date has no offset; got {pattern!r}")
    return _pattern(pattern)


Zone = Annotated[str, AfterValidator(_zone)]
TimeOfDay = Annotated[str, BeforeValidator(_time_of_day)]


class InstantStamp(Strict):
    """A date and time; the close of a bar is one. `zone` is for stamps without offset."""

    column: str
    stamp: Literal["instant", "bar_close"]
    zone: Zone | None = None
    format: Annotated[str, AfterValidator(_pattern)] | None = None


class BarOpen(Strict):
    """A bar stamped when it opens: its event is its close, a bar length later."""

    column: str
    stamp: Literal["bar_open"]
    bar: PositiveDuration
    zone: Zone | None = None
    format: Annotated[str, AfterValidator(_pattern)] | None = None


class DateStamp(Strict):
    """A date, meaning that day `at` a local time."""

    column: str
    stamp: Literal["date"]
    at: TimeOfDay
    zone: Zone
    format: Annotated[str, AfterValidator(_date_pattern)] | None = None


class PeriodEnd(Strict):
    """A month (2008-01) or quarter (2008-Q1): the first local instant after it."""

    column: str
    stamp: Literal["period_end"]
    zone: Zone


def entry(given: Any, key: str) -> Any:  # noqa: ANN401 (any YAML value)
    """Return an entry of a mapping, or an attribute of a model; None if it has none."""
    return given.get(key) if isinstance(given, Mapping) else getattr(given, key, None)


def _stamp(given: Any) -> str | None:  # noqa: ANN401
    stamp = entry(given, "stamp")
    known = ("instant", "bar_close", "bar_open", "date", "period_end")
    if stamp not in known:
        return None
    return "instant" if stamp == "bar_close" else str(stamp)


def _rule(given: Any) -> str | None:  # noqa: ANN401
    for key in ("column", "sessions", "days", "lag"):
        if entry(given, key) is not None:
            return key
    return None


EventTime = Annotated[
    Annotated[InstantStamp, Tag("instant")]
    | Annotated[BarOpen, Tag("bar_open")]
    | Annotated[DateStamp, Tag("date")]
    | Annotated[PeriodEnd, Tag("period_end")],
    Discriminator(
        _stamp,
        custom_error_type="stamp",
        custom_error_message=(
            "a mapping whose `stamp` is instant, date, period_end, bar_open or bar_close"
        ),
    ),
]


class AvailableColumn(Strict):
    """The file says when: an instant, or (with `at`) a date and an assumed time."""

    column: str
    zone: Zone | None = None
    at: TimeOfDay | None = None
    format: Annotated[str, AfterValidator(_pattern)] | None = None

    @model_validator(mode="after")
    def _dated(self) -> AvailableColumn:
        if self.at is not None and self.zone is None:
            raise ValueError(f"must have a `zone` for its `at`; got {self.at!r} alone")
        if self.at is not None and self.format is not None:
            _date_pattern(self.format)
        return self


class AfterSessions(Strict):
    """At a local time of the n-th session after the event's local date."""

    sessions: Annotated[int, Field(ge=1, le=1000)]
    calendar: Annotated[str, AfterValidator(_calendar)]
    at: TimeOfDay
    zone: Zone


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
    | Annotated[AfterSessions, Tag("sessions")]
    | Annotated[AfterDays, Tag("days")]
    | Annotated[AfterLag, Tag("lag")],
    Discriminator(
        _rule,
        custom_error_type="availability",
        custom_error_message="a mapping with `column`, `sessions`, `days` or `lag`",
    ),
]
