"""Instants of a feed: ISO 8601 with a zone, or whole nanoseconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

_TEXT = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)(:\d\d(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?"
)
_NS_PER_SECOND = 1_000_000_000
_FIRST, _LAST = -9_214_560_000, 9_214_646_400  # 1678-01-01 and 2262-01-01, in seconds
# Seconds, milli- and microseconds of the years 1980 to 2100, read as nanoseconds.
_OTHER_UNITS = {
    "seconds": (315_532_800, 4_102_444_800),
    "milliseconds": (315_532_800_000, 4_102_444_800_000),
    "microseconds": (315_532_800_000_000, 4_102_444_800_000_000),
}


def nanoseconds_of(given: object, name: str) -> int:
    """Return an instant as UTC nanoseconds since 1970.

    Parameters
    ----------
    given : object
        As JSON gives it: text, or a whole number of nanoseconds.
    name : str
        For the message.

    Raises
    ------
    ValueError
        For anything that is not one instant from 1678 to 2261, and for numbers that
        plainly count another unit.
    """
    if type(given) is int:
        nanos = given
        for unit, (first, last) in _OTHER_UNITS.items():
            if first <= nanos < last:
                raise ValueError(
                    f"{name} must count nanoseconds since 1970; got {given}, which "
                    f"seems to count {unit}. Multiply it, or write ISO 8601 with a zone."
                )
    elif isinstance(given, str):
        nanos = _of_text(given, name)
    else:
        raise _no_instant(given, name)
    if not _FIRST * _NS_PER_SECOND <= nanos < _LAST * _NS_PER_SECOND:
        raise ValueError(
            f"{name} must lie in the years 1678 to 2261; got {given!r}. Correct it."
        )
    return nanos


def text_of(nanos: int) -> str:
    """Return an instant as ISO 8601 in UTC, with as many digits as it needs."""
    seconds, fraction = divmod(nanos, _NS_PER_SECOND)
    text = f"{np.datetime64(seconds, 's')}"
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{text}{digits}Z"


def _of_text(given: str, name: str) -> int:
    parts = _TEXT.fullmatch(given)
    if parts is None:
        raise _no_instant(given, name)
    minutes, seconds, fraction, zone = parts.groups()
    if zone is None:
        raise ValueError(
            f"{name} must be timezone-aware; got {given!r}. Add an offset or Z."
        )
    whole = (seconds or ":00").partition(".")[0]
    try:
        moment = datetime.fromisoformat(minutes + whole + zone)
    except ValueError as error:
        raise _no_instant(given, name) from error
    return int(moment.timestamp()) * _NS_PER_SECOND + int(
        (fraction or "").ljust(9, "0")
    )


def _no_instant(given: object, name: str) -> ValueError:
    return ValueError(
        f"{name} must be an instant such as 2024-03-01T21:00:00.5Z, or whole "
        f"nanoseconds since 1970; got {given!r}. Correct it."
    )
