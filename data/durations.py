"""Durations as settings write them: a whole number and a unit."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
    "D": 86400 * 10**9,  # as pandas writes it
}
_DURATION = re.compile(rf"(\d{{1,18}})({'|'.join(_NANOSECONDS)})")
_LONGEST = 3650 * _NANOSECONDS["d"]


def duration_ns(text: str) -> int:
    """Return a duration such as ``90min`` in nanoseconds.

    Raises
    ------
    ValueError
        Unless it is a whole number and one of ns, us, ms, s, min, h, d, and at most
        3650 days.
    """
    found = _DURATION.fullmatch(text)
    length = int(found[1]) * _NANOSECONDS[found[2]] if found else _LONGEST + 1
    if length > _LONGEST:
        raise ValueError(
            "must be a whole number and one of ns, us, ms, s, min, h, d, such as "
            f"'90min', and at most 3650d; got {text!r}"
        )
    return length


def _checked(text: str) -> str:
    duration_ns(text)
    return text


def _positive(text: str) -> str:
    if duration_ns(text) == 0:
        raise ValueError(f"must be longer than nothing; got {text!r}")
    return text


Duration = Annotated[str, AfterValidator(_checked)]
PositiveDuration = Annotated[str, AfterValidator(_positive)]
