"""What `infoset stream` refuses before it takes in a line."""

import json
import os
import re
import shutil
import sys
from hashlib import sha256

import pandas as pd
import pytest
from live_feeds import START
from live_run import feed_lines, joined, make_stream_run

from infoset.pipeline import cli
from infoset.pipeline.live.stored_model import stored_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_stream_run(tmp_path_factory.mktemp("made"), num_entities=3)


@pytest.fixture(scope="module")
def feed():
    return list(feed_lines(num_lines=5, num_entities=3))


@pytest.fixture
def command(monkeypatch, capsys):
    """Return what calls `infoset stream` here; it gives the exit code and the notices."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["infoset", "stream", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code or 0, capsys.readouterr().err

    return call


def refusals(made, folder):
    tape = pd.DataFrame(
        {
            "entity": "E000",
            "stream": "bars/1d",
            "event_time": pd.to_datetime([START, START], utc=True),
            "available_at": pd.to_datetime([START + 1, START], utc=True),
            "value": 1.0,
        }
    )
    tape.to_parquet(folder / "back.parquet")
    tape.drop(columns="stream").to_parquet(folder / "short.parquet")
    naive = tape.assign(available_at=tape["available_at"].dt.tz_localize(None))
    naive.to_parquet(folder / "naive.parquet")
    tape.assign(value=b"x").to_parquet(folder / "bytes.parquet")
    (folder / "empty.jsonl").write_text("")
    empty = ("--events", folder / "empty.jsonl")
    return {
        r"RUN must be the folder of a finished run; got": (folder, *empty),
        r"--forecaster must be one with attention \(linear\); got 'linaer'. Did you": (
            *(made, *empty, "--forecaster", "linaer"),
        ),
        r"--fold must be one of .*, or count back from -1; got 9": (
            *(made, *empty, "--fold", "9"),
        ),
        r"--seed must be one of 0; got 5": (made, *empty, "--seed", "5"),
        r"entity must be one of E000, E001, E002; got 'E00'": (
            *(made, *empty, "--entity", "E00"),
        ),
        r"--replay must have a stored tape": (made, "--events", "-", "--replay", "1"),
        r"--events must be a file of JSON lines.*No such file": (
            *(made, "--events", folder / "none"),
        ),
        r"ordered by available_at; got 2024-01-01T00:00:00Z after .*01Z in row 1 of": (
            *(made, "--events", folder / "back.parquet"),
        ),
        r"must have the columns entity, stream, .*short.parquet has no stream": (
            *(made, "--events", folder / "short.parquet"),
        ),
        r"available_at must be timezone-aware; got timestamp\[\ws\] in": (
            *(made, "--events", folder / "naive.parquet"),
        ),
        r"a value of a tape must be a number; got binary in column 'value'": (
            *(made, "--events", folder / "bytes.parquet"),
        ),
    }


def test_bad_arguments_are_refused_with_exit_code_2_and_what_to_do(
    command, made, tmp_path
):
    for message, arguments in refusals(made, tmp_path).items():
        code, notices = command(*arguments, "--state", tmp_path / "state")
        assert code == 2, (message, notices)
        assert re.search(message, notices), (message, notices)


@pytest.fixture
def begun(command, made, feed, tmp_path):
    """Return the options of a stream that was begun."""
    path = tmp_path / "feed.jsonl"
    path.write_bytes(joined(feed))
    options = ("--events", path, "--state", tmp_path / "state")
    assert command(made, *options)[0] == 0
    return options


def test_a_state_goes_on_only_as_it_was_begun(command, made, begun, tmp_path):
    code, notices = command(made, *begun, "--on-request")
    assert code == 2
    assert "must go on as it was begun; got on_request true for the state in" in notices
    code, notices = command(made, *begun, "--entity", "E000")
    assert code == 2
    assert 'got entities ["E000"] for the state in' in notices
    other = make_stream_run(tmp_path, num_entities=3, history={"last": 8})
    code, notices = command(other, *begun)
    assert code == 2
    assert "must go on with the model that began it; got another one" in notices
    assert command(made, *begun)[0] == 0


def test_a_file_whose_taken_lines_were_changed_is_not_fed_again(
    command, made, begun, feed, tmp_path
):
    path = tmp_path / "feed.jsonl"
    for lines in ([*feed[:2], feed[3]], [*feed[:3], feed[3] + b" ", feed[4]]):
        path.write_bytes(joined(lines))
        code, notices = command(made, *begun)
        assert code == 2
        assert "--events must begin with the lines that were taken from it" in notices
        assert "a change in the first 5 lines" in notices
    path.write_bytes(joined(feed))
    assert command(made, *begun)[0] == 0


def test_the_backend_may_differ_from_restart_to_restart(command, made, begun):
    assert command(made, *begun, "--backend", "torch")[0] == 0
    code, notices = command(made, *begun, "--backend", "tensorrt")
    assert code == 2
    assert "tensorrt" in notices


def test_a_damaged_state_is_refused(command, made, begun, tmp_path):
    [snapshot] = (tmp_path / "state").glob("snapshot-*")
    os.truncate(snapshot, snapshot.stat().st_size - 1)
    code, notices = command(made, *begun)
    assert code == 2
    assert "a snapshot must be as it was written" in notices


def test_an_older_network_in_the_folder_is_not_taken_for_the_run_s(made, tmp_path):
    """A folder may hold tasks of earlier runs; those with other forecasts are not it."""
    copy = tmp_path / "copy"
    shutil.copytree(made, copy, ignore=shutil.ignore_patterns("streams"))
    [own] = (copy / "tasks").iterdir()
    older = copy / "tasks" / "0000000000000000"
    shutil.copytree(own, older)
    frame = pd.read_parquet(older / "forecasts.parquet")
    frame.assign(mean=frame["mean"] + 1).to_parquet(older / "forecasts.parquet")
    record = json.loads((older / "task.json").read_text())
    content = (older / "forecasts.parquet").read_bytes()
    record["sha256"]["forecasts.parquet"] = sha256(content).hexdigest()
    (older / "task.json").write_text(json.dumps(record))

    def chosen():
        return stored_model(copy, forecaster="linear", fold=-1, seed=None)

    assert chosen().folder == own / "model"
    shutil.rmtree(own)
    with pytest.raises(ValueError, match=r"the weights of linear must be in .*Run the"):
        chosen()
