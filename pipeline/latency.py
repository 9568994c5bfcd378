"""How long one forecast takes, streamed and from a fresh window."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
import pandas as pd
import torch

from infoset.data.sequences import Samples
from infoset.data.timeline import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import StreamEvent, stream_events
from infoset.models.streaming import Stream

from .config import LatencyOptions
from .latency_columns import COLUMNS

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
    networks: Mapping[str, AttentionForecaster],
    samples: Samples,
    options: LatencyOptions,
) -> pd.DataFrame:
    """Time single forecasts at each history length, on one thread.

    `fresh`: a new window of `length` events is encoded and read, nothing reused.
    `streaming`: a state that holds `length` events takes in one more and is read.
    The path from raw event to quantiles is inside both. The forecasters take turns,
    so that whatever else the machine does meanwhile meets them alike.

    Parameters
    ----------
    networks : Mapping[str, AttentionForecaster]
        Fitted, by name.
    samples : Samples
        The main history's; a `last` of it is timed beside the configured lengths.
    options : LatencyOptions

    Returns
    -------
    DataFrame
        `COLUMNS`: `times_us` holds the single times in the order in which they were
        taken; `undefined` says why there are none.
    """
    if not networks:
        return latency_table([])
    tape = Tape.of_longest(samples)
    last = samples.history.last
    lengths = sorted({*options.history_lengths, *(() if last is None else (last,))})
    rows: list[dict[str, object]] = []
    with quiet_measurement():
        for length in lengths:
            workloads = {"fresh": History(last=length), "streaming": History()}
            for workload, history in workloads.items():
                found = _measured(networks, tape, length, history, options)
                about = {"workload": workload, "history_length": length}
                rows += [about | row for row in found]
    return latency_table(rows)


def _measured(
    networks: Mapping[str, AttentionForecaster],
    tape: Tape,
    length: int,
    history: History,
    options: LatencyOptions,
) -> list[dict[str, object]]:
    """Return what each network's forecasts took at one length."""
    about: dict[str, dict[str, object]] = {
        name: {"forecaster": name, "attention": network.attention}
        for name, network in networks.items()
    }
    if length >= len(tape.events):
        reason = f"the longest timeline holds {len(tape.events)} events"
        return [row | {"undefined": reason} for row in about.values()]
    streams = {
        name: network.stream(tape.entity, history=history)
        for name, network in networks.items()
    }
    times = _timed(streams, tape.events, length, options)
    return [
        row | {"state_bytes": streams[name].state_bytes} | summary(times[name])
        for name, row in about.items()
    ]


def latency_table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return measurements as the table of `measure_latency`."""
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    none = {"num_forecasts": 0, "undefined": None}
    for column, value in none.items():
        table[column] = table[column].astype(object).where(table[column].notna(), value)
    kinds = dict.fromkeys(("p50_us", "p95_us", "p99_us", "state_bytes"), "float64")
    return table.astype(kinds | {"num_forecasts": "int64", "history_length": "int64"})


def summary(times: np.ndarray) -> dict[str, object]:
    """Return what the table says of single times (in microseconds)."""
    p50, p95, p99 = np.percentile(times, [50, 95, 99])
    return {
        "num_forecasts": len(times),
        "p50_us": p50,
        "p95_us": p95,
        "p99_us": p99,
        "times_us": times.tolist(),
    }


def _timed(
    streams: Mapping[str, Stream],
    events: Sequence[StreamEvent],
    length: int,
    options: LatencyOptions,
) -> dict[str, np.ndarray]:
    """Return the microseconds of single forecasts after `length` events.

    Each one is made by a fork, so that the history is equally long for all of them.
    """
    names = list(streams)
    times: dict[str, list[float]] = {name: [] for name in names}
    # Forks all start from the same state: a short tape may be read again.
    turns = islice(cycle(events[length:]), options.num_warm_up + options.num_forecasts)
    for stream in streams.values():
        for event in events[:length]:
            stream.update(event)
    for turn, event in enumerate(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(_duration(streams[name].fork(), event))
    return {
        name: np.array(taken[options.num_warm_up :]) for name, taken in times.items()
    }


def _duration(stream: Stream, event: StreamEvent) -> float:
    """Return the microseconds of one update and one forecast."""
    before = time.perf_counter_ns()
    stream.update(event)
    stream.forecast(event.available_at)
    return (time.perf_counter_ns() - before) / _NS_PER_US


@contextmanager
def quiet_measurement() -> Iterator[None]:
    """One torch thread and no garbage collection, both restored afterwards.

    Collecting what there is takes as long as hundreds of forecasts: once for a table.
    """
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
