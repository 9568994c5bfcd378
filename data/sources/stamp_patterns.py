"""Patterns of stamps: what a strptime pattern must say, and which cells it describes.

strptime takes much for granted: with `%Y%m%d` it reads 202412 as 2 January, with `%S`
60 as the next minute, and without a year it means 1900. Here a pattern must name what
it reads, and every directive must find the digits that it stands for.
"""

from __future__ import annotations

import re
from typing import Literal

Part = Literal["year", "day", "time"]

_TOKEN = re.compile(r"%(.)|(\s+)|([^%\s]+)", re.DOTALL)
# Digits of a directive: where it stands alone, and where it touches another number.
_DIGITS = {
    "Y": ("[0-9]{4}", "[0-9]{4}"),
    "y": ("[0-9]{2}", "[0-9]{2}"),
    "m": ("[0-9]{1,2}", "[0-9]{2}"),
    "d": ("[0-9]{1,2}", "[0-9]{2}"),
    "H": ("[0-9]{1,2}", "[0-9]{2}"),
    "I": ("[0-9]{1,2}", "[0-9]{2}"),
    "M": ("[0-9]{1,2}", "[0-9]{2}"),
    "S": ("[0-5]?[0-9]", "[0-5][0-9]"),  # no leap seconds: UTC here does not count them
    "f": ("[0-9]{1,9}", "[0-9]{1,9}"),
}
_OFFSET = r"(z|[+-][0-9]{2}:?[0-9]{2})"
_WORDS = dict.fromkeys("aAbBp", "[^0-9]+")
_OTHER_CALENDARS = frozenset("jUWVGuw")
_NEEDED: dict[Part, tuple[tuple[frozenset[str], ...], str]] = {
    "year": ((frozenset("Yy"),), "a year (%Y)"),
    "day": ((frozenset("mbB"), frozenset("d")), "a month and a day (%m or %b, and %d)"),
    "time": ((frozenset("HI"),), "a time of day (%H, or %I with %p)"),
}


def has_offset(pattern: str) -> bool:
    """Return whether a pattern reads an offset from UTC (`%z`)."""
    return "z" in _directives(pattern)


def pattern_complaint(pattern: str, parts: tuple[Part, ...]) -> str | None:
    """Return what is wrong with a pattern that must name some parts, or None.

    A directive that strptime does not know is left to the reading, which refuses it.
    """
    found = _directives(pattern)
    if found - set("zZ%") - {*_DIGITS, *_WORDS, *_OTHER_CALENDARS}:
        return None
    if found & _OTHER_CALENDARS:
        return (
            "must name the day by %d and %m, %b or %B, not by weeks or days of a year"
        )
    if ("p" in found) != ("I" in found):
        return "must hold %I and %p together: hours of 12 need both"
    for part in parts:
        choices, words = _NEEDED[part]
        if not all(choice & found for choice in choices):
            return f"must hold {words}: none is made up"
    return None


def cells_pattern(pattern: str) -> str:
    """Return the regular expression (RE2) of the cells that a pattern describes."""
    tokens = _TOKEN.findall(pattern)
    numbers = [directive in _DIGITS for directive, _, _ in tokens]
    pieces = []
    for place, (directive, space, text) in enumerate(tokens):
        if directive in _DIGITS:
            touches = any(numbers[max(place - 1, 0) : place] + numbers[place + 1 :][:1])
            pieces.append(_DIGITS[directive][touches])
        elif directive == "z":
            pieces.append(_OFFSET)
        elif directive == "%":
            pieces.append("%")
        elif directive:
            pieces.append(_WORDS.get(directive, ".*"))
        else:
            pieces.append(r"\s+" if space else re.escape(text))
    return f"(?is)^{''.join(pieces)}$"


def _directives(pattern: str) -> set[str]:
    return {directive for directive, _, _ in _TOKEN.findall(pattern) if directive}
