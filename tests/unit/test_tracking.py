"""What the tracker writes, refuses and leaves alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from infoset.pipeline.tracking import (
    ExperimentTracker,
    FinishedRun,
    ServedModel,
    TaskRecord,
)
from infoset.pipeline.tracking.calls import import_mlflow, mlflow_calls
from infoset.pipeline.tracking.earlier_runs import identity_tags
from infoset.pipeline.tracking.processes import ProcessIdentity
from infoset.pipeline.tracking.run_records import storable_text
from infoset.pipeline.tracking.store import TrackingStore
from infoset.pipeline.tracking.store_file import StoreFile
from infoset.pipeline.tracking.values import Measurements, short_parameters

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import DatasetInput, Metric, Run

TASK = TaskRecord(
    forecaster="linear",
    fold=2,
    seed=7,
    digest="d1",
    parameters={"width": 32, "is_causal": True},
    metrics={"pinball": 0.25},
    curves={"validation_loss": [(0, 0.5), (1, 0.4)]},
    started=1_700_000_000.0,
    ended=1_700_000_060.5,
    artifacts=(),
)

MODEL_CODE = """
import mlflow

class Doubled(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        with open(context.artifacts["weights"]) as file:
            self.factor = float(file.read())

    def predict(self, context, model_input, params=None):
        return model_input[["level"]] * self.factor

mlflow.models.set_model(Doubled())
"""


class Place:
    """A directory with a store in it, and a reader for it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / "mlflow.db"
        self.uri = f"sqlite:///{self.database}"
        self.run_dir = directory / "runs" / "one"
        self.run_dir.mkdir(parents=True, exist_ok=True)

    def tracker(
        self,
        *,
        parameters: dict[str, str | int | float | bool] | None = None,
        config_digest: str = "c1",
        dataset_digest: str | None = None,
    ) -> ExperimentTracker:
        return ExperimentTracker.open(
            self.uri,
            "curve",
            run_dir=self.run_dir,
            config_text="name: one\n",
            config_digest=config_digest,
            parameters=parameters or {},
            dataset_digest=dataset_digest,
        )

    def find_finished(self, config_digest: str = "c1") -> str | None:
        return ExperimentTracker.find_finished(
            self.uri, "curve", self.run_dir, config_digest
        )

    def client(self) -> MlflowClient:
        from mlflow import MlflowClient  # noqa: PLC0415 (telemetry must be off first)

        return MlflowClient(self.uri)

    def run(self, run_id: str) -> Run:
        with mlflow_calls(self.database):
            return self.client().get_run(run_id)

    def runs(self, order: str = "attributes.start_time ASC") -> list[Run]:
        with mlflow_calls(self.database):
            return list(self.client().search_runs(["1"], order_by=[order]))

    def history(self, run_id: str, name: str) -> list[Metric]:
        with mlflow_calls(self.database):
            return list(self.client().get_metric_history(run_id, name))

    def dataset(self, run_id: str) -> DatasetInput:
        inputs = self.run(run_id).inputs
        assert inputs is not None
        (used,) = inputs.dataset_inputs
        return used

    def outputs(self, run_id: str) -> list[str]:
        outputs = self.run(run_id).outputs
        assert outputs is not None
        return [output.model_id for output in outputs.model_outputs]

    def artifacts(self, run_id: str) -> Path:
        return self.directory / "mlartifacts" / run_id / "artifacts"

    def num_metric_rows(self) -> int:
        with sqlite3.connect(self.database) as database:
            count = database.execute("SELECT count(*) FROM metrics").fetchone()[0]
        database.close()
        return int(count)


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store without runs: it takes a second, and a copy does not."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    import_mlflow()
    StoreFile(f"sqlite:///{path}").prepare()
    return path


@pytest.fixture
def place(
    empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """Copy the empty store; the working directory must stay empty."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    place = Place(tmp_path)
    shutil.copy(empty_store, place.database)
    yield place
    assert not list(work.iterdir())


# --- the parent run


def test_parent_run_carries_its_identity_and_the_whole_config(place: Place) -> None:
    with place.tracker(parameters={"horizon": 5}, dataset_digest="f" * 32) as tracker:
        run = place.run(tracker.run_id)
        assert run.info.status == "RUNNING"
        tracker.finish()
    assert place.run(tracker.run_id).info.status == "FINISHED"
    assert run.info.run_name == "one"
    assert run.data.params == {"horizon": "5", "config_digest": "c1"}
    assert run.data.tags["infoset.run_dir"] == str(place.run_dir)
    assert run.data.tags["infoset.pid"] == str(os.getpid())
    assert run.data.tags["infoset.host"] == ProcessIdentity.current().host
    assert run.data.tags["infoset.config_digest"] == "c1"
    assert run.data.tags["infoset.dataset_digest"] == "f" * 32
    assert "infoset.resumes" not in run.data.tags
    config = place.artifacts(tracker.run_id) / "config.yaml"
    assert config.read_text() == "name: one\n"


def test_long_lists_that_differ_late_stay_different_parameters(place: Place) -> None:
    # Case T01: loggers cut at 250 characters, MLflow at 6000.
    common = ",".join(f"feature_{number:03}" for number in range(30))
    values = [f"{common},momentum", f"{common},reversal", "z" * 7000]
    shown = []
    for value in values:
        with place.tracker(parameters={"features": value}) as tracker:
            shown.append(place.run(tracker.run_id).data.params["features"])
    assert len(set(shown)) == 3
    digest = hashlib.sha256(values[2].encode()).hexdigest()
    assert shown[2] == f"sha256:{digest[:16]}"


def test_parameter_of_250_characters_is_kept_and_a_longer_one_is_not_cut() -> None:
    kept = short_parameters({"a": "x" * 250, "b": "x" * 251, "c": 0.1, "d": False})
    assert kept["a"] == "x" * 250
    assert kept["b"].startswith("sha256:")
    assert (kept["c"], kept["d"]) == ("0.1", "False")


def test_more_values_than_one_request_takes_are_all_logged(place: Place) -> None:
    curve = [(step, float(step)) for step in range(2500)]
    settings = {f"setting_{number}": number for number in range(150)}
    with place.tracker() as tracker:
        record = dataclasses.replace(
            TASK, parameters=settings, curves={"loss": curve}, metrics={}
        )
        run_id = tracker.log_task(record)
    assert place.num_metric_rows() == 2500
    assert len(place.run(run_id).data.params) == 150 + 4


def test_dataset_input_carries_the_fingerprint(place: Place) -> None:
    fingerprint = "0123456789abcdef" * 2
    with place.tracker() as tracker:
        tracker.log_dataset(fingerprint, "curve", 120, "bundled Treasury yields")
    run = place.run(tracker.run_id)
    used = place.dataset(tracker.run_id)
    assert (used.dataset.name, used.dataset.digest) == ("curve", fingerprint)
    assert json.loads(used.dataset.profile or "") == {"num_rows": 120}
    assert json.loads(used.dataset.source)["description"] == "bundled Treasury yields"
    assert run.data.tags["infoset.dataset_digest"] == fingerprint


def test_digest_longer_than_mlflow_takes_is_whole_in_the_tags(place: Place) -> None:
    with place.tracker() as tracker:
        tracker.log_dataset("ab" * 32, "curve", 1, "")
    run = place.run(tracker.run_id)
    used = place.dataset(tracker.run_id)
    assert used.dataset.digest == ("ab" * 32)[:36]
    tags = {tag.key: tag.value for tag in used.tags}
    assert tags["infoset.digest"] == "ab" * 32
    assert run.data.tags["infoset.dataset_digest"] == "ab" * 32


def test_scores_and_artifacts_of_the_experiment_go_to_the_parent(place: Place) -> None:
    report = place.directory / "report.html"
    report.write_text("<html>")
    folder = place.directory / "tables"
    folder.mkdir()
    (folder / "scores.json").write_text("{}")
    with place.tracker() as tracker:
        tracker.log_scores({"ic": 0.1, "t": math.nan})
        tracker.log_scores({"sharpe": math.inf})
        tracker.log_artifacts([report, folder])
    run = place.run(tracker.run_id)
    assert run.data.metrics == {"ic": 0.1}
    assert run.data.tags["infoset.non_finite.t"] == "final, nan"
    assert run.data.tags["infoset.non_finite.sharpe"] == "final, inf"
    assert run.data.tags["infoset.num_non_finite"] == "2"
    kept = place.artifacts(tracker.run_id)
    assert (kept / "report.html").is_file()
    assert (kept / "tables" / "scores.json").is_file()


# --- tasks


def test_task_is_a_finished_child_with_its_own_times(place: Place) -> None:
    weights = place.directory / "weights.bin"
    weights.write_bytes(b"w")
    with place.tracker() as tracker:
        run_id = tracker.log_task(dataclasses.replace(TASK, artifacts=[weights]))
    run = place.run(run_id)
    assert run.info.status == "FINISHED"
    assert run.info.start_time == 1_700_000_000_000
    assert run.info.end_time == 1_700_000_060_500
    assert run.data.tags["mlflow.parentRunId"] == tracker.run_id
    assert run.data.tags["infoset.forecaster"] == "linear"
    assert run.data.tags["infoset.digest"] == "d1"
    assert run.data.tags["infoset.num_non_finite"] == "0"
    assert run.data.params == {
        "forecaster": "linear",
        "fold": "2",
        "seed": "7",
        "digest": "d1",
        "width": "32",
        "is_causal": "True",
    }
    assert run.data.metrics == {"pinball": 0.25, "validation_loss": 0.4}
    curve = place.history(run_id, "validation_loss")
    assert [(point.step, point.value) for point in curve] == [(0, 0.5), (1, 0.4)]
    assert (place.artifacts(run_id) / "weights.bin").read_bytes() == b"w"


def test_failed_task_is_a_failed_child_with_the_message(place: Place) -> None:
    with place.tracker() as tracker:
        run_id = tracker.log_failed_task("linear", 0, 1, "d", "loss is \ud800 nan")
    run = place.run(run_id)
    assert run.info.status == "FAILED"
    assert run.data.tags["mlflow.parentRunId"] == tracker.run_id
    assert run.data.tags["infoset.error"] == "loss is \\ud800 nan"


def test_diverged_runs_have_events_and_the_good_run_is_best(place: Place) -> None:
    # Case T03: MLflow stores inf as 1.797e308 and returns nan from comparisons.
    losses = {
        "good": [(0, 0.5), (1, 0.4)],
        "diverged": [(0, 0.6), (1, math.nan)],
        "exploded": [(0, 0.7), (1, math.inf), (2, -math.inf)],
    }
    with place.tracker() as tracker:
        ids = {
            name: tracker.log_task(
                dataclasses.replace(
                    TASK, forecaster=name, curves={"loss": curve}, metrics={}
                )
            )
            for name, curve in losses.items()
        }
    tags = {name: place.run(run_id).data.tags for name, run_id in ids.items()}
    assert place.num_metric_rows() == 4
    assert tags["diverged"]["infoset.non_finite.loss"] == "1, nan"
    assert tags["exploded"]["infoset.non_finite.loss"] == "1, inf; 2, -inf"
    counts = [tags[name]["infoset.num_non_finite"] for name in losses]
    assert counts == ["0", "1", "2"]
    assert place.runs("metrics.loss ASC")[0].info.run_id == ids["good"]


def test_many_events_are_listed_in_part_and_counted_in_full() -> None:
    measured = Measurements.of({}, {"loss": [(step, math.nan) for step in range(500)]})
    tags = measured.event_tags(measured.num_non_finite)
    assert tags["infoset.num_non_finite"] == "500"
    assert tags["infoset.non_finite.loss"].startswith("0, nan; 1, nan; ")
    assert tags["infoset.non_finite.loss"].endswith("19, nan; and 480 more")


def test_parameter_named_like_the_task_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"parameters must leave forecaster, .* got fold\. Rename them"
    ):
        dataclasses.replace(TASK, parameters={"fold": 3})


def test_score_named_like_a_curve_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"must have different names; got pinball in both\. Rename"
    ):
        dataclasses.replace(TASK, curves={"pinball": [(0, 1.0)]})


def test_missing_artifact_is_refused_before_a_child_exists(place: Place) -> None:
    record = dataclasses.replace(TASK, artifacts=[place.directory / "none.bin"])
    with place.tracker() as tracker:
        with pytest.raises(
            ValueError, match=r"artifacts must exist .* got .*none\.bin\. Write them"
        ):
            tracker.log_task(record)
        assert len(place.runs()) == 1


def test_name_that_mlflow_refuses_is_a_plain_error_and_a_failed_child(
    place: Place,
) -> None:
    with place.tracker() as tracker:
        with pytest.raises(
            ValueError, match=r"names and values must be such as MLflow .* Rename or"
        ):
            tracker.log_task(dataclasses.replace(TASK, metrics={"90% coverage": 0.9}))
        statuses = [run.info.status for run in place.runs()]
    assert statuses == ["FAILED", "RUNNING"]


# --- models


def served_model(directory: Path) -> ServedModel:
    code = directory / "served.py"
    code.write_text(MODEL_CODE)
    weights = directory / "weights of a model.txt"
    weights.write_text("2.0")
    inputs = pd.DataFrame(
        {"entity": ["a", "b"], "at": ["2024-01-02T16:00Z"] * 2, "level": [1.0, 2.0]}
    )
    outputs = pd.DataFrame({"level": [2.0, 4.0]})
    return ServedModel("linear", code, {"weights": weights}, inputs, outputs)


def test_logged_model_loads_and_forecasts(place: Place) -> None:
    model = served_model(place.directory)
    with place.tracker() as tracker:
        run_id = tracker.log_task(TASK)
        model_id = tracker.log_model(run_id, model)
    assert place.outputs(run_id) == [model_id]
    (files,) = place.directory.glob(f"mlartifacts/**/{model_id}/artifacts")
    with mlflow_calls(place.database):
        import mlflow.pyfunc  # noqa: PLC0415

        loaded = mlflow.pyfunc.load_model(str(files))
        forecast = loaded.predict(model.inputs)
    pd.testing.assert_frame_equal(forecast, model.outputs)
    assert loaded.metadata.run_id == run_id
    requirements = (files / "requirements.txt").read_text().split()
    assert f"pandas=={pd.__version__}" in requirements
    assert not [line for line in requirements if "+" in line]
    assert (files / "input_example.json").is_file()
    assert not list(files.rglob("*.pkl"))


def test_model_whose_code_fails_is_marked_failed(place: Place) -> None:
    model = served_model(place.directory)
    model.code_path.write_text("raise ZeroDivisionError('in the code')")
    with place.tracker() as tracker:
        run_id = tracker.log_task(TASK)
        with pytest.raises((ZeroDivisionError, OSError), match="in the code"):
            tracker.log_model(run_id, model)
    with mlflow_calls(place.database):
        (logged,) = place.client().search_logged_models(["1"])
    assert logged.status.name == "FAILED"
    assert not place.outputs(run_id)


def test_model_with_a_time_zone_in_a_column_is_refused(tmp_path: Path) -> None:
    model = served_model(tmp_path)
    instants = pd.DataFrame({"at": pd.to_datetime(["2024-01-02"], utc=True)})
    with pytest.raises(
        ValueError, match=r"must have no time zone.* got at\. Pass inst"
    ):
        dataclasses.replace(model, inputs=instants)


def test_model_without_its_file_is_refused(place: Place) -> None:
    model = served_model(place.directory)
    model.code_path.unlink()
    with (
        place.tracker() as tracker,
        pytest.raises(ValueError, match=r"artifacts must exist .*served\.py"),
    ):
        tracker.log_model(tracker.run_id, model)


# --- the store


@pytest.mark.parametrize(
    "uri",
    ["http://host:5000", "mlruns", "sqlite://", "sqlite:///", "sqlite:///:memory:"],
)
def test_uri_that_names_no_file_is_refused(uri: str) -> None:
    with pytest.raises(
        ValueError, match=r"tracking_uri must be sqlite:/// and .*Write for example"
    ):
        StoreFile(uri)


@pytest.mark.parametrize("name", ["a?b.db", "a%20b.db"])
def test_path_that_a_uri_would_change_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"a path without \? and %; got .*Name a file"):
        StoreFile(f"sqlite:///{name}")


def test_relative_uri_is_resolved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = StoreFile("sqlite:///mlflow.db")
    assert file.path == tmp_path / "mlflow.db"
    assert file.uri == f"sqlite:///{tmp_path}/mlflow.db"


def a_file_in_place_of_the_directory(directory: Path) -> Path:
    (directory / "taken").write_text("")
    return directory / "taken" / "mlflow.db"


def a_directory_in_place_of_the_file(directory: Path) -> Path:
    (directory / "mlflow.db").mkdir()
    return directory / "mlflow.db"


def a_text_file(directory: Path) -> Path:
    (directory / "mlflow.db").write_text("date,value\n" * 100)
    return directory / "mlflow.db"


def another_database(directory: Path) -> Path:
    with sqlite3.connect(directory / "mlflow.db") as database:
        database.execute("CREATE TABLE prices (close REAL)")
    database.close()
    return directory / "mlflow.db"


@pytest.mark.parametrize(
    "spoil",
    [
        a_file_in_place_of_the_directory,
        a_directory_in_place_of_the_file,
        a_text_file,
        another_database,
    ],
)
def test_store_that_cannot_be_written_is_one_clear_error(
    spoil: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = spoil(tmp_path)
    started = path.read_bytes() if path.is_file() else b""
    with pytest.raises(
        ValueError, match=r"tracking_uri must name an MLflow database .*name another"
    ):
        TrackingStore(f"sqlite:///{path}", "curve").connect()
    assert (path.read_bytes() if path.is_file() else b"") == started


def test_directory_without_permission_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryDirectory", refuse)  # root may write all
    with pytest.raises(ValueError, match=r"can be written; got .*Permission denied"):
        TrackingStore(f"sqlite:///{tmp_path}/mlflow.db", "curve").connect()


def test_store_of_another_schema_is_one_clear_error(place: Place) -> None:
    with sqlite3.connect(place.database) as database:
        database.execute("UPDATE alembic_version SET version_num = 'old'")
    database.close()
    with pytest.raises(ValueError, match=r"must name an MLflow database .*schema"):
        TrackingStore(place.uri, "curve").connect()


def test_deleted_experiment_is_refused(place: Place) -> None:
    store = TrackingStore(place.uri, "curve")
    store.connect()
    with store.calls():
        store.client.delete_experiment(store.experiment_id)
    with pytest.raises(ValueError, match=r"must not be a deleted one; got 'curve'"):
        store.connect()


def test_store_deleted_and_made_again_is_the_new_file(place: Place) -> None:
    with place.tracker():
        pass
    place.database.unlink()
    with place.tracker() as tracker:
        tracker.finish()
    with sqlite3.connect(place.database) as database:
        rows = database.execute("SELECT run_uuid, status FROM runs").fetchall()
    database.close()
    assert rows == [(tracker.run_id, "FINISHED")]


def test_calls_put_back_what_they_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_mlflow()
    name = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
    level = logging.getLogger("mlflow").level
    monkeypatch.setenv(name, "true")
    with mlflow_calls(tmp_path):
        assert os.environ[name] == "false"
        assert not logging.getLogger("mlflow.store").isEnabledFor(logging.ERROR)
    assert os.environ[name] == "true"
    assert logging.getLogger("mlflow").level == level


def warn_twice(path: Path) -> None:
    with mlflow_calls(path), warnings.catch_warnings():
        warnings.simplefilter("once")  # as MLflow itself does
        warnings.warn("yours", stacklevel=1)
        warnings.warn("Add type hints to the `predict` method", stacklevel=1)


def test_warnings_of_others_pass_and_those_of_mlflow_do_not(tmp_path: Path) -> None:
    import_mlflow()
    with pytest.warns(UserWarning, match="yours") as caught:
        warn_twice(tmp_path)
    assert len(caught) == 1


def test_failing_store_is_a_plain_error(place: Place) -> None:
    with place.tracker() as tracker:
        with sqlite3.connect(place.database) as database:
            database.execute("DROP TABLE metrics")
        database.close()
        with pytest.raises(
            OSError, match=r"tracking store must answer; got: .*metrics"
        ):
            tracker.log_scores({"ic": 0.1})


# --- earlier runs


def test_finished_run_is_found_without_mlflow(place: Place) -> None:
    assert place.find_finished() is None
    with place.tracker() as tracker:
        tracker.finish()
    code = (
        "import sys; from pathlib import Path\n"
        "from infoset.pipeline.tracking import ExperimentTracker\n"
        "uri, run_dir = sys.argv[1:]\n"
        "find = ExperimentTracker.find_finished\n"
        "print(find(uri, 'curve', Path(run_dir), 'c1'), 'mlflow' in sys.modules)"
    )
    command = [sys.executable, "-c", code, place.uri, str(place.run_dir)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == [tracker.run_id, "False"]
    assert place.find_finished() == tracker.run_id
    assert place.find_finished("c2") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"run_id": 1}'])
def test_spoilt_note_means_that_nothing_is_finished(place: Place, text: str) -> None:
    with place.tracker() as tracker:
        tracker.finish()
    (place.run_dir / "tracking.json").write_text(text)
    assert place.find_finished() is None


def test_note_counts_only_while_the_store_agrees(place: Place) -> None:
    with place.tracker() as tracker:
        tracker.finish()
    with sqlite3.connect(place.database) as database:
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted'")
    database.close()
    assert place.find_finished() is None
    place.database.write_text("no database any more" * 100)
    assert place.find_finished() is None
    place.database.unlink()
    assert place.find_finished() is None


def test_more_is_added_to_a_finished_run_which_stays_finished(
    place: Place, tmp_path: Path
) -> None:
    file = tmp_path / "latency.parquet"
    file.write_text("old")
    with place.tracker() as tracker:
        tracker.log_curves({"latency": [(64, 2.0), (256, 3.0)]})
        tracker.log_artifacts([file])
        tracker.finish()
    file.write_text("new")
    moved = place.run_dir.rename(tmp_path / "elsewhere")
    found = FinishedRun.find(moved)
    assert found is not None
    found.log(
        scores={"crossover": 211.0, "undefined": math.nan},
        curves={"latency": [(256, 2.5), (1024, 4.0)]},
        artifacts=[file],
    )
    run = place.run(tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.data.metrics == {"latency": 4.0, "crossover": 211.0}
    points = place.history(tracker.run_id, "latency")
    assert [(point.step, point.value) for point in points] == [
        (64, 2.0),
        (256, 3.0),
        (256, 2.5),
        (1024, 4.0),
    ]
    kept = place.artifacts(tracker.run_id) / "latency.parquet"
    assert kept.read_text() == "new"
    place.run_dir.mkdir()


def test_what_is_not_finished_or_was_never_logged_is_not_added_to(place: Place) -> None:
    assert FinishedRun.find(place.run_dir) is None
    with place.tracker() as tracker:
        tracker.finish()
    note = place.run_dir / "tracking.json"
    assert FinishedRun.find(place.run_dir) is not None
    note.write_text("{}")
    assert FinishedRun.find(place.run_dir) is None
    note.write_text("[")
    assert FinishedRun.find(place.run_dir) is None


def test_cut_off_run_is_resumed_and_a_finished_one_is_not(place: Place) -> None:
    with pytest.raises(ZeroDivisionError), place.tracker() as first:
        raise ZeroDivisionError
    with place.tracker(config_digest="c2") as other:
        assert other.resumes is None
    with place.tracker() as second:
        second.finish()
    with place.tracker() as third:
        pass
    assert second.resumes == first.run_id
    assert place.run(second.run_id).data.tags["infoset.resumes"] == first.run_id
    assert third.resumes is None


def leave_running(place: Place, tags: dict[str, str]) -> str:
    store = TrackingStore(place.uri, "curve")
    store.connect()
    return store.start_run("left", tags=tags, started=time.time(), parent=None)


def test_run_of_a_gone_process_is_closed_at_the_next_start(place: Place) -> None:
    # The number lives on, but belongs to a process that started at another time.
    run_dir = str(place.directory / "elsewhere")
    tags = {**identity_tags(run_dir), "infoset.process_start": "1"}
    left = leave_running(place, tags)
    with place.tracker():
        pass
    run = place.run(left)
    assert run.info.status == "KILLED"
    assert "had gone" in run.data.tags["infoset.note"]


def test_run_of_another_host_is_closed_when_its_directory_is_taken(
    place: Place,
) -> None:
    mine = {**identity_tags(str(place.run_dir)), "infoset.host": "elsewhere"}
    others = {**mine, "infoset.run_dir": "/another"}
    taken, untouched = leave_running(place, mine), leave_running(place, others)
    with place.tracker():
        pass
    assert place.run(taken).info.status == "KILLED"
    assert "took the directory over" in place.run(taken).data.tags["infoset.note"]
    assert place.run(untouched).info.status == "RUNNING"


def test_runs_of_living_processes_and_of_other_tools_are_left_alone(
    place: Place,
) -> None:
    alive = leave_running(place, identity_tags(str(place.run_dir)))
    foreign = leave_running(place, {"owner": "somebody"})
    with place.tracker():
        pass
    assert place.run(alive).info.status == "RUNNING"
    assert place.run(foreign).info.status == "RUNNING"


# --- ends


def fail_to_write(*_: object, **__: object) -> None:
    raise OSError("disk full")


def test_store_that_fails_at_the_end_does_not_hide_the_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrackingStore, "end_run", fail_to_write)
    with pytest.raises(ZeroDivisionError) as caught, place.tracker():
        raise ZeroDivisionError
    assert caught.value.__notes__ == ["This end could not be logged either: disk full"]


def test_store_that_fails_at_a_good_end_is_an_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TrackingStore, "end_run", fail_to_write)
    with pytest.raises(OSError, match="disk full"), place.tracker() as tracker:
        tracker.finish()
    assert place.find_finished() is None


def test_error_while_entering_ends_the_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrackingStore, "log_text", interrupt)
    with pytest.raises(KeyboardInterrupt), place.tracker():
        pass
    (run,) = place.runs()
    assert run.info.status == "KILLED"


def test_error_text_is_bounded() -> None:
    assert storable_text("x" * 9000) == "x" * 5000


# --- processes


def test_this_process_is_not_gone() -> None:
    me = ProcessIdentity.current()
    assert not me.is_gone()
    assert not dataclasses.replace(me, start="").is_gone()


def test_process_with_the_same_number_and_another_start_is_gone() -> None:
    assert dataclasses.replace(ProcessIdentity.current(), start="1").is_gone()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_zombie_and_ended_process_are_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        stat = Path(f"/proc/{child.pid}/stat")
        start = stat.read_text().rpartition(")")[2].split()[19]
        identity = ProcessIdentity("here", child.pid, start)
        assert not identity.is_gone()
        child.kill()
        while stat.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)
        assert identity.is_gone()
        child.communicate()
    assert identity.is_gone()
    assert dataclasses.replace(identity, start="").is_gone()
