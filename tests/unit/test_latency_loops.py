"""The loops that time forecasts: turns, closed, open, and what a stall does to them."""

from __future__ import annotations

import time
from copy import copy

import numpy as np
import pytest

from infoset.models import LEVELS, Forecasts
from infoset.models.event_window import StreamEvent
from infoset.models.streaming import Backend, Stream
from infoset.pipeline.latency import closed_loop as closed_loop_module
from infoset.pipeline.latency.closed_loop import LoopLimits, closed_loop
from infoset.pipeline.latency.open_loop import (
    factor_for_rate,
    open_loop,
    poisson,
    recorded,
    response_times,
)
from infoset.pipeline.latency.percentiles import summary
from infoset.pipeline.latency.tape import Tape
from infoset.pipeline.latency.turns import FilledStream, Turns, service_us

DAY = 86_400_000_000_000


def tape(num: int = 40, entity: str = "A") -> Tape:
    """Return a tape of one event a day."""
    events = [
        StreamEvent(
            0,
            own=True,
            event_time=DAY * n,
            available_at=DAY * n + 5,
            revision=0,
            values=np.array([float(n)]),
        )
        for n in range(num)
    ]
    return Tape(entity, events)


class Clock:
    """A clock that a reading moves on by a microsecond, and work by as much as it says."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1_000
        return self.now


class FakeStream:
    """Remembers what it was fed; each forecast takes what the next entry says."""

    def __init__(self, clock: Clock | None = None, work_ns: list[int] | None = None):
        self.fed: list[StreamEvent] = []
        self.clock, self.work = clock, iter(work_ns or [])
        self.backend: Backend = "torch"
        self.state_bytes = 8

    def update(self, event: StreamEvent) -> None:
        self.fed.append(event)

    def forecast(self, at: int) -> Forecasts:
        assert at == self.fed[-1].available_at
        if self.clock is not None:
            self.clock.now += next(self.work)
        return Forecasts(np.zeros((1, len(LEVELS))))

    def snapshot(self):
        raise NotImplementedError

    def fork(self) -> Stream:
        twin = copy(self)
        twin.fed = list(self.fed)
        return twin


def fed(stream: Stream) -> list[StreamEvent]:
    assert isinstance(stream, FakeStream)
    return stream.fed


def filled(stream: FakeStream, length: int, of: Tape | None = None) -> FilledStream:
    of = of or tape()
    for place in range(length):
        stream.update(of.at(place))
    return FilledStream(stream, of, length)


def test_streaming_keeps_a_short_history_equally_long() -> None:
    turns = Turns([filled(FakeStream(), 10)], "streaming")
    for step in range(5):
        stream, event = turns.ready()
        assert len(fed(stream)) == 10
        assert float(event.values[0]) == 10 + step
        stream.update(event)


def test_a_long_history_grows_by_a_sixty_fourth_and_starts_again() -> None:
    turns = Turns([filled(FakeStream(), 130, tape(400))], "streaming")
    seen = []
    for _ in range(6):
        stream, event = turns.ready()
        assert event.available_at > fed(stream)[-1].available_at
        seen.append((len(fed(stream)), float(event.values[0])))
        stream.update(event)
    assert seen == [
        (130, 130),
        (131, 131),
        (130, 132),
        (131, 133),
        (130, 134),
        (131, 135),
    ]


def test_a_fresh_window_slides_along_the_tape_and_past_its_end() -> None:
    turns = Turns([filled(FakeStream(), 38)], "fresh")
    clocks, counts = [], []
    for _ in range(5):
        stream, event = turns.ready()
        stream.update(event)
        clocks.append(event.available_at)
        counts.append(len(fed(stream)))
    assert clocks == sorted(clocks)
    assert len(set(clocks)) == 5
    assert counts == [39, 40, 41, 42, 43]


def test_forks_of_a_state_near_the_end_of_a_tape_read_its_last_events_again() -> None:
    turns = Turns([filled(FakeStream(), 38)], "streaming")
    values = [float(turns.ready()[1].values[0]) for _ in range(5)]
    assert values == [38, 39, 38, 39, 38]


def test_requests_go_round_several_streams() -> None:
    tapes = [tape(entity=name) for name in "AB"]
    streams = [FakeStream(), FakeStream()]
    turns = Turns(
        [filled(s, 4, t) for s, t in zip(streams, tapes, strict=True)], "fresh"
    )
    order = []
    for _ in range(4):
        stream, event = turns.ready()
        stream.update(event)
        order.append((len(fed(stream)), float(event.values[0])))
    assert order == [(5, 4.0), (5, 4.0), (6, 5.0), (6, 5.0)]


def test_rewinding_starts_from_the_first_request_and_leaves_what_was_filled() -> None:
    base = FakeStream()
    turns = Turns([filled(base, 6)], "fresh")
    first = turns.ready()[1]
    turns.ready()[0].update(first)
    turns.rewind()
    assert turns.ready()[1] is first
    assert len(base.fed) == 6


class Told(FakeStream):
    """Notes who is asked, and for which event."""

    def __init__(self, name: str, asked: list[tuple[str, float]]) -> None:
        super().__init__()
        self.name, self.asked = name, asked

    def forecast(self, at: int) -> Forecasts:
        self.asked.append((self.name, float(self.fed[-1].values[0])))
        return super().forecast(at)


def test_forecasters_take_turns_in_blocks_that_begin_untimed(monkeypatch) -> None:
    monkeypatch.setattr(closed_loop_module, "_BLOCK", 2)
    monkeypatch.setattr(closed_loop_module, "_REHEARSED", 3)
    asked: list[tuple[str, float]] = []
    turns = {n: Turns([filled(Told(n, asked), 3)], "fresh") for n in ("a", "b")}
    times = closed_loop(turns, LoopLimits(5, 1, 60.0, 1))
    assert [len(taken) for taken in times.values()] == [5, 5]
    names = "".join(name for name, _ in asked)
    # To warm up; then three untimed and two timed ones each, and who begins changes.
    assert names == "ab" + "aaaaabbbbb" + "bbbbbaaaaa" + "aaaabbbb"
    # Untimed ones have the events of those that follow them.
    assert [event for _, event in asked[2:7]] == [4, 5, 6, 4, 5]
    assert [event for _, event in asked[12:17]] == [6, 7, 8, 6, 7]


def test_a_forecaster_alone_is_not_interrupted() -> None:
    asked: list[tuple[str, float]] = []
    turns = {"a": Turns([filled(Told("a", asked), 3)], "fresh")}
    closed_loop(turns, LoopLimits(30, 2, 60.0, 1))
    assert [event for _, event in asked] == list(range(3, 35))


def test_slow_forecasters_have_short_blocks_and_nothing_untimed() -> None:
    limits = LoopLimits(10_000, 20, 2.0, 3)
    assert closed_loop_module._block({"a": 50.0, "b": 100.0}, limits) == 20
    # A round of both takes a tenth of the two seconds at most, if one each is less.
    assert closed_loop_module._block({"a": 10_000.0, "b": 30_000.0}, limits) == 5
    assert closed_loop_module._block({"a": 1e6, "b": 3e6}, limits) == 1
    costs = (50.0, 2_000.0, 9_000.0, 11_000.0)
    assert [closed_loop_module._rehearsed(each) for each in costs] == [10, 5, 1, 0]


@pytest.mark.parametrize("workload", ["fresh", "streaming"])
def test_a_rehearsal_leaves_the_requests_as_they_were(workload) -> None:
    of = tape(400)
    turns = Turns([filled(FakeStream(), 130, of) for _ in range(2)], workload)
    plain = Turns([filled(FakeStream(), 130, of) for _ in range(2)], workload)
    for _ in range(9):
        turns.rehearse(3)
        (stream, event), (same, expected) = turns.ready(), plain.ready()
        assert event is expected
        assert fed(stream) == fed(same)
        stream.update(event)
        same.update(event)


def test_a_loop_ends_with_its_time_but_not_before_the_fewest_forecasts() -> None:
    class Slow(FakeStream):
        def forecast(self, at: int) -> Forecasts:
            time.sleep(0.01)
            return super().forecast(at)

    turns = {"slow": Turns([filled(Slow(), 3)], "streaming")}
    times = closed_loop(turns, LoopLimits(1000, 50, 0.0, 7))
    assert len(times["slow"]) == 7
    assert (times["slow"] >= 10_000).all()


def test_service_time_is_update_and_forecast_in_microseconds() -> None:
    class Slow(FakeStream):
        def update(self, event: StreamEvent) -> None:
            time.sleep(0.002)
            super().update(event)

        def forecast(self, at: int) -> Forecasts:
            time.sleep(0.003)
            return super().forecast(at)

    assert 5_000 <= service_us(Slow(), tape().at(0)) < 500_000


def test_poisson_gaps_have_the_rate_and_keep_their_order_at_every_rate() -> None:
    starts = poisson(250.0, 20_000, seed=3)
    gaps = np.diff(starts)
    # Standard errors of mean and deviation are 1/sqrt(20,000) = 0.7 % of a gap.
    assert gaps.mean() == pytest.approx(4_000, rel=0.03)
    assert gaps.std() == pytest.approx(4_000, rel=0.03)
    np.testing.assert_allclose(poisson(500.0, 20_000, seed=3), starts / 2)
    assert not np.array_equal(poisson(250.0, 10, seed=4), starts[:10])


def test_recorded_arrivals_keep_their_bursts_and_are_as_many_as_asked() -> None:
    instants = np.array([0, 0, 0, 10, 10, 40], dtype=np.int64) * DAY
    factor = factor_for_rate(instants, 50.0)
    starts = recorded(instants, factor=factor)
    assert starts.tolist() == pytest.approx([0, 0, 0, 25_000, 25_000, 100_000])
    assert (len(starts) - 1) / (starts[-1] / 1e6) == pytest.approx(50.0)


def test_arrivals_at_one_instant_have_no_rate() -> None:
    with pytest.raises(
        ValueError,
        match="recorded arrivals must spread over time; got 3 at one instant",
    ):
        factor_for_rate(np.full(3, DAY), 10.0)


def test_a_request_waits_for_the_server_and_no_longer() -> None:
    intended = np.array([0.0, 1.0, 2.0, 10.0, 10.0])
    service = np.array([5.0, 1.0, 1.0, 2.0, 2.0])
    # Ends: 5, 6, 7, 12, 14.
    assert response_times(intended, service).tolist() == [5, 5, 5, 2, 4]


def test_a_server_that_is_never_late_answers_in_its_service_time() -> None:
    service = np.random.default_rng(0).uniform(1, 9, 500)
    response = response_times(10.0 * np.arange(500), service)
    np.testing.assert_allclose(response, service, rtol=1e-12)


def served(work_ms: list[float], gap_ms: float):
    """Run the live loop by a clock that only work and its readings move."""
    clock = Clock()
    # The first forecast is one to warm up.
    stream = FakeStream(clock, [0, *(round(1e6 * ms) for ms in work_ms)])
    turns = Turns([filled(stream, 4)], "fresh")
    intended = 1e3 * gap_ms * np.arange(len(work_ms))
    return intended, open_loop(turns, intended, num_warm_up=1, clock=clock)


def test_a_planted_stall_is_seen_in_response_and_not_in_service() -> None:
    work = [1.0] * 200
    work[50] = 500.0
    intended, found = served(work, gap_ms=10.0)
    service, response = summary(found.service_us), summary(found.response_us)
    # A reading of this clock takes a microsecond.
    assert service["p99_us"] == pytest.approx(1_000, abs=5)
    assert response["p99_us"] == pytest.approx(482_090, abs=500)
    assert response["max_us"] == pytest.approx(500_000, abs=5)
    assert found.seconds == pytest.approx(1.991, abs=0.001)
    by_queue = response_times(intended, found.service_us)
    # Requests behind the stall wait for a few readings each.
    np.testing.assert_allclose(found.response_us, by_queue, atol=200)


def test_no_request_starts_before_its_intended_instant() -> None:
    _, found = served([0.2] * 50, gap_ms=1.0)
    assert (found.response_us >= found.service_us).all()
    np.testing.assert_allclose(found.response_us, found.service_us, atol=2)


def test_a_stream_that_is_long_in_the_making_delays_no_request() -> None:
    clock = Clock()

    class Forked(FakeStream):
        def fork(self) -> Stream:
            clock.now += 50_000_000  # five requests' time
            return super().fork()

    stream = Forked(clock, [1_000_000] * 30)
    turns = Turns([filled(stream, 4)], "streaming")
    found = open_loop(turns, 10_000.0 * np.arange(30), clock=clock)
    np.testing.assert_allclose(found.response_us, found.service_us, atol=5)
    assert found.seconds == pytest.approx(0.291, abs=0.001)


def test_the_open_loop_keeps_real_time() -> None:
    turns = Turns([filled(FakeStream(), 4)], "fresh")
    begun = time.perf_counter()
    found = open_loop(turns, np.array([0.0, 10_000.0, 30_000.0]))
    assert 0.03 <= found.seconds <= time.perf_counter() - begun
    assert (found.service_us > 0).all()
