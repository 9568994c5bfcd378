"""Folds against their obvious double loops, on random labels in random order."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from infoset.pipeline.folds import Fold, WalkForward, purge
from infoset.pipeline.folds.spans import COLUMNS

DAY = pd.Timedelta(days=1)
ORIGIN = pd.Timestamp("2024-01-01", tz="UTC")


@st.composite
def label_spans(draw: st.DrawFn) -> pd.DataFrame:
    """Rows on a half-day grid, so that touching spans and shared dates are common."""
    num = draw(st.integers(8, 24))
    halves = st.lists(st.integers(0, 40), min_size=num, max_size=num)
    short = st.lists(st.integers(0, 4), min_size=num, max_size=num)
    forecast = np.array(draw(halves))
    start = forecast + np.array(draw(short)) % 3
    end = start + np.array(draw(short))
    resolves = end + np.array(draw(short)) % 4
    columns = {
        "forecast_time": forecast,
        "target_start": start,
        "target_end": end,
        "resolves_at": resolves,
    }
    return pd.DataFrame(
        {name: ORIGIN + DAY / 2 * halves for name, halves in columns.items()}
    )


@st.composite
def plans(draw: st.DrawFn) -> WalkForward:
    sizes = st.one_of(st.integers(1, 4), st.sampled_from(["1D", "3D", "7D"]))
    train_size = draw(st.none() | sizes)
    return WalkForward(
        test_size=draw(st.integers(2, 6) | st.just("2W")),
        train_size=train_size,
        validation_size=draw(st.none() | sizes),
        embargo_size=draw(st.integers(0, 2) | st.sampled_from(["0D", "1D", "2D"])),
        expand_train=draw(st.booleans()) if train_size is not None else True,
        first_test=draw(st.sampled_from([None, "2024-01-10", "2024-01-15"])),
    )


def folds_of(plan: WalkForward, spans: pd.DataFrame) -> tuple[Fold, ...]:
    """No folds where the plan does not fit these rows."""
    try:
        return plan.split(spans)
    except ValueError:
        return ()


class Label(NamedTuple):
    forecast: pd.Timestamp
    start: pd.Timestamp
    end: pd.Timestamp
    resolves: pd.Timestamp
    day: pd.Timestamp


def labels_of(spans: pd.DataFrame) -> list[Label]:
    columns = [spans[name] for name in COLUMNS]
    days = spans["forecast_time"].dt.normalize()
    return [Label(*row) for row in zip(*columns, days, strict=True)]


def meet(one: Label, two: Label) -> bool:
    return one.start <= two.end and two.start <= one.end


def naive_apart(row: Label, later: list[Label]) -> bool:
    resolved = row.resolves <= min(other.forecast for other in later)
    return resolved and not any(meet(row, other) for other in later)


def naive_kept(
    labels: list[Label], fold: Fold, plan: WalkForward
) -> tuple[set[int], int]:
    """Rows usable for training or validation, before the validation is carved out."""
    days = sorted({label.day for label in labels})
    first = days.index(fold.cut.normalize())
    limit = naive_limit(plan, labels, days, first)
    test = [labels[row] for row in fold.test]
    kept, embargoed = set(), 0
    for row, label in enumerate(labels):
        if label.day >= days[first] or not naive_inside(plan, days, first, label.day):
            continue
        if not naive_apart(label, test):
            continue
        if label.end > limit:
            embargoed += 1
        else:
            kept.add(row)
    return kept, embargoed


def naive_last(labels: list[Label], rows: set[int], size: int | str) -> set[int]:
    days = sorted({labels[row].day for row in rows})
    if isinstance(size, int):
        first = days[max(0, len(days) - size)]
    else:
        first = days[-1] + DAY - pd.Timedelta(size)
    return {row for row in rows if labels[row].day >= first}


def naive_inside(
    plan: WalkForward, days: list[pd.Timestamp], first: int, day: pd.Timestamp
) -> bool:
    if plan.expand_train:
        return True
    if isinstance(plan.train_size, int):
        return days.index(day) >= first - plan.train_size
    return day >= naive_opening(plan, days, first) - pd.Timedelta(str(plan.train_size))


def naive_opening(
    plan: WalkForward, days: list[pd.Timestamp], first: int
) -> pd.Timestamp:
    """Midnight at which the window opens that holds the date `first`."""
    if isinstance(plan.test_size, int):
        return days[first]
    opening = days[0] + pd.Timedelta(str(plan.train_size))
    if plan.first_test is not None:
        opening = pd.Timestamp(plan.first_test, tz="UTC")
    while opening + pd.Timedelta(plan.test_size) <= days[first]:
        opening += pd.Timedelta(plan.test_size)
    return opening


def naive_limit(
    plan: WalkForward, labels: list[Label], days: list[pd.Timestamp], first: int
) -> pd.Timestamp:
    whole = plan.embargo_size if isinstance(plan.embargo_size, int) else 0
    if first < whole:
        return pd.Timestamp.min.tz_localize("UTC")
    day = days[first - whole]
    limit = min(label.forecast for label in labels if label.day == day)
    if isinstance(plan.embargo_size, str):
        limit -= pd.Timedelta(plan.embargo_size)
    return limit


@given(label_spans(), plans())
@settings(max_examples=150, deadline=None)
def test_folds_equal_the_double_loop(spans: pd.DataFrame, plan: WalkForward) -> None:
    labels = labels_of(spans)
    for fold in folds_of(plan, spans):
        kept, embargoed = naive_kept(labels, fold, plan)
        assert fold.embargo_size == embargoed
        chosen: set[int] = set()
        if plan.validation_size is not None:
            chosen = naive_last(labels, kept, plan.validation_size)
        assert set(fold.validation.tolist()) == chosen
        later = [labels[row] for row in chosen]
        assert set(fold.train.tolist()) == {
            row for row in kept - chosen if not later or naive_apart(labels[row], later)
        }


@given(label_spans(), plans())
@settings(max_examples=100, deadline=None)
def test_no_training_label_overlaps_or_outlives_what_comes_after(
    spans: pd.DataFrame, plan: WalkForward
) -> None:
    labels = labels_of(spans)
    for fold in folds_of(plan, spans):
        train, validation, test = (
            [labels[row] for row in part]
            for part in (fold.train, fold.validation, fold.test)
        )
        assert not any(meet(a, b) for a in [*train, *validation] for b in test)
        assert not any(meet(a, b) for a in train for b in validation)
        assert all(label.resolves <= fold.cut for label in [*train, *validation])


@given(label_spans(), plans())
@settings(max_examples=100, deadline=None)
def test_no_date_is_on_two_sides_and_windows_tile(
    spans: pd.DataFrame, plan: WalkForward
) -> None:
    day = spans["forecast_time"].dt.normalize()
    tested: list[int] = []
    for fold in folds_of(plan, spans):
        parts = [fold.train, fold.validation, fold.test]
        dates = [set(day.iloc[part]) for part in parts]
        assert len(set.union(*dates)) == sum(map(len, dates))
        assert set(day.index[day.isin(dates[2])]) == set(fold.test.tolist())
        tested += fold.test.tolist()
    if tested:
        assert sorted(tested) == sorted(day.index[day >= day.iloc[tested].min()])


@given(label_spans(), plans(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_row_order_is_irrelevant(
    spans: pd.DataFrame, plan: WalkForward, random: "object"
) -> None:
    order = np.arange(len(spans))
    random.shuffle(order)  # type: ignore[attr-defined]
    ours, theirs = folds_of(plan, spans), folds_of(plan, spans.iloc[order])
    assert len(ours) == len(theirs)
    for one, two in zip(ours, theirs, strict=True):
        for part in ("train", "validation", "test"):
            moved = order[getattr(two, part)]
            assert set(moved.tolist()) == set(getattr(one, part).tolist())
        assert (one.cut, one.purged_size, one.embargo_size) == (
            two.cut,
            two.purged_size,
            two.embargo_size,
        )


def naive_purge(
    labels: list[Label], train: list[int], test: list[int], embargo: int | str
) -> list[int]:
    days = sorted({label.day for label in labels})
    kept = []
    for row in train:
        label = labels[row]
        barred = False
        for other in [labels[i] for i in test]:
            between = sum(other.end < day <= label.day for day in days)
            if isinstance(embargo, str):
                near = label.forecast <= other.end + pd.Timedelta(embargo)
            else:
                near = embargo > 0 and between <= embargo
            follows = near and other.end < label.forecast
            barred = barred or follows or meet(label, other)
        if not barred:
            kept.append(row)
    return kept


@given(
    label_spans(),
    st.integers(1, 2**24 - 1),
    st.sampled_from([0, 1, 2, "0D", "1D", "3D"]),
)
@settings(max_examples=150, deadline=None)
def test_two_sided_purge_equals_the_double_loop(
    spans: pd.DataFrame, mask: int, embargo: int | str
) -> None:
    test = [row for row in range(len(spans)) if mask >> row & 1]
    train = [row for row in range(len(spans)) if not mask >> row & 1]
    if not test:
        return
    kept = purge(
        spans,
        np.array(train, dtype=np.int64),
        np.array(test, dtype=np.int64),
        embargo=embargo,
    )
    assert kept.tolist() == naive_purge(labels_of(spans), train, test, embargo)


def test_a_window_that_ends_with_the_last_label_would_be_caught() -> None:
    """A planted fault: one test label outlives the last row's."""
    time = pd.Series(pd.date_range(ORIGIN, periods=6, freq="D"))
    end = time + pd.to_timedelta([1, 4, 1, 1, 1, 1], unit="D")
    spans = pd.DataFrame(
        {
            "forecast_time": time,
            "target_start": time,
            "target_end": end,
            "resolves_at": end,
        }
    )
    labels = labels_of(spans)
    faulty = [row for row in (3, 4, 5) if time[row] > end[2]]
    assert faulty == [4, 5]
    assert any(meet(labels[a], labels[b]) for a in faulty for b in (1, 2))
    assert purge(spans, np.array([3, 4, 5]), np.array([1, 2])).tolist() == []
