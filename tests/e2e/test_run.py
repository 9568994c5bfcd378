"""One small experiment, from its configuration to its report and its models."""

import json
import shutil
import subprocess
import sys
from hashlib import sha256

import mlflow
import numpy as np
import pandas as pd
import pytest

from infoset.data import InformationMismatch
from infoset.models import LEVELS, Forecasts
from infoset.pipeline import run
from infoset.pipeline.config import load_experiment
from infoset.pipeline.evaluation.summary import evaluate
from infoset.pipeline.preparation import load_log, prepare

pytestmark = pytest.mark.slow
FILES = {
    "certificate.json",
    "comparison.json",
    "config.yaml",
    "done.json",
    "forecasts.parquet",
    "latency.parquet",
    "latency_events.parquet",
    "report.html",
    "run.json",
    "scores.json",
    "tracking.json",
}


def settings(folder):
    """Return the overrides that keep a run inside a folder."""
    return [f"runs={folder}/runs", f"tracking_uri=sqlite:///{folder}/mlflow.db"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("smoke")


@pytest.fixture(scope="module")
def finished(place):
    return run("smoke", overrides=settings(place))


def test_a_run_leaves_its_files_and_nothing_half_written(finished):
    found = {path.name for path in finished.folder.iterdir() if path.is_file()}
    assert found - {".lock"} == FILES
    assert not list(finished.folder.rglob("*.partial*"))


def test_forecasts_have_the_promised_columns(finished):
    promised = ["forecaster", "fold", "seed", "entity", "forecast_time"]
    promised += ["target_start", "target_end", "fingerprint", "num_events", "mean"]
    promised += ["q05", "q10", "q25", "q50", "q75", "q90", "q95", "target"]
    assert set(promised) <= set(finished.forecasts.columns)


def test_linear_and_softmax_saw_the_same_information_pair_by_pair(finished):
    keys = ["history", "fold", "entity", "forecast_time"]
    forecasts = finished.forecasts.set_index(keys)
    linear = forecasts[forecasts["forecaster"] == "linear"]["fingerprint"]
    softmax = forecasts[forecasts["forecaster"] == "softmax"]["fingerprint"]
    assert len(linear) > 0
    pd.testing.assert_series_equal(linear, softmax)


def test_comparing_different_information_is_refused(finished):
    experiment, base = load_experiment("smoke")
    points = prepare(experiment, load_log(experiment, base)).points
    forecasts = finished.forecasts
    rows = forecasts.index[
        (forecasts["forecaster"] == "linear") & (forecasts["history"] == "last 16")
    ]
    forecasts.loc[rows[3], "fingerprint"] = "0" * 32
    with pytest.raises(InformationMismatch, match=r"saw 0{32} \(entity DGS10"):
        evaluate(experiment, forecasts, points)


def test_the_record_tells_which_training_step_each_fit_kept(finished):
    told = json.loads((finished.folder / "run.json").read_text())["training"]
    assert {row["forecaster"] for row in told} == {"linear", "softmax"}
    assert len(told) == 2 * 2 * 2  # forecasters, histories, folds
    for row in told:
        assert 0 <= row["kept_step"] <= row["last_step"] == 12
        assert (row["kept_loss"] < row["start_loss"]) == (row["kept_step"] > 0)


def test_a_fit_that_kept_step_0_forecasts_the_scaled_quantiles(finished):
    told = json.loads((finished.folder / "run.json").read_text())["training"]
    forecasts = finished.forecasts
    forecasts = forecasts[forecasts["history"] == "last 16"]
    median = forecasts.pivot_table(
        index=["fold", "forecast_time"], columns="forecaster", values="q75"
    )
    untrained = [
        (row["forecaster"], row["fold"])
        for row in told
        if row["kept_step"] == 0 and row["history"] == "last 16"
    ]
    assert untrained
    for name, fold in untrained:
        here = median.loc[fold]
        np.testing.assert_allclose(here[name], here["ewma"], rtol=1e-5)


def test_the_second_run_redoes_nothing(finished, place):
    before = {p: p.stat().st_mtime_ns for p in finished.folder.rglob("*")}
    again = run("smoke", overrides=settings(place))
    assert not again.is_new
    assert {p: p.stat().st_mtime_ns for p in finished.folder.rglob("*")} == before


def test_a_changed_setting_redoes_only_what_it_touches(finished, place):
    tasks = finished.folder / "tasks"
    before = {p.name for p in tasks.iterdir()}
    boosting = ["forecasters.boosting.max_trees=6"]
    copy = place / "copy"
    shutil.copytree(place / "runs", copy / "runs")
    again = run("smoke", overrides=[*settings(copy), *boosting])
    new = {p.name for p in (again.folder / "tasks").iterdir()} - before
    labels = [
        json.loads((again.folder / "tasks" / name / "task.json").read_text())["label"]
        for name in new
    ]
    assert labels
    assert all(label.startswith("boosting") for label in labels)
    assert again.num_tasks - again.num_reused_tasks == len(new) == 2


@pytest.mark.usefixtures("finished")
def test_an_unfinished_run_goes_on_from_the_tasks_that_are_there(place):
    copy = place / "unfinished"
    shutil.copytree(place / "runs", copy / "runs")
    folder = copy / "runs" / "smoke"
    (folder / "done.json").unlink()
    before = {p: p.stat().st_mtime_ns for p in (folder / "tasks").rglob("*")}
    assert run("smoke", overrides=settings(copy)).is_new
    assert {p: p.stat().st_mtime_ns for p in (folder / "tasks").rglob("*")} == before


def test_a_damaged_result_is_made_again_with_the_same_bytes(finished, place):
    copy = place / "damaged"
    shutil.copytree(place / "runs", copy / "runs")
    folder = copy / "runs" / "smoke"
    victim = min((folder / "tasks").glob("*/forecasts.parquet"))
    good = victim.read_bytes()
    victim.write_bytes(good[:100])
    (folder / "done.json").unlink()
    (folder / "tasks" / "x.partial-1").mkdir()
    run("smoke", overrides=settings(copy))
    assert victim.read_bytes() == good
    assert not (folder / "tasks" / "x.partial-1").exists()
    pd.testing.assert_frame_equal(
        pd.read_parquet(folder / "forecasts.parquet"), finished.forecasts
    )


def test_the_certificate_of_the_run_passes_and_says_what_was_tried(finished):
    certificate = json.loads((finished.folder / "certificate.json").read_text())
    assert certificate["passed"] is True
    checks = {check["name"]: check for check in certificate["checks"]}
    assert checks["inputs without the future"]["num_points"] == 5
    for name in set(finished.forecasts["forecaster"]):
        assert f"forecasts of {name} without the future" in checks
    assert (
        "move by up to 0." in checks["forecasts of ewma without the future"]["detail"]
    )


def test_mlflow_holds_one_parent_and_a_finished_child_per_task(finished, place):
    client = mlflow.MlflowClient(f"sqlite:///{place}/mlflow.db")
    experiment = client.get_experiment_by_name("smoke")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id], max_results=500)
    children = [r for r in runs if "mlflow.parentRunId" in r.data.tags]
    [parent] = [r for r in runs if "mlflow.parentRunId" not in r.data.tags]
    assert {r.info.status for r in runs} == {"FINISHED"}
    keys = ["forecaster", "history", "fold", "seed"]
    assert len(children) == len(finished.forecasts[keys].drop_duplicates())
    fingerprint = json.loads((finished.folder / "run.json").read_text())
    assert parent.inputs is not None
    [dataset] = parent.inputs.dataset_inputs
    assert dataset.dataset.digest == fingerprint["test_fingerprint"]
    assert "config.yaml" in {a.path for a in client.list_artifacts(parent.info.run_id)}


def tiny_suite(folder, *options):
    """Measure a run by the command line, in seconds."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "infoset.pipeline.cli", "latency", str(folder)),
            *("--lengths", "16,64", "--forecasts", "10", "--seconds", "0.5"),
            *("--limit-us", "100000", *options),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_latency_suite_measures_a_finished_run_anew(finished, place):
    copy = place / "measured" / "smoke"
    shutil.copytree(finished.folder, copy)
    before = pd.read_parquet(copy / "latency.parquet")
    ended = tiny_suite(copy)
    assert ended.returncode == 0, ended.stderr
    assert "What a forecast takes (smoke)" in ended.stdout
    assert "nothing was logged" not in ended.stdout
    table = pd.read_parquet(copy / "latency.parquet")
    suite = table[table["form"] == "full"]
    assert set(suite["forecaster"]) == {"linear", "softmax"}
    assert set(suite["workload"]) == {"fresh", "streaming"}
    assert set(suite["loop"]) == {"closed", "poisson", "recorded"}
    assert set(suite["time"]) == {"service", "response"}
    assert {c["workload"] for c in table.attrs["crossovers"]} == {"fresh", "streaming"}
    others = table[table["form"] == "short"]
    kept = before[before["attention"].isna()]
    assert others["p50_us"].tolist() == kept["p50_us"].tolist()
    report = (copy / "report.html").read_text()
    assert "When requests come by themselves" in report
    # The mark of a finished run holds the new files.
    digests = json.loads((copy / "done.json").read_text())["sha256"]
    now = sha256((copy / "latency.parquet").read_bytes()).hexdigest()
    assert digests["latency.parquet"] == now
    client = mlflow.MlflowClient(f"sqlite:///{place}/mlflow.db")
    run_id = json.loads((copy / "tracking.json").read_text())["run_id"]
    parent = client.get_run(run_id)
    assert parent.info.status == "FINISHED"
    name = "latency.linear.fresh.torch.p50_us"
    steps = [point.step for point in client.get_metric_history(run_id, name)]
    assert steps == [16, 64, 16, 64]  # of the run, then of the suite
    assert "latency.linear.fresh.torch.throughput_hz" in parent.data.metrics


def test_what_is_no_run_cannot_be_measured(place):
    ended = tiny_suite(place / "nothing")
    assert ended.returncode == 2
    assert ended.stderr.startswith("infoset: RUN must be the folder of a finished run")
    assert not (place / "nothing").exists()


def test_a_logged_model_gives_the_run_s_forecasts_in_a_clean_process(finished, place):
    script = place / "load.py"
    script.write_text(LOAD_MODEL.format(uri=f"sqlite:///{place}/mlflow.db"))
    answer = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    )
    served = np.array(json.loads(answer.stdout.splitlines()[-1]))
    forecasts = finished.forecasts
    mine = forecasts[
        (forecasts["forecaster"] == "linear")
        & (forecasts["history"] == "last 16")
        & (forecasts["fold"] == 0)
    ]
    columns = ["q05", "q10", "q25", "q50", "q75", "q90", "q95"]
    np.testing.assert_allclose(served, mine[columns].to_numpy()[:2], atol=1e-5)


LOAD_MODEL = """
import json, warnings, logging
warnings.simplefilter("ignore")
import mlflow
mlflow.set_tracking_uri("{uri}")
client = mlflow.MlflowClient()
experiment = client.get_experiment_by_name("smoke")
found = client.search_logged_models(
    [experiment.experiment_id], filter_string="name = 'smoke-linear'"
)
runs = {{m.source_run_id: m for m in found}}
for run_id, model in runs.items():
    run = client.get_run(run_id)
    if run.data.params["fold"] == "0" and run.data.params["history"] == "last 16":
        loaded = mlflow.pyfunc.load_model(f"models:/{{model.model_id}}")
        folder = mlflow.artifacts.download_artifacts(f"models:/{{model.model_id}}")
        example = mlflow.models.Model.load(folder).load_input_example(folder)
        answer = loaded.predict(example).drop(columns="point")
        print(json.dumps(answer.to_numpy().tolist()))
"""


class SeesTheFuture:
    """Reads what lies behind the information set: the certificate must say so."""

    def fit(self, train, validation):
        pass

    def forecast(self, samples):
        centre = np.zeros(len(samples))
        for row, entity in enumerate(samples.entity):
            line = samples.timelines[entity]
            later = line.rows[samples.stop[row] :][:3]
            centre[row] = np.nansum(line.arrays.values[later, 0])
        width = np.linspace(-1, 1, len(LEVELS))
        return Forecasts(centre[:, None] + width)


def test_a_forecaster_that_reads_the_future_fails_the_certificate(tmp_path):
    finished = run(
        "smoke",
        overrides=[
            *settings(tmp_path),
            "forecasters={ewma: {kind: ewma}}",
            "history_lengths=[]",
        ],
        forecasters={"cheat": SeesTheFuture()},
    )
    certificate = json.loads((finished.folder / "certificate.json").read_text())
    failed = [c["name"] for c in certificate["checks"] if c["num_failures"]]
    assert certificate["passed"] is False
    assert failed == ["forecasts of cheat without the future"]


class LastMoves:
    """A user's own forecaster: the training quantiles in units of the scale."""

    digest = "last-moves-1"

    def fit(self, train, validation):
        self._quantiles = np.quantile(train.scaled_target, LEVELS)
        assert np.isfinite(validation.target).all()

    def forecast(self, samples):
        assert np.isnan(samples.target).all()
        return Forecasts(samples.scale[:, None] * self._quantiles)


def test_a_user_s_own_log_and_forecaster_take_part_in_everything(tmp_path):
    experiment, base = load_experiment("smoke")
    log = load_log(experiment, base)
    config = experiment.model_dump(mode="json")
    config["sources"] = []
    config["forecasters"] = {"ewma": {"kind": "ewma"}, "linear": {"kind": "linear"}}
    config["history_lengths"] = []
    finished = run(
        config,
        overrides=settings(tmp_path),
        log=log,
        forecasters={"mine": LastMoves()},
    )
    assert set(finished.scores["forecaster"]) == {"ewma", "linear", "mine"}
    assert finished.report.is_file()
    told = json.loads((finished.folder / "run.json").read_text())
    assert told["given"] == ["the configuration", "an own log", "the forecaster mine"]
    assert told["command"].startswith("infoset.pipeline.run({...}, overrides=[")
    latency = pd.read_parquet(finished.folder / "latency.parquet")
    at = latency[(latency["workload"] == "fresh") & (latency["history_length"] == 16)]
    assert set(at["forecaster"]) == {"ewma", "linear", "mine"}
    assert (at["p50_us"] > 0).all()
    pairs = finished.comparison[["forecaster", "other"]].to_numpy().ravel()
    assert "mine" in pairs


def test_serial_and_processes_give_the_same_bytes(finished, tmp_path):
    overrides = [
        *settings(tmp_path),
        "executor.kind=processes",
        "forecasters={linear: {kind: linear}, ewma: {kind: ewma}}",
        "history_lengths=[]",
    ]
    other = run("smoke", overrides=overrides).forecasts
    keys = ["forecaster", "history", "fold", "seed", "entity", "forecast_time"]
    both = other[keys].merge(finished.forecasts, on=keys)
    pd.testing.assert_frame_equal(both[other.columns], other)


def test_nothing_is_printed_and_nothing_is_left_in_the_working_folder(tmp_path):
    script = (
        "from infoset.pipeline import run\n"
        "run('smoke', overrides=['forecasters={ewma: {kind: ewma}, "
        "linear: {kind: linear}}', 'history_lengths=[]'])\n"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"runs", "mlflow.db", "mlartifacts"}


def test_importing_for_the_command_line_is_light():
    heavy = ["torch", "pytorch_lightning", "mlflow", "matplotlib", "sklearn"]
    script = f"import sys, infoset.pipeline.cli; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
