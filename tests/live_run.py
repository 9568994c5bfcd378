"""Folders of runs with fitted networks, made in seconds; and a feed for many entities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from live_feeds import HOUR, START, move_off_baseline

from infoset import configs
from infoset.data import EventLog
from infoset.data.instants import instants
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.config import Experiment, load_experiment
from infoset.pipeline.forecaster_specs import AttentionSpec
from infoset.pipeline.plan import Task, plan
from infoset.pipeline.preparation import Prepared, load_log, prepare
from infoset.pipeline.run_files import RunFiles, write_frame, write_text
from infoset.pipeline.task_store import TaskStore
from infoset.pipeline.walk_forward import (
    TaskResult,
    fold_data,
    forecast_frame,
    run_task,
)

_DAYS = 90


def entity_names(count: int) -> list[str]:
    return [f"E{place:03d}" for place in range(count)]


def make_stream_run(
    folder: Path, *, num_entities: int, history: object = "all"
) -> Path:
    """Fit the newest fold and keep it as a run does; return the run's folder."""
    names = entity_names(num_entities)
    config = {
        "name": "made",
        "forecast_times": {"kind": "interval", "interval": "1D"},
        "history": history,
        "targets": [{"entities": names, "stream": "bars/1d"}],
        "folds": {
            "first_test": "2023-12-01",
            "test_size": "20D",
            "validation_size": "20D",
        },
        "forecasters": {"linear": {"kind": "linear"}},
        "network": {"width": 16, "num_layers": 2, "num_heads": 2},
        "training": {"max_steps": 4, "check_every": 4, "patience": 1},
        "runs": str(folder),
    }
    experiment, _ = load_experiment(config)
    return _fitted_run(experiment, _past(names))


def make_shipped_run(folder: Path, name: str, history: str) -> Path:
    """Fit a shipped experiment's attention forecasters likewise, hardly trained."""
    experiment, _ = load_experiment(
        name,
        [
            f"runs={folder}",
            f"history={history}",
            "history_lengths=[]",
            "folds={first_test: 2019-01-01, last_test: 2019-06-30, test_size: 6M}",
            "training.max_steps=1",
            "training.check_every=1",
        ],
    )
    return _fitted_run(experiment, shipped_events(experiment))


def shipped_events(experiment: Experiment) -> EventLog:
    """Return the events of a shipped experiment about the time from June 2016 on.

    A period is there with all its prints or not at all.
    """
    log = load_log(experiment, Path(configs.__file__).parent)
    start = pd.Timestamp("2016-06-01", tz="UTC")
    for stream in log.streams:
        table = log.table(stream)
        newer = pc.greater_equal(table["event_time"], start)
        log = log.with_table(stream, table.filter(newer))
    return log


def _fitted_run(experiment: Experiment, log: EventLog) -> Path:
    """Fit the attention forecasters of the newest fold; return the run's folder."""
    prepared = prepare(experiment, log)
    newest = len(prepared.folds) - 1
    files = RunFiles(experiment.run_dir)
    frames = []
    for task in plan(experiment, prepared, {}):
        spec = experiment.forecasters[task.forecaster]
        if task.fold == newest and isinstance(spec, AttentionSpec):
            result = _off_baseline(experiment, prepared, task)
            frames.append(TaskStore(files.tasks).write(result).forecasts())
    write_text(files.config, experiment.to_yaml())
    write_frame(files.forecasts, pd.concat(frames))
    return files.folder


def _off_baseline(experiment: Experiment, prepared: Prepared, task: Task) -> TaskResult:
    """Run a task; its network's forecasts differ from the baseline."""
    result = run_task(experiment, prepared, task, {})
    forecaster = result.forecaster
    assert isinstance(forecaster, AttentionForecaster)
    # With 0.3 a quantile of `treasury` is up to 26 of its target's spreads away.
    move_off_baseline(forecaster, size=0.1)
    samples = prepared.samples[str(task.history)]
    data = fold_data(experiment, samples, prepared.folds[task.fold])
    frame = forecast_frame(task, data, forecaster.forecast(data.test))
    return replace(result, forecasts=frame)


def _past(names: list[str]) -> EventLog:
    """Return daily closes of the three months before `START`, and a macro series."""
    rng = np.random.default_rng(0)
    days = START + 24 * HOUR * np.arange(-_DAYS, 0)
    closes = pd.DataFrame(
        {
            "entity": np.repeat(names, _DAYS),
            "event_time": instants(np.tile(days, len(names))),
            "available_at": instants(np.tile(days + HOUR, len(names))),
            "value": 100 + rng.standard_t(5, _DAYS * len(names)),
        }
    )
    macro = pd.DataFrame(
        {
            "entity": "*",
            "event_time": instants(days[::10]),
            "available_at": instants(days[::10] + 30 * HOUR),
            "value": rng.normal(size=len(days[::10])),
        }
    )
    log = EventLog.from_pandas(closes, stream="bars/1d", values=["value"])
    return log.append(EventLog.from_pandas(macro, stream="macro/CPI", values=["value"]))


def feed_lines(*, num_lines: int, num_entities: int, seed: int = 0) -> Iterator[bytes]:
    """Yield a feed that hurts: ties, late events, revisions, and lines that are refused."""
    rng = np.random.default_rng(seed)
    names = entity_names(num_entities)
    now, block = START, 10_000
    for first in range(0, num_lines, block):
        count = min(block, num_lines - first)
        chance, whom = rng.random((count, 3)), rng.integers(0, num_entities, count)
        moves = rng.standard_t(5, count)
        for row in range(count):
            number = first + row
            if chance[row, 0] > 0.1:  # one in ten comes with the one before
                now += 1_000_000_000
            late = 5_000_000_000 if chance[row, 1] < 0.002 else 0
            old = 7 * HOUR if chance[row, 1] > 0.98 else 0
            event = {
                "entity": names[whom[row]],
                "stream": "bars/1d",
                "event_time": now - HOUR - old,
                "available_at": now - late,
                "sequence": number,
                "value": 100 + float(moves[row]),
            }
            if chance[row, 2] < 0.02 / num_entities:
                event |= {"entity": "*", "stream": "macro/CPI"}
            line = json.dumps(event).encode()
            yield line[:-1] if chance[row, 2] > 0.9995 else line


def joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def forecasts_in(said: Iterable[bytes]) -> list[bytes]:
    return [line for line in said if b'"entity"' in line]


def acknowledged_in(said: Iterable[bytes]) -> list[int]:
    return [json.loads(line)["ack"] for line in said if b'"ack"' in line]
