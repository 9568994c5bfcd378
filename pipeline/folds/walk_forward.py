"""Walk-forward folds over forecast dates, purged by each label's own span."""

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int64

from .sizes import DAY, Term, date_text, parse_date, parse_size
from .spans import LabelSpans, purge

__all__ = ["Fold", "WalkForward", "fold_table", "purge"]


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to learn from, to choose by and to be judged on.

    Attributes
    ----------
    index : int
        Number of the fold, from 0, oldest first.
    train, validation, test : ndarray of int64
        Row positions in `spans`, by forecast time, then position.
    cut : Timestamp
        First forecast time of the test window; training labels resolve by then.
    purged_size, embargo_size : int
        Rows left out because their label overlaps or resolves too late, and rows
        left out by the embargo alone.
    train_span, validation_span, test_span : tuple of Timestamp
        First and last forecast time; None for a fold without validation.
    """

    index: int
    train: Int64[np.ndarray, " train"]
    validation: Int64[np.ndarray, " validation"]
    test: Int64[np.ndarray, " test"]
    cut: pd.Timestamp
    purged_size: int
    embargo_size: int
    train_span: tuple[pd.Timestamp, pd.Timestamp]
    validation_span: tuple[pd.Timestamp, pd.Timestamp] | None
    test_span: tuple[pd.Timestamp, pd.Timestamp]


class _Window(NamedTuple):
    """Test dates `first` up to `stop`, as positions in the distinct dates."""

    opening: int  # midnight in nanoseconds; a calendar window may open on a quiet day
    first: int
    stop: int


@dataclass(frozen=True)
class WalkForward:
    """Test windows that tile time, each trained on what had resolved before it.

    Sizes are calendar terms ("2Y", "6M", "1W", "90D") or counts of forecast dates
    (int). A date is a UTC day; all forecasts of a date fall on the same side of
    every boundary.

    Parameters
    ----------
    test_size : int or str
        Length of a test window; the last one may be shorter.
    train_size : int or str, optional
        With `expand_train` the least history before the first test window, without
        it the length of every training span, back from the opening of the window.
    validation_size : int or str, optional
        The last part of what purging and embargo leave of the training span.
    embargo_size : int or str
        Gap before `cut` that no training or validation target may enter.
    expand_train : bool
        Whether training always begins with the first row.
    first_test, last_test : str or date, optional
        First and last date (inclusive, UTC) of testing. By default testing starts
        after `train_size`, or else after half of the dates, and ends with the data.

    Raises
    ------
    ValueError
        If a size is neither a calendar term nor a count, a limit is not a date, or
        `expand_train` is false without `train_size`.

    Notes
    -----
    A row may train only if its label resolves at or before `cut` and its target span
    [target_start, target_end] does not overlap that of any test row. Spans are
    closed: touching is overlapping, because both labels then use the same price. With
    daily labels from close to close the last row before a test window is purged.
    The same two rules hold between training and validation rows.
    """

    test_size: int | str
    train_size: int | str | None = None
    validation_size: int | str | None = None
    embargo_size: int | str = "0D"
    expand_train: bool = True
    first_test: str | date | None = None
    last_test: str | date | None = None

    def __post_init__(self) -> None:
        parse_size(self.test_size, "test_size")
        parse_size(self.embargo_size, "embargo_size", least=0)
        if self.train_size is not None:
            parse_size(self.train_size, "train_size")
        if self.validation_size is not None:
            parse_size(self.validation_size, "validation_size")
        if self.first_test is not None:
            parse_date(self.first_test, "first_test")
        if self.last_test is not None:
            parse_date(self.last_test, "last_test")
        if not self.expand_train and self.train_size is None:
            raise ValueError(
                "train_size must be set when expand_train is false; got None."
                " Set train_size, or expand_train to true."
            )

    def split(self, spans: pd.DataFrame) -> tuple[Fold, ...]:
        """Cut labelled rows into folds, oldest first.

        Parameters
        ----------
        spans : DataFrame
            One row per forecast, in any order: forecast_time, target_start,
            target_end, resolves_at (timezone-aware datetimes).

        Returns
        -------
        tuple of Fold
            Positions refer to rows of `spans`.

        Raises
        ------
        ValueError
            If a column is missing, not timezone-aware, incomplete or out of order; if
            a test window holds no forecast, or a fold has no row to train on.
        """
        labels = LabelSpans.from_frame(spans)
        windows = self._windows(labels)
        return tuple(
            self._fold(index, window, labels) for index, window in enumerate(windows)
        )

    def _windows(self, labels: LabelSpans) -> list[_Window]:
        last = len(labels.days)
        if self.last_test is not None:
            last = labels.position(parse_date(self.last_test, "last_test") + DAY)
        opening = self._opening(labels.days)
        first = labels.position(opening)
        if first >= last:
            raise ValueError(
                f"first_test must leave dates to test on; got {date_text(opening)} with"
                f" {last} forecast dates up to last_test. Set an earlier first_test, a"
                " shorter train_size or a later last_test."
            )
        size = parse_size(self.test_size, "test_size")
        if isinstance(size, Term):
            return _calendar_windows(labels.days[:last], opening, size)
        starts = range(first, last, size)
        return [
            _Window(int(labels.days[start]), start, min(start + size, last))
            for start in starts
        ]

    def _opening(self, days: Int64[np.ndarray, " dates"]) -> int:
        """Midnight at which testing starts."""
        if self.first_test is not None:
            return parse_date(self.first_test, "first_test")
        if self.train_size is None:
            return int(days[len(days) // 2])
        size = parse_size(self.train_size, "train_size")
        if isinstance(size, Term):
            return size.shift(int(days[0]), 1)
        return int(days[size] if size < len(days) else days[-1] + DAY)

    def _fold(self, index: int, window: _Window, labels: LabelSpans) -> Fold:
        test = labels.rows(window.first, window.stop)
        before = labels.rows(self._first_train_date(window, labels), window.first)
        apart = labels.resolved_apart(before, test)
        clear = labels.end[before] <= self._embargo_limit(window, labels)
        train, validation = self._carve(before[apart & clear], labels)
        embargoed = int((apart & ~clear).sum())
        purged = len(before) - len(train) - len(validation) - embargoed
        first, last = labels.time_range(test)
        if not len(train):
            raise ValueError(
                f"fold {index} must have rows to train on; got none before its test"
                f" window {first} to {last} ({purged} purged, {embargoed} embargoed,"
                f" {len(validation)} kept for validation). Set a later first_test, a"
                " longer train_size, or a shorter embargo_size or validation_size."
            )
        return Fold(
            index=index,
            train=train,
            validation=validation,
            test=test,
            cut=first,
            purged_size=purged,
            embargo_size=embargoed,
            train_span=labels.time_range(train),
            validation_span=labels.time_range(validation) if len(validation) else None,
            test_span=(first, last),
        )

    def _first_train_date(self, window: _Window, labels: LabelSpans) -> int:
        if self.expand_train or self.train_size is None:
            return 0
        size = parse_size(self.train_size, "train_size")
        if isinstance(size, Term):
            return labels.position(size.shift(window.opening, -1))
        return max(window.first - size, 0)

    def _embargo_limit(self, window: _Window, labels: LabelSpans) -> int:
        """Latest instant that a training target may reach."""
        size = parse_size(self.embargo_size, "embargo_size", least=0)
        if isinstance(size, Term):
            return size.shift(labels.first_forecast(window.first), -1)
        return labels.first_forecast(window.first - size)

    def _carve(
        self, rows: Int64[np.ndarray, " rows"], labels: LabelSpans
    ) -> tuple[Int64[np.ndarray, " train"], Int64[np.ndarray, " validation"]]:
        """Split rows, in order, into training and the last `validation_size`."""
        if self.validation_size is None or not len(rows):
            return rows, rows[:0]
        size = parse_size(self.validation_size, "validation_size")
        dates = np.unique(labels.date[rows])
        if isinstance(size, Term):
            after = int(labels.days[dates[-1]]) + DAY
            first = labels.position(size.shift(after, -1))
        else:
            first = int(dates[max(len(dates) - size, 0)])
        chosen = labels.date[rows] >= first
        train, validation = rows[~chosen], rows[chosen]
        return train[labels.resolved_apart(train, validation)], validation


def _calendar_windows(
    days: Int64[np.ndarray, " dates"], opening: int, size: Term
) -> list[_Window]:
    openings = [opening]
    while openings[-1] <= days[-1]:
        openings.append(size.shift(opening, len(openings)))
    edges = np.searchsorted(days, openings)
    for index in np.flatnonzero(np.diff(edges) == 0):
        start, stop = date_text(openings[index]), date_text(openings[index + 1])
        raise ValueError(
            f"test window {index} must hold forecasts; got none from {start} up to"
            f" {stop}. Set a longer test_size, a later first_test or an earlier"
            " last_test."
        )
    return [
        _Window(start, int(first), int(stop))
        for start, first, stop in zip(openings[:-1], edges, edges[1:], strict=False)
    ]


def fold_table(folds: tuple[Fold, ...], spans: pd.DataFrame) -> pd.DataFrame:
    """Tell people what each fold holds.

    Parameters
    ----------
    folds : tuple of Fold
        Answer of `WalkForward.split`.
    spans : DataFrame
        The frame that was split.

    Returns
    -------
    DataFrame
        One row per fold: fold, cut, `{train,validation,test}_{first,last,rows,dates}`
        (first and last forecast time; NaT without validation), purged_rows,
        embargo_rows.
    """
    dates = LabelSpans.from_frame(spans).date
    return pd.DataFrame([_fold_row(fold, dates) for fold in folds])


def _fold_row(fold: Fold, dates: Int64[np.ndarray, " rows"]) -> dict[str, object]:
    row: dict[str, object] = {"fold": fold.index, "cut": fold.cut}
    parts = (
        ("train", fold.train, fold.train_span),
        ("validation", fold.validation, fold.validation_span),
        ("test", fold.test, fold.test_span),
    )
    for name, rows, span in parts:
        row[f"{name}_first"], row[f"{name}_last"] = span or (pd.NaT, pd.NaT)
        row[f"{name}_rows"] = len(rows)
        row[f"{name}_dates"] = len(np.unique(dates[rows]))
    return row | {"purged_rows": fold.purged_size, "embargo_rows": fold.embargo_size}
