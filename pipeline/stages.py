"""The stages of a run, in order: data, tasks, scores, latency, certificate."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from infoset.data.events import EventLog
from infoset.data.text_encoders import TextEncoder
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.forecasts import Forecaster

from .certificate import certify
from .config import Experiment
from .evaluation.summary import evaluate, json_records
from .executors import execute
from .folds import fold_table
from .latency.files import write_latency, write_tapes
from .latency.suite import fitted_tapes, measure_latency
from .look_ahead import encoder_records, marked
from .plan import Task, plan
from .preparation import Prepared, prepare
from .progress import Progress
from .provenance import library_versions, machine
from .run_files import RunFiles, write_frame, write_json, write_text
from .single_forecasts import measure_single_forecasts
from .task_store import StoredTask, TaskStore
from .text_encoding import with_encoded_texts
from .tracked_tasks import log_run, log_tasks
from .tracking import ExperimentTracker
from .training_steps import training_records
from .walk_forward import FoldData, fold_data, task_forecaster


def run_stages(
    experiment: Experiment,
    files: RunFiles,
    tracker: ExperimentTracker,
    *,
    read_events: Callable[[], EventLog],
    own: Mapping[str, Forecaster],
    encoders: Mapping[str, TextEncoder],
    progress: Progress,
    command: str,
    given: Sequence[str],
    started: float,
) -> None:
    """Do everything between the configuration and the report, and log it.

    See `experiment.run`; `read_events` returns the log, `command` is what reproduces the
    run, `given` what came from Python into it.
    """
    progress.stage("Reading the sources and cutting the information sets")
    events = with_encoded_texts(
        experiment, read_events(), encoders, folder=files.embeddings
    )
    prepared = prepare(experiment, events)
    files.clear()  # from here on the folder is this run's
    write_text(files.config, experiment.to_yaml())
    stored, num_reused = _finished_tasks(experiment, prepared, files, own, progress)
    forecasts = pd.concat([task.forecasts() for task in stored], ignore_index=True)
    forecasts = marked(experiment, prepared, forecasts)
    write_frame(files.forecasts, forecasts)
    progress.stage("Scoring and comparing")
    evaluation = evaluate(experiment, forecasts, prepared.points)
    write_json(files.scores, evaluation.scores_json())
    write_json(files.comparison, evaluation.comparison_json())
    progress.stage("Measuring latency")
    models = _last_models(experiment, stored)
    networks = {n: AttentionForecaster.load(path) for n, path in models.items()}
    others = _fitted_again(experiment, prepared, stored, own)
    latency = _latency(experiment, prepared, files, networks, others)
    progress.stage("Checking for look-ahead")
    certificate = certify(experiment, prepared, {**networks, **others})
    write_json(files.certificate, certificate.to_json())
    read = encoder_records(experiment, prepared)
    write_json(
        files.summary,
        {
            "folds": json_records(fold_table(prepared.folds, prepared.points)),
            "excluded": json_records(prepared.excluded),
            "tasks": {"total": len(stored), "reused": num_reused},
            "training": training_records(stored),
            "models": _relative(models, files.folder),
            **({"encoders": read} if read else {}),
            "versions": library_versions(),
            "config_digest": experiment.digest,
            "test_fingerprint": prepared.test_fingerprint(experiment.history),
            "command": command,
            "given": list(given),
            "started": pd.Timestamp(started, unit="s", tz="UTC").isoformat(),
            "seconds": round(time.time() - started, 1),
            "machine": machine(),
        },
    )
    progress.stage("Logging to MLflow")
    log_tasks(tracker, experiment, prepared, stored, forecasts)
    log_run(
        *(tracker, experiment, prepared, files), evaluation=evaluation, latency=latency
    )


def _finished_tasks(
    experiment: Experiment,
    prepared: Prepared,
    files: RunFiles,
    own: Mapping[str, Forecaster],
    progress: Progress,
) -> tuple[list[StoredTask], int]:
    """Return every task's result, in the order of the plan, and how many were there."""
    store = TaskStore(files.tasks)
    store.clear_leftovers()
    tasks = plan(experiment, prepared, own)
    absent = [task for task in tasks if store.find(task) is None]
    missing: dict[str, Task] = {}
    for task in absent:
        # Two forecasters of one digest are one piece of work.
        missing.setdefault(task.digest or task.label, task)
    num_reused = len(tasks) - len(absent)
    progress.stage(f"Planned {len(tasks)} tasks; {num_reused} are there already")
    results = execute(experiment, prepared, list(missing.values()), store, own)
    made = {
        result.task: result
        for result in progress.track(results, len(missing), "Fitting and forecasting")
    }
    return [made.get(task) or store.required(task) for task in tasks], num_reused


def _last_models(
    experiment: Experiment, stored: Sequence[StoredTask]
) -> dict[str, Path]:
    """Return the folder of each attention forecaster's newest network.

    That is the one of the last fold and the first seed, at the main history.
    """
    newest: dict[str, StoredTask] = {}
    for result in stored:
        is_main = str(result.task.history) == str(experiment.history)
        if result.model and is_main and result.task.seed == experiment.seeds[0]:
            newest[result.task.forecaster] = result
    return {name: result.model for name, result in newest.items() if result.model}


def _relative(paths: Mapping[str, Path], folder: Path) -> dict[str, str]:
    return {name: path.relative_to(folder).as_posix() for name, path in paths.items()}


def _last_fold(experiment: Experiment, prepared: Prepared) -> FoldData:
    samples = prepared.samples[str(experiment.history)]
    return fold_data(experiment, samples, prepared.folds[-1])


def _fitted_again(
    experiment: Experiment,
    prepared: Prepared,
    stored: Sequence[StoredTask],
    own: Mapping[str, Forecaster],
) -> dict[str, Forecaster]:
    """Return the forecasters without a stored network, fitted on the last fold again."""
    last = max(result.task.fold for result in stored)
    data = _last_fold(experiment, prepared)
    fitted: dict[str, Forecaster] = {}
    for result in stored:
        if result.model is None and result.task.fold == last:
            forecaster = task_forecaster(experiment, result.task, own)
            forecaster.fit(data.train, data.validation)
            fitted[result.task.forecaster] = forecaster
    return fitted


def _latency(
    experiment: Experiment,
    prepared: Prepared,
    files: RunFiles,
    networks: Mapping[str, AttentionForecaster],
    others: Mapping[str, Forecaster],
) -> pd.DataFrame:
    """Measure, and write what was found and the events that it was measured with."""
    samples = prepared.samples[str(experiment.history)]
    test = _last_fold(experiment, prepared).test
    options = experiment.latency
    parts = [
        measure_latency(networks, samples, options),
        measure_single_forecasts(others, test, options),
    ]
    measured = [part for part in parts if len(part)]
    table = pd.concat(measured, ignore_index=True)
    write_tapes(files.latency_events, fitted_tapes(networks, samples))
    write_latency(files.latency, table)
    return table
