"""The clocks that a source declares, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from infoset.data.universe import Universe


@dataclass(frozen=True)
class SourceClocks:
    """What one source says about its time.

    Attributes
    ----------
    file, stream, entity : str
    dated, available : str
        When an event was, and when it was known.
    text : str
        How its text became numbers; empty without one.
    assumptions : tuple of str
    """

    file: str
    stream: str
    entity: str
    dated: str
    available: str
    text: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class UniverseWords:
    """What a run says about who may be forecast."""

    file: str
    members: str
    assumptions: tuple[str, ...]


def universe_words(declared: Mapping[str, Any] | None) -> UniverseWords | None:
    """Read the universe from the resolved configuration; None without one."""
    if declared is None:
        return None
    universe = Universe.model_validate(declared)
    zone = f" ({universe.zone})" if universe.zone is not None else ""
    return UniverseWords(
        file=str(universe.path),
        members=f"column {universe.entity}: from column {universe.member_from} until "
        f"before column {universe.member_until}{zone}",
        assumptions=universe.assumptions,
    )


def text_words(text: Mapping[str, Any] | None) -> str:
    """Say how a source's text became numbers."""
    if not text:
        return ""
    column = f"column {text.get('column')}"
    if text.get("encoder") is not None:
        return f"{column}, by the encoder {text['encoder']}"
    size = (text.get("hashing") or {}).get("num_features")
    return f"{column}, hashed into {size} numbers; nothing is learned"


def source_clocks(source: Mapping[str, Any]) -> SourceClocks:
    """Read the clocks of a source from the resolved configuration."""
    entity = source.get("entity")
    preset = source.get("preset")
    by_preset = f"as the preset {preset} says" if preset is not None else None
    return SourceClocks(
        file=str(source.get("path") or source.get("sample") or "given from Python"),
        stream=str(source.get("stream", "")),
        entity=(
            f"column {entity.get('column')}"
            if isinstance(entity, Mapping)
            else str(entity)
        ),
        dated=by_preset or dated_words(source.get("event_time") or {}),
        available=by_preset or available_words(source.get("available_at") or {}),
        text=text_words(source.get("text")),
        assumptions=tuple(str(text) for text in source.get("assumptions") or ()),
    )


def dated_words(clock: Mapping[str, Any]) -> str:  # noqa: PLR0911 - one per stamp
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
        case "session_close":
            calendar = clock.get("calendar")
            return f"the close of the session in {column} (calendar {calendar})"
        case "local_midnight":
            return (
                f"the end of the day that begins at the midnight in {column} ({zone})"
            )
        case "period_end" | "period_start":
            period = str(clock.get("period", "period")).replace("_", "-")
            begins = " that begins on the date" if "period" in clock else ""
            return f"the first instant after the {period}{begins} in {column} ({zone})"
        case _:
            return "not declared"


def available_words(clock: Mapping[str, Any]) -> str:
    """Say when an event of a source was known."""
    at = f"at {clock.get('at')} {clock.get('zone')}"
    given = {key: value for key, value in clock.items() if value is not None}
    match given:
        case {"column": _}:
            words = _given_words(given, at)
        case {"vintage": vintage}:
            words = f"all rows on {vintage}, {at}"
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


def _given_words(given: Mapping[str, Any], at: str) -> str:
    column, zone = f"column {given['column']}", given.get("zone")
    if "stamp" in given:
        return f"the first instant after the period in {column} ({zone})"
    if "at" in given:
        return f"the date in {column}, {at}"
    return f"the instant in {column}{_read_in(zone)}"


def _read_in(zone: object) -> str:
    return "" if zone is None else f" (read in {zone} where it has no offset)"


def _number(count: object, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
