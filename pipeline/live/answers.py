"""What is said about a feed: forecasts, and notices about single lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from infoset.models.forecasts import Forecasts
from infoset.pipeline.walk_forward import quantile_column

from .event_lines import FeedEvent, ForecastRequest
from .feed_instants import text_of


@dataclass(frozen=True)
class Answer:
    """What is said about a feed: a forecast, or a notice about one of its lines."""

    content: Mapping[str, object]
    is_forecast: bool


@dataclass
class Counts:
    """What a session has done since it was started."""

    lines: int = 0
    events: int = 0
    duplicates: int = 0
    refused: int = 0
    not_streamed: int = 0
    late: int = 0
    forecasts: int = 0


def late_notice(number: int, event: FeedEvent, entities: Sequence[str]) -> Answer:
    """Say for whom an event came late."""
    who = entities[0] + (f" and {len(entities) - 1} more" if len(entities) > 1 else "")
    note = (
        f"{text_of(event.available_at)} was forecast or passed already for {who}; the "
        "event is applied now, and the next forecast says so"
    )
    return Answer({"line": number, "late": note}, is_forecast=False)


def two_values(event: FeedEvent) -> ValueError:
    """Return what refuses a second set of values for one event."""
    return ValueError(
        "one event must have one set of values; got two for event_time "
        f"{text_of(event.event_time)} of {event.entity} in stream {event.stream.name!r} "
        "at one instant. Give a `sequence` that says which came later."
    )


def too_early(asked: ForecastRequest, newest: int) -> ValueError:
    """Return what refuses a forecast from before the newest event (nanoseconds)."""
    return ValueError(
        "a forecast must not be made before the newest event was available; got at "
        f"{text_of(asked.at)} with an event of {asked.entity} of {text_of(newest)}. Ask "
        "for a later instant."
    )


def numbers(forecasts: Forecasts) -> dict[str, object]:
    """Return the mean and the quantiles of one forecast by name, in its unit."""
    names = _quantile_columns(forecasts.levels)
    quantiles = zip(names, forecasts.quantiles[0].tolist(), strict=True)
    return {"mean": float(forecasts.mean[0]), **dict(quantiles)}


@cache
def _quantile_columns(levels: tuple[float, ...]) -> list[str]:
    return list(map(quantile_column, levels))
