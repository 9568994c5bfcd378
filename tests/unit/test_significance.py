"""Tests on paired losses: what is undefined, what is refused, what is compared."""

import inspect

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoset.data.errors import InformationMismatch, LookAheadError
from infoset.pipeline.evaluation.paired_losses import PairedLosses
from infoset.pipeline.evaluation.significance import (
    compare_pairs,
    diebold_mariano,
    mean_difference_interval,
)

TIMES = pd.date_range("2024-01-01", periods=30, freq="D", tz="UTC")


def panel(
    names: tuple[str, ...] = ("linear", "softmax"), *, seeds: int = 1
) -> pd.DataFrame:
    """Random losses of three entities at thirty times; fingerprints are shared."""
    random = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product(
        [names, range(seeds), ["A", "B", "C"], TIMES],
        names=["forecaster", "seed", "entity", "forecast_time"],
    ).to_frame(index=False)
    day = keys["forecast_time"].dt.strftime("%m%d")
    keys["fingerprint"] = day + keys["entity"]
    keys["loss"] = random.exponential(size=len(keys))
    return keys


def compare(frame: pd.DataFrame, **settings: object) -> pd.DataFrame:
    return compare_pairs(frame, loss="loss", horizon=1, reps=50, **settings)  # type: ignore[arg-type]


# --- Diebold-Mariano --------------------------------------------------------------


def test_a_positive_statistic_means_that_the_second_is_better() -> None:
    random = np.random.default_rng(0)
    result = diebold_mariano(
        random.normal(2.0, 0.1, 50), random.normal(1.0, 0.1, 50), horizon=1
    )
    assert result.statistic > 10
    assert result.mean_difference == pytest.approx(1.0, abs=0.1)
    assert result.p_value < 1e-6


def test_swapping_the_forecasters_turns_the_sign() -> None:
    losses = np.random.default_rng(1).exponential(size=(2, 40))
    one = diebold_mariano(losses[0], losses[1], horizon=3)
    two = diebold_mariano(losses[1], losses[0], horizon=3)
    assert one.statistic == pytest.approx(-two.statistic)
    assert one.p_value == pytest.approx(two.p_value)


@given(st.integers(0, 10_000), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_the_statistic_equals_the_double_loop(seed: int, horizon: int) -> None:
    losses = np.random.default_rng(seed).normal(size=(2, 25))
    result = diebold_mariano(losses[0], losses[1], horizon=horizon)
    d = (losses[0] - losses[1]).tolist()
    n, mean = 25, sum(d) / 25
    total = {"rectangular": 0.0, "bartlett": 0.0}
    for i in range(n):
        for j in range(n):
            lag = abs(i - j)
            if lag < horizon:
                product = (d[i] - mean) * (d[j] - mean)
                total["rectangular"] += product
                total["bartlett"] += (1 - lag / horizon) * product
    kernel = "rectangular" if total["rectangular"] > 0 else "bartlett"
    factor = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
    assert result.kernel == kernel
    slow = mean / (total[kernel] / n**2) ** 0.5 * factor**0.5
    assert result.statistic == pytest.approx(slow, rel=1e-9)
    assert 0.0 <= result.p_value <= 1.0


@pytest.mark.parametrize("horizon", [1, 2])
def test_identical_losses_are_no_difference_and_never_significant(horizon: int) -> None:
    result = diebold_mariano(np.ones(24), np.ones(24), horizon=horizon)
    assert result.undefined == "no difference"
    assert np.isnan(result.statistic)
    assert np.isnan(result.p_value)
    assert result.mean_difference == 0.0


def test_differences_of_rounding_are_no_difference() -> None:
    losses = np.random.default_rng(0).exponential(size=30)
    result = diebold_mariano(losses, losses * 3.0 / 3.0, horizon=1)
    assert result.undefined == "no difference"
    assert diebold_mariano(losses, losses + 0.1 - 0.1, horizon=1).undefined


def test_a_constant_difference_has_no_variance() -> None:
    losses = np.random.default_rng(0).exponential(size=30)
    result = diebold_mariano(losses + 0.1, losses, horizon=2)
    assert result.undefined == "the differences are constant"
    assert result.mean_difference == pytest.approx(0.1)


@pytest.mark.parametrize(("num", "horizon"), [(0, 1), (1, 1), (3, 3), (3, 10)])
def test_too_few_times_for_the_lag_are_undefined(num: int, horizon: int) -> None:
    result = diebold_mariano(np.arange(num) * 1.0, np.zeros(num), horizon=horizon)
    assert result.undefined == (
        f"{num} forecast times are too few for lag {horizon - 1}"
    )
    assert result.num_observations == num


def test_losses_of_unequal_length_are_refused() -> None:
    # Unwrapped: while tests run, the shape checker would refuse first.
    with pytest.raises(
        ValueError, match=r"equal length .* got 3 and 4 losses, horizon 1"
    ):
        inspect.unwrap(diebold_mariano)(np.ones(3), np.ones(4), horizon=1)


def test_a_horizon_below_one_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"horizon at least 1; got 3 and 3 .* horizon 0"
    ):
        diebold_mariano(np.ones(3), np.ones(3), horizon=0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_losses_that_are_not_finite_are_refused(value: float) -> None:
    losses = np.array([1.0, value, 2.0])
    with pytest.raises(
        ValueError, match=r"losses_b must be finite; got .* position 1\."
    ):
        diebold_mariano(np.ones(3), losses, horizon=1)


# --- the interval -----------------------------------------------------------------


def test_the_same_seed_gives_the_same_interval() -> None:
    differences = np.random.default_rng(0).normal(size=100)
    one = mean_difference_interval(differences, reps=200, seed=5)
    assert one == mean_difference_interval(differences, reps=200, seed=5)
    assert one != mean_difference_interval(differences, reps=200, seed=6)
    assert one.low < differences.mean() < one.high


def test_dependence_asks_for_longer_blocks_and_wider_intervals() -> None:
    noise = np.random.default_rng(0).normal(size=519)
    smooth = np.convolve(noise, np.ones(20), mode="valid")
    estimated = mean_difference_interval(smooth, reps=300)
    single = mean_difference_interval(smooth, reps=300, block_size=1)
    assert estimated.block_size > 5
    assert single.block_size == 1
    assert estimated.high - estimated.low > 2 * (single.high - single.low)


def test_a_higher_level_is_wider() -> None:
    differences = np.random.default_rng(0).normal(size=100)
    wide = mean_difference_interval(differences, level=0.99)
    narrow = mean_difference_interval(differences, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("differences", "reason"),
    [
        (np.zeros(40), "the differences are constant"),
        (np.full(40, 0.1), "the differences are constant"),
        (np.arange(15.0), "15 forecast times are too few for a bootstrap of blocks"),
        (np.zeros(0), "0 forecast times are too few for a bootstrap of blocks"),
    ],
)
def test_degenerate_series_have_no_interval(
    differences: np.ndarray, reason: str
) -> None:
    interval = mean_difference_interval(differences)
    assert interval.undefined == reason
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)


@pytest.mark.parametrize("num", [16, 17, 25, 40])
@pytest.mark.parametrize("kind", ["alternating", "spike", "trend", "noise"])
def test_awkward_series_have_an_interval_without_a_warning(num: int, kind: str) -> None:
    time = np.arange(num)
    differences = {
        "alternating": (-1.0) ** time,
        "spike": (time == 1).astype(float),
        "trend": time.astype(float),
        "noise": np.random.default_rng(num).normal(size=num),
    }[kind]
    interval = mean_difference_interval(differences, reps=20)
    assert interval.undefined is None
    assert interval.low <= interval.high
    assert 1 <= interval.block_size <= num


def test_few_times_are_enough_where_the_block_size_is_given() -> None:
    interval = mean_difference_interval(np.arange(5.0), block_size=2, reps=50)
    assert interval.undefined is None


@pytest.mark.parametrize(
    "setting", [{"reps": 0}, {"block_size": 0}, {"level": 1.0}, {"level": 0.0}]
)
def test_settings_out_of_range_are_refused(setting: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"reps and block_size must be at least 1 and"):
        mean_difference_interval(np.arange(40.0), **setting)  # type: ignore[arg-type]


def test_differences_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="differences must be finite; got nan at pos"):
        mean_difference_interval(np.array([1.0, np.nan]))


# --- pairs ------------------------------------------------------------------------


def test_every_pair_is_compared_once() -> None:
    table = compare(panel(("c", "a", "b")))
    assert list(zip(table["forecaster"], table["other"], strict=True)) == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert list(table.columns) == [
        "forecaster",
        "other",
        "mean_difference",
        "low",
        "high",
        "statistic",
        "p_value",
        "kernel",
        "lag",
        "num_times",
        "num_undefined",
        "undefined",
    ]


def test_a_baseline_is_the_other_of_every_pair() -> None:
    table = compare(panel(("c", "a", "b")), baseline="b")
    assert table["forecaster"].tolist() == ["a", "c"]
    assert table["other"].tolist() == ["b", "b"]


def test_pairs_are_averaged_over_entities_first() -> None:
    frame = panel()
    table = compare(frame)
    wide = frame.pivot_table("loss", "forecast_time", "forecaster", aggfunc="mean")
    slow = diebold_mariano(
        wide["linear"].to_numpy(), wide["softmax"].to_numpy(), horizon=1
    )
    assert table["statistic"][0] == pytest.approx(slow.statistic, rel=1e-12)
    assert table["num_times"][0] == 30
    assert table["low"][0] < table["mean_difference"][0] < table["high"][0]


def test_times_with_more_entities_weigh_the_same() -> None:
    frame = panel()
    frame = frame[(frame["entity"] == "A") | (frame["forecast_time"] < TIMES[10])]
    means = frame.groupby(["forecaster", "forecast_time"])["loss"].mean()
    over_time = means.groupby("forecaster").mean()
    difference = over_time["linear"] - over_time["softmax"]
    assert compare(frame)["mean_difference"][0] == pytest.approx(difference)


def test_seeds_are_averaged_as_losses() -> None:
    frame = panel(seeds=3)
    keys = ["forecaster", "entity", "forecast_time", "fingerprint"]
    means = frame.groupby(keys)["loss"].mean().reset_index()
    pd.testing.assert_frame_equal(compare(frame), compare(means))


def test_row_order_changes_no_bit_of_a_comparison() -> None:
    frame = panel(seeds=3)
    shuffled = frame.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(compare(frame), compare(shuffled), check_exact=True)


def test_identical_forecasts_are_undefined_in_the_table() -> None:
    frame = panel()
    frame["loss"] = 1.0
    row = compare(frame).iloc[0]
    assert row["undefined"] == "no difference"
    assert row["mean_difference"] == 0.0
    assert np.isnan([row["statistic"], row["p_value"], row["low"], row["high"]]).all()


def test_an_undefined_loss_is_left_out_for_both_and_counted() -> None:
    frame = panel()
    first = (frame["entity"] == "A") & (frame["forecast_time"] == TIMES[0])
    last = frame["forecast_time"] == TIMES[-1]
    damaged = frame.copy()
    damaged.loc[first & (frame["forecaster"] == "linear"), "loss"] = np.inf
    damaged.loc[last, "loss"] = np.nan
    row, clean = compare(damaged).iloc[0], compare(frame[~first & ~last]).iloc[0]
    assert row["num_undefined"] == 4
    assert row["num_times"] == 29
    assert row["mean_difference"] == clean["mean_difference"]


def test_a_pair_without_any_loss_is_undefined() -> None:
    frame = panel()
    frame["loss"] = np.nan
    row = compare(frame).iloc[0]
    assert row["undefined"] == "0 forecast times are too few for lag 0"
    assert (row["num_times"], row["num_undefined"]) == (0, 90)


def test_an_interval_that_is_undefined_says_so() -> None:
    frame = panel()
    row = compare(frame[frame["forecast_time"] < TIMES[10]]).iloc[0]
    assert np.isfinite(row["statistic"])
    assert row["undefined"] == "10 forecast times are too few for a bootstrap of blocks"


def test_forecasts_from_other_information_are_never_compared() -> None:
    frame = panel()
    wrong = (frame["forecaster"] == "softmax") & (frame["entity"] == "B")
    late = wrong & (frame["forecast_time"] >= TIMES[4])
    frame.loc[late, "fingerprint"] = "ffff"
    with pytest.raises(
        InformationMismatch,
        match=(
            r"got linear saw 0105B but softmax saw ffff \(entity B, forecast_time"
            r" 2024-01-05 00:00:00\+00:00\)\. Forecast both from the same events"
        ),
    ):
        compare(frame.sample(frac=1, random_state=0))


def test_one_bit_of_one_fingerprint_is_enough() -> None:
    frame = panel()
    frame.loc[frame.index[-1], "fingerprint"] += "!"
    with pytest.raises(InformationMismatch, match=r"saw 0130C but softmax saw 0130C!"):
        compare(frame)


def test_a_forecast_that_only_one_of_the_two_made_is_a_mismatch() -> None:
    frame = panel().drop(index=3)
    with pytest.raises(
        InformationMismatch, match=r"got linear saw no such key but softmax saw 0104A"
    ):
        compare(frame)


def test_seeds_that_saw_other_information_are_a_mismatch() -> None:
    frame = panel(seeds=2)
    wrong = (frame["seed"] == 1) & (frame["entity"] == "C") & (frame["loss"] > 0)
    frame.loc[wrong & (frame["forecast_time"] == TIMES[2]), "fingerprint"] = "ffff"
    with pytest.raises(
        InformationMismatch,
        match=r"saw \S+ but another seed of linear saw \S+ \(entity C",
    ):
        compare(frame)


def test_keys_of_a_third_forecaster_do_not_disturb_a_pair() -> None:
    frame = panel(("a", "b", "c"))
    frame = frame[(frame["forecaster"] == "c") | (frame["entity"] == "A")]
    losses_a, losses_b, num_undefined = PairedLosses.from_frame(frame, "loss").per_time(
        "a", "b"
    )
    assert (len(losses_a), len(losses_b), num_undefined) == (30, 30, 0)
    with pytest.raises(InformationMismatch, match="a saw no such key but c saw 0101B"):
        compare(frame)


@pytest.mark.parametrize("column", ["fingerprint", "entity", "loss"])
def test_a_missing_column_is_named(column: str) -> None:
    with pytest.raises(
        ValueError, match=rf"must have the columns .* none named {column}"
    ):
        compare(panel().drop(columns=column))


@pytest.mark.parametrize("column", ["fingerprint", "forecast_time"])
def test_a_missing_key_or_fingerprint_is_refused(column: str) -> None:
    frame = panel()
    frame.loc[7, column] = None
    with pytest.raises(
        ValueError, match=rf"{column} must not be missing; got none in row 7 \(1 such"
    ):
        compare(frame)


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got linear, softmax and baseline 'ewma'"):
        compare(panel(), baseline="ewma")


def test_one_forecaster_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="a comparison must have two forecasters"):
        compare(panel(("linear",)))


def test_broken_promises_are_value_errors_too() -> None:
    assert issubclass(InformationMismatch, ValueError)
    assert issubclass(LookAheadError, ValueError)
