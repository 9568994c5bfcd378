"""`infoset stream` as a process: signals, kills, restarts, files, replays."""

import json
import signal
import time

import numpy as np
import pandas as pd
import pytest
from live_feeds import HOUR, START
from live_run import (
    acknowledged_in,
    feed_lines,
    forecasts_in,
    joined,
    make_stream_run,
)
from soak.soak_stream import MEMORY_BAR, soak
from stream_server import StreamServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server():
    with StreamServer() as server:
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_stream_run(tmp_path_factory.mktemp("made"), num_entities=3)


@pytest.fixture(scope="module")
def feed():
    return list(feed_lines(num_lines=300, num_entities=3, seed=7))


def summary(notices):
    return json.loads(notices.splitlines()[-1])


def test_a_restart_after_sigterm_equals_an_uninterrupted_stream_byte_for_byte(
    server, made, feed, tmp_path
):
    """Stopped at lines that cut instants in two; the silence before is no end of them."""
    command = ("stream", made, "--events", "-", "--settle", "3600", "--state")
    code, whole, _ = server.run(
        *(*command, tmp_path / "whole"), folder=tmp_path, content=joined(feed)
    )
    assert code == 0
    said: list[bytes] = []
    done = 0
    for stop in (40, 41, 137, 300):
        process = server.start(*command, tmp_path / "torn", folder=tmp_path)
        assert json.loads(process.stdout.readline()) == {"ack": done}
        process.send(joined(feed[done:stop]))
        if stop < len(feed):
            said += process.wait_for(stop)
            process.kill(signal.SIGTERM)
        code, rest = process.communicate()
        assert code == 0
        said += rest
        done = stop
    assert forecasts_in(said) == forecasts_in(whole)
    assert len(forecasts_in(whole)) > 250


def test_events_can_be_fed_one_at_a_time_and_are_answered_after_a_silence(
    server, made, tmp_path
):
    process = server.start("stream", made, "--events", "-", folder=tmp_path)
    assert json.loads(process.stdout.readline()) == {"ack": 0}
    event = json.loads(next(feed_lines(num_lines=1, num_entities=3)))
    for place in range(2):
        event["available_at"] += 1_000_000_000
        process.send(json.dumps(event).encode() + b"\n")
        assert json.loads(process.stdout.readline()) == {"ack": place + 1}
        answer = json.loads(process.stdout.readline())
        assert (answer["entity"], answer["line"]) == (event["entity"], place + 1)
        assert answer["num_events"] == place + 1
    assert process.communicate() == (0, [])
    # Without --state everything is in the run's folder.
    [state] = (made / "streams").iterdir()
    assert state.name.startswith("linear-fold")


def test_malformed_lines_are_refused_by_number_and_the_stream_goes_on(
    server, made, feed, tmp_path
):
    sound = [line for line in feed[:20] if line.endswith(b"}")]
    bad = [*sound[:3], b"{", *sound[3:], b'{"entity": "E000"}']
    code, said, notices = server.run(
        *("stream", made, "--events", "-", "--state", tmp_path / "state"),
        folder=tmp_path,
        content=joined(bad),
    )
    told = [json.loads(line) for line in notices.splitlines()]
    refused = [notice["line"] for notice in told if "error" in notice]
    assert code == 0
    assert refused == [4, len(bad)]
    assert told[-1]["refused"] == 2
    assert told[-1]["events"] == len(sound)
    assert acknowledged_in(said)[-1] == len(bad)
    for line in said:
        json.loads(line, parse_constant=pytest.fail)


def test_a_file_is_gone_on_with_and_another_file_is_another_feed(
    server, made, feed, tmp_path
):
    command = ("stream", made, "--state", tmp_path / "state", "--events")
    path = tmp_path / "feed.jsonl"
    path.write_bytes(joined(feed[:50]))
    _, said, _ = server.run(*command, path, folder=tmp_path)
    assert acknowledged_in(said)[-1] == 50
    path.write_bytes(joined(feed[:80]))
    _, said, notices = server.run(*command, path, folder=tmp_path)
    assert acknowledged_in(said)[0] == 50
    assert summary(notices)["lines"] == 30
    other = tmp_path / "other.jsonl"
    other.write_bytes(joined(feed[80:90]))
    _, said, notices = server.run(*command, other, folder=tmp_path)
    assert acknowledged_in(said)[0] == 0
    assert "another feed than before; its lines are numbered from 1" in notices


def test_a_tape_is_replayed_at_its_speed_times_a_factor(server, made, tmp_path):
    seconds = [0, 1, 1, 2, 12]
    frame = pd.DataFrame(
        {
            "entity": ["E000", "E000", "E001", "E002", "E000"],
            "stream": "bars/1d",
            "event_time": pd.to_datetime([START + n for n in range(5)], utc=True),
            "available_at": pd.to_datetime(
                [START + HOUR + second * 10**9 for second in seconds], utc=True
            ),
            "value": [100.0, 101.0, 102.0, np.nan, 103.0],
            "change": [1.0, 2.0, 3.0, 4.0, np.nan],
        }
    )
    frame.to_parquet(tmp_path / "tape.parquet")
    command = ("stream", made, "--events", tmp_path / "tape.parquet")
    process = server.start(
        *(*command, "--state", tmp_path / "paced", "--replay", "8"), folder=tmp_path
    )
    said, times = [], []
    for line in process.stdout:
        said.append(line.rstrip(b"\n"))
        if forecasts_in([line]):
            times.append(time.monotonic())
    assert process.communicate()[0] == 0
    assert [json.loads(line)["line"] for line in forecasts_in(said)] == [1, 3, 3, 4, 5]
    since, due = np.array(times) - times[0], np.array(seconds) / 8
    assert (since >= due - 0.05).all()
    assert (since[:-1] < due[-1]).all()  # answered then, not when the next one happens
    for factor in ([], ["--replay", "0"]):
        _, fast, _ = server.run(
            *(*command, "--state", tmp_path / f"fast{len(factor)}", *factor),
            folder=tmp_path,
        )
        assert forecasts_in(fast) == forecasts_in(said)


def test_a_reader_that_goes_away_loses_nothing(server, made, feed, tmp_path):
    command = ("stream", made, "--events", "-", "--settle", "3600", "--state")
    _, whole, _ = server.run(
        *(*command, tmp_path / "whole"), folder=tmp_path, content=joined(feed)
    )
    process = server.start(*command, tmp_path / "state", folder=tmp_path)
    assert json.loads(process.stdout.readline()) == {"ack": 0}
    process.stdout.close()
    process.send(joined(feed[:200]))
    process.close()
    assert process.wait() == 1
    assert "nobody" not in process.notices.read_text()
    assert "forecasts must be read by somebody" in process.notices.read_text()
    process = server.start(*command, tmp_path / "state", folder=tmp_path)
    said = []
    for line in process.stdout:
        said.append(line.rstrip(b"\n"))
        if b'"ack"' in line:
            break
    process.send(joined(feed[acknowledged_in(said)[0] :]))
    code, rest = process.communicate()
    assert code == 0
    assert forecasts_in([*said, *rest]) == forecasts_in(whole)


def test_kills_lose_nothing_and_change_no_forecast(server, made, tmp_path):
    """The long form is `make soak`: two million events, 500 entities, 20 kills."""
    whole, torn, differing = soak(server, made, tmp_path, num_lines=10_000, kills=3)
    assert torn.kills == 3
    assert torn.num_lost == 0
    assert differing == 0
    assert torn.num_forecasts == whole.num_forecasts > 9_500
    assert whole.memory_change < MEMORY_BAR


def test_a_stream_that_acknowledges_what_it_did_not_write_is_caught(
    server, made, tmp_path, monkeypatch
):
    """Plant a journal that keeps nothing: the comparison must see what is lost."""
    monkeypatch.setattr(server, "careless", True)
    _, torn, _ = soak(server, made, tmp_path, num_lines=5_000, kills=1)
    assert torn.kills == 1
    assert torn.num_lost > 0
