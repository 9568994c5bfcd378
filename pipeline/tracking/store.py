"""One experiment in a tracking store, written to by explicit run ids.

MLflow is imported when a store is connected, not when this module is, and its global
state (tracking URI, active run) is neither read nor set.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .calls import import_mlflow, mlflow_calls
from .run_records import Status
from .store_file import StoreFile

if TYPE_CHECKING:  # MLflow is imported in `connect`
    from mlflow import MlflowClient

__all__ = ["TrackedRun", "TrackingStore", "refuse_missing"]

Item = TypeVar("Item")

# MLflow's limits per request are 1000 metrics, 100 parameters and 100 tags.
_MAX_METRICS, _MAX_TEXTS = 1000, 100
_MAX_DATASET_DIGEST = 36


@dataclass(frozen=True)
class TrackedRun:
    """A run as the store holds it.

    Attributes
    ----------
    run_id, status : str
        Id of the run, and MLflow's word for its status.
    tags : mapping of str to str
        All tags.
    """

    run_id: str
    status: str
    tags: Mapping[str, str]


class TrackingStore:
    """One experiment in one SQLite file.

    Parameters
    ----------
    uri : str
        `sqlite:///` and the path of the file.
    experiment : str
        Name of the experiment.

    Attributes
    ----------
    file : StoreFile
        The file.
    client : mlflow.MlflowClient
        After `connect`; to be used inside `calls`.
    experiment_id : str
        After `connect`.
    """

    client: MlflowClient
    experiment_id: str

    def __init__(self, uri: str, experiment: str) -> None:
        self.file = StoreFile(uri)
        self.experiment = experiment

    def connect(self) -> None:
        """Open the store and the experiment; make what does not exist.

        Raises
        ------
        ValueError
            If the file cannot be written or is no store of this MLflow, or if the
            experiment has been deleted.
        """
        import_mlflow()
        from mlflow import MlflowClient  # noqa: PLC0415

        try:
            self.file.prepare()
            with self.calls():
                self.client = MlflowClient(self.file.uri, registry_uri=self.file.uri)
                self.experiment_id = self._find_experiment()
        except (OSError, sqlite3.DatabaseError) as error:
            raise ValueError(
                f"tracking_uri must name an MLflow database that can be written; got "
                f"{self.file.uri} ({error}). Change the permissions or name another "
                f"file."
            ) from error

    def calls(self) -> AbstractContextManager[None]:
        """Surround calls of the client: quiet, with plain errors."""
        return mlflow_calls(self.file.path)

    def start_run(
        self, name: str, *, tags: Mapping[str, str], started: float, parent: str | None
    ) -> str:
        """Create a run with status RUNNING.

        Parameters
        ----------
        name : str
            Name to show.
        tags : mapping of str to str
            Tags that the run has from its first moment.
        started : float
            Unix time in seconds.
        parent : str or None
            Id of the run that this one is a part of.

        Returns
        -------
        str
            Id of the run.
        """
        family = {} if parent is None else {"mlflow.parentRunId": parent}
        with self.calls():
            run = self.client.create_run(
                self.experiment_id,
                start_time=_milliseconds(started),
                tags={**tags, **family},
                run_name=name,
            )
        return str(run.info.run_id)

    def end_run(self, run_id: str, status: Status, *, ended: float) -> None:
        """Set the final status of a run; `ended` is unix time in seconds."""
        with self.calls():
            self.client.set_terminated(run_id, status, end_time=_milliseconds(ended))

    def log(
        self,
        run_id: str,
        *,
        at: float,
        parameters: Mapping[str, str] | None = None,
        points: Sequence[tuple[str, int, float]] = (),
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Write parameters, points (name, step, value) and tags in few transactions.

        `at` is the unix time in seconds that the points carry.
        """
        from mlflow.entities import Metric, Param, RunTag  # noqa: PLC0415

        moment = _milliseconds(at)
        metrics = [Metric(name, value, moment, step) for name, step, value in points]
        params = [Param(name, value) for name, value in (parameters or {}).items()]
        run_tags = [RunTag(name, value) for name, value in (tags or {}).items()]
        with self.calls():
            for metric_part in _parts(metrics, _MAX_METRICS):
                self.client.log_batch(run_id, metrics=metric_part)
            for param_part in _parts(params, _MAX_TEXTS):
                self.client.log_batch(run_id, params=param_part)
            for tag_part in _parts(run_tags, _MAX_TEXTS):
                self.client.log_batch(run_id, tags=tag_part)

    def log_paths(self, run_id: str, paths: Sequence[Path]) -> None:
        """Copy files, and directories under their own names, to a run's artifacts.

        Raises
        ------
        ValueError
            If a path does not exist; then nothing is copied.
        """
        refuse_missing(paths)
        with self.calls():
            for path in paths:
                if path.is_dir():
                    self.client.log_artifacts(run_id, str(path), path.name)
                else:
                    self.client.log_artifact(run_id, str(path))

    def log_text(self, run_id: str, text: str, name: str) -> None:
        """Write a text to the artifact `name` of a run."""
        with self.calls():
            self.client.log_text(run_id, text, name)

    def log_dataset(
        self, run_id: str, *, digest: str, name: str, num_rows: int, source: str
    ) -> None:
        """Add a dataset input to a run.

        MLflow takes 36 characters of a digest; the whole one stands in the input's tag
        `infoset.digest`.
        """
        from mlflow.entities import Dataset, DatasetInput, InputTag  # noqa: PLC0415

        dataset = Dataset(
            name=name,
            digest=digest[:_MAX_DATASET_DIGEST],
            source_type="infoset",
            source=json.dumps({"description": source}),
            profile=json.dumps({"num_rows": num_rows}),
        )
        tags = [
            InputTag("mlflow.data.context", "test"),
            InputTag("infoset.digest", digest),
        ]
        with self.calls():
            self.client.log_inputs(run_id, [DatasetInput(dataset, tags)])

    def runs(self, condition: str, *, all_experiments: bool) -> Iterator[TrackedRun]:
        """Yield the runs that fulfil a condition in MLflow's words, newest first."""
        token: str | None = None
        while token != "":
            with self.calls():
                page = self.client.search_runs(
                    self._experiment_ids() if all_experiments else [self.experiment_id],
                    condition,
                    order_by=["attributes.start_time DESC"],
                    page_token=token,
                )
            for run in page:
                yield TrackedRun(run.info.run_id, run.info.status, run.data.tags)
            token = page.token or ""

    def _find_experiment(self) -> str:
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        try:
            return str(
                self.client.create_experiment(
                    self.experiment, artifact_location=self.file.artifacts
                )
            )
        except MlflowException:  # it exists, or the name is refused
            found = self.client.get_experiment_by_name(self.experiment)
            if found is None:
                raise
        if found.lifecycle_stage != "active":
            raise ValueError(
                f"name must not be a deleted one; got "
                f"{self.experiment!r} ({self.file.path}). Restore it with `mlflow "
                f"experiments restore` or choose another name."
            )
        return str(found.experiment_id)

    def _experiment_ids(self) -> list[str]:
        return [str(each.experiment_id) for each in self.client.search_experiments()]


def refuse_missing(paths: Sequence[Path]) -> None:
    """Raise ValueError with the paths that do not exist, if there are any."""
    if missing := [str(path) for path in paths if not path.exists()]:
        raise ValueError(
            f"artifacts must exist when they are logged; got {', '.join(missing)}. "
            f"Write them first."
        )


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
