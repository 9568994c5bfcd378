"""The largest rate under a limit, found on queues whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from infoset.pipeline.latency.open_loop import poisson, response_times
from infoset.pipeline.latency.throughput import (
    BUSIEST,
    TOLERANCE,
    lasting_p99,
    throughput_at_limit,
)


def test_the_rate_found_keeps_the_limit_and_a_little_more_breaks_it() -> None:
    tried: list[float] = []

    def p99_at(rate_hz: float) -> float:
        tried.append(rate_hz)
        return 100.0 * rate_hz  # the limit is reached at 37 a second

    found = throughput_at_limit(p99_at, limit_us=3_700.0, capacity_hz=100.0)
    assert found.undefined is None
    assert 37.0 * (1 - TOLERANCE) <= found.rate_hz <= 37.0
    assert found.rate_hz in tried
    assert len(tried) <= 8


def test_a_queue_of_equal_services_is_searched_to_the_tolerance() -> None:
    service = np.full(5_000, 1_000.0)

    def p99_at(rate_hz: float) -> float:
        return float(
            np.percentile(response_times(poisson(rate_hz, 5_000), service), 99)
        )

    found = throughput_at_limit(p99_at, limit_us=4_000.0, capacity_hz=1_000.0)
    rates = np.linspace(50, 1_000, 191)
    broken = next(rate for rate in rates if p99_at(rate) > 4_000.0)
    assert found.rate_hz == pytest.approx(broken, rel=2 * TOLERANCE)
    # M/D/1 at this load: the server is busy well below all the time, but not idle.
    assert 0.4 < found.rate_hz / 1_000 < 0.8


def test_a_limit_that_always_holds_gives_nearly_the_capacity() -> None:
    found = throughput_at_limit(lambda _: 1.0, limit_us=2.0, capacity_hz=55.0)
    assert found.rate_hz == BUSIEST * 55.0


@pytest.mark.parametrize("service_us", [15.0, 50.0, 200.0, 1_000.0])
def test_a_rate_that_was_found_keeps_the_limit_for_long(service_us: float) -> None:
    """A short trial at the capacity would keep it too, before the queue has grown."""
    capacity, limit_us = 1e6 / service_us, 10_000.0

    def response(rate_hz: float, num: int, seed: int) -> np.ndarray:
        arrivals = poisson(rate_hz, num, seed=seed)
        return response_times(arrivals, np.full(num, service_us))

    def p99_at(rate_hz: float) -> float:
        num = max(2_000, int(50 * limit_us / 1e6 * rate_hz))
        return max(lasting_p99(response(rate_hz, num, seed)) for seed in (0, 1))

    found = throughput_at_limit(p99_at, limit_us=limit_us, capacity_hz=capacity)
    p99 = float(np.percentile(response(found.rate_hz, 1_000_000, 2), 99))
    assert 0.05 * limit_us < p99 < 1.2 * limit_us


def test_the_second_half_tells_of_a_queue_that_grows() -> None:
    growing = np.arange(1_000.0)
    assert lasting_p99(growing) == float(np.percentile(growing[500:], 99))
    assert lasting_p99(growing[::-1].copy()) == float(np.percentile(growing, 99))


def test_a_limit_under_the_service_time_has_no_rate() -> None:
    found = throughput_at_limit(lambda _: 3_000.0, limit_us=2_000.0, capacity_hz=100.0)
    assert math.isnan(found.rate_hz)
    assert found.undefined == "p99 is above 2,000 µs even at 6.12 requests a second"
