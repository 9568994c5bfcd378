"""One line of a feed: an event, or the wish for a forecast."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from infoset.data.arrays import NO_SEQUENCE
from infoset.data.changes import CHANGE
from infoset.data.sources.nearest import did_you_mean

from .feed_instants import nanoseconds_of, text_of
from .vocabulary import StreamWords, Vocabulary, require_name

LONGEST_LINE = 1 << 20
LARGEST_VALUE = 1e30  # the network's float32 must hold it, divided by a deviation
_KEYS = ("entity", "stream", "event_time", "available_at", "sequence", "revision")
_REQUIRED = _KEYS[:4]
_LARGEST_INT = 2**63 - 1
_LARGEST_REVISION = 2**31 - 1  # of an event log
_SHOWN = 60
_NOT_ZERO = re.compile("[^eE]*[1-9]")


class FeedEvent(NamedTuple):
    """An event as its line tells it.

    Attributes
    ----------
    entity : str
        `*` = market-wide.
    stream : StreamWords
    event_time, available_at : int
        UTC nanoseconds.
    sequence : int
        `NO_SEQUENCE` where there is none.
    revision : int or None
        None = to be counted.
    values : tuple of float
        In the order of the stream's columns; NaN where missing.
    has_change : bool
        False = `change` is to be derived.
    """

    entity: str
    stream: StreamWords
    event_time: int
    available_at: int
    sequence: int
    revision: int | None
    values: tuple[float, ...]
    has_change: bool


class ForecastRequest(NamedTuple):
    """The wish for a forecast of an entity at an instant (UTC nanoseconds)."""

    entity: str
    at: int


def read_line(line: bytes, words: Vocabulary) -> FeedEvent | ForecastRequest | None:
    """Return what a line says; None for a blank one.

    Raises
    ------
    ValueError
        If it is malformed, or speaks of what the model does not know.
    """
    if len(line) > LONGEST_LINE:
        raise ValueError(
            f"a line must have at most {LONGEST_LINE} bytes; got more. Send one event "
            "a line."
        )
    if not line.strip():
        return None
    said = _json_object(line)
    if "forecast" in said:
        return _request(said, words, line)
    return _event(said, words)


def _json_object(line: bytes) -> dict[str, Any]:
    try:
        said = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"a line must be one JSON object in UTF-8; got {_shown(line)} ({error}). "
            "Write one event as {...} on one line."
        ) from error
    if not isinstance(said, dict):
        raise ValueError(  # noqa: TRY004 (a line's content, not an argument)
            f"a line must be one JSON object; got {_shown(line)}. Write one event as "
            "{...} on one line."
        )
    return said


def _request(said: dict[str, Any], words: Vocabulary, line: bytes) -> ForecastRequest:
    asked = said["forecast"]
    if set(said) != {"forecast"} or not isinstance(asked, dict):
        asked = {}
    if set(asked) != {"entity", "at"} or not isinstance(asked["entity"], str):
        raise ValueError(
            'a request must be {"forecast": {"entity": ..., "at": ...}} and nothing '
            f"else; got {_shown(line)}. Write it like that."
        )
    require_name(asked["entity"], words.entities, "entity")
    return ForecastRequest(asked["entity"], nanoseconds_of(asked["at"], "at"))


def _event(said: dict[str, Any], words: Vocabulary) -> FeedEvent:
    for name in _REQUIRED:
        if said.get(name) is None:
            raise ValueError(
                f"an event must have {name}; got {', '.join(said) or 'nothing'}. "
                f"{did_you_mean(name, said)}Add it."
            )
    entity, stream = (_text(said, name) for name in ("entity", "stream"))
    words.require_entity(entity)
    require_name(stream, tuple(words.streams), "stream")
    about = words.streams[stream]
    event_time = nanoseconds_of(said["event_time"], "event_time")
    available_at = nanoseconds_of(said["available_at"], "available_at")
    if event_time > available_at and not about.is_scheduled:
        raise ValueError(
            f"event_time must not be after available_at; got {text_of(event_time)} > "
            f"{text_of(available_at)} in stream {stream!r}. Correct the clock, or "
            "declare the stream `scheduled` and run again."
        )
    sequence = _whole(said, "sequence", -_LARGEST_INT - 1, _LARGEST_INT)
    return FeedEvent(
        entity=entity,
        stream=about,
        event_time=event_time,
        available_at=available_at,
        sequence=NO_SEQUENCE if sequence is None else sequence,
        revision=_whole(said, "revision", 0, _LARGEST_REVISION),
        values=_values(said, about),
        has_change=CHANGE in said or about.change is None,
    )


def _text(said: dict[str, Any], name: str) -> str:
    given = said[name]
    if not isinstance(given, str):
        raise ValueError(  # noqa: TRY004 (a line's content, not an argument)
            f"{name} must be text; got {given!r}. Write it in quotation marks."
        )
    return given


def _whole(said: dict[str, Any], name: str, least: int, most: int) -> int | None:
    given = said.get(name)
    if given is None:
        return None
    if type(given) is not int or not least <= given <= most:
        raise ValueError(
            f"{name} must be a whole number from {least} to {most}, or null; got "
            f"{given!r}. Correct it, or leave it out."
        )
    return given


def _values(said: dict[str, Any], about: StreamWords) -> tuple[float, ...]:
    others = [name for name in said if name not in _KEYS and name not in about.columns]
    absent = [name for name in about.columns if name not in said]
    if about.change is not None and CHANGE in absent:
        absent.remove(CHANGE)
    if others or absent:
        got = others + [f"no {name}" for name in absent]
        raise ValueError(
            f"an event of stream {about.name!r} must have the values "
            f"{', '.join(about.columns)}"
            f"{' (change may be left out)' if about.change is not None else ''}; got "
            f"{', '.join(got)}. "
            f"{did_you_mean(others[0], about.columns) if others else ''}"
            "Write null for a missing value."
        )
    values = tuple(_number(said.get(name), name) for name in about.columns)
    if all(map(math.isnan, values)):
        raise ValueError(
            f"an event must have a value; got only missing ones of stream "
            f"{about.name!r}. Leave the line out."
        )
    return values


def _number(given: object, name: str) -> float:
    if given is None:
        return math.nan
    if type(given) is float or (type(given) is int and given == _wide(given)):
        number = float(given)
        if abs(number) <= LARGEST_VALUE:
            return number
    raise ValueError(
        f"{name} must be a number of size {LARGEST_VALUE:g} at most that float64 holds "
        f"exactly, or null; got {given!r}. Correct it."
    )


def _wide(given: int) -> float:
    return float(given) if abs(given) <= LARGEST_VALUE else math.nan


def _decimal(text: str) -> float:
    number = float(text)
    if number == 0 and _NOT_ZERO.match(text):
        raise ValueError(f"float64 cannot hold {text}")
    return number


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    said = dict(pairs)
    if len(said) != len(pairs):
        raise ValueError("a name stands in it twice")
    return said


_DECODER = json.JSONDecoder(
    parse_float=_decimal, parse_constant=_no_number, object_pairs_hook=_once
)


def _shown(line: bytes) -> str:
    text = line[: _SHOWN + 1].decode(errors="replace").strip()
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
