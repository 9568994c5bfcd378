"""The largest rate under a limit, found on queues whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from infoset.pipeline.latency import open_rows
from infoset.pipeline.latency.closed_loop import LoopLimits
from infoset.pipeline.latency.open_loop import Served, poisson
from infoset.pipeline.latency.plan import full_plan
from infoset.pipeline.latency.quiet import quiet_measurement
from infoset.pipeline.latency.throughput import (
    BUSIEST,
    TOLERANCE,
    stays_under,
    throughput_at_limit,
)
from infoset.pipeline.latency.turns import Turns

LIMIT_US = 10_000.0


def response(rate_hz: float, num: int, seed: int, service_us: float) -> np.ndarray:
    """Return the response times of one server whose services are equally long."""
    intended, places = poisson(rate_hz, num, seed=seed), np.arange(num)
    # Lindley's recursion, solved: the latest start so far that nothing held up.
    begun = np.maximum.accumulate(intended - places * service_us)
    times: np.ndarray = begun + (places + 1) * service_us - intended
    return times


def simulated(monkeypatch, service_us: float) -> list[int]:
    """Let the open loop serve a simulated queue; return the sizes of its trials."""
    sizes: list[int] = []

    def serve(_, intended: np.ndarray, **_options: int) -> Served:
        places = np.arange(len(intended))
        begun = np.maximum.accumulate(intended - places * service_us)
        times = begun + (places + 1) * service_us - intended
        sizes.append(len(intended))
        return Served(np.full(len(times), service_us), times, 1.0)

    monkeypatch.setattr(open_rows, "open_loop", serve)
    return sizes


def largest(service_us: float, **changes: object) -> dict[str, object]:
    plan = full_plan(scored_length=64, limit_us=LIMIT_US)
    with quiet_measurement() as quiet:
        return open_rows._largest_rate(
            Turns([], "fresh"),
            replace(plan, **changes),  # type: ignore[arg-type]
            quiet,
            service_us,
        )


def test_the_rate_found_keeps_the_limit_and_a_little_more_breaks_it() -> None:
    tried: list[tuple[float, int]] = []

    def holds_at(rate_hz: float, draw: int) -> bool:
        tried.append((rate_hz, draw))
        return rate_hz <= 37.0

    found = throughput_at_limit(holds_at, limit_us=3_700.0, capacity_hz=100.0)
    assert found.undefined is None
    assert 37.0 * (1 - TOLERANCE) <= found.rate_hz <= 37.0
    assert tried[0][0] == BUSIEST * 100.0 < 100.0
    # Confirmed with arrivals that the search had not seen.
    *searched, last = tried
    assert last[0] == found.rate_hz
    assert last[1] not in {draw for _, draw in searched}


def test_a_rate_that_is_not_confirmed_is_lowered() -> None:
    def holds_at(rate_hz: float, draw: int) -> bool:
        return rate_hz <= (37.0 if draw < 2 else 30.0)

    found = throughput_at_limit(holds_at, limit_us=1.0, capacity_hz=100.0)
    assert 30.0 * (1 - TOLERANCE) <= found.rate_hz <= 30.0


def test_a_limit_that_always_holds_gives_the_top_of_the_search() -> None:
    found = throughput_at_limit(lambda *_: True, limit_us=2.0, capacity_hz=55.0)
    assert found.rate_hz == BUSIEST * 55.0


@pytest.mark.parametrize("service_us", [15.0, 50.0, 200.0, 1_000.0])
def test_a_rate_that_was_found_keeps_the_limit_for_long(
    monkeypatch, service_us: float
) -> None:
    """A short trial at the capacity would keep it too, before the queue has grown."""
    sizes = simulated(monkeypatch, service_us)
    row = largest(service_us)
    rate = row["rate_hz"]
    assert isinstance(rate, float)
    assert min(sizes) >= 1_000
    # The row is about the last trial, that with other arrivals.
    assert row["num_forecasts"] == sizes[-1]
    p99 = float(np.percentile(response(rate, 1_000_000, 99, service_us), 99))
    assert p99 < 1.1 * LIMIT_US
    if rate < BUSIEST * 1e6 / service_us:
        assert p99 > 0.4 * LIMIT_US


def test_a_trial_at_the_capacity_would_have_deceived() -> None:
    short = response(1e6 / 50, 4_000, 0, 50.0)
    assert np.percentile(short, 99) < LIMIT_US
    assert np.percentile(response(1e6 / 50, 1_000_000, 0, 50.0), 99) > 2 * LIMIT_US


def test_too_few_requests_for_a_p99_are_a_reason(monkeypatch) -> None:
    simulated(monkeypatch, 30_000.0)
    row = largest(30_000.0)
    assert row == {
        "undefined": "a trial of 20 s has fewer than 1,000 requests, too few for a p99"
    }


def test_a_trial_is_not_cut_below_a_thousand_requests(monkeypatch) -> None:
    sizes = simulated(monkeypatch, 1_000.0)
    largest(1_000.0, limits=LoopLimits(10, 1, 0.01, 3))
    assert set(sizes) == {1_000}


def test_a_queue_that_grows_does_not_stay_under_the_limit() -> None:
    assert stays_under(np.full(1_000, 99.0), 100.0)
    assert not stays_under(np.full(1_000, 101.0), 100.0)
    # Under the limit all the time, but the median rises by 37.5.
    assert not stays_under(np.linspace(20, 80, 1_000), 100.0)
    assert stays_under(np.linspace(20, 50, 1_000), 100.0)
    # p99 of the whole is under the limit, that of the second half is not.
    late = np.full(1_000, 1.0)
    late[-8:] = 200.0
    assert np.percentile(late, 99) < 100.0
    assert not stays_under(late, 100.0)


def test_a_limit_under_the_service_time_has_no_rate() -> None:
    found = throughput_at_limit(lambda *_: False, limit_us=2_000.0, capacity_hz=100.0)
    assert math.isnan(found.rate_hz)
    assert found.undefined == (
        "p99 does not stay under 2,000 µs even at 5.94 requests a second"
    )


def test_no_rate_is_tried_below_the_lowest() -> None:
    tried: list[float] = []

    def holds_at(rate_hz: float, _: int) -> bool:
        tried.append(rate_hz)
        return False

    throughput_at_limit(holds_at, limit_us=1.0, capacity_hz=100.0, lowest_hz=40.0)
    assert min(tried) >= 40.0
