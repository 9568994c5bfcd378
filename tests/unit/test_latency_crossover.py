"""Where linear attention becomes cheaper: known curves, noise, and no answer."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from infoset.pipeline.latency.crossover import crossing, crossover, crossovers

LENGTHS = (64, 256, 1024, 4096)


def power_law(length: int, factor: float, power: float) -> float:
    return factor * math.pow(length, power)


def times(
    at: dict[int, float], *, noise: float = 0.0, num: int = 200, seed: int = 0
) -> dict[int, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        n: value * np.exp(noise * generator.normal(size=num)) for n, value in at.items()
    }


def linear(noise: float = 0.0, **kind: int) -> dict[int, np.ndarray]:
    return times({n: power_law(n, 4.0, 1.0) for n in LENGTHS}, noise=noise, **kind)


def softmax(noise: float = 0.0, **kind: int) -> dict[int, np.ndarray]:
    # Equal to linear at n where 0.01 n^2 = 4 n: 400 events.
    return times({n: power_law(n, 0.01, 2.0) for n in LENGTHS}, noise=noise, **kind)


def test_power_laws_cross_where_they_are_equal() -> None:
    found = crossover(linear(), softmax())
    # Log-log interpolation is exact for power laws.
    assert found.length == pytest.approx(400.0, rel=1e-12)
    assert [found.low, found.high] == pytest.approx([400.0, 400.0])
    assert (found.shortest, found.longest, found.undefined) == (64, 4096, None)


def test_noise_gives_an_interval_that_holds_the_truth() -> None:
    found = crossover(linear(0.1, seed=1), softmax(0.1, seed=2))
    assert 350 < found.low < 400 < found.high < 460
    assert found.low < found.length < found.high
    again = crossover(linear(0.1, seed=1), softmax(0.1, seed=2))
    assert (again.low, again.high) == (found.low, found.high)
    wide = crossover(linear(0.5, seed=1), softmax(0.5, seed=2))
    assert wide.high - wide.low > 2 * (found.high - found.low)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    hits = 0
    for seed in range(50):
        found = crossover(
            linear(0.2, num=40, seed=seed), softmax(0.2, num=40, seed=1000 + seed)
        )
        hits += found.low <= 400 <= found.high
    # At 95 % coverage fewer than 40 hits of 50 practically never come.
    assert hits >= 40


def test_linear_that_is_cheaper_everywhere_has_no_crossover() -> None:
    fast = {n: values / 1000 for n, values in linear().items()}
    found = crossover(fast, softmax())
    assert math.isnan(found.length)
    assert math.isnan(found.low)
    assert found.undefined == (
        "linear is cheaper at every measured length, from 64 events on"
    )


def test_softmax_that_is_as_cheap_at_the_longest_has_no_crossover() -> None:
    found = crossover(softmax(), softmax())
    assert found.undefined == (
        "softmax is still as cheap at the longest measured length, 4,096 events"
    )


def test_one_length_is_too_few() -> None:
    found = crossover({64: np.ones(30)}, softmax())
    assert found.undefined == "1 history lengths were measured; two are needed"
    assert crossover({}, {}).shortest == 0


def test_an_end_of_the_interval_can_lie_outside_the_measured_lengths() -> None:
    # Equal at 70 events, 64 being the shortest: noise cannot tell them apart there.
    fast = times({n: power_law(n, 0.7, 1.0) for n in LENGTHS}, noise=0.5, seed=1)
    found = crossover(fast, softmax(0.5, seed=2))
    assert found.undefined is None
    assert found.low == 0
    assert found.to_json()["low"] == "below"
    assert found.to_json()["length"] == found.length


def test_too_few_forecasts_have_a_crossover_without_an_interval() -> None:
    found = crossover(linear(num=19), softmax(num=19))
    assert found.length == pytest.approx(400.0)
    assert math.isnan(found.low)
    assert found.to_json()["low"] is None


def test_a_few_forecasts_far_from_the_crossover_leave_the_interval() -> None:
    slow, fast = softmax(0.1, seed=2), linear(0.1, seed=1)
    whole = crossover(fast, slow)
    few = {n: taken[:3] if n == 4096 else taken for n, taken in slow.items()}
    found = crossover(fast, few)
    # At 4,096 events linear is ten times cheaper: no draw comes near to 1.
    assert (found.low, found.high) == (whole.low, whole.high)
    few = {n: taken[:3] if n == 1024 else taken for n, taken in slow.items()}
    assert math.isnan(crossover(fast, few).low)


def test_only_a_lead_that_lasts_counts() -> None:
    ratios = np.array(
        [[2.0, 0.5, 0.5], [0.5, 0.5, 2.0], [2.0, 0.5, 0.5], [4.0, 2.0, 0.5]]
    )
    found = crossing(LENGTHS, ratios)
    # The first column leads at 64, falls behind at 256, and leads for good from 512.
    assert found[0] == pytest.approx(512.0)
    assert found[1] == pytest.approx(2048.0)
    assert math.isinf(found[2])


def test_forecasts_beyond_the_common_ones_are_left_out() -> None:
    longer = {n: np.concatenate([v, np.full(100, 1e9)]) for n, v in linear().items()}
    assert crossover(longer, softmax()).length == pytest.approx(400.0)


def rows() -> pd.DataFrame:
    sides = (("lin", "linear", linear()), ("soft", "softmax", softmax()))
    return pd.DataFrame(
        [
            {
                "forecaster": name,
                "attention": attention,
                "workload": workload,
                "backend": backend,
                "loop": "closed",
                "time": "service",
                "threads": 1,
                "entities": 1,
                "instances": 1,
                "history_length": length,
                "p50_us": float(np.median(taken)),
                "times_us": taken,
            }
            for name, attention, by_length in sides
            for workload in ("fresh", "streaming")
            for backend in ("numba", "torch")
            for length, taken in by_length.items()
        ]
    )


def test_a_table_gives_one_for_each_workload_and_backend() -> None:
    found = crossovers(rows())
    assert {(c.workload, c.backend) for c in found} == {
        (w, b) for w in ("fresh", "streaming") for b in ("numba", "torch")
    }
    assert {(c.forecaster, c.other) for c in found} == {("lin", "soft")}
    assert all(c.length == pytest.approx(400.0) for c in found)


def test_rows_that_were_not_measured_are_no_part_of_it() -> None:
    table = rows()
    table.loc[table["history_length"] == 4096, "p50_us"] = math.nan
    assert {c.longest for c in crossovers(table)} == {1024}


@pytest.mark.parametrize(
    ("column", "other"),
    [("loop", "poisson"), ("threads", 2), ("entities", 3), ("instances", 2)],
)
def test_only_one_forecast_at_a_time_is_compared(column: str, other: int | str) -> None:
    slow = rows().assign(**{column: other})
    # Linear would be dearer at every length.
    slow.loc[slow["attention"] == "linear", "p50_us"] *= 1e6
    slow["times_us"] = [
        1e6 * t if name == "linear" else t
        for name, t in zip(slow["attention"], slow["times_us"], strict=True)
    ]
    both = pd.concat([rows(), slow], ignore_index=True)
    assert [c.length for c in crossovers(both)] == [
        c.length for c in crossovers(rows())
    ]
