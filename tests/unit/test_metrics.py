"""Scores: one loss per row, then means; undefined results are shown."""

import inspect

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from infoset.pipeline.evaluation import metrics

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
NAMES = ["q05", "q25", "q50", "q75", "q95"]


def forecasts(num_times: int = 4, *, seeds: int = 1, entities: int = 2) -> pd.DataFrame:
    """Forecast the quantiles -2, -1, 0, 1, 2 for a target of 0, in every row."""
    rows = [
        {
            "forecaster": name,
            "fold": 0,
            "seed": seed,
            "entity": f"E{entity}",
            "forecast_time": pd.Timestamp("2024-01-01", tz="UTC")
            + pd.Timedelta(days=time),
            "target": 0.0,
            "mean": 0.5,
        }
        | dict(zip(NAMES, [-2.0, -1.0, 0.0, 1.0, 2.0], strict=True))
        for name in ("linear", "softmax")
        for seed in range(seeds)
        for time in range(num_times)
        for entity in range(entities)
    ]
    return pd.DataFrame(rows)


def row_of(table: pd.DataFrame, forecaster: str) -> pd.Series:
    return table[table["forecaster"] == forecaster].iloc[0]


# --- one loss per row -------------------------------------------------------------


def test_pinball_loss_weighs_the_two_sides_by_the_level() -> None:
    # By hand: 0.9 * 2 when the target is above, 0.1 * 2 when it is below.
    target, quantiles = np.array([3.0, -1.0]), np.array([[1.0], [1.0]])
    loss = metrics.pinball_by_level(target, quantiles, np.array([0.9]))
    np.testing.assert_allclose(loss, [[1.8], [0.2]], rtol=1e-12)


def test_pinball_loss_is_the_mean_over_levels() -> None:
    # By hand for target 0.5: 0.05*2.5, 0.25*1.5, 0.5*0.5, 0.25*0.5, 0.05*1.5.
    quantiles = np.array([[-2.0, -1.0, 0.0, 1.0, 2.0]])
    loss = metrics.pinball_loss(np.array([0.5]), quantiles, LEVELS)
    expected = (0.125 + 0.375 + 0.25 + 0.125 + 0.075) / 5
    np.testing.assert_allclose(loss, [expected], rtol=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_pinball_equals_the_double_loop(seed: int) -> None:
    random = np.random.default_rng(seed)
    target = random.normal(size=5)
    quantiles = np.sort(random.normal(size=(5, len(LEVELS))), axis=1)
    fast = metrics.pinball_by_level(target, quantiles, LEVELS)
    for i in range(5):
        for j, level in enumerate(LEVELS):
            error = target[i] - quantiles[i, j]
            slow = level * error if error >= 0 else (level - 1) * error
            assert fast[i, j] == pytest.approx(slow, rel=1e-12, abs=1e-15)


def test_crps_of_a_single_value_is_its_absolute_error() -> None:
    target = np.array([-3.0, 1.0, 1.5, 40.0])
    quantiles = np.full((4, len(LEVELS)), 1.5)
    crps = metrics.crps_from_quantiles(target, quantiles, LEVELS)
    np.testing.assert_allclose(crps, np.abs(target - 1.5), rtol=1e-12)


@pytest.mark.parametrize("target", [-1.3, 0.0, 2.0])
def test_crps_with_many_levels_approaches_the_closed_form_of_the_normal(
    target: float,
) -> None:
    # Gneiting, Raftery (2007), JASA 102(477), eq. (21) with the sign turned: at 0 it
    # is (sqrt(2) - 1) / sqrt(pi) = 0.2336950. 999 levels leave a tail error of 2e-6.
    levels = np.arange(1, 1000) / 1000
    quantiles = stats.norm.ppf(levels)[None, :]
    closed = (
        target * (2 * stats.norm.cdf(target) - 1)
        + 2 * stats.norm.pdf(target)
        - 1 / np.sqrt(np.pi)
    )
    crps = metrics.crps_from_quantiles(np.array([target]), quantiles, levels)
    np.testing.assert_allclose(crps, closed, atol=5e-6)
    if target == 0.0:
        assert closed == pytest.approx(0.2336950, abs=1e-7)


def test_crps_holds_the_outer_quantiles_beyond_the_outer_levels() -> None:
    # By hand: levels 0.25, 0.75 at -1, 1, target 2. The loss is 0 at level 0,
    # 0.75 at 0.25, 0.75 at 0.75 and 1 at 1; twice its trapezoids.
    crps = metrics.crps_from_quantiles(
        np.array([2.0]), np.array([[-1.0, 1.0]]), np.array([0.25, 0.75])
    )
    area = 0.25 * 0.375 + 0.5 * 0.75 + 0.25 * 0.875
    np.testing.assert_allclose(crps, [2 * area], rtol=1e-12)


def test_mean_from_quantiles_is_the_integral_of_the_quantile_function() -> None:
    # By hand: 0.25 * 0 + 0.5 * (0 + 4) / 2 + 0.25 * 4.
    mean = metrics.mean_from_quantiles(np.array([[0.0, 4.0]]), np.array([0.25, 0.75]))
    np.testing.assert_allclose(mean, [2.0], rtol=1e-12)
    skewed = metrics.mean_from_quantiles(np.array([[0.0, 4.0]]), np.array([0.1, 0.5]))
    np.testing.assert_allclose(skewed, [0.4 * 2 + 0.5 * 4], rtol=1e-12)


@pytest.mark.parametrize(
    ("levels", "median"), [([0.25, 0.5, 0.75], 2.0), ([0.2, 0.4, 0.6], 3.0)]
)
def test_median_is_interpolated_where_it_is_not_given(
    levels: list[float], median: float
) -> None:
    quantiles = np.array([[1.0, 2.0, 4.0]])
    found = metrics.median_from_quantiles(quantiles, np.array(levels))
    np.testing.assert_allclose(found, [median], rtol=1e-12)


def test_median_beyond_the_levels_is_the_outer_quantile() -> None:
    found = metrics.median_from_quantiles(np.array([[1.0, 2.0]]), np.array([0.1, 0.3]))
    np.testing.assert_allclose(found, [2.0], rtol=1e-12)


def test_errors_of_point_forecasts() -> None:
    target, forecast = np.array([1.0, -2.0]), np.array([3.0, -1.5])
    np.testing.assert_allclose(metrics.absolute_error(target, forecast), [2.0, 0.5])
    np.testing.assert_allclose(metrics.squared_error(target, forecast), [4.0, 0.25])


def test_coverage_counts_the_ends_of_the_interval() -> None:
    quantiles = np.tile([-2.0, -1.0, 0.0, 1.0, 2.0], (4, 1))
    target = np.array([-2.0, 2.0, 2.1, np.nan])
    inside = metrics.coverage(target, quantiles, LEVELS, 0.05, 0.95)
    np.testing.assert_array_equal(inside, [1.0, 1.0, 0.0, np.nan])


def test_coverage_of_a_missing_level_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"level must be among the forecast's \[0\.05.*; got 0\.1\."
    ):
        metrics.coverage(np.zeros(1), np.zeros((1, 5)), LEVELS, 0.1, 0.95)


def test_scaled_loss_is_undefined_without_a_positive_scale() -> None:
    scale = np.array([2.0, 0.0, -1.0, np.nan, np.inf])
    scaled = metrics.scaled_loss(np.ones(5), scale)
    np.testing.assert_array_equal(scaled, [0.5, np.nan, np.nan, np.nan, np.nan])


def test_missing_targets_give_missing_losses() -> None:
    target, quantiles = np.array([np.nan]), np.zeros((1, 5))
    assert np.isnan(metrics.pinball_loss(target, quantiles, LEVELS)).all()
    assert np.isnan(metrics.crps_from_quantiles(target, quantiles, LEVELS)).all()


@pytest.mark.parametrize("levels", [[0.5, 0.1], [0.0, 0.5], [0.5, 1.0], [0.5, 0.5]])
def test_levels_out_of_order_are_refused(levels: list[float]) -> None:
    with pytest.raises(ValueError, match=r"levels must be increasing inside \(0, 1\)"):
        metrics.pinball_loss(np.zeros(1), np.zeros((1, 2)), np.array(levels))


def test_levels_that_do_not_fit_the_quantiles_are_refused() -> None:
    # Unwrapped: while tests run, the shape checker would refuse first.
    pinball = inspect.unwrap(metrics.pinball_by_level)
    with pytest.raises(ValueError, match=r"one per column .* for shape \(1, 3\)"):
        pinball(np.zeros(1), np.zeros((1, 3)), LEVELS)


# --- tables -----------------------------------------------------------------------


def test_levels_are_read_from_the_names_of_columns() -> None:
    names, levels = metrics.levels_from_columns(
        ["mean", "q95", "q05", "target", "q975", "q5x", "quality", "q50"]
    )
    assert names == ["q05", "q50", "q95", "q975"]
    assert levels.tolist() == [0.05, 0.5, 0.95, 0.975]


@pytest.mark.parametrize("columns", [["mean"], ["q5"], ["q50", "q500"], ["q00", "q50"]])
def test_columns_without_distinct_levels_are_refused(columns: list[str]) -> None:
    with pytest.raises(
        ValueError, match=r"quantile columns of distinct levels above 0"
    ):
        metrics.levels_from_columns(columns)


def test_scores_of_one_group() -> None:
    table = metrics.score_table(forecasts())
    row = row_of(table, "linear")
    assert table["forecaster"].tolist() == ["linear", "softmax"]
    assert row["pinball"] == pytest.approx((0.1 + 0.25 + 0.25 + 0.1) / 5)
    assert (row["mae"], row["mse"], row["coverage_90"]) == (0.0, 0.25, 1.0)
    assert (row["num_forecasts"], row["num_undefined"]) == (8, 0)
    assert row["undefined"] is None


def test_every_forecast_time_weighs_the_same() -> None:
    frame = forecasts(num_times=2, entities=3)
    frame["q50"] = 1.0
    first = frame["forecast_time"] == frame["forecast_time"].min()
    frame.loc[first, "q50"] = 4.0
    frame = frame[~(first & (frame["entity"] != "E0"))]  # one entity on day one
    assert row_of(metrics.score_table(frame), "linear")["mae"] == pytest.approx(2.5)


def test_seeds_are_averaged_as_scores_and_not_as_forecasts() -> None:
    frame = forecasts(seeds=2)
    frame["q50"] = np.where(frame["seed"] == 0, -3.0, 3.0)
    table = metrics.score_table(frame)
    assert row_of(table, "linear")["mae"] == 3.0  # their mean forecast would have 0
    by_seed = metrics.score_table(frame, by=("forecaster", "seed"))
    assert by_seed["num_forecasts"].tolist() == [8, 8, 8, 8]


def test_a_missing_target_is_counted_and_not_dropped() -> None:
    frame = forecasts()
    frame.loc[frame.index[:3], "target"] = np.nan
    row = row_of(metrics.score_table(frame), "linear")
    assert (row["num_forecasts"], row["num_undefined"]) == (8, 3)
    assert row["mae"] == 0.0


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("column", ["q25", "mean", "target"])
def test_no_infinity_reaches_a_mean(column: str, value: float) -> None:
    frame = forecasts()
    frame.loc[0, column] = value
    row = row_of(metrics.score_table(frame), "linear")
    assert row["num_undefined"] == 1
    assert np.isfinite(row[["pinball", "crps", "mae", "mse"]].astype(float)).all()


def test_a_group_without_targets_is_undefined_with_a_reason() -> None:
    frame = forecasts()
    frame.loc[frame["forecaster"] == "softmax", "target"] = np.nan
    row = row_of(metrics.score_table(frame), "softmax")
    assert np.isnan(row["pinball"])
    assert row["num_undefined"] == row["num_forecasts"] == 8
    assert row["undefined"] == "no row has a finite target and forecast"


def test_coverage_without_its_levels_is_undefined_with_a_reason() -> None:
    row = metrics.score_table(forecasts().drop(columns="q95")).iloc[0]
    assert np.isnan(row["coverage_90"])
    assert row["undefined"] == "coverage_90 needs q05 and q95"
    assert np.isfinite(row["pinball"])


def test_a_panel_of_mixed_units_is_scaled_by_its_targets() -> None:
    frame = forecasts()
    frame["q50"] = np.where(frame["entity"] == "E0", 100.0, 0.01)
    frame["target_scale"] = np.where(frame["entity"] == "E0", 100.0, 0.01)
    row = row_of(metrics.score_table(frame), "linear")
    assert row["scaled_mae"] == pytest.approx(1.0)
    assert row["mae"] == pytest.approx(50.005)
    assert row["num_unscaled"] == 0


def test_rows_without_a_scale_are_counted() -> None:
    frame = forecasts()
    frame["target_scale"] = np.where(frame["entity"] == "E0", 1.0, 0.0)
    assert row_of(metrics.score_table(frame), "linear")["num_unscaled"] == 4
    frame["target_scale"] = 0.0
    row = row_of(metrics.score_table(frame), "linear")
    assert row["undefined"] == "no row has a positive target_scale"


def test_a_missing_group_key_is_a_group() -> None:
    frame = forecasts()
    frame["seed"] = np.where(frame["entity"] == "E0", np.nan, frame["seed"])
    table = metrics.score_table(frame, by=["forecaster", "seed"])
    assert table["num_forecasts"].sum() == len(frame)


def test_grouping_by_one_name_or_by_time() -> None:
    frame = forecasts()
    assert len(metrics.score_table(frame, by="entity")) == 2
    assert len(metrics.score_table(frame, by=["forecast_time"])) == 4


def test_row_order_of_forecasts_does_not_matter() -> None:
    frame = forecasts(seeds=3)
    frame["target"] = np.random.default_rng(0).normal(size=len(frame))
    pd.testing.assert_frame_equal(
        metrics.score_table(frame),
        metrics.score_table(frame.sample(frac=1, random_state=1)),
    )


def test_row_scores_keep_the_index_of_the_frame() -> None:
    frame = forecasts().set_index(pd.Index(range(100, 116)))
    scores = metrics.row_scores(frame)
    assert scores.index.equals(frame.index)
    assert {"pinball", "crps", "mae", "mse", "coverage_90"} == set(scores.columns)


@pytest.mark.parametrize("column", ["target", "mean", "forecast_time", "forecaster"])
def test_a_missing_column_is_named(column: str) -> None:
    with pytest.raises(
        ValueError, match=rf"forecasts must have .* none named {column}"
    ):
        metrics.score_table(forecasts().drop(columns=column))


# --- information coefficient ------------------------------------------------------

# Five assets on five dates: a constant forecast on the second, a missing label on the
# third, one asset with a forecast on the fourth, ties on the fifth. By hand; for the
# last date the average ranks 1.5 1.5 3.5 3.5 5 and 2.5 1 2.5 5 4 give 0.702959.
NAN = np.nan
IC_FORECAST = [
    [1.0, 2.0, 3.0, 4.0, 5.0],
    [2.0, 2.0, 2.0, 2.0, 2.0],
    [5.0, 4.0, 3.0, 2.0, 1.0],
    [7.0, NAN, NAN, NAN, NAN],
    [1.0, 1.0, 2.0, 2.0, 3.0],
]
IC_TARGET = [
    [0.01, 0.0, 0.03, 0.02, 0.05],
    [0.01, 0.02, -0.01, 0.0, 0.03],
    [0.01, NAN, 0.02, 0.03, 0.04],
    [0.01, 0.02, 0.03, 0.01, 0.0],
    [0.02, 0.01, 0.02, 0.04, 0.03],
]
IC_TIMES = pd.to_datetime(
    ["2024-01-02", "2024-01-03", "2024-01-04", "2024-01-05", "2024-01-08"]
).tz_localize("UTC")


def ic_table(order: np.ndarray | None = None) -> pd.DataFrame:
    forecast, target = np.ravel(IC_FORECAST), np.ravel(IC_TARGET)
    order = np.arange(25) if order is None else order
    return metrics.rank_ic(forecast[order], target[order], IC_TIMES.repeat(5)[order])


def test_rank_ic_is_shown_as_undefined_where_it_is() -> None:
    table = ic_table()
    np.testing.assert_allclose(
        table["rank_ic"], [0.8, NAN, -1.0, NAN, 0.702959], atol=5e-7
    )
    assert table["undefined"].tolist() == [
        None,
        "the forecast is constant",
        None,
        "fewer than two pairs",
        None,
    ]
    assert table["num_pairs"].tolist() == [5, 5, 4, 1, 5]
    assert table["num_missing"].tolist() == [0, 0, 1, 4, 0]


def test_mean_ic_is_over_the_defined_times_and_counts_the_others() -> None:
    # Mean and t of 0.8, -1, 0.702959; six digits are given.
    result = metrics.mean_ic(ic_table())
    assert result.mean == pytest.approx(0.167653, abs=5e-7)
    assert result.t_statistic == pytest.approx(0.286833, abs=5e-7)
    assert (result.num_defined, result.num_undefined) == (3, 2)
    assert (result.kernel, result.lag, result.undefined) == ("none", 0, None)


def test_rank_ic_does_not_depend_on_row_order() -> None:
    order = np.random.default_rng(0).permutation(25)
    pd.testing.assert_frame_equal(ic_table(), ic_table(order), check_exact=True)


def test_rank_ic_pairs_columns_by_position_whatever_their_index() -> None:
    frame = pd.DataFrame(
        {"mean": np.ravel(IC_FORECAST), "target": np.ravel(IC_TARGET)},
        index=np.tile([3, 1, 4, 1, 5], 5),
    )
    table = metrics.rank_ic(frame["mean"], frame["target"], IC_TIMES.repeat(5))
    pd.testing.assert_frame_equal(table, ic_table(), check_exact=True)


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_rank_ic_equals_scipy_date_by_date(seed: int) -> None:
    random = np.random.default_rng(seed)
    time = pd.DatetimeIndex(IC_TIMES[random.integers(0, 3, 30)])
    forecast = random.integers(0, 6, 30).astype(float)
    target = random.integers(0, 6, 30).astype(float)
    for row in metrics.rank_ic(forecast, target, time).itertuples():
        if row.undefined is None:
            here = np.asarray(time == row.forecast_time)
            slow = stats.spearmanr(forecast[here], target[here]).statistic
            assert row.rank_ic == pytest.approx(slow, abs=1e-12)


def test_differences_below_the_resolution_of_float32_are_no_order() -> None:
    forecast = np.array([0.1, 0.1 + 1e-9, 0.1 - 1e-9, 0.1])
    time = IC_TIMES[[0, 0, 0, 0]]
    table = metrics.rank_ic(forecast, np.array([1.0, 3.0, 2.0, 4.0]), time)
    assert table["undefined"].tolist() == ["the forecast is constant"]
    assert np.isnan(table["rank_ic"]).all()


def test_a_constant_target_and_an_infinite_value_are_reasons() -> None:
    time = IC_TIMES[[0, 0, 1, 1, 2, 2]]
    forecast = np.array([1.0, 2.0, 1.0, np.inf, 0.0, 0.0])
    target = np.array([5.0, 5.0, 1.0, 2.0, 0.0, 0.0])
    table = metrics.rank_ic(forecast, target, time)
    assert table["undefined"].tolist() == [
        "the target is constant",
        "a value is infinite",
        "the forecast is constant",
    ]


def test_times_without_any_pair_are_listed() -> None:
    table = metrics.rank_ic(np.array([NAN, NAN]), np.zeros(2), IC_TIMES[[0, 1]])
    assert table["undefined"].tolist() == ["fewer than two pairs"] * 2


def test_overlapping_targets_widen_the_variance_of_the_mean() -> None:
    # By hand, with deviations 0.5, 0.5, -0.5, -0.5: the squares sum to 1, the products
    # at lag 1 to 0.25; Bartlett weighs those by 2 * 0.5. Both over 4 * 3.
    table = pd.DataFrame({"rank_ic": [0.75, 0.75, -0.25, -0.25]})
    single, double = metrics.mean_ic(table), metrics.mean_ic(table, horizon=2)
    assert single.t_statistic == pytest.approx(0.25 / np.sqrt(1 / 12))
    assert double.t_statistic == pytest.approx(0.25 / np.sqrt(1.25 / 12))
    assert (double.kernel, double.lag) == ("bartlett", 1)


def test_undefined_times_stay_gaps_between_the_coefficients() -> None:
    # No two defined times are neighbours, so nothing is added at lag 1.
    table = pd.DataFrame({"rank_ic": [0.75, NAN, 0.75, NAN, -0.25, NAN, -0.25]})
    result = metrics.mean_ic(table, horizon=2)
    assert result.t_statistic == pytest.approx(0.25 / np.sqrt(1 / 12))


@pytest.mark.parametrize(
    ("values", "horizon", "reason"),
    [
        ([NAN, NAN], 1, "0 forecast times are too few for lag 0"),
        ([0.3, NAN], 1, "1 forecast times are too few for lag 0"),
        ([0.3, 0.1, 0.2], 3, "3 forecast times are too few for lag 2"),
        ([0.3, 0.3, 0.3], 1, "the coefficients do not vary"),
    ],
)
def test_a_mean_ic_without_a_t_statistic_says_why(
    values: list[float], horizon: int, reason: str
) -> None:
    result = metrics.mean_ic(pd.DataFrame({"rank_ic": values}), horizon=horizon)
    assert result.undefined == reason
    assert np.isnan(result.t_statistic)


def test_a_mean_ic_horizon_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="horizon must be at least 1; got 0"):
        metrics.mean_ic(pd.DataFrame({"rank_ic": [0.1]}), horizon=0)


def test_a_missing_forecast_time_is_refused() -> None:
    time = pd.DatetimeIndex([IC_TIMES[0], pd.NaT])
    with pytest.raises(ValueError, match=r"one entry per row .* and 1 missing times"):
        metrics.rank_ic(np.zeros(2), np.zeros(2), time)
