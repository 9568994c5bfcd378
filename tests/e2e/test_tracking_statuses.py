"""The status that a run shows is what became of it, at every moment of failure."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from infoset.pipeline.tracking import ExperimentTracker, TaskRecord
from infoset.pipeline.tracking.calls import import_mlflow
from infoset.pipeline.tracking.store_file import StoreFile

TASK = TaskRecord("linear", 0, 1, "d", {}, {"ic": 0.1}, {}, 1.0, 2.0, ())

OPEN = """
import os, signal, sys, time
from pathlib import Path
from infoset.pipeline.tracking import ExperimentTracker, TaskRecord

def open_tracker(name):
    Path("runs", name).mkdir(parents=True, exist_ok=True)
    return ExperimentTracker.open(
        "sqlite:///mlflow.db", "curve", run_dir=Path("runs", name), config_text="",
        config_digest="c", parameters={},
    )

task = TaskRecord("linear", 0, 1, "d", {}, {}, {"m": [(i, 0.5) for i in range(30)]},
                  1.0, 2.0, ())
"""


def start(code: str, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    """Run code in another process, with warnings as errors and no sign of pytest."""
    environment = {k: v for k, v in os.environ.items() if "PYTEST" not in k}
    environment.pop("MLFLOW_DISABLE_TELEMETRY", None)
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", OPEN + code, *arguments],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def query(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def statuses(database: Path) -> dict[str, str]:
    return dict(query(database, "SELECT run_uuid, status FROM runs"))


def tag(database: Path, run_id: str, key: str) -> str:
    sql = f"SELECT value FROM tags WHERE run_uuid = '{run_id}' AND key = '{key}'"  # noqa: S608
    ((value,),) = query(database, sql)
    return str(value)


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store without runs: it takes a second, and a copy does not."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    import_mlflow()
    StoreFile(f"sqlite:///{path}").prepare()
    return path


@pytest.fixture
def tracker(empty_store: Path, tmp_path: Path) -> ExperimentTracker:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    (tmp_path / "one").mkdir()
    return ExperimentTracker.open(
        f"sqlite:///{tmp_path}/mlflow.db",
        "curve",
        run_dir=tmp_path / "one",
        config_text="",
        config_digest="c",
        parameters={},
    )


def fail_with(error: BaseException) -> None:
    raise error


def exit_after_interrupt() -> None:
    """Leave as a training loop does that catches Ctrl-C itself."""
    try:
        fail_with(KeyboardInterrupt())
    except KeyboardInterrupt:
        sys.exit(1)


def run_stages(tracker: ExperimentTracker, failing: str, error: BaseException) -> None:
    with tracker:
        for stage in ("data", "training", "evaluation", "report"):
            if stage == failing:
                fail_with(error)
            if stage == "training":
                tracker.log_task(TASK)
            if stage == "evaluation":
                tracker.log_scores({"ic": 0.1})


@pytest.mark.parametrize(
    ("stage", "error", "status", "text"),
    [
        ("data", ValueError("no rows"), "FAILED", "ValueError: no rows"),
        ("training", ValueError("loss"), "FAILED", "ValueError: loss"),
        ("training", KeyboardInterrupt(), "KILLED", "KeyboardInterrupt: "),
        ("training", SystemExit(1), "FAILED", "SystemExit: 1"),
        ("evaluation", ZeroDivisionError("n"), "FAILED", "ZeroDivisionError: n"),
        ("report", OSError(28, "disk full"), "FAILED", "OSError: [Errno 28] disk full"),
    ],
)
def test_failing_stage_decides_the_status(
    tracker: ExperimentTracker,
    tmp_path: Path,
    stage: str,
    error: BaseException,
    status: str,
    text: str,
) -> None:
    # Case T02, rows 1 to 5: a fit that ended well must not make the run FINISHED.
    with pytest.raises(type(error)) as caught:
        run_stages(tracker, stage, error)
    assert caught.value is error
    found = statuses(tmp_path / "mlflow.db")
    assert found.pop(tracker.run_id) == status
    assert tag(tmp_path / "mlflow.db", tracker.run_id, "infoset.error") == text
    num_tasks = 0 if stage in {"data", "training"} else 1
    assert list(found.values()) == ["FINISHED"] * num_tasks


def test_exit_that_ctrl_c_caused_is_killed(
    tracker: ExperimentTracker, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit), tracker:
        exit_after_interrupt()
    assert statuses(tmp_path / "mlflow.db") == {tracker.run_id: "KILLED"}


def test_failed_task_does_not_decide_for_the_others(
    tracker: ExperimentTracker, tmp_path: Path
) -> None:
    with tracker:
        failed = tracker.log_failed_task("linear", 1, 1, "e", "loss is nan")
        done = tracker.log_task(TASK)
        tracker.finish()
    assert statuses(tmp_path / "mlflow.db") == {
        tracker.run_id: "FINISHED",
        failed: "FAILED",
        done: "FINISHED",
    }


def test_run_is_finished_only_if_the_last_stage_said_so(
    tracker: ExperimentTracker, tmp_path: Path
) -> None:
    with tracker:
        tracker.log_task(TASK)
    database = tmp_path / "mlflow.db"
    assert statuses(database)[tracker.run_id] == "FAILED"
    text = tag(database, tracker.run_id, "infoset.error")
    assert text == "ended before its last stage"


@pytest.mark.slow
def test_killed_process_is_closed_at_the_next_start_and_resumed(
    empty_store: Path, tmp_path: Path
) -> None:
    # Case T02, row 6.
    database = tmp_path / "mlflow.db"
    shutil.copy(empty_store, database)
    killed = """
with open_tracker("one") as tracker:
    tracker.log_task(task)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    process = start(killed, tmp_path)
    assert process.communicate() == ("", "")
    assert process.returncode == -signal.SIGKILL
    (left,) = [key for key, value in statuses(database).items() if value == "RUNNING"]
    again = """
with open_tracker("one") as tracker:
    tracker.finish()
import mlflow
assert mlflow.telemetry.get_telemetry_client() is None
assert mlflow.active_run() is None
"""
    process = start(again, tmp_path)
    assert process.communicate() == ("", "")
    assert process.returncode == 0
    found = statuses(database)
    assert found[left] == "KILLED"
    assert "had gone" in tag(database, left, "infoset.note")
    assert "RUNNING" not in found.values()
    (resumed,) = query(database, "SELECT value FROM tags WHERE key = 'infoset.resumes'")
    assert resumed == (left,)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"mlflow.db", "mlartifacts", "runs"}


@pytest.mark.slow
def test_ctrl_c_from_outside_is_killed(empty_store: Path, tmp_path: Path) -> None:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    # A shell starts background jobs with this signal ignored, and tests may be in one.
    waiting = """
signal.signal(signal.SIGINT, signal.default_int_handler)
with open_tracker("one") as tracker:
    print("ready", flush=True)
    time.sleep(60)
"""
    process = start(waiting, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate()
    assert complaint.rstrip().endswith("KeyboardInterrupt")
    assert list(statuses(tmp_path / "mlflow.db").values()) == ["KILLED"]


@pytest.mark.slow
def test_processes_that_start_together_share_one_fresh_store(tmp_path: Path) -> None:
    # Harder than case T04: nobody makes the store before the three start.
    code = """
while not Path("go").exists():
    time.sleep(0.01)
with open_tracker(sys.argv[1]) as tracker:
    tracker.log_task(task)
    tracker.finish()
"""
    processes = [start(code, tmp_path, str(number)) for number in range(3)]
    (tmp_path / "go").touch()
    answers = [process.communicate() for process in processes]
    assert answers == [("", "")] * 3
    database = tmp_path / "mlflow.db"
    assert list(statuses(database).values()) == ["FINISHED"] * 6
    rows = query(database, "SELECT count(*) FROM metrics GROUP BY run_uuid")
    assert rows == [(30,)] * 3
    names = query(database, "SELECT name FROM experiments ORDER BY experiment_id")
    assert names == [("Default",), ("curve",)]


@pytest.mark.slow
def test_workers_log_by_run_id_into_the_store_of_the_parent(
    tracker: ExperimentTracker, tmp_path: Path
) -> None:
    # Case T04: store and experiment exist before any worker starts.
    code = """
import warnings
warnings.simplefilter("ignore")  # this worker calls MLflow itself
from mlflow import MlflowClient
from mlflow.entities import Metric, Param
experiment_id, parent, fold = sys.argv[1:]
client = MlflowClient("sqlite:///mlflow.db")
run_id = client.create_run(experiment_id, tags={"mlflow.parentRunId": parent}).info.run_id
points = [Metric("m", 0.5, 0, step) for step in range(30)]
client.log_batch(run_id, metrics=points, params=[Param("fold", fold)])
client.set_terminated(run_id)
"""
    with tracker:
        keys = (tracker.experiment_id, tracker.run_id)
        workers = [start(code, tmp_path, *keys, str(fold)) for fold in range(2)]
        assert [worker.wait() for worker in workers] == [0, 0]
        for worker in workers:
            worker.communicate()
        tracker.finish()
    database = tmp_path / "mlflow.db"
    assert list(statuses(database).values()) == ["FINISHED"] * 3
    rows = query(database, "SELECT count(*) FROM metrics GROUP BY run_uuid")
    assert rows == [(30,)] * 2
