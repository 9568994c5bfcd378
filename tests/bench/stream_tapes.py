"""An endless tape of events, and the forecaster that the benchmark streams them to."""

from __future__ import annotations

from collections.abc import Iterator

from random_streams import DAY, START, random_forecaster, tape

from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.event_window import StreamEvent
from infoset.models.settings import NetworkSize

_LAP = list(tape(4096, seed=11))
# Some minutes between events: ten million take fifty years, as whole nanoseconds can.
_FASTER = 1000
_SPAN = _LAP[-1].available_at - START + DAY


def benchmark_forecaster(
    attention: Attention = "linear", *, forgetting: bool = True
) -> AttentionForecaster:
    """Return two layers of width 64, four heads, feed-forward 256."""
    size = NetworkSize(width=64, num_layers=2, num_heads=4, forgetting=forgetting)
    return random_forecaster(attention, size=size)


def events_from(first: int, number: int) -> Iterator[StreamEvent]:
    """Yield events of the tape from a place on; values come again, times never do."""
    for place in range(first, first + number):
        laps, row = divmod(place, len(_LAP))
        event = _LAP[row]
        passed = event.available_at - START + laps * _SPAN
        available_at = START + passed // _FASTER
        yield StreamEvent(
            stream=event.stream,
            own=event.own,
            event_time=available_at - (event.available_at - event.event_time),
            available_at=available_at,
            revision=event.revision,
            values=event.values,
        )
