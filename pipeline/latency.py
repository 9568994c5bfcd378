"""How long one forecast takes, streamed and from a fresh window."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from infoset.data.sequences import Samples
from infoset.data.timeline import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import StreamEvent, stream_events
from infoset.models.streaming import Stream

from .config import LatencyOptions

_NS_PER_US = 1_000.0


@dataclass(frozen=True)
class Tape:
    """A stretch of real events of one entity, to be fed to a stream.

    Attributes
    ----------
    entity : str
    events : sequence of StreamEvent
        In order of availability.
    """

    entity: str
    events: Sequence[StreamEvent]

    @classmethod
    def of_longest(cls, samples: Samples) -> Tape:
        """Take the entity with the longest timeline."""
        entity = max(samples.entities, key=lambda name: len(samples.timelines[name]))
        line = samples.timelines[entity]
        return cls(entity, list(stream_events(line, 0, len(line))))


def measure_latency(
    name: str,
    forecaster: AttentionForecaster,
    samples: Samples,
    options: LatencyOptions,
) -> pd.DataFrame:
    """Time single forecasts at each history length, on one thread.

    `fresh`: a new window of `length` events is encoded and read, nothing reused.
    `streaming`: a state that holds `length` events takes in one more and is read.
    The path from raw event to quantiles is inside both.

    Returns
    -------
    DataFrame
        forecaster, attention, workload, history_length, num_forecasts, p50_us, p95_us,
        p99_us, state_bytes. Lengths beyond the tape are left out.
    """
    tape = Tape.of_longest(samples)
    rows = []
    for length in options.history_lengths:
        if length + options.num_forecasts + options.num_warm_up > len(tape.events):
            continue
        for workload, history in (
            ("fresh", History(last=length)),
            ("streaming", History()),
        ):
            stream = forecaster.stream(tape.entity, history=history)
            times = _timed(stream, tape.events, length, options)
            p50, p95, p99 = np.percentile(times, [50, 95, 99])
            rows.append(
                {
                    "forecaster": name,
                    "attention": forecaster.attention,
                    "workload": workload,
                    "history_length": length,
                    "num_forecasts": options.num_forecasts,
                    "p50_us": p50,
                    "p95_us": p95,
                    "p99_us": p99,
                    "state_bytes": stream.state_bytes,
                }
            )
    return pd.DataFrame(rows)


def _timed(
    stream: Stream,
    events: Sequence[StreamEvent],
    length: int,
    options: LatencyOptions,
) -> np.ndarray:
    """Return the microseconds of single forecasts after `length` events.

    Each one is made by a fork, so that the history is equally long for all of them.
    """
    for event in events[:length]:
        stream.update(event)
    following = events[length:][: options.num_warm_up + options.num_forecasts]
    with quiet_measurement():
        times = [_duration(stream.fork(), event) for event in following]
    return np.array(times[options.num_warm_up :])


def _duration(stream: Stream, event: StreamEvent) -> float:
    """Return the microseconds of one update and one forecast."""
    before = time.perf_counter_ns()
    stream.update(event)
    stream.forecast(event.available_at)
    return (time.perf_counter_ns() - before) / _NS_PER_US


@contextmanager
def quiet_measurement() -> Iterator[None]:
    """One torch thread and no garbage collection, both restored afterwards."""
    threads = torch.get_num_threads()
    was_enabled = gc.isenabled()
    torch.set_num_threads(1)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        if was_enabled:
            gc.enable()
