"""How long a forecaster without a stream takes for one information set."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Int64

from infoset.data.sequences import Samples
from infoset.data.timeline import Timeline
from infoset.models.forecasts import Forecaster

from .config import LatencyOptions
from .latency.quiet import Quiet, quiet_measurement
from .latency.table import Row, latency_table, measured_on, times_row

# A forecaster of the user's own may take its time; so many forecasts are timed anyhow.
_LONGEST_SECONDS, _FEWEST = 10.0, 10
_NS_PER_US = 1_000.0


@dataclass(frozen=True, eq=False)
class _Window(Timeline):
    """One information set as a timeline of its own."""

    picked: Int64[np.ndarray, " n"]

    @property
    def rows(self) -> Int64[np.ndarray, " n"]:
        """Positions of the events in `arrays`."""
        return self.picked

    def __len__(self) -> int:
        return len(self.picked)


def measure_single_forecasts(
    forecasters: Mapping[str, Forecaster], samples: Samples, options: LatencyOptions
) -> pd.DataFrame:
    """Time forecasts of one information set each, scale included, on one thread.

    The forecaster is given a sample beside which there is nothing: its cost is that of
    the window, not of all the past. Slow ones are timed for ten seconds only.

    Parameters
    ----------
    forecasters : Mapping[str, Forecaster]
        Fitted, by name.
    samples : Samples
        Of a test span, scaled; the newest ones are forecast.
    options : LatencyOptions

    Returns
    -------
    DataFrame
        As `measure_latency` gives it: the workload is `fresh`, the history length the
        median number of events.
    """
    newest = np.arange(len(samples))[-options.num_forecasts :]
    alone = [information_set_alone(samples, int(row)) for row in newest]
    length = int(np.median(samples.num_events[newest]))
    about: Row = {"workload": "fresh", "history_length": length, "form": "short"}
    about |= measured_on()
    with quiet_measurement() as quiet:
        rows = [
            {"forecaster": name} | about | _row(forecaster, alone, options, quiet)
            for name, forecaster in forecasters.items()
        ]
    return latency_table(rows)


def information_set_alone(samples: Samples, row: int) -> Samples:
    """Return one sample whose timeline is its information set and nothing else."""
    line = samples.timelines[samples.entity[row]]
    events = line.rows[samples.start[row] : samples.stop[row]]
    return replace(
        samples.take(np.array([row])),
        timelines={line.entity: _Window(line.entity, line.arrays, events)},
        start=np.zeros(1, dtype=np.int64),
        stop=np.array([len(events)], dtype=np.int64),
    )


def _row(
    forecaster: Forecaster, alone: list[Samples], options: LatencyOptions, quiet: Quiet
) -> Row:
    before = quiet.usage()
    times = _timed(forecaster, alone, options)
    return times_row(times, quiet.usage().since(before), len(times), quiet)


def _timed(
    forecaster: Forecaster, alone: list[Samples], options: LatencyOptions
) -> np.ndarray:
    """Return the microseconds of single forecasts, those to warm up left out."""
    times: list[float] = []
    begun = time.monotonic()
    for turn in range(options.num_warm_up + options.num_forecasts):
        times.append(_duration(forecaster, alone[turn % len(alone)]))
        slow = time.monotonic() - begun > _LONGEST_SECONDS
        if slow and len(times) >= _FEWEST:
            break
    kept = min(options.num_warm_up, len(times) - _FEWEST)
    return np.array(times[kept:])


def _duration(forecaster: Forecaster, sample: Samples) -> float:
    """Return the microseconds of the scale and the forecast of one sample."""
    before = time.perf_counter_ns()
    causal = sample.causal_scale
    forecaster.forecast(sample if causal is None else causal.apply(sample))
    return (time.perf_counter_ns() - before) / _NS_PER_US
