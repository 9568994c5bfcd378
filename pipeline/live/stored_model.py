"""The model of a run that streams: that of its newest fold, if nothing else is said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from infoset.data.sources.nearest import did_you_mean
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.config import Experiment, load_experiment
from infoset.pipeline.forecaster_specs import AttentionSpec
from infoset.pipeline.plan import Task
from infoset.pipeline.run_files import RunFiles
from infoset.pipeline.task_store import StoredTask, TaskStore

_TOLD = ["entity", "forecast_time", "fingerprint", "num_events", "mean"]


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A fitted attention forecaster of a run.

    Attributes
    ----------
    experiment : Experiment
    task : Task
    folder : Path
        Of its weights.
    """

    experiment: Experiment
    task: Task
    folder: Path

    @property
    def name(self) -> str:
        """For people and folders: ``linear-fold3-seed0``."""
        task = self.task
        return f"{task.forecaster}-fold{task.fold}-seed{task.seed}"

    def load(self) -> AttentionForecaster:
        """Read the weights."""
        return AttentionForecaster.load(self.folder)


def stored_model(
    run_folder: Path, *, forecaster: str, fold: int, seed: int | None
) -> StoredModel:
    """Find a model of a run, at its main history.

    Parameters
    ----------
    run_folder : Path
    forecaster : str
        An attention forecaster's name in the configuration.
    fold : int
        From 0; -1 is the newest, -2 the one before.
    seed : int, optional
        Default: the first of the configuration.

    Raises
    ------
    ValueError
        If the folder is not that of a run, or it has no such model.
    """
    files = RunFiles(run_folder)
    if not (files.config.is_file() and files.forecasts.is_file()):
        raise ValueError(
            f"RUN must be the folder of a finished run; got {run_folder}. Name one, such "
            "as runs/treasury, or run the experiment first."
        )
    experiment, _ = load_experiment(files.config)
    frame = pd.read_parquet(files.forecasts)
    frame = frame[frame["history"] == str(experiment.history)]
    _require_attention(experiment, frame, forecaster)
    mine = frame[frame["forecaster"] == forecaster]
    mine = mine[mine["seed"] == _chosen_seed(experiment, mine, seed)]
    mine = mine[mine["fold"] == _chosen_fold(mine, fold)]
    found = _task(files, experiment, mine)
    if found is None or found.model is None:
        raise ValueError(
            f"the weights of {forecaster} must be in {files.tasks}; got none that made "
            "the run's forecasts. Run the experiment again."
        )
    return StoredModel(experiment, found.task, found.model)


def _require_attention(
    experiment: Experiment, frame: pd.DataFrame, forecaster: str
) -> None:
    networks = [
        name
        for name in sorted(set(frame["forecaster"]))
        if isinstance(experiment.forecasters.get(name), AttentionSpec)
    ]
    given = experiment.forecasters.get(forecaster)
    is_own = given is None and forecaster in set(frame["forecaster"])
    if forecaster not in networks and not is_own:
        raise ValueError(
            f"--forecaster must be one with attention ({', '.join(networks)}); got "
            f"{forecaster!r}. {did_you_mean(forecaster, networks)}Others do not stream."
        )


def _chosen_seed(experiment: Experiment, frame: pd.DataFrame, seed: int | None) -> int:
    seeds = sorted(set(frame["seed"]))
    if seed is None:
        return next((s for s in experiment.seeds if s in seeds), int(seeds[0]))
    if seed not in seeds:
        raise ValueError(
            f"--seed must be one of {', '.join(map(str, seeds))}; got {seed}. Correct "
            "it, or leave it out."
        )
    return seed


def _chosen_fold(frame: pd.DataFrame, fold: int) -> int:
    folds = sorted(set(frame["fold"]))
    if fold in folds:
        return fold
    if not -len(folds) <= fold < 0:
        raise ValueError(
            f"--fold must be one of {', '.join(map(str, folds))}, or count back from "
            f"-1; got {fold}. Correct it, or leave it out."
        )
    return int(folds[fold])


def _task(
    files: RunFiles, experiment: Experiment, mine: pd.DataFrame
) -> StoredTask | None:
    """Return the task that made some of a run's forecasts.

    Tasks of earlier runs may lie beside it, under the names of then: what a network
    forecast tells which one it is.
    """
    first = mine.iloc[0]
    for path in sorted(files.tasks.glob("*/model")):
        task = Task(
            forecaster=str(first["forecaster"]),
            history=experiment.history,
            fold=int(first["fold"]),
            seed=int(first["seed"]),
            digest=path.parent.name,
        )
        found = TaskStore(files.tasks).find(task)
        if found is not None and _are_same(found.forecasts(), mine):
            return found
    return None


def _are_same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    rows = (frame[_TOLD].reset_index(drop=True) for frame in (one, other))
    return next(rows).equals(next(rows))
