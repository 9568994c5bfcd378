"""The words of a clock's declaration: zones, times of day, days, calendars, patterns."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, BeforeValidator

from infoset.data.calendars import calendar_complaint

from .nearest import did_you_mean
from .stamp_patterns import Part, has_offset, pattern_complaint

# 24:00 is the end of the day (ISO 8601): the safe bound where no time is known.
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?|24:00")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _time_of_day(given: object) -> object:
    if not isinstance(given, str) or not _TIME_OF_DAY.fullmatch(given):
        raise ValueError(
            f"must be quoted text such as '15:30'; got {given!r} "
            "(YAML reads 15:30 without quotes as a number)"
        )
    return given


def _day(given: object) -> object:
    # Without this, pydantic reads a number such as 20240807 as seconds since 1970.
    if isinstance(given, str) and _ISO_DATE.fullmatch(given):
        return given
    if type(given) is not date:
        raise ValueError(f"must be a date such as 2024-08-07; got {given!r}")
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


def _pattern(pattern: str, *parts: Part) -> str:
    if "%" not in pattern or "%Z" in pattern:
        raise ValueError(
            "must hold strptime directives such as '%d.%m.%Y %H:%M', with %z for an "
            f"offset and without %Z; got {pattern!r}"
        )
    complaint = pattern_complaint(pattern, parts)
    if complaint is not None:
        raise ValueError(f"{complaint}; got {pattern!r}")
    return pattern


def instant_pattern(pattern: str) -> str:
    """Return a pattern that names an instant; otherwise ValueError."""
    return _pattern(pattern, "year", "day", "time")


def _day_pattern(pattern: str) -> str:
    return _pattern(pattern, "year", "day")


def date_pattern(pattern: str) -> str:
    """Return a pattern that names a day and nothing more; otherwise ValueError."""
    _period_pattern(pattern)
    return _pattern(pattern, "day")


def _period_pattern(pattern: str) -> str:
    if has_offset(pattern):
        raise ValueError(f"must not hold %z, as a date has no offset; got {pattern!r}")
    return _pattern(pattern, "year")


def _session_time(given: object) -> object:
    if given in ("session_open", "session_close"):
        return given
    if isinstance(given, str) and not given[:1].isdigit():
        raise ValueError(
            "must be session_open, session_close or quoted text such as '15:30'; "
            f"got {given!r}"
        )
    return _time_of_day(given)


Zone = Annotated[str, AfterValidator(_zone)]
StampPattern = Annotated[str, AfterValidator(_day_pattern)]
TimeOfDay = Annotated[str, BeforeValidator(_time_of_day)]
SessionTime = Annotated[str, BeforeValidator(_session_time)]
Day = Annotated[date, BeforeValidator(_day)]
Calendar = Annotated[str, AfterValidator(_calendar)]
InstantPattern = Annotated[str, AfterValidator(instant_pattern)]
DatePattern = Annotated[str, AfterValidator(date_pattern)]
PeriodPattern = Annotated[str, AfterValidator(_period_pattern)]
EpochUnit = Literal["s", "ms", "us", "ns"]
