"""`infoset study kernels` in a tiny form: its files, its run in MLflow, its figures."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import mlflow
import pytest
from typer.testing import CliRunner, Result

from infoset.pipeline.cli import app
from infoset.pipeline.studies import run_kernel_study

pytestmark = pytest.mark.slow
FILES = {"kernels.md", "recall.svg", "replacement.svg", "study.json"}
TINY = [
    "network.width=8",
    "latency.history_lengths=[16, 40, 100000]",
    "study.num_steps=12",
    "study.num_times=20",
    "study.num_features=[4, 64]",
    "study.forecast_seeds=2",
    "study.error_seeds=4",
    "study.error_sets=2",
    "study.latency_forecasts=10",
    "study.tuning={num_steps: 2, batch_size: 8}",
    "study.recall={num_pairs: [1, 16], num_steps: 12, num_seeds: 2, num_questions: 32}",
]


def settings(folder: Path) -> list[str]:
    own = [f"runs={folder}/runs", f"tracking_uri=sqlite:///{folder}/mlflow.db"]
    return [*own, *TINY]


def call(folder: Path, *changes: str) -> Result:
    sets = [part for text in (*settings(folder), *changes) for part in ("--set", text)]
    return CliRunner().invoke(app, ["study", "kernels", "--config", "smoke", *sets])


def tracked_runs(folder: Path) -> list[Any]:
    client = mlflow.MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("studies")
    assert experiment is not None
    return list(client.search_runs([experiment.experiment_id]))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def done(place: Path) -> Result:
    return call(place)


@pytest.fixture(scope="module")
def folder(place: Path, done: Result) -> Path:
    assert done.exit_code == 0, done.output
    return place / "runs" / "studies" / "kernels"


@pytest.fixture(scope="module")
def study(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "study.json").read_text())
    return content


def test_a_study_leaves_its_files_and_nothing_half_written(folder: Path) -> None:
    found = {path.name for path in folder.iterdir()}
    assert found - {".lock", "tracking.json"} == FILES


def test_the_command_prints_the_tables_and_where_the_files_are(
    folder: Path, done: Result
) -> None:
    for text in ("Softmax attention replaced", "plain mean", "favor 64", "hedgehog"):
        assert text in done.stdout
    for name in FILES:
        assert f"Written: {folder / name}" in done.stdout.replace("\n", "")
    assert "Training softmax attention: 12 steps" in done.stderr


def test_every_attention_has_errors_drift_loss_and_latency(
    study: dict[str, Any],
) -> None:
    rows = {row["name"]: row for row in study["replacement"]}
    assert list(rows) == ["softmax", "mean", "favor 4", "favor 64"]
    for name in ("favor 4", "favor 64"):
        row = rows[name]
        assert [layer["layer"] for layer in row["layers"]] == ["block 0", "readout"]
        ratio = row["ratio_error"]
        parts = ratio["squared_bias"] + ratio["spread"] ** 2
        assert ratio["error"] ** 2 == pytest.approx(parts)
        assert row["as_is"]["num_seeds"] == 2
        assert row["as_is"]["drift"] > 0
        assert row["tuned"]["num_seeds"] == 1
    assert rows["favor 4"]["kernel_error"]["typical"] > (
        2 * rows["favor 64"]["kernel_error"]["typical"]
    )
    softmax = rows["softmax"]
    assert softmax["as_is"] is softmax["tuned_alike"] is None
    # Both are changes of one mean loss, against softmax before and after tuning.
    favor = rows["favor 64"]
    assert favor["tuned"]["loss"] == pytest.approx(favor["tuned_alike"]["loss"])
    assert softmax["tuned"]["percent"] != 0
    assert rows["mean"]["kernel_error"] is None
    assert study["forecaster"]["num_forecast_times"] == 20


def test_a_length_that_no_history_has_is_undefined_with_its_reason(
    study: dict[str, Any],
) -> None:
    short, long = study["replacement"][0]["latency"]
    assert short["num_events"] == 16
    assert short["p50_us"] > 0
    assert long["p50_us"] is None
    assert re.search(r"no information set .* holds 100000 events", long["undefined"])


def test_recall_and_its_bound_are_there_for_every_map(study: dict[str, Any]) -> None:
    recall = study["recall"]
    assert recall["chance"] == 1 / 16
    assert len(recall["accuracy"]) == 7 * 2
    assert all(len(cell["by_seed"]) == 2 for cell in recall["accuracy"])
    bounds = [record for record in recall["forgotten"] if record["num_features"]]
    assert all(record["one_hot"] >= record["least"] - 1e-6 for record in bounds)


def test_the_record_names_conventions_settings_and_versions(
    study: dict[str, Any],
) -> None:
    assert study["command"].startswith("infoset study kernels --config smoke --set ")
    assert {"kernel_error", "ratio_error", "drift", "loss"} <= set(study["conventions"])
    assert study["settings"]["tuning"]["num_steps"] == 2
    assert "torch" in study["versions"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("replacement.svg", ["kernel entry", "both fine-tuned", "slope"]),
        ("recall.svg", ["hedgehog, R = 32", "guessing", "R = 64: at least 1 - R/n"]),
    ],
)
def test_a_figure_stands_alone_and_says_what_it_shows(
    folder: Path, name: str, words: list[str]
) -> None:
    text = (folder / name).read_text()
    root = ET.fromstring(text)  # noqa: S314 (written a moment ago)
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    assert root.find(f"{space}title") is not None
    assert len(root.findall(f".//{space}path")) > 20
    assert len(root.findall(f".//{space}use")) > 20  # ticks and markers
    shown = " ".join("".join(e.itertext()) for e in root.iter(f"{space}text"))
    assert all(word in shown for word in words)
    assert "var(--" not in text
    assert "#010101" not in text


def test_the_page_holds_every_table(folder: Path) -> None:
    page = (folder / "kernels.md").read_text()
    assert page.count("\n| --- |") == 3
    assert "![replacement](replacement.svg)" in page


def test_the_study_is_one_finished_run_with_finite_metrics(
    place: Path, study: dict[str, Any]
) -> None:
    [run] = tracked_runs(place)
    assert run.info.status == "FINISHED"
    assert run.data.params["num_features"] == "4, 64"
    metrics = run.data.metrics
    assert metrics["favor-64.ratio_error"] > 0
    softmax, _ = study["recall"]["accuracy"][:2]
    assert metrics["recall.softmax.1_pairs"] == softmax["accuracy"]
    assert all(math.isfinite(value) for value in metrics.values())
    assert run.data.tags["infoset.num_non_finite"] == "0"
    assert len(run.inputs.dataset_inputs) == 1
    client = mlflow.MlflowClient(f"sqlite:///{place}/mlflow.db")
    logged = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert logged == {*FILES, "config.yaml"}


def test_the_same_seed_gives_the_same_numbers(
    study: dict[str, Any], tmp_path: Path
) -> None:
    again = run_kernel_study("smoke", overrides=settings(tmp_path)).read()
    assert again["forecaster"] == study["forecaster"]
    assert again["recall"] == study["recall"]
    for one, other in zip(study["replacement"], again["replacement"], strict=True):
        assert {**one, "latency": None} == {**other, "latency": None}


def test_a_study_that_fails_is_tracked_as_failed(tmp_path: Path) -> None:
    ended = call(tmp_path, "study.fold=7")
    assert isinstance(ended.exception, ValueError)
    [run] = tracked_runs(tmp_path)
    assert run.info.status == "FAILED"
    assert "study.fold must be one of 0 to" in run.data.tags["infoset.error"]
    kept = {path.name for path in (tmp_path / "runs/studies/kernels").iterdir()}
    assert not kept & FILES
