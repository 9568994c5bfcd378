"""`infoset stream` of shipped experiments: the batch forecasts, and what its page shows."""

import json
import re
import shlex
import shutil
import signal
from functools import cache
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pytest
from live_run import forecasts_in, joined, make_shipped_run, shipped_events
from stream_server import StreamServer

from infoset.data.instants import nanoseconds
from infoset.pipeline.config import load_experiment
from infoset.pipeline.live.stored_model import stored_model
from infoset.pipeline.live.tape import Tape, write_tape
from infoset.pipeline.live.vocabulary import Vocabulary

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"
QUANTILES = ["q05", "q10", "q25", "q50", "q75", "q90", "q95"]
# Of streamed and batch forecasts, in units of the target's spread.
AGREEMENT = 1e-5
# The histories that are shipped, and for each experiment one with resets.
SHIPPED = [
    ("smoke", "{last: 16}"),
    ("smoke", "{since: year}"),
    ("treasury", "{last: 64}"),
    ("treasury", "{since: quarter}"),
]


@pytest.fixture(scope="module")
def server():
    with StreamServer() as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return what makes the run of a shipped experiment at a history, once."""

    @cache
    def run(name, history):
        return make_shipped_run(tmp_path_factory.mktemp(name), name, history)

    return run


def summary(notices):
    return json.loads(notices.splitlines()[-1])


@cache
def recorded(run_folder):
    """Write the run's events as a tape; return its lines with their availability.

    Changes and revisions are left out: the stream has to find them.
    """
    path = run_folder / "tape.parquet"
    experiment, _ = load_experiment(run_folder / "config.yaml")
    log = shipped_events(experiment)
    for stream in log.streams:
        table = log.table(stream)
        derived = {"change", "revision"} & set(table.column_names)
        log = log.with_table(stream, table.drop_columns(sorted(derived)))
    write_tape(log, path)
    model = stored_model(run_folder, forecaster="linear", fold=-1, seed=None)
    tape = Tape(path, Vocabulary.of(model.load().fitted_on(), experiment))
    lines = []
    while batch := tape.read(None):
        lines += [(json.loads(line)["available_at"], line) for line in batch]
    return lines


def requests(batch):
    """Return the wishes for a run's forecasts, with their times."""
    pairs = zip(nanoseconds(batch["forecast_time"]), batch["entity"], strict=True)
    return [
        (int(at), json.dumps({"forecast": {"entity": name, "at": int(at)}}).encode())
        for at, name in pairs
    ]


@pytest.mark.parametrize("forecaster", ["linear", "softmax"])
@pytest.mark.parametrize(("name", "history"), SHIPPED)
def test_a_stream_gives_the_batch_forecasts_also_when_it_is_restored_in_between(
    server, made, name, history, forecaster, tmp_path
):
    run_folder = made(name, history)
    batch = pd.read_parquet(run_folder / "forecasts.parquet")
    batch = batch[batch["forecaster"] == forecaster]
    batch = batch.sort_values("forecast_time", kind="stable")
    last = batch["forecast_time"].iloc[-1].value
    events = [(at, line) for at, line in recorded(run_folder) if at <= last]
    # Requests come after the events of their instant: `sorted` keeps the order.
    together = sorted([*events, *requests(batch)], key=lambda pair: pair[0])
    lines = [line for _, line in together]
    half = [at for at, _ in together].index(requests(batch)[len(batch) // 2][0])
    said: list[bytes] = []
    for done, stop in ((0, half), (half, len(lines))):
        process = server.start(
            *("stream", run_folder, "--events", "-", "--forecaster", forecaster),
            *("--on-request", "--state", tmp_path / "state", "--settle", "3600"),
            folder=tmp_path,
        )
        feeder = Thread(target=process.send, args=(joined(lines[done:stop]),))
        feeder.start()
        said += process.wait_for(stop)
        feeder.join()
        process.kill(signal.SIGTERM)
        code, rest = process.communicate()
        assert code == 0
        told = summary(process.notices.read_text())
        assert (told["end"], told["refused"], told["late"]) == ("SIGTERM", 0, 0)
        said += rest
    streamed = pd.DataFrame([json.loads(line) for line in forecasts_in(said)])
    assert len(streamed) == len(batch) > 100
    assert pd.to_datetime(streamed["at"]).tolist() == batch["forecast_time"].tolist()
    for column in ("entity", "num_events"):
        assert streamed[column].tolist() == batch[column].tolist()
    columns = ["mean", *QUANTILES]
    spread = batch["target_scale"].to_numpy()[:, None]
    difference = streamed[columns].to_numpy() - batch[columns].to_numpy()
    assert np.abs(difference / spread).max() <= AGREEMENT
    # The events move each of them far more; else the agreement would say nothing.
    moves = np.std(batch[columns].to_numpy() / spread, axis=0)
    assert moves.min() > 100 * AGREEMENT


def blocks(language):
    """Return the code of the page on streaming in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """Return a folder in which the page's commands work."""
    (tmp_path / "runs").mkdir()
    run_folder = made(*SHIPPED[1])
    shutil.copytree(
        run_folder,
        tmp_path / "runs" / "smoke",
        ignore=shutil.ignore_patterns("streams"),
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands():
    """Return the page's command lines as words."""
    lines = re.findall(r"^    (.*\binfoset stream .*)$", PAGE.read_text(), re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_the_page_s_commands_answer_its_lines_as_it_shows(server, place):
    given, shown = blocks("json")
    (place / "events.jsonl").write_text(given)
    expected = list(map(json.loads, shown.splitlines()))
    [from_file, from_pipe] = commands()
    assert from_pipe[:2] == ["feed", "|"]
    assert from_pipe[-2:] == [">", "forecasts.jsonl"]
    for words, content in ((from_file, ""), (from_pipe[2:-2], given)):
        code, said, notices = server.run(
            *words[1:], folder=place, content=content.encode()
        )
        shutil.rmtree(place / "runs" / "smoke" / "streams")
        assert code == 0
        assert [json.loads(line)["line"] for line in notices.splitlines()[:-1]] == [3]
        told = list(map(json.loads, said))
        assert list(map(list, told)) == list(map(list, expected))
        for name in ("entity", "at", "line", "num_events", "late", "ack"):
            assert [t.get(name) for t in told] == [e.get(name) for e in expected]


def test_the_page_s_python_runs(place):
    [code] = blocks("python")
    exec(code, {})  # noqa: S102
    assert (place / "dgs10.safetensors").is_file()
