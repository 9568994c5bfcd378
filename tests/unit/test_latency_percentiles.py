"""Percentiles that the times can tell, and intervals that hold what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from infoset.pipeline.latency.percentiles import (
    block_draws,
    block_length,
    intervals,
    summary,
)


def test_percentiles_are_linear_between_times() -> None:
    told = summary(np.arange(1.0, 102.0))
    assert [told[f"{name}_us"] for name in ("p50", "p90", "p95", "p99")] == [
        pytest.approx(value) for value in (51.0, 91.0, 96.0, 100.0)
    ]
    assert (told["max_us"], told["num_forecasts"]) == (101.0, 101)
    assert told["times_us"] == np.arange(1.0, 102.0).tolist()


def test_p99_9_needs_ten_thousand_forecasts() -> None:
    few = summary(np.linspace(1, 2, 9_999))
    assert math.isnan(float(str(few["p99_9_us"])))
    assert few["p99_9_undefined"] == "p99.9 needs 10,000 forecasts; there are 9,999"
    enough = summary(np.linspace(1, 2, 10_000))
    assert enough["p99_9_us"] == pytest.approx(1.999)
    assert "p99_9_undefined" not in enough
    assert "p99_9_low_us" in enough


def test_an_interval_needs_ten_forecasts_beyond_its_percentile() -> None:
    generator = np.random.default_rng(0)
    for num, told in (
        (19, set()),
        (20, {"p50"}),
        (99, {"p50"}),
        (100, {"p50", "p90"}),
        (1000, {"p50", "p90", "p99"}),
    ):
        assert set(intervals(generator.exponential(size=num))) == told


def test_equal_times_have_equal_intervals_and_no_width_where_all_are_alike() -> None:
    times = np.random.default_rng(1).exponential(size=300)
    assert intervals(times) == intervals(times)
    assert intervals(np.full(300, 7.0)) == {"p50": (7.0, 7.0), "p90": (7.0, 7.0)}


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    generator = np.random.default_rng(2)
    truth = {"p50": math.log(2), "p90": math.log(10)}
    hits = dict.fromkeys(truth, 0)
    trials = 100
    for _ in range(trials):
        found = intervals(generator.exponential(size=200))
        for name, value in truth.items():
            low, high = found[name]
            hits[name] += low <= value <= high
    # At 95 % coverage fewer than 86 hits of 100 come once in 5,000 times.
    assert all(86 <= count <= trials for count in hits.values()), hits


def test_slow_stretches_widen_the_interval() -> None:
    # The same times in another order: a stretch of ten is one thing, not ten.
    stretches = np.repeat(np.random.default_rng(3).exponential(size=60), 10)
    mixed = np.random.default_rng(4).permutation(stretches)
    low, high = intervals(stretches)["p50"]
    calm_low, calm_high = intervals(mixed)["p50"]
    assert high - low > 2 * (calm_high - calm_low)


def test_blocks_hold_successive_forecasts_and_go_round_the_end() -> None:
    [drawn] = block_draws(25, block=10, reps=200, seed=1)
    assert drawn.shape == (200, 25)
    steps = np.diff(drawn[:, :10], axis=1) % 25
    assert (steps == 1).all()
    counts = np.bincount(drawn.ravel(), minlength=25)
    assert counts.min() > 0.6 * counts.mean()


def test_samples_are_the_same_however_many_are_held_at_once(monkeypatch) -> None:
    whole = np.concatenate(list(block_draws(50, block=10, reps=30)))
    monkeypatch.setattr("infoset.pipeline.latency.percentiles._AT_ONCE", 100)
    parts = list(block_draws(50, block=10, reps=30))
    assert len(parts) == 15
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_blocks_grow_with_the_cube_root() -> None:
    assert [block_length(n) for n in (20, 1000, 8000, 1_000_000)] == [10, 10, 20, 100]
