"""Quiet while something is timed, everything as before afterwards, and no secrets."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import sys
import time

import pytest
import torch

from infoset.pipeline.latency.contention import Contention, Usage
from infoset.pipeline.latency.cores import (
    _idle_ticks,
    cores_of_instance,
    idlest_cores,
)
from infoset.pipeline.latency.quiet import clock_step_ns, quiet_measurement

needs_pinning = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system cannot pin threads"
)


def conditions() -> tuple[bool, int, set[int] | None]:
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    return gc.isenabled(), torch.get_num_threads(), cores


def test_garbage_threads_and_cores_are_as_before_also_after_an_error() -> None:
    before = conditions()
    assert before[0]
    meanwhile = []

    def fail() -> None:
        meanwhile.append(conditions())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), quiet_measurement(threads=1):
        fail()
    assert meanwhile[0][:2] == (False, 1)
    assert conditions() == before


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with quiet_measurement():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@needs_pinning
def test_threads_are_pinned_and_the_cores_are_told() -> None:
    allowed = os.sched_getaffinity(0)
    for threads in (1, 2):
        with quiet_measurement(threads=threads) as quiet:
            assert torch.get_num_threads() == threads
            mine = os.sched_getaffinity(0)
        assert len(mine) == min(threads, len(allowed))
        assert mine <= allowed
        assert quiet.cores == ", ".join(map(str, sorted(mine)))
        assert set(quiet.allowed) == allowed
    assert os.sched_getaffinity(0) == allowed


@needs_pinning
def test_the_idlest_core_is_taken_and_the_highest_of_equal_ones(monkeypatch) -> None:
    reads = iter([{0: 5, 1: 5, 2: 5}, {0: 15, 1: 6, 2: 15}] * 2)
    monkeypatch.setattr(
        "infoset.pipeline.latency.cores._idle_ticks", lambda: next(reads)
    )
    monkeypatch.setattr(
        "infoset.pipeline.latency.cores.allowed_cores", lambda: (0, 1, 2)
    )
    assert idlest_cores(1) == (2,)
    assert idlest_cores(2) == (0, 2)
    assert idlest_cores(3) == (0, 1, 2)


@needs_pinning
def test_the_system_tells_how_idle_its_cores_are() -> None:
    assert set(os.sched_getaffinity(0)) <= set(_idle_ticks())


def test_instances_get_cores_of_their_own_as_long_as_there_are_any() -> None:
    assert [cores_of_instance(place, 1, (0, 1, 2)) for place in range(4)] == [
        (2,),
        (1,),
        (0,),
        (2,),
    ]
    found = [cores_of_instance(place, 2, (0, 1, 2)) for place in range(2)]
    assert found == [(1, 2), (0, 2)]
    assert cores_of_instance(0, 1, ()) == ()


def test_where_nothing_can_be_pinned_nothing_is(monkeypatch) -> None:
    monkeypatch.setattr("infoset.pipeline.latency.cores.allowed_cores", tuple)
    before = conditions()
    with quiet_measurement() as quiet:
        assert conditions()[2] == before[2]
    assert quiet.cores == ""


def test_the_clock_is_fine_enough_or_says_so() -> None:
    step = clock_step_ns()
    assert 1 <= step < 100_000
    with quiet_measurement() as quiet:
        assert quiet.clock_step_ns > 0
        assert quiet.too_coarse(1e6) is None
        assert quiet.too_coarse(quiet.clock_step_ns / 1000) == (
            f"the clock steps by {quiet.clock_step_ns} ns, more than 1 % of the median "
            f"of {quiet.clock_step_ns / 1000:.3g} µs"
        )


def usage(
    wall: float, own: float, switches: int, stolen: float = 0.0, total: float = 100.0
) -> Usage:
    return Usage(wall, own, switches, stolen, total)


def test_what_others_took_is_counted_between_two_moments() -> None:
    seen = usage(12.0, 9.0, 7, 30.0, 400.0).since(usage(2.0, 1.0, 4))
    assert seen.num_switches == 3
    assert seen.waited_percent == pytest.approx(20.0)
    assert seen.stolen_percent == pytest.approx(10.0)
    assert seen.load >= 0


def test_a_system_that_does_not_tell_leaves_numbers_undefined_and_raises_no_alarm() -> (
    None
):
    nan = math.nan
    seen = usage(3.0, nan, 0, nan, nan).since(usage(2.0, nan, 0, nan, nan))
    assert math.isnan(seen.waited_percent)
    assert math.isnan(seen.stolen_percent)
    assert seen.reason(1000) is None


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (Contention(0, 0.2, 0.0, 9.0), None),
        (Contention(10, 0.2, 0.0, 0.0), None),
        (
            Contention(11, 0.2, 0.0, 0.0),
            "11 involuntary switches in 1,000 forecasts",
        ),
        (Contention(0, 12.34, 0.0, 0.0), "12.3 % of the time without a processor"),
        (Contention(0, 0.0, 3.0, 0.0), "3.0 % of processor time stolen"),
        (
            Contention(20, 5.0, 0.0, 0.0),
            "20 involuntary switches in 1,000 forecasts; 5.0 % of the time without a "
            "processor",
        ),
    ],
)
def test_one_disturbed_forecast_in_a_hundred_is_told(
    seen: Contention, reason: str | None
) -> None:
    assert seen.reason(1000) == reason
    assert seen.columns(1000)["contention"] == reason
    assert seen.columns(1000)["num_switches"] == seen.num_switches


@needs_pinning
def test_a_process_on_the_same_core_is_detected() -> None:
    with quiet_measurement() as quiet:
        # It inherits the core, spins, and is ended.
        rival = subprocess.Popen(
            [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"],
            stdout=subprocess.PIPE,
        )
        try:
            assert rival.stdout is not None
            rival.stdout.readline()
            before = quiet.usage()
            end = time.perf_counter() + 0.4
            while time.perf_counter() < end:
                pass
            seen = quiet.usage().since(before)
        finally:
            rival.kill()
            rival.communicate()
    assert seen.waited_percent > 10
    assert "of the time without a processor" in (seen.reason(100_000) or "")
