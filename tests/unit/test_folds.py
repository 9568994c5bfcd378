"""Walk-forward folds: tiles, purging, embargo, validation, refusals."""

from datetime import date

import numpy as np
import pandas as pd
import pytest

from infoset.pipeline.folds import Fold, WalkForward, fold_table, purge
from infoset.pipeline.folds.sizes import Term, parse_date, parse_size

DAY = pd.Timedelta(days=1)


def spans_of(
    starts: list[str] | pd.DatetimeIndex,
    *,
    delay: pd.Timedelta = DAY / 24,
    length: pd.Timedelta = DAY / 24,
    lag: pd.Timedelta = DAY * 0,
) -> pd.DataFrame:
    """Labels that start `delay` after the forecast and resolve `lag` after their end."""
    time = pd.DatetimeIndex(pd.to_datetime(starts)).tz_localize("UTC")
    return pd.DataFrame(
        {
            "forecast_time": time,
            "target_start": time + delay,
            "target_end": time + delay + length,
            "resolves_at": time + delay + length + lag,
        }
    )


def daily(num: int, *, start: str = "2020-01-01", days: int = 1) -> pd.DataFrame:
    """Close-to-close labels over `days` calendar days: the ends touch the starts."""
    times = pd.date_range(start, periods=num, freq="D")
    return spans_of(times, delay=DAY * 0, length=DAY * days)


def dates(spans: pd.DataFrame, rows: np.ndarray) -> list[str]:
    return sorted({str(time.date()) for time in spans["forecast_time"].iloc[rows]})


# Fourteen samples with label spans in days; sample 5 has a long one. Worked out by
# hand; spans are closed, so touching counts.
LABEL_ENDS = [3, 4, 5, 6, 7, 11, 9, 10, 11, 12, 13, 14, 15, 16]


def labelled_samples() -> pd.DataFrame:
    start = pd.Timestamp("2024-01-01", tz="UTC") + DAY * np.arange(14)
    end = pd.Timestamp("2024-01-01", tz="UTC") + DAY * np.array(LABEL_ENDS)
    return pd.DataFrame(
        {
            "forecast_time": start,
            "target_start": start,
            "target_end": end,
            "resolves_at": end,
        }
    )


@pytest.mark.parametrize(
    ("embargo", "kept"),
    [(0, [0, 12, 13]), ("0D", [0, 12, 13]), (1, [0, 13]), ("1D", [0, 13])],
)
def test_two_sided_purge_reaches_from_the_first_start_to_the_longest_end(
    embargo: int | str, kept: list[int]
) -> None:
    spans = labelled_samples()
    train = np.array([0, 1, 2, 3, 8, 9, 10, 11, 12, 13])
    assert purge(spans, train, np.arange(4, 8), embargo=embargo).tolist() == kept


def test_purge_answers_in_the_order_of_the_training_rows() -> None:
    kept = purge(labelled_samples(), np.array([13, 3, 0, 12]), np.array([7, 4, 5, 6]))
    assert kept.tolist() == [13, 0, 12]


def test_purge_keeps_rows_between_test_blocks_that_lie_far_apart() -> None:
    kept = purge(daily(12), np.array([0, 1, 4, 5, 6, 10]), np.array([2, 3, 8]))
    assert kept.tolist() == [0, 5, 6, 10]


def test_walk_forward_purges_labels_that_only_touch_the_test_window() -> None:
    fold = WalkForward(4, first_test="2024-01-05", last_test="2024-01-08").split(
        labelled_samples()
    )[0]
    assert fold.test.tolist() == [4, 5, 6, 7]
    assert fold.train.tolist() == [0]
    assert fold.purged_size == 3


def test_daily_close_to_close_labels_lose_the_last_training_row() -> None:
    spans = daily(6)
    folds = WalkForward(2, first_test="2020-01-03").split(spans)
    assert [fold.train.tolist() for fold in folds] == [[0], [0, 1, 2]]
    assert [fold.purged_size for fold in folds] == [1, 1]


# Three assets on six dates, one of them missing twice.
PANEL_DATES = [1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 6]


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_no_date_is_cut_in_two_whatever_the_row_order(seed: int | None) -> None:
    panel = spans_of([f"2024-01-0{day}" for day in PANEL_DATES])
    if seed is not None:
        panel = panel.sample(frac=1, random_state=seed).reset_index(drop=True)
    folds = WalkForward(1).split(panel)
    days = [f"2024-01-0{day}" for day in range(1, 7)]
    assert [dates(panel, fold.train) for fold in folds] == [
        days[:3],
        days[:4],
        days[:5],
    ]
    assert [dates(panel, fold.test) for fold in folds] == [[d] for d in days[3:]]
    assert sum(len(fold.train) + len(fold.test) for fold in folds[-1:]) == 16


def test_forecasts_within_a_day_stay_together() -> None:
    times = pd.date_range("2024-01-01", periods=24, freq="6h")
    folds = WalkForward(2).split(spans_of(times))
    assert [len(fold.test) for fold in folds] == [8, 4]
    assert folds[0].cut == pd.Timestamp("2024-01-04", tz="UTC")


def test_calendar_windows_tile_time_and_the_last_may_be_shorter() -> None:
    spans = daily(365 * 4)
    folds = WalkForward("1Y", first_test="2021-01-01", last_test="2023-06-30").split(
        spans
    )
    assert [fold.test_span[0].year for fold in folds] == [2021, 2022, 2023]
    assert folds[-1].test_span[1] == pd.Timestamp("2023-06-30", tz="UTC")
    tested = np.concatenate([fold.test for fold in folds])
    assert tested.tolist() == list(range(366, 366 + 365 + 365 + 181))


def test_month_ends_do_not_drift() -> None:
    folds = WalkForward("1M", first_test="2020-01-31").split(
        daily(150, start="2020-01-01")
    )
    starts = [str(fold.cut.date()) for fold in folds]
    assert starts == ["2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30"]


@pytest.mark.parametrize(
    ("train_size", "first_test"), [(3, "2020-01-04"), ("1W", "2020-01-08")]
)
def test_testing_starts_after_train_size(
    train_size: int | str, first_test: str
) -> None:
    fold = WalkForward(2, train_size=train_size).split(daily(20))[0]
    assert str(fold.cut.date()) == first_test


def test_testing_starts_after_half_of_the_dates_by_default() -> None:
    assert WalkForward(5).split(daily(20))[0].cut == pd.Timestamp(
        "2020-01-11", tz="UTC"
    )


@pytest.mark.parametrize("train_size", [4, "4D"])
def test_a_rolling_training_span_keeps_its_length(train_size: int | str) -> None:
    folds = WalkForward(2, train_size=train_size, expand_train=False).split(daily(10))
    assert [fold.train.tolist() for fold in folds] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


@pytest.mark.parametrize("train_size", [9, "30D"])
def test_a_rolling_span_longer_than_the_history_takes_all_of_it(
    train_size: int | str,
) -> None:
    plan = WalkForward(
        2, train_size=train_size, expand_train=False, first_test="2020-01-05"
    )
    assert plan.split(daily(6))[0].train.tolist() == [0, 1, 2]


def test_a_rolling_span_is_counted_back_from_the_opening_of_a_calendar_window() -> None:
    spans = daily(62).drop(index=range(31, 35)).reset_index(drop=True)
    plan = WalkForward(
        "1M", first_test="2020-02-01", train_size="10D", expand_train=False
    )
    fold = plan.split(spans)[0]
    assert str(fold.cut.date()) == "2020-02-05"
    assert fold.train.tolist() == list(range(21, 31))  # from 22 January


def test_a_label_must_resolve_by_the_first_test_forecast() -> None:
    spans = spans_of(
        pd.date_range("2020-01-01", periods=8), length=DAY / 2, lag=DAY * 1.5
    )
    fold = WalkForward(4).split(spans)[0]
    # Row 1 resolves on 4 January 01:00, rows 2 and 3 later than the cut, 5 January.
    assert fold.train.tolist() == [0, 1]
    assert fold.purged_size == 2


def test_a_label_that_resolves_exactly_at_the_cut_may_train() -> None:
    spans = spans_of(pd.date_range("2020-01-01", periods=4), length=DAY * 23 / 24)
    fold = WalkForward(2).split(spans)[0]
    assert spans["resolves_at"][1] == fold.cut
    assert fold.train.tolist() == [0, 1]


@pytest.mark.parametrize("embargo_size", [2, "2D"])
def test_embargo_widens_the_gap_before_the_test_window(
    embargo_size: int | str,
) -> None:
    spans = daily(10)
    fold = WalkForward(5, embargo_size=embargo_size).split(spans)[0]
    # The cut is 6 January: no training target may end after 4 January.
    assert fold.train.tolist() == [0, 1, 2]
    assert (fold.purged_size, fold.embargo_size) == (1, 1)


def test_embargo_counted_in_dates_skips_days_without_forecasts() -> None:
    times = [f"2020-01-{day:02d}" for day in (1, 2, 3, 6, 7, 8, 9)]
    spans = spans_of(times)
    fold = WalkForward(3, embargo_size=2, first_test="2020-01-07").split(spans)[0]
    assert fold.train.tolist() == [0, 1]
    assert fold.embargo_size == 2


@pytest.mark.parametrize("validation_size", [3, "3D"])
def test_validation_is_the_end_of_the_training_span_and_purged_from_it(
    validation_size: int | str,
) -> None:
    spans = daily(20)
    fold = WalkForward(10, validation_size=validation_size).split(spans)[0]
    assert fold.validation.tolist() == [6, 7, 8]  # row 9 touches the test window
    assert fold.train.tolist() == [0, 1, 2, 3, 4]  # row 5 touches the validation
    assert fold.purged_size == 2
    assert fold.validation_span == (
        pd.Timestamp("2020-01-07", tz="UTC"),
        pd.Timestamp("2020-01-09", tz="UTC"),
    )


def test_training_labels_resolve_by_the_first_validation_forecast() -> None:
    spans = spans_of(pd.date_range("2020-01-01", periods=20), lag=DAY * 2)
    fold = WalkForward(10, validation_size=2).split(spans)[0]
    assert fold.validation.tolist() == [6, 7]
    assert fold.train.tolist() == [0, 1, 2, 3]


def test_long_labels_leave_the_validation_its_size() -> None:
    fold = WalkForward(60, validation_size=5).split(daily(120, days=20))[0]
    assert len(fold.validation) == 5
    assert fold.train.max() + 20 < fold.validation.min()


def test_positions_are_those_of_the_frame_and_ordered_in_time() -> None:
    spans = daily(10).iloc[::-1].set_index(pd.Index(list("abcdefghij")))
    fold = WalkForward(5).split(spans)[0]
    assert fold.test.tolist() == [4, 3, 2, 1, 0]
    assert fold.train.tolist() == [9, 8, 7, 6]
    assert fold.test.dtype == np.int64


def test_equal_forecast_times_are_ordered_by_position() -> None:
    spans = spans_of(["2020-01-02", "2020-01-01"] * 50)  # enough to need a stable sort
    fold = WalkForward(1).split(spans)[0]
    assert fold.train.tolist() == list(range(1, 100, 2))
    assert fold.test.tolist() == list(range(0, 100, 2))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_the_clocks_never_changes_the_folds(unit: str) -> None:
    spans = daily(40, days=3)
    other = spans.apply(lambda column: column.dt.as_unit(unit))
    size = WalkForward("4D", embargo_size="2D", validation_size="3D")
    for one, two in zip(size.split(spans), size.split(other), strict=True):
        assert one.train.tolist() == two.train.tolist()
        assert one.validation.tolist() == two.validation.tolist()
        assert one.cut == two.cut


def test_another_zone_means_the_same_instants() -> None:
    spans = daily(20)
    other = spans.apply(lambda column: column.dt.tz_convert("America/New_York"))
    ours, theirs = WalkForward(5).split(spans), WalkForward(5).split(other)
    assert [f.train.tolist() for f in ours] == [f.train.tolist() for f in theirs]


@pytest.mark.parametrize(
    "limit", ["2020-01-11", date(2020, 1, 11), pd.Timestamp("2020-01-11", tz="UTC")]
)
def test_limits_may_be_text_or_dates(limit: str | date) -> None:
    fold = WalkForward(5, first_test=limit, last_test=date(2020, 1, 15)).split(
        daily(20)
    )
    assert [str(f.test_span[1].date()) for f in fold] == ["2020-01-15"]


def test_the_table_tells_people_what_each_fold_holds() -> None:
    spans = pd.concat([daily(20)] * 2, ignore_index=True)
    folds = WalkForward(6, validation_size=3, embargo_size=2).split(spans)
    table = fold_table(folds, spans)
    first = table.iloc[0]
    assert list(table["fold"]) == [0, 1]
    assert first["cut"] == pd.Timestamp("2020-01-11", tz="UTC")
    assert (first["train_rows"], first["train_dates"]) == (8, 4)
    assert (first["validation_rows"], first["validation_dates"]) == (6, 3)
    assert (first["test_rows"], first["test_dates"]) == (12, 6)
    assert (first["purged_rows"], first["embargo_rows"]) == (4, 2)
    assert first["test_last"] == pd.Timestamp("2020-01-16", tz="UTC")


def test_the_table_shows_no_validation_as_missing() -> None:
    spans = daily(20)
    table = fold_table(WalkForward(10).split(spans), spans)
    assert pd.isna(table["validation_first"]).all()
    assert list(table["validation_rows"]) == [0]


def test_every_row_before_the_cut_is_accounted_for() -> None:
    spans = daily(60, days=4)
    for fold in WalkForward(7, validation_size=5, embargo_size=3).split(spans):
        before = (spans["forecast_time"] < fold.cut).sum()
        parts = len(fold.train) + len(fold.validation)
        assert parts + fold.purged_size + fold.embargo_size == before


@pytest.mark.parametrize(
    "size", ["2 years", "", "1.5Y", "-3D", "0D", 0, -1, True, "6m"]
)
def test_sizes_that_are_no_calendar_term_are_refused(size: int | str) -> None:
    with pytest.raises(
        ValueError, match=r"test_size must be a calendar term or a count .*; got"
    ):
        WalkForward(size)


@pytest.mark.parametrize("name", ["train_size", "validation_size", "embargo_size"])
def test_the_refused_size_is_named(name: str) -> None:
    with pytest.raises(ValueError, match=rf"{name} must be .*; got 'soon'\. Write"):
        WalkForward("1Y", **{name: "soon"})  # type: ignore[arg-type]


def test_sizes_are_read_as_months_and_days() -> None:
    assert parse_size("2Y", "size") == Term(24, 0)
    assert parse_size("3W", "size") == Term(0, 21)
    assert parse_size(250, "size") == 250


@pytest.mark.parametrize("value", ["someday", "2020-01-01 09:30", pd.NaT])
def test_a_limit_that_is_no_date_is_refused(value: str | date) -> None:
    with pytest.raises(ValueError, match=r"first_test must be a date \(UTC\); got"):
        parse_date(value, "first_test")


def test_limits_are_checked_before_any_data_is_seen() -> None:
    with pytest.raises(ValueError, match=r"last_test must be a date"):
        WalkForward(1, first_test="2020-01-01", last_test="later")


def test_a_rolling_span_needs_a_length() -> None:
    with pytest.raises(ValueError, match="train_size must be set when expand_train is"):
        WalkForward(1, expand_train=False)


@pytest.mark.parametrize("column", ["forecast_time", "resolves_at"])
def test_a_missing_column_is_named(column: str) -> None:
    with pytest.raises(ValueError, match=rf"columns .*; got 5 rows without {column}\."):
        WalkForward(1).split(daily(5).drop(columns=column))


def test_an_empty_frame_is_refused() -> None:
    with pytest.raises(ValueError, match=r"spans must have rows .*; got 0 rows"):
        WalkForward(1).split(daily(0))


def test_naive_clocks_are_refused() -> None:
    spans = daily(5)
    spans["target_end"] = spans["target_end"].dt.tz_localize(None)
    with pytest.raises(
        ValueError, match=r"target_end must be timezone-aware datetimes; got datetime64"
    ):
        WalkForward(1).split(spans)


def test_unknown_clocks_are_refused_by_row() -> None:
    spans = daily(5)
    spans.loc[3, "resolves_at"] = pd.NaT
    with pytest.raises(ValueError, match="resolves_at must be known; got NaT in row 3"):
        WalkForward(1).split(spans)


@pytest.mark.parametrize(
    ("column", "other"),
    [("target_end", "target_start"), ("resolves_at", "target_end")],
)
def test_clocks_out_of_order_are_refused_by_row(column: str, other: str) -> None:
    spans = daily(5)
    spans.loc[2, column] = pd.Timestamp("2019-01-01", tz="UTC")
    with pytest.raises(
        ValueError,
        match=rf"{column} must not lie before {other}; got 2019-01-01 .* in row 2 \(1",
    ):
        WalkForward(1).split(spans)


def test_a_fold_without_training_rows_is_named_with_its_dates() -> None:
    with pytest.raises(
        ValueError,
        match=(
            r"fold 0 must have rows to train on; got none before its test window"
            r" 2020-01-03 .* to 2020-01-05 .*\(1 purged, 1 embargoed, 0 kept for"
            r" validation\)\. Set a later first_test"
        ),
    ):
        WalkForward(3, first_test="2020-01-03", embargo_size="5D").split(daily(6))


def test_a_validation_that_takes_everything_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fold 0 must .* 9 kept for validation"):
        WalkForward(10, validation_size="1Y").split(daily(20))


def test_testing_from_the_first_date_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fold 0 must have rows to train on"):
        WalkForward(3, first_test="2020-01-01", embargo_size=1).split(daily(6))


@pytest.mark.parametrize("train_size", [6, "1Y"])
def test_a_history_shorter_than_train_size_is_refused(train_size: int | str) -> None:
    with pytest.raises(
        ValueError, match=r"first_test must leave dates .* with 6 forecast dates"
    ):
        WalkForward(1, train_size=train_size).split(daily(6))


def test_limits_that_leave_nothing_to_test_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"first_test must leave dates to test on; got"
    ):
        WalkForward(1, first_test="2020-01-05", last_test="2020-01-02").split(daily(6))


def test_an_empty_test_window_is_refused_with_its_dates() -> None:
    spans = pd.concat([daily(40), daily(40, start="2020-06-01")], ignore_index=True)
    with pytest.raises(
        ValueError,
        match=(
            r"test window 1 must hold forecasts; got none from 2020-03-01 up to"
            r" 2020-04-01\. Set a longer test_size"
        ),
    ):
        WalkForward("1M", first_test="2020-02-01").split(spans)


def test_purge_needs_test_rows() -> None:
    with pytest.raises(ValueError, match="test must hold rows; got none"):
        purge(daily(5), np.arange(5), np.arange(0))


def test_a_fold_is_compared_by_identity() -> None:
    fold = WalkForward(5).split(daily(10))[0]
    assert isinstance(fold, Fold)
    assert fold != WalkForward(5).split(daily(10))[0]
