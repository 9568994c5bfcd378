"""An experiment in MLflow: one parent run, one child run per task, true statuses.

A run is FINISHED only when its last stage has said so, FAILED after an error, KILLED
after Ctrl-C or when its process has gone; none stays RUNNING without a process. Only
the modules `tracking*` and `model_artifact` know MLflow, and they import it when a
tracker is entered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from .earlier_runs import RunMemo, close_stale_runs, find_interrupted, identity_tags
from .model_artifact import ServedModel, log_model
from .run_records import RunDescription, RunEnd, Status, TaskRecord, storable_text
from .store import TrackingStore, refuse_missing
from .values import Measurements, short_parameters

__all__ = ["ExperimentTracker", "RunDescription", "ServedModel", "TaskRecord"]


class ExperimentTracker:
    """Context manager that logs one `infoset run` and tells how it ended.

    To be used from one thread of the process that entered it.

    Parameters
    ----------
    store : TrackingStore
        Where to log; it is connected on entering.
    description : RunDescription
        What to log at the start.

    Attributes
    ----------
    resumes : str or None
        After entering: id of the unfinished run of the same directory and
        configuration that this one carries on.
    """

    def __init__(self, store: TrackingStore, description: RunDescription) -> None:
        self._store = store
        self._description = description
        self._run_dir = str(description.run_dir.absolute())
        self._run_id = ""
        self._num_non_finite = 0
        self._is_last_stage_done = False
        self.resumes: str | None = None

    @classmethod
    def open(
        cls,
        uri: str,
        experiment: str,
        *,
        run_dir: Path,
        config_text: str,
        config_digest: str,
        parameters: Mapping[str, str | int | float | bool],
        dataset_digest: str | None = None,
    ) -> ExperimentTracker:
        """Describe a run; nothing is written before the tracker is entered.

        Parameters
        ----------
        uri, experiment : str
            `sqlite:///` and the path of the store, and the name of the experiment.
            Artifacts go to `mlartifacts` beside the file.
        run_dir, config_text, config_digest, parameters, dataset_digest
            See `RunDescription`.

        Raises
        ------
        ValueError
            If `uri` names no file.
        """
        description = RunDescription(
            run_dir, config_text, config_digest, parameters, dataset_digest
        )
        return cls(TrackingStore(uri, experiment), description)

    @staticmethod
    def find_finished(
        uri: str, experiment: str, run_dir: Path, config_digest: str
    ) -> str | None:
        """Find the finished run of this directory and configuration.

        Reads the note that a finished run leaves in its directory and one row of the
        store; MLflow is not imported.

        Returns
        -------
        str or None
            Id of the run; None where there is none, or it is no longer in the store.
        """
        memo = RunMemo.find(uri, experiment, run_dir, config_digest)
        return None if memo is None else memo.run_id

    @property
    def run_id(self) -> str:
        """Id of the parent run, after entering."""
        return self._run_id

    @property
    def experiment_id(self) -> str:
        """MLflow's id of the experiment, after entering."""
        return self._store.experiment_id

    def __enter__(self) -> ExperimentTracker:
        """Connect, close what dead processes left RUNNING, start the parent run.

        Raises
        ------
        ValueError
            If the store cannot be used.
        """
        self._store.connect()
        close_stale_runs(self._store, self._run_dir)
        self.resumes = find_interrupted(
            self._store, self._run_dir, self._description.config_digest
        )
        self._run_id = self._store.start_run(
            self._description.run_dir.name,
            tags=self._parent_tags(),
            started=time.time(),
            parent=None,
        )
        with ExitStack() as on_failure:
            on_failure.push(self)
            self._describe()
            on_failure.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the parent run its final status; an exception goes on as it was."""
        try:
            self._end(error)
        except (OSError, ValueError) as failure:
            if error is None:
                raise
            error.add_note(f"This end could not be logged either: {failure}")

    def finish(self) -> None:
        """Say that the last stage is done; without it the run counts as failed."""
        self._is_last_stage_done = True

    def log_dataset(self, digest: str, name: str, num_rows: int, source: str) -> None:
        """Log the data behind the test forecasts as an input of the parent run.

        Parameters
        ----------
        digest : str
            Fingerprint of the test information sets. MLflow's field takes 36
            characters; the whole digest goes into the tag `infoset.dataset_digest`.
        name : str
            Name of the data set.
        num_rows : int
            Number of information sets.
        source : str
            Where the data come from, in words.
        """
        self._store.log_dataset(
            self._run_id, digest=digest, name=name, num_rows=num_rows, source=source
        )
        self._tag(self._run_id, {"infoset.dataset_digest": digest})

    def log_task(self, record: TaskRecord) -> str:
        """Log a finished task as a child run.

        Numbers that are not finite are no metrics but events: one tag
        `infoset.non_finite.<name>` with step and kind, and `infoset.num_non_finite`.

        Returns
        -------
        str
            Id of the child run.

        Raises
        ------
        ValueError
            If an artifact is missing or a name is not allowed.
        """
        refuse_missing(record.artifacts)
        measured = Measurements.of(record.metrics, record.curves)
        with self._child(record) as run_id:
            self._store.log(
                run_id,
                at=record.ended,
                parameters=short_parameters(record.parameters),
                points=measured.points,
                tags=measured.event_tags(measured.num_non_finite),
            )
            self._store.log_paths(run_id, record.artifacts)
        return run_id

    def log_failed_task(
        self, forecaster: str, fold: int, seed: int, digest: str, message: str
    ) -> str:
        """Log a task that ended in an error as a FAILED child run.

        Returns
        -------
        str
            Id of the child run.
        """
        now = time.time()
        task = TaskRecord(forecaster, fold, seed, digest, {}, {}, {}, now, now, ())
        with self._child(task, status="FAILED") as run_id:
            self._tag(run_id, {"infoset.error": storable_text(message)})
        return run_id

    def log_scores(self, metrics: Mapping[str, float]) -> None:
        """Log numbers of the whole experiment on the parent run."""
        self._log_measured(Measurements.of(metrics, {}))

    def log_curves(self, curves: Mapping[str, Sequence[tuple[int, float]]]) -> None:
        """Log series of (step, value) of the whole experiment on the parent run."""
        self._log_measured(Measurements.of({}, curves))

    def _log_measured(self, measured: Measurements) -> None:
        self._num_non_finite += measured.num_non_finite
        self._store.log(
            self._run_id,
            at=time.time(),
            points=measured.points,
            tags=measured.event_tags(self._num_non_finite),
        )

    def log_artifacts(self, paths: Sequence[Path]) -> None:
        """Copy files and directories to the artifacts of the parent run."""
        self._store.log_paths(self._run_id, paths)

    def log_model(self, run_id: str, model: ServedModel) -> str:
        """Store the model of a child run and return its id; `models:/<id>` loads it."""
        return log_model(self._store, run_id, model)

    def _parent_tags(self) -> dict[str, str]:
        tags = {
            **identity_tags(self._run_dir),
            "infoset.config_digest": self._description.config_digest,
            "infoset.num_non_finite": "0",
        }
        if self._description.dataset_digest is not None:
            tags["infoset.dataset_digest"] = self._description.dataset_digest
        if self.resumes is not None:
            tags["infoset.resumes"] = self.resumes
        return tags

    def _describe(self) -> None:
        about = self._description
        parameters = {**about.parameters, "config_digest": about.config_digest}
        self._store.log(
            self._run_id, at=time.time(), parameters=short_parameters(parameters)
        )
        self._store.log_text(self._run_id, about.config_text, "config.yaml")

    @contextmanager
    def _child(
        self, record: TaskRecord, *, status: Status = "FINISHED"
    ) -> Iterator[str]:
        """Run that gets `status` if its logging succeeds, else FAILED."""
        task = record.task
        run_id = self._store.start_run(
            f"{record.forecaster} fold {record.fold} seed {record.seed}",
            tags={
                **identity_tags(self._run_dir),
                **{f"infoset.{name}": str(value) for name, value in task.items()},
            },
            started=record.started,
            parent=self._run_id,
        )
        reached: Status = "FAILED"
        try:
            self._store.log(run_id, at=record.ended, parameters=short_parameters(task))
            yield run_id
            reached = status
        finally:
            self._store.end_run(run_id, reached, ended=record.ended)

    def _end(self, error: BaseException | None) -> None:
        end = RunEnd.of(error, is_last_stage_done=self._is_last_stage_done)
        # The status first: it must be true even if nothing can be added to it.
        self._store.end_run(self._run_id, end.status, ended=time.time())
        if end.status == "FINISHED":
            self._memo().write()
        else:
            self._tag(self._run_id, {"infoset.error": end.reason})

    def _memo(self) -> RunMemo:
        return RunMemo(
            uri=self._store.file.uri,
            experiment=self._store.experiment,
            run_dir=self._run_dir,
            config_digest=self._description.config_digest,
            run_id=self._run_id,
        )

    def _tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        self._store.log(run_id, at=time.time(), tags=tags)
