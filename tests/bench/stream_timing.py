"""Single times of an update and a forecast, of streams that take turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from random_streams import ENTITIES, CarriedStream, carried
from stream_tapes import benchmark_forecaster, events_from

from infoset.data import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import StreamEvent
from infoset.models.fast import StreamBatch, TickEvents, packed_weights

_NS_PER_US = 1_000.0
_WARM_UP = 20  # per turn: the last one has left its own weights in the caches
_ROUNDS = 40


@dataclass
class Contestant:
    """A stream that holds `length` events, and the times of more of them.

    Attributes
    ----------
    stream : CarriedStream
        Forked for each turn, so that its history stays as long as it is.
    length : int
    per_turn : int
        Times taken in a turn.
    times_us : list of float
    """

    stream: CarriedStream
    length: int
    per_turn: int
    times_us: list[float] = field(default_factory=list)

    def take_turn(self) -> None:
        """Time some updates with the forecasts that follow them."""
        fork = self.stream.fork()
        warm_up = min(_WARM_UP, self.per_turn)
        events = list(events_from(self.length, warm_up + self.per_turn))
        times = [_duration(fork, event) for event in events]
        self.times_us += times[warm_up:]

    def percentile(self, share: float) -> float:
        """Return a percentile of the times, in microseconds."""
        return float(np.percentile(self.times_us, share))


def contestants(
    length: int, longest: int, softmax_length: int
) -> dict[str, Contestant]:
    """Return the streams that are compared; the longest is only compared with itself."""
    linear, softmax = benchmark_forecaster(), benchmark_forecaster("softmax")
    fast, slow = _pair(linear, length)
    far, _ = _pair(linear, longest)
    cache, slow_cache = _pair(softmax, softmax_length)
    return {
        "linear": Contestant(fast, length, 500),
        "linear, long": Contestant(far, longest, 500),
        "linear, torch": Contestant(slow, length, 50),
        "softmax": Contestant(cache, softmax_length, 8),
        "softmax, torch": Contestant(slow_cache, softmax_length, 4),
    }


def in_turns(streams: Sequence[Contestant]) -> None:
    """Let the streams take turns, each in another place every round."""
    order = list(streams)
    for _ in range(_ROUNDS):
        order.append(order.pop(0))
        for each in order:
            each.take_turn()


def batch_microseconds(
    num_entities: int, num_threads: int, num_ticks: int
) -> dict[str, list[float]]:
    """Return what each tick took per entity: its updates, its forecasts, and both."""
    forecaster = benchmark_forecaster()
    about = forecaster.fitted_on()
    numbers = [place % len(ENTITIES) for place in range(num_entities)]
    batch = StreamBatch(
        packed_weights(forecaster._trained()),
        forecaster.levels,
        entities=[f"e{place}" for place in range(num_entities)],
        numbers=numbers,
        scales=[about.scales[number] for number in numbers],
        width=about.width,
        history=History(),
        num_threads=num_threads,
    )
    times: dict[str, list[float]] = {"update": [], "forecast": [], "both": []}
    for event in events_from(0, num_ticks):
        events = TickEvents.of([event] * num_entities)
        before = time.perf_counter_ns()
        batch.update(batch.entities, events)
        updated = time.perf_counter_ns()
        batch.forecast(event.available_at)
        after = time.perf_counter_ns()
        per_entity = _NS_PER_US * num_entities
        times["update"].append((updated - before) / per_entity)
        times["forecast"].append((after - updated) / per_entity)
        times["both"].append((after - before) / per_entity)
    return times


def _pair(
    forecaster: AttentionForecaster, length: int
) -> tuple[CarriedStream, CarriedStream]:
    """Return a compiled stream and one of torch that hold the same events."""
    fast = carried(forecaster, backend="numba")
    slow = carried(forecaster, backend="torch")
    for event in events_from(0, length):
        fast.update(event)
    slow.state = fast.state
    return fast, slow


def _duration(stream: CarriedStream, event: StreamEvent) -> float:
    at = event.available_at
    before = time.perf_counter_ns()
    stream.update(event)
    stream.forecast(at)
    return (time.perf_counter_ns() - before) / _NS_PER_US


def one_thread() -> None:
    """Let torch use one thread, as numba does for a single stream."""
    torch.set_num_threads(1)
