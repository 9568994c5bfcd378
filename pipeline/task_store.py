"""Results of tasks on disk: complete and verified, or not there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pandas as pd

from infoset.models.attention_forecaster import AttentionForecaster

from .plan import Task
from .run_files import remove_leftovers
from .walk_forward import TaskResult

_RECORD, _FORECASTS, _MODEL = "task.json", "forecasts.parquet", "model"


@dataclass(frozen=True)
class StoredTask:
    """A finished task as it lies on disk.

    Attributes
    ----------
    task : Task
    folder : Path
    curve : tuple of (step, loss)
    started, ended : float
    denominators : dict of str to float
        See `TaskResult`.
    """

    task: Task
    folder: Path
    curve: tuple[tuple[int, float], ...]
    started: float
    ended: float
    denominators: Mapping[str, float] = field(default_factory=dict)

    def forecasts(self) -> pd.DataFrame:
        """Read the forecasts; the labels are those of the task asked for."""
        frame = pd.read_parquet(self.folder / _FORECASTS)
        # The digest holds contents, not names: a renamed forecaster is not redone.
        return frame.assign(
            forecaster=self.task.forecaster,
            history=str(self.task.history),
            fold=self.task.fold,
            seed=self.task.seed,
        )

    @property
    def model(self) -> Path | None:
        """Folder of the network's weights, where the forecaster is one."""
        folder = self.folder / _MODEL
        return folder if folder.is_dir() else None


class TaskStore:
    """The folder `tasks/` of a run; one folder per digest.

    A result is written beside its place and renamed into it when it is whole, so that
    an interrupted run leaves nothing that looks finished.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear_leftovers(self) -> int:
        """Remove what an interrupted run left half-written; return how many."""
        return remove_leftovers(self.folder)

    def find(self, task: Task) -> StoredTask | None:
        """Return the task's result if it is there, whole and unchanged."""
        folder = self.folder / task.digest
        if not task.digest or not (folder / _RECORD).is_file():
            return None
        try:
            record = json.loads((folder / _RECORD).read_text())
            curve = tuple((int(step), float(loss)) for step, loss in record["curve"])
            times = float(record["started"]), float(record["ended"])
            denominators = {k: float(x) for k, x in record["denominators"].items()}
            digests = record["sha256"]
        except (OSError, ValueError, KeyError, TypeError):  # half a record is none
            return None
        if digests != _digests(folder):
            return None
        return StoredTask(task, folder, curve, *times, denominators)

    def required(self, task: Task) -> StoredTask:
        """Return the task's result.

        Raises
        ------
        ValueError
            If it is not there.
        """
        found = self.find(task)
        if found is None:
            raise ValueError(
                f"the result of a task must be in {self.folder}; got none of "
                f"{task.label}. Run again."
            )
        return found

    def write(self, result: TaskResult) -> StoredTask:
        """Write a result and return it as stored."""
        name = result.task.digest or f"own-{_slug(result.task)}"
        folder = self.folder / name
        partial = self.folder / f"{name}.partial-{os.getpid()}"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        result.forecasts.to_parquet(partial / _FORECASTS, index=False)
        if isinstance(result.forecaster, AttentionForecaster):
            result.forecaster.save(partial / _MODEL)
        record = {
            "sha256": _digests(partial),
            "label": result.task.label,
            "curve": [list(point) for point in result.curve],
            "denominators": dict(result.denominators),
            "started": result.started,
            "ended": result.ended,
        }
        (partial / _RECORD).write_text(json.dumps(record, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
        return StoredTask(
            result.task,
            folder,
            result.curve,
            result.started,
            result.ended,
            result.denominators,
        )


def _digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a task but its record."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != _RECORD
    }


def _slug(task: Task) -> str:
    return sha256(task.label.encode()).hexdigest()[:16]
