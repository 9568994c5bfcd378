"""Tapes: real events first, a continuation that says so, and a file that keeps both."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from worlds import sample_world

from infoset.data import History
from infoset.models.event_window import StreamEvent, stream_events
from infoset.pipeline.latency.files import read_tapes, write_tapes
from infoset.pipeline.latency.tape import Tape, longest_tapes

DAY = 86_400_000_000_000


def fields(event: StreamEvent) -> tuple[object, ...]:
    return (
        event.stream,
        event.own,
        event.event_time,
        event.available_at,
        event.revision,
        event.values.tobytes(),
    )


def yearly(num: int) -> Tape:
    """Return a tape of one event a year, each known two days later."""
    events = [
        StreamEvent(
            stream=n % 2,
            own=True,
            event_time=365 * DAY * n,
            available_at=(365 * n + 2) * DAY,
            revision=0,
            values=np.array([float(n), np.nan]),
        )
        for n in range(num)
    ]
    return Tape("A", events)


def test_the_longest_timelines_come_first_and_unknown_entities_not_at_all() -> None:
    samples = sample_world().samples(History(last=8))
    tapes = longest_tapes(samples, {"A", "B"})
    assert [tape.entity for tape in tapes] == ["A", "B"]
    line = samples.timelines["A"]
    whole = list(stream_events(line, 0, len(line)))
    assert [fields(e) for e in tapes[0].events] == [fields(e) for e in whole]
    assert [tape.entity for tape in longest_tapes(samples, {"B"})] == ["B"]
    assert longest_tapes(samples, set()) == []
    assert len(longest_tapes(samples, {"A", "B"}, most=1)) == 1


def test_a_tape_keeps_the_newest_events(monkeypatch) -> None:
    monkeypatch.setattr("infoset.pipeline.latency.tape.LONGEST", 5)
    samples = sample_world().samples(History(last=8))
    [tape] = longest_tapes(samples, {"A"})
    assert len(tape) == 5
    assert tape.arrivals.tolist() == samples.timelines["A"].available_at[-5:].tolist()


def test_the_continuation_is_the_tape_again_with_later_clocks() -> None:
    tape = yearly(4)
    assert tape.at(3) is tape.events[3]
    again = [tape.at(place) for place in range(12)]
    clocks = [event.available_at for event in again]
    assert clocks == sorted(clocks)
    assert len(set(clocks)) == 12
    for place in range(12):
        first, later = again[place % 4], again[place]
        assert later.available_at - later.event_time == 2 * DAY
        assert later.stream == first.stream
        assert later.values is first.values
    # The gap at the seam is a usual one.
    assert clocks[4] - clocks[3] == pytest.approx(365 * DAY, rel=1e-6)


def test_a_continuation_ends_before_the_clocks_do() -> None:
    tape = yearly(40)
    assert tape.why_too_short(40) is None
    assert tape.why_too_short(200) is None
    assert tape.why_too_short(300) == (
        "40 events, repeated to 300, would pass the year 2200"
    )
    # Real events are real, whatever their year.
    assert yearly(235).why_too_short(235) is None
    assert Tape("A", []).why_too_short(1) == "there is no event to measure with"


def test_tapes_come_back_from_their_file_bit_by_bit(tmp_path) -> None:
    samples = sample_world().samples(History(last=8))
    tapes = [*longest_tapes(samples, {"B", "A"}), yearly(3)]
    tapes[2] = Tape("third", tapes[2].events)
    path = tmp_path / "events.parquet"
    write_tapes(path, tapes[:2])
    found = read_tapes(path)
    assert [tape.entity for tape in found] == ["A", "B"]
    for tape, again in zip(tapes[:2], found, strict=True):
        assert [fields(e) for e in again.events] == [fields(e) for e in tape.events]
    write_tapes(path, [])
    assert read_tapes(path) == []


def test_a_file_of_other_content_is_refused(tmp_path) -> None:
    path = tmp_path / "events.parquet"
    pd.DataFrame({"a": [1]}).to_parquet(path)
    with pytest.raises(
        ValueError, match="a run must hold the events that latencies are measured with"
    ):
        read_tapes(path)
    path.write_bytes(b"x")
    with pytest.raises(
        ValueError, match=r"got .*events\.parquet\). Run the experiment"
    ):
        read_tapes(path)
