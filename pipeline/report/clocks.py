"""The clocks that a source declares, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SourceClocks:
    """What one source says about its time.

    Attributes
    ----------
    file, stream, entity : str
    dated, available : str
        When an event was, and when it was known.
    assumptions : tuple of str
    """

    file: str
    stream: str
    entity: str
    dated: str
    available: str
    assumptions: tuple[str, ...]


def source_clocks(source: Mapping[str, Any]) -> SourceClocks:
    """Read the clocks of a source from the resolved configuration."""
    entity = source.get("entity")
    return SourceClocks(
        file=str(source.get("path") or source.get("sample") or "given from Python"),
        stream=str(source.get("stream", "")),
        entity=(
            f"column {entity.get('column')}"
            if isinstance(entity, Mapping)
            else str(entity)
        ),
        dated=dated_words(source.get("event_time") or {}),
        available=available_words(source.get("available_at") or {}),
        assumptions=tuple(str(text) for text in source.get("assumptions") or ()),
    )


def dated_words(clock: Mapping[str, Any]) -> str:
    """Say when an event of a source was."""
    column = f"column {clock.get('column')}"
    zone = clock.get("zone")
    match clock.get("stamp"):
        case "instant":
            return f"the instant in {column}{_read_in(zone)}"
        case "bar_close":
            return f"the close of the bar, in {column}{_read_in(zone)}"
        case "bar_open":
            return (
                f"the close of the bar: {clock.get('bar')} after its open in "
                f"{column}{_read_in(zone)}"
            )
        case "date":
            return f"the date in {column}, at {clock.get('at')} {zone}"
        case "period_end":
            return f"the first instant after the period in {column} ({zone})"
        case _:
            return "not declared"


def available_words(clock: Mapping[str, Any]) -> str:
    """Say when an event of a source was known."""
    at = f"at {clock.get('at')} {clock.get('zone')}"
    given = {key: value for key, value in clock.items() if value is not None}
    match given:
        case {"column": column, "at": _}:
            words = f"the date in column {column}, {at}"
        case {"column": column}:
            words = f"the instant in column {column}{_read_in(given.get('zone'))}"
        case {"sessions": sessions, "calendar": calendar}:
            words = f"{_number(sessions, 'session')} later {at} (calendar {calendar})"
        case {"days": 0}:
            words = f"the same day {at}"
        case {"days": days}:
            words = f"{_number(days, 'day')} later {at}"
        case {"lag": lag}:
            is_nothing = re.fullmatch(r"0+\D+", str(lag)) is not None
            words = "at once" if is_nothing else f"{lag} later"
        case _:
            words = "not declared"
    return words


def _read_in(zone: object) -> str:
    return "" if zone is None else f" (read in {zone} where it has no offset)"


def _number(count: object, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
