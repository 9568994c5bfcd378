"""The commands as a person meets them: what they print, and how they end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import yaml

from infoset.pipeline.cli import main
from infoset.pipeline.run_files import RunFiles

COMMAND = [sys.executable, "-m", "infoset.pipeline.cli"]
BASELINES = "forecasters={ewma: {kind: ewma}, historical: {kind: historical}}"
HEAVY = ("torch", "pytorch_lightning", "mlflow", "matplotlib")
QUANTILES = ["q05", "q10", "q25", "q50", "q75", "q90", "q95"]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Ended]


class Place(NamedTuple):
    """A folder with a configuration, its data, its runs and its store."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "prices.yaml"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def run(self) -> Path:
        return self.runs / "prices"

    @property
    def store(self) -> Path:
        return self.folder / "mlflow.db"

    def settings(self, *changes: str) -> list[str]:
        own = [f"runs={self.runs}", f"tracking_uri=sqlite:///{self.store}"]
        return [part for text in [*own, *changes] for part in ("--set", text)]

    def statuses(self) -> list[str]:
        with closing(sqlite3.connect(self.store)) as database:
            rows = database.execute("SELECT status FROM runs ORDER BY start_time")
            return [status for (status,) in rows]

    def tasks(self) -> dict[str, int]:
        records = (self.runs).glob("*/tasks/*/task.json")
        return {path.parent.name: path.stat().st_mtime_ns for path in records}


def configuration() -> dict[str, Any]:
    """Declare a close per day, known at noon of the next, and a forecast each midnight."""
    return {
        "name": "prices",
        "sources": [
            {
                "path": "prices.csv",
                "stream": "close/1d",
                "entity": {"column": "id"},
                "event_time": {
                    "column": "day",
                    "stamp": "date",
                    "at": "00:00",
                    "zone": "UTC",
                },
                "available_at": {"days": 1, "at": "12:00", "zone": "UTC"},
                "values": {"value": "close"},
            }
        ],
        "forecast_times": {"kind": "interval", "interval": "1D"},
        "history": {"last": 8},
        "targets": [{"entities": ["A", "B"], "stream": "close/1d"}],
        "folds": {
            "first_test": "2024-03-01",
            "last_test": "2024-03-20",
            "test_size": "10D",
            "validation_size": "10D",
        },
        "baseline": "ewma",
        "forecasters": {"ewma": {"kind": "ewma"}, "historical": {"kind": "historical"}},
        "certificate": {"num_points": 2},
    }


def make_place(folder: Path, **changes: object) -> Place:
    place = Place(folder)
    days = pd.date_range("2024-01-01", periods=90, tz="UTC")
    generator = np.random.default_rng(3)
    rows = ["id,day,stamp,close"]
    for name in ("A", "B"):
        closes = 100 + generator.normal(size=len(days)).cumsum()
        rows += [
            f"{name},{day:%Y-%m-%d},{day:%Y-%m-%d %H:%M},{close:.4f}"
            for day, close in zip(days, closes, strict=True)
        ]
    (folder / "prices.csv").write_text("\n".join(rows) + "\n")
    place.config.write_text(yaml.safe_dump(configuration() | changes))
    return place


@pytest.fixture
def infoset(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Call the command line in this process."""

    def call(*arguments: object) -> Ended:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["infoset", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        return Ended(code if isinstance(code, int) else 0, *capsys.readouterr())

    return call


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Run once; the place is not to be changed."""
    place = make_place(tmp_path_factory.mktemp("finished"))
    ended = subprocess.run(
        [*COMMAND, "run", str(place.config), *place.settings()],
        capture_output=True,
        text=True,
        check=False,
        cwd=place.folder,
    )
    assert_well(Ended(ended.returncode, ended.stdout, ended.stderr))
    assert 6 <= ended.stderr.count("\n") <= 11
    assert "ewma" in ended.stdout
    assert "Reused 0 of 4 tasks." in ended.stdout
    assert str(place.run / "report.html") in ended.stdout.replace("\n", "")
    return place


@pytest.fixture
def place(tmp_path: Path, finished: Place) -> Place:
    """Make a place with its data and an empty store, where nothing has run."""
    fresh = make_place(tmp_path)
    shutil.copy(finished.store, fresh.store)
    with closing(sqlite3.connect(fresh.store)) as database, database:
        database.execute("UPDATE runs SET lifecycle_stage = 'deleted'")
        database.execute("UPDATE runs SET status = 'FINISHED'")
    return fresh


def spoken(err: str) -> str:
    """Return standard error without the lines of the stages."""
    return re.sub(r"(?m)^ +\d+ s  .*\n", "", err)


def assert_well(ended: Ended) -> None:
    """Nothing on standard error but the stages, exit code 0."""
    assert (ended.code, spoken(ended.err)) == (0, "")


def assert_refused(ended: Ended, message: str) -> None:
    """One clear line on standard error after the stages, nothing else, exit code 2."""
    assert ended.code == 2
    assert ended.out == ""
    err = spoken(ended.err)
    assert err.startswith("infoset: ")
    assert message in err
    assert err.endswith("\n")
    assert err.count("\n") == 1


def assert_nothing_written(place: Place) -> None:
    """No run folder, or an empty one with its lock; no run that seems to go on."""
    assert {path.name for path in place.runs.glob("*/*")} <= {".lock"}
    assert "RUNNING" not in place.statuses()


# Bad input


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["folds.first_tst=2024-03-01"],
            "infoset: --set folds.first_tst: folds has no key 'first_tst'. Did you mean "
            "'first_test'?",
        ),
        (
            ["sources.0.path=price.csv"],
            "path must name a file; got 'price.csv', relative to ",
        ),
        (
            ["sources.0.values={value: clos}"],
            "column 'clos' must be in prices.csv; got id, day, stamp, close. "
            "Did you mean 'close'?",
        ),
        (
            ["sources.0.event_time={column: stamp, stamp: instant}"],
            "event_time must be timezone-aware; got '2024-01-01 00:00' in row 0 of "
            "prices.csv (column 'stamp').",
        ),
        (
            ["targets.0.entities=[A, C]"],
            "target.entities must have events in stream 'close/1d' (A, B); got 'C'.",
        ),
        (
            ["targets.0.stream=closes/1d"],
            "targets.0.stream must be one of close/1d; got 'closes/1d'. Did you mean "
            "'close/1d'? Correct it, or the `stream` of the sources.",
        ),
        (
            ["forecast_times={kind: after_events, stream: news}"],
            "forecast_times.stream must be one of close/1d; got 'news'. Correct it, or",
        ),
        (
            ["folds.first_test=2024-01-02"],
            "fold 0 must have rows to train on; got none before its test window",
        ),
        (
            ["baseline=ewna"],
            "baseline must be one of the forecasters (ewma, historical); got 'ewna'. "
            "Did you mean 'ewma'?",
        ),
        (["forecasters={}"], "forecasters must name at least one; got none."),
        (
            ["tracking_uri=http://localhost"],
            "must be sqlite:/// and the path of a file; got 'http://localhost'.",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    changes: list[str], message: str, infoset: Call, place: Place
) -> None:
    ended = infoset("run", place.config, *place.settings(*changes))
    assert_refused(ended, message)
    assert_nothing_written(place)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "runs={file}/runs",
            "runs must name a writable folder; got {file}/runs/prices",
        ),
        (
            "tracking_uri=sqlite:///{file}/mlflow.db",
            "must name an MLflow database that can be written; got sqlite:///{file}",
        ),
        (
            "tracking_uri=sqlite:///{file}",
            "must name an MLflow database that can be written; got sqlite:///{file}",
        ),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    setting: str, message: str, infoset: Call, place: Place
) -> None:
    # Permissions would not keep root out; a file where a folder should be does.
    file = place.folder / "prices.csv"
    before = file.read_bytes()
    ended = infoset("run", place.config, *place.settings(setting.format(file=file)))
    assert_refused(ended, message.format(file=file))
    assert_nothing_written(place)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_folder_where_another_run_works_is_left_alone(
    infoset: Call, place: Place
) -> None:
    with RunFiles(place.run).locked():
        ended = infoset("run", place.config, *place.settings())
    assert_refused(ended, f"another run works in {place.run}. Wait for it, or give")
    assert_nothing_written(place)


def test_a_typo_in_a_real_shell_leaves_no_file_and_no_traceback(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "run", "smoke", "--set", "trainig.max_steps=1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert_refused(
        Ended(ended.returncode, ended.stdout, ended.stderr),
        "--set trainig.max_steps: experiment has no key 'trainig'. Did you mean "
        "'training'?",
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument"),
        (["asof", "smoke"], "Missing option"),
        (["asof", "smoke", "--at", "2019-01-01", "--periods", "0"], "periods"),
        (["rn", "smoke"], "No such command"),
        (["run", "smoke", "--overide", "a=b"], "No such option"),
    ],
)
def test_a_wrong_call_is_explained(
    arguments: list[str], message: str, infoset: Call
) -> None:
    ended = infoset(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


# Runs


@pytest.mark.slow
def test_a_second_run_says_that_nothing_was_redone(
    infoset: Call, finished: Place
) -> None:
    tasks = finished.tasks()
    ended = infoset("run", finished.config, *finished.settings())
    assert (ended.code, ended.err) == (0, "")
    assert "Reused" not in ended.out
    assert "Nothing was redone" in ended.out
    assert finished.tasks() == tasks


@pytest.mark.slow
def test_another_setting_in_the_same_folder_says_first_what_it_replaces(
    infoset: Call, finished: Place, place: Place
) -> None:
    shutil.copytree(finished.runs, place.runs)
    before = place.tasks()
    later = "folds.last_test=2024-03-10"  # leaves the first fold as it is
    ended = infoset("run", place.config, *place.settings(later))
    assert_well(ended)
    first, second, *_ = ended.err.splitlines()
    command = f"infoset run {finished.config} --set runs={finished.runs}"
    assert f"{place.run} holds a run of another configuration ({command}" in first
    assert "its tasks stay" in first
    assert "Reading the sources" in second
    assert "Reused 2 of 2 tasks." in ended.out
    assert place.tasks() == before
    told = json.loads((place.run / "run.json").read_text())
    assert told["tasks"] == {"total": 2, "reused": 2}
    assert told["given"] == []
    again = infoset("run", place.config, *place.settings())
    assert "Reused 4 of 4 tasks." in again.out
    assert place.tasks() == before


@pytest.mark.slow
def test_a_half_written_earlier_run_is_repaired(
    infoset: Call, finished: Place, place: Place
) -> None:
    shutil.copytree(finished.runs, place.runs)
    (place.run / "run.json").unlink()
    (place.run / "scores.json").write_text('{"by_forecaster": [')
    (place.run / "forecasts.parquet.partial").write_bytes(b"PAR1")
    (place.run / "report.html.partial-77").write_text("<html>")
    (place.run / "tasks" / "0.partial-77").mkdir()
    (place.run / "tasks" / "1.partial").write_text("")
    first, second, *_ = sorted((place.run / "tasks").glob("*/task.json"))
    first.write_bytes(first.read_bytes()[:40])
    second.write_text("{}")
    good = {p.parent.name for p in (place.run / "tasks").glob("*/task.json")}
    ended = infoset("run", place.config, *place.settings())
    assert_well(ended)
    assert "Reused 2 of 4 tasks." in ended.out
    assert not list(place.run.rglob("*.partial*"))
    assert set(place.tasks()) == good
    assert json.loads(first.read_text())["sha256"]
    pd.testing.assert_frame_equal(
        pd.read_parquet(place.run / "forecasts.parquet"),
        pd.read_parquet(finished.run / "forecasts.parquet"),
    )


@pytest.mark.slow
def test_an_empty_information_set_has_a_forecast(infoset: Call, place: Place) -> None:
    # At half past midnight the first close of all is not known before the third day,
    # and on the first day of a month nothing of that month.
    times = pd.date_range("2024-01-01 00:30", periods=85, tz="UTC")
    table = pd.MultiIndex.from_product(
        [times, ["A", "B"]], names=["forecast_time", "entity"]
    ).to_frame(index=False)
    table.to_csv(place.folder / "points.csv", index=False)
    ended = infoset(
        "run",
        place.config,
        *place.settings(
            "forecast_times={kind: table, path: points.csv}", "history={since: month}"
        ),
    )
    assert_well(ended)
    forecasts = pd.read_parquet(place.run / "forecasts.parquet")
    empty = forecasts[forecasts["num_events"] == 0]
    assert set(empty["forecast_time"].dt.strftime("%d %H:%M")) == {"01 00:30"}
    assert set(empty["forecaster"]) == {"ewma", "historical"}
    quantiles = empty[QUANTILES].to_numpy()
    assert np.isfinite(quantiles).all()
    assert (np.diff(quantiles, axis=1) > 0).all()
    excluded = json.loads((place.run / "run.json").read_text())["excluded"]
    [count] = [e["count"] for e in excluded if "empty" in e["reason"]]
    assert count == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["serial", "processes"])
def test_ctrl_c_keeps_finished_tasks_and_the_next_run_goes_on(
    kind: str, infoset: Call, place: Place
) -> None:
    shorter = [BASELINES, "history_lengths=[]", "folds.test_size=1M"]
    arguments = ["run", "smoke", *place.settings(*shorter)]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--set", f"executor.kind={kind}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.folder,
        start_new_session=True,
    )
    try:
        while not place.tasks() and process.poll() is None:
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers, too
        # It waits for the end of every process that holds the pipes.
        out, err = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, out) == (130, "")
    assert (
        spoken(err)
        == "infoset: interrupted. Finished tasks are kept; run again to go on.\n"
    )
    assert not (place.runs / "smoke" / "run.json").exists()
    assert "RUNNING" not in place.statuses()
    assert "KILLED" in place.statuses()
    kept = place.tasks()
    assert kept
    ended = infoset(*arguments)
    assert_well(ended)
    assert not list((place.runs / "smoke").rglob("*.partial*"))
    assert kept.items() <= place.tasks().items()
    assert (place.runs / "smoke" / "report.html").is_file()


@pytest.mark.slow
def test_a_report_is_written_anew(infoset: Call, finished: Place, place: Place) -> None:
    shutil.copytree(finished.runs, place.runs)
    report = place.run / "report.html"
    report.unlink()
    ended = infoset("report", place.run)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{report}\n"
    assert report.read_bytes() == (finished.run / "report.html").read_bytes()


@pytest.mark.parametrize("name", ["", "no-such-folder", "prices.csv"])
def test_a_report_of_something_else_is_refused(
    name: str, infoset: Call, tmp_path: Path
) -> None:
    place = make_place(tmp_path)
    ended = infoset("report", place.folder / name)
    assert_refused(
        ended, "a run must hold config.yaml, forecasts.parquet, scores.json;"
    )
    assert f"in {place.folder / name}. Run the experiment first." in ended.err
    assert not list(tmp_path.rglob("report.html*"))


# What was known


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "level", "change"),
    [
        # Bureau of Labor Statistics, The Employment Situation: January 2008, total
        # nonfarm, thousands, as printed on 1 February and as revised on 7 March.
        ("2008-02-01", "138102", "-17"),
        ("2008-03-07", "138056", "-22"),
        ("2008-03-07T13:29:59Z", "138102", "-17"),
        ("2008-03-07T08:30:00-05:00", "138056", "-22"),
    ],
)
def test_payrolls_of_january_2008_as_printed_and_as_revised(
    at: str, level: str, change: str, infoset: Call
) -> None:
    arguments = ["--at", at, "--stream", "macro/PAYEMS", "--periods", "2"]
    ended = infoset("asof", "treasury", *arguments)
    assert (ended.code, ended.err) == (0, "")
    # A month is dated by its end: the first instant of February in New York.
    [january] = [x for x in ended.out.splitlines() if "│ 2008-02-01T05:00:00" in x]
    cells = [cell.strip() for cell in january.split("│")]
    assert f"value {level}" in cells
    assert change in cells


@pytest.mark.parametrize(
    ("at", "title"),
    [
        ("2024-02-01", "Known at 2024-02-01, end of the UTC day"),
        ("2024-02-01T07:30-05:00", "Known at 2024-02-01 12:30:00+00:00"),
    ],
)
def test_the_title_says_the_instant_in_short(
    at: str, title: str, infoset: Call, tmp_path: Path
) -> None:
    place = make_place(tmp_path)
    ended = infoset("asof", place.config, "--at", at, "--entity", "A")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0].strip() == title


@pytest.mark.parametrize(
    ("at", "newest"),
    [
        ("2024-02-03T12:00:00Z", "2024-02-02"),  # known at noon of the next day
        ("2024-02-03T11:59:59Z", "2024-02-01"),
        ("2024-02-03", "2024-02-02"),  # a date is its whole day
        ("2024-02-02", "2024-02-01"),
    ],
)
def test_an_instant_is_cut_on_availability(
    at: str, newest: str, infoset: Call, tmp_path: Path
) -> None:
    place = make_place(tmp_path)
    ended = infoset("asof", place.config, "--at", at, "--entity", "B")
    assert f"│ {newest}T00:00:00+00:00 │" in ended.out
    assert "│ A " not in ended.out


def test_before_the_first_event_nothing_is_known(infoset: Call, tmp_path: Path) -> None:
    place = make_place(tmp_path)
    ended = infoset("asof", place.config, "--at", "2024-01-01")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("nothing known") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--at", "2024-02-01T10:00"],
            "--at must be timezone-aware; got '2024-02-01T10:00'. Add an offset or Z",
        ),
        (["--at", "2024-02"], "--at must be timezone-aware; got '2024-02'."),
        (["--at", "now"], "--at must be timezone-aware; got 'now'."),
        (["--at", "noon"], "--at must be an instant with a zone such as 2008-02-01T18"),
        (
            ["--at", "2024-02-30"],
            "--at must be an instant with a zone such as 2008-02-",
        ),
        (["--at", ""], "--at must be an instant with a zone such as 2008-02-01T18"),
        (
            ["--at", "0001-01-01"],
            "--at must be an instant with a zone such as 2008-02-",
        ),
        (
            ["--at", "2024-02-01", "--entity", "C"],
            "entity must be one of *, A, B; got 'C'.",
        ),
        (
            ["--at", "2024-02-01", "--stream", "closes/1d"],
            "stream must be one of close/1d, open/1d; got 'closes/1d'. "
            "Did you mean 'close/1d'",
        ),
        (
            ["--at", "2024-02-01", "--stream", "open/1d", "--entity", "B"],
            "stream must have events of the entity; got 'open/1d', which is about A, "
            "for 'B'.",
        ),
        (
            ["--at", "2024-02-01", "--set", "historie=all"],
            "experiment has no key 'historie'. Did you mean 'history'?",
        ),
    ],
)
def test_a_question_without_an_answer_is_refused(
    arguments: list[str], message: str, infoset: Call, tmp_path: Path
) -> None:
    [source] = configuration()["sources"]
    other = source | {"stream": "open/1d", "entity": "A", "path": "a.csv"}
    place = make_place(tmp_path, sources=[source, other])
    lines = (tmp_path / "prices.csv").read_text().splitlines()
    (tmp_path / "a.csv").write_text("\n".join(lines[:10]))
    ended = infoset("asof", place.config, *arguments)
    assert_refused(ended, message)


# Light


def test_help_and_looking_up_need_neither_torch_nor_mlflow() -> None:
    calls = [["-h"], *([name, "--help"] for name in ("run", "report", "asof"))]
    calls.append(["asof", "smoke", "--at", "2019-01-01", "--entity", "DGS10"])
    script = (
        "import json, sys\n"
        "from infoset.pipeline.cli import main\n"
        f"for call in {calls}:\n"
        "    sys.argv = ['infoset', *call]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        assert not end.code\n"
        f"print(json.dumps([m for m in {HEAVY} if m in sys.modules]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    for words in ("Usage: infoset asof", "--periods", "path.to.key=value", "yield/1d"):
        assert words in ended.stdout
    assert ended.stdout.splitlines()[-1] == "[]"


def test_the_command_is_called_infoset() -> None:
    [point] = entry_points(group="console_scripts", name="infoset")
    assert point.load() is main
