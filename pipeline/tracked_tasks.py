"""A run's results, told to the tracker."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np
import pandas as pd

from infoset.models.attention_forecaster import SPEC, WEIGHTS, AttentionForecaster

from .config import Experiment
from .evaluation.metrics import score_table
from .evaluation.summary import LOSS, Evaluation
from .latency.metrics import crossover_metrics, latency_curves
from .preparation import Prepared
from .run_files import RunFiles
from .served_frames import served_input, served_output
from .task_store import StoredTask
from .tracking import ExperimentTracker, ServedModel, TaskRecord

_SCORES = ("pinball", "crps", "mae", "coverage_90", LOSS)


def log_tasks(
    tracker: ExperimentTracker,
    experiment: Experiment,
    prepared: Prepared,
    stored: Sequence[StoredTask],
    forecasts: pd.DataFrame,
) -> None:
    """Log a child run for every task, with its scores, its curve and its model."""
    keys = ["forecaster", "history", "fold", "seed"]
    table = score_table(forecasts, keys)
    scores = {tuple(row[k] for k in keys): row for row in table.to_dict("records")}
    for result in stored:
        task = result.task
        row = scores[task.forecaster, str(task.history), task.fold, task.seed]
        run_id = tracker.log_task(
            TaskRecord(
                forecaster=task.forecaster,
                fold=task.fold,
                seed=task.seed,
                digest=task.digest,
                parameters={"history": str(task.history)},
                metrics={
                    **{name: float(row[name]) for name in _SCORES},
                    **result.denominators,
                },
                curves={"validation_loss": result.curve} if result.curve else {},
                started=result.started,
                ended=result.ended,
                artifacts=(),
            )
        )
        if result.model is not None:
            model = _served(experiment, prepared, result, result.model)
            tracker.log_model(run_id, model)


def log_run(
    tracker: ExperimentTracker,
    experiment: Experiment,
    prepared: Prepared,
    files: RunFiles,
    *,
    evaluation: Evaluation,
    latency: pd.DataFrame,
) -> None:
    """Log the dataset, the scores, the latencies and the files of the whole run."""
    tracker.log_dataset(
        prepared.test_fingerprint(experiment.history),
        name=experiment.name,
        num_rows=sum(len(fold.test) for fold in prepared.folds),
        source=", ".join(source.name for source in experiment.sources) or "own log",
    )
    tracker.log_scores(
        {
            f"{row['forecaster']}.{name}": float(row[name])
            for row in evaluation.by_forecaster.to_dict("records")
            for name in (LOSS, "crps", "mae", "coverage_90")
        }
    )
    tracker.log_scores(crossover_metrics(latency))
    tracker.log_curves(latency_curves(latency))
    tracker.log_artifacts(
        [
            files.forecasts,
            files.scores,
            files.comparison,
            files.latency,
            files.certificate,
            files.summary,
        ]
    )


def _served(
    experiment: Experiment, prepared: Prepared, result: StoredTask, folder: Path
) -> ServedModel:
    fold = prepared.folds[result.task.fold]
    samples = prepared.samples[str(result.task.history)]
    rows = fold.test[:2]
    if result.task.history.last is None:  # as an example, two short ones will do
        rows = np.argsort(samples.num_events, kind="stable")[:2]
    samples = samples.take(rows)
    forecaster = AttentionForecaster.load(folder)
    inputs = served_input(samples)
    return ServedModel(
        name=f"{experiment.name}-{result.task.forecaster}",
        code_path=Path(
            str(package_files("infoset.pipeline.tracking") / "served_model.py")
        ),
        artifacts={"spec": folder / SPEC, "weights": folder / WEIGHTS},
        inputs=inputs,
        outputs=served_output(forecaster, inputs),
    )
