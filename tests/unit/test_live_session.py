"""A live session: ties, late events, boundaries, and what equals the batch."""

import json
import os
import signal

import numpy as np
import pytest
from live_feeds import (
    HOUR,
    START,
    RecordingStream,
    fed,
    fitted,
    line,
    request,
    session,
    words,
)
from worlds import sample_world

from infoset.data import History
from infoset.pipeline.live.replay import Replay
from infoset.pipeline.live.stop_signal import StopSignal
from infoset.pipeline.live.tape import Tape, write_tape
from infoset.pipeline.live.vocabulary import StreamWords, Vocabulary

T = START + 10 * HOUR


def forecasts(answers):
    return [answer for answer in answers if "entity" in answer]


def test_events_of_one_instant_are_one_forecast_in_the_order_of_a_timeline():
    stream = RecordingStream()
    macro = {"stream": "macro/CPI", "available_at": T}
    answers = fed(
        session(streams={"A": stream, "B": RecordingStream()}),
        line(**macro, event_time=START, entity="*"),
        line(available_at=T, event_time=START + 2),
        line(available_at=T, event_time=START + 1, sequence=5),
        line(available_at=T, event_time=START + 1, sequence=4),
    )
    told = [(f["entity"], f["num_events"], f["line"]) for f in forecasts(answers)]
    assert told == [("A", 4, 4), ("B", 1, 4)]
    fed_events = [(e.stream, e.event_time - START, e.revision) for e in stream.events]
    assert fed_events == [(0, 1, 0), (0, 1, 1), (0, 2, 0), (1, 0, 0)]
    assert not stream.events[-1].own


def test_a_forecast_comes_when_its_instant_is_complete_and_not_before():
    live = session()
    assert live.take(1, line(available_at=T)) == []
    assert live.take(2, line(available_at=T, event_time=START + 1)) == []
    [answer] = live.take(3, line(available_at=T + 1, entity="B"))
    assert answer.content["num_events"] == 2
    assert answer.content["at"] == "2024-01-01T10:00:00Z"
    assert answer.content["line"] == 2
    assert live.is_waiting
    [last] = live.complete()
    assert last.content["entity"] == "B"
    assert not live.is_waiting


def test_a_late_event_is_applied_and_flagged_once_and_never_put_into_the_past():
    stream = RecordingStream()
    answers = fed(
        session(streams={"A": stream, "B": RecordingStream()}),
        line(available_at=T),
        line(available_at=T + HOUR, event_time=START + 1),
        line(available_at=T, event_time=START + 2),
        line(available_at=T + 2 * HOUR, event_time=START + 3),
    )
    assert [f.get("late") for f in forecasts(answers)] == [None, None, True, None]
    assert [f["at"][11:13] for f in forecasts(answers)] == ["10", "11", "11", "12"]
    [notice] = [answer for answer in answers if answer not in forecasts(answers)]
    assert notice["line"] == 3
    assert notice["late"].startswith("2024-01-01T10:00:00Z was forecast or passed")
    clocks = [event.available_at for event in stream.events]
    assert clocks == [T, T + HOUR, T + HOUR, T + 2 * HOUR]


def test_an_event_of_an_instant_that_was_forecast_is_late():
    live = session()
    live.take(1, line(available_at=T))
    live.complete()  # the feed was silent
    live.take(2, line(available_at=T, event_time=START + 1))
    notice, forecast = live.complete()
    assert "late" in notice.content
    assert forecast.content["late"] is True
    assert forecast.content["num_events"] == 2
    assert live.counts.late == 1


def test_a_market_wide_event_is_late_only_for_those_who_are_ahead():
    answers = fed(
        session(),
        line(available_at=T),
        line(stream="macro/CPI", entity="*", available_at=T - 1),
    )
    late = {f["entity"]: f.get("late", False) for f in forecasts(answers)[1:]}
    assert late == {"A": True, "B": False}


def test_on_request_only_requests_are_answered_and_they_see_their_instant():
    live = session(on_request=True)
    answers = fed(
        live,
        line(available_at=T),
        request("A", T - 1),
        request("A", T),
        line(available_at=T + 1, event_time=START + 1),
        request("A", T + 5),
        request("A", T + 5),
        request("A", T),
    )
    told = [(f["line"], f["num_events"]) for f in forecasts(answers)]
    assert told == [(2, 0), (3, 1), (5, 2), (6, 2)]
    assert forecasts(answers)[2] | {"line": 6} == forecasts(answers)[3]
    [refused] = [answer for answer in answers if "error" in answer]
    assert refused["line"] == 7
    assert "must not be made before the newest event was available" in refused["error"]


def test_an_event_after_a_forecast_that_would_have_seen_it_is_late():
    answers = fed(
        session(on_request=True),
        request("A", T),
        line(available_at=T - 1),
        request("A", T),
        request("A", T),
    )
    assert [f.get("late") for f in forecasts(answers)] == [None, True, None]


def test_a_strict_boundary_sees_an_event_one_nanosecond_later():
    answers = fed(
        session(boundary="strict"),
        line(available_at=T),
        request("A", T),
        line(available_at=T + 1, event_time=START + 1),
    )
    told = [(f["at"], f["num_events"]) for f in forecasts(answers)]
    assert told == [
        ("2024-01-01T10:00:00Z", 0),
        ("2024-01-01T10:00:00.000000001Z", 1),
        ("2024-01-01T10:00:00.000000002Z", 2),
    ]
    assert not any("late" in answer for answer in answers)


def test_a_refused_line_has_its_number_and_the_others_go_on():
    live = session()
    answers = fed(live, line(available_at=T), b"nonsense", line(available_at=T + 1))
    assert [a["line"] for a in answers if "error" in a] == [2]
    assert [f["num_events"] for f in forecasts(answers)] == [1, 2]
    assert (live.counts.lines, live.counts.refused, live.counts.events) == (3, 1, 2)


def test_an_event_that_is_told_twice_counts_once_and_never_with_two_values():
    live = session()
    same = {"available_at": T, "change": None}
    answers = fed(
        live,
        line(**same),
        line(**same),
        line(**same, sequence=1),
        line(**same, sequence=1, value=101.0),
        line(**same, sequence=2, value=102.0),
    )
    assert [f["num_events"] for f in forecasts(answers)] == [3]
    assert live.counts.duplicates == 1
    [refused] = [answer for answer in answers if "error" in answer]
    assert refused["line"] == 4
    assert "one event must have one set of values; got two for" in refused["error"]


def test_other_entities_of_the_model_are_left_out_where_one_is_chosen():
    live = session(vocabulary=words(entities=("B",)))
    answers = fed(live, line(available_at=T), line(available_at=T, entity="B"))
    assert [f["entity"] for f in answers] == ["B"]
    assert live.counts.not_streamed == 1


def test_num_events_is_that_of_the_history():
    month = 32 * 24 * HOUR
    lines = [line(available_at=T + n, event_time=START + n) for n in range(4)]
    lines += [request("A", T + month), line(available_at=T + month)]
    for history, expected in (
        (History(last=2), [1, 2, 2, 2, 2, 2]),
        (History(), [1, 2, 3, 4, 4, 5]),
        (History(since="month"), [1, 2, 3, 4, 0, 1]),
    ):
        told = [
            f["num_events"] for f in forecasts(fed(session(history=history), *lines))
        ]
        assert told == expected, history


def test_a_forecast_that_is_not_finite_is_undefined_with_its_reason():
    class Broken(RecordingStream):
        def forecast(self, _):
            raise ValueError("quantiles must be finite")

    [answer] = fed(session(streams={"A": Broken(), "B": Broken()}), line())
    assert answer["undefined"] == "quantiles must be finite"
    assert "mean" not in answer


def test_a_session_goes_on_from_its_state_also_within_an_instant():
    lines = [line(available_at=T + n // 2, event_time=START + n) for n in range(6)]
    whole = fed(session(), *lines)
    one = session()
    answers = [a for n in range(3) for a in one.take(n + 1, lines[n])]
    other = session(streams={n: feed.stream.fork() for n, feed in one.feeds.items()})
    other.restore(*one.state())
    answers += [a for n in range(3, 6) for a in other.take(n + 1, lines[n])]
    assert [dict(a.content) for a in [*answers, *other.complete()]] == whole


def vocabulary_of(forecaster):
    about = forecaster.fitted_on()
    streams = {}
    for code, name in enumerate(about.streams):
        columns = tuple(c for owner, c in about.channels if owner == name)
        change = words().streams["bars/1d"].change if "change" in columns else None
        streams[name] = StreamWords(name, code, columns, change, is_scheduled=False)
    return Vocabulary(about.entities, about.entities, streams, about.width)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "softmax"])
@pytest.mark.parametrize(
    "history", [History(), History(last=9), History(since="month")]
)
def test_a_tape_without_changes_and_revisions_gives_the_batch_forecasts(
    kind, history, tmp_path
):
    """Revisions, ties and market-wide events: what is derived is what the log holds."""
    samples, forecaster = fitted(kind, history)
    log = sample_world().log
    raw = log.with_table("bars/1d", log.table("bars/1d").drop_columns(["change"]))
    for stream in raw.streams:
        raw = raw.with_table(stream, raw.table(stream).drop_columns(["revision"]))
    write_tape(raw, tmp_path / "tape.parquet")
    vocabulary = vocabulary_of(forecaster)
    live = session(
        streams={name: forecaster.stream(name) for name in vocabulary.entities},
        vocabulary=vocabulary,
        history=history,
        on_request=True,
    )
    tape = Tape(tmp_path / "tape.parquet", vocabulary)
    lines = []
    while batch := tape.read(None):
        lines += batch
    rows = np.argsort(samples.forecast_time, kind="stable")[::3]
    expected = forecaster.forecast(samples)
    number = 0
    for row in rows.tolist():
        at, entity = int(samples.forecast_time[row]), str(samples.entity[row])
        while lines and json.loads(lines[0])["available_at"] <= at:
            number += 1
            assert live.take(number, lines.pop(0)) == []
        [answer] = live.take(number, request(entity, at))
        assert answer.content["num_events"] == samples.num_events[row]
        streamed = [answer.content[q] for q in ("q05", "q50", "q95", "mean")]
        told = [*expected.quantiles[row, [0, 3, 6]].tolist(), expected.mean[row]]
        change = np.abs(np.array(streamed) - told).max() / samples.scale[row]
        assert change <= 1e-5


def test_a_replay_answers_an_instant_before_it_waits_also_between_two_reads():
    lines = [line(available_at=START + HOUR + n * 10**7) for n in (0, 0, 5, 9)]
    with StopSignal() as stop:
        replay = Replay(1.0, words(), stop)
        parts = [*replay.parts(lines[:2]), *replay.parts([b"nonsense"])]
        parts += replay.parts(lines[2:])
        assert parts == [
            (lines[:2], False),
            ([b"nonsense"], False),
            ([], True),
            ([lines[2]], True),
            ([lines[3]], False),
        ]


def test_a_signal_ends_the_waiting_of_a_replay():
    lines = [line(available_at=START + HOUR), line(available_at=START + 2 * HOUR)]
    with StopSignal() as stop:
        parts = Replay(1.0, words(), stop).parts(lines)
        assert next(parts) == (lines[:1], True)
        os.kill(os.getpid(), signal.SIGTERM)
        assert list(parts) == []


def test_a_request_beyond_the_calendar_is_refused_and_the_feed_goes_on():
    history = History(since="session", calendar="XNYS")
    far = 7_289_568_000_000_000_000  # 2201-01-01
    live = session(history=history)
    answers = fed(live, line(), request("A", far), request("A", START + 24 * HOUR))
    refused, last = answers[-2:]
    assert refused["line"] == 2
    assert "calendar 'XNYS' covers" in refused["error"]
    assert (last["line"], last["entity"]) == (3, "A")


@pytest.mark.parametrize(
    "nested", [b'{"forecast": ' + b"[" * n + b"]" * n + b"}" for n in (50, 993, 9999)]
)
def test_a_request_that_is_nested_deeply_is_refused(nested):
    (answer,) = fed(session(), nested)
    assert answer["line"] == 1
    assert "must be" in answer["error"]
