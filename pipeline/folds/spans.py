"""Labelled rows in time: when each was forecast, what it measured, when it resolved."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int64

from .sizes import DAY, Term, parse_size

COLUMNS = ("forecast_time", "target_start", "target_end", "resolves_at")
_BEFORE_ALL = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, eq=False)
class LabelSpans:
    """The clocks of labelled rows in UTC nanoseconds, grouped by forecast date.

    Attributes
    ----------
    forecast, start, end, resolves : ndarray of shape (rows,)
        forecast_time, target_start, target_end and resolves_at of each row.
    days : ndarray of shape (dates,)
        Midnight of each distinct forecast date, ascending.
    date : ndarray of shape (rows,)
        Position of each row's forecast date in `days`.
    order : ndarray of shape (rows,)
        Row positions by forecast time, then position.
    edges : ndarray of shape (dates + 1,)
        Where each date begins in `order`.
    """

    forecast: Int64[np.ndarray, " rows"]
    start: Int64[np.ndarray, " rows"]
    end: Int64[np.ndarray, " rows"]
    resolves: Int64[np.ndarray, " rows"]
    days: Int64[np.ndarray, " dates"]
    date: Int64[np.ndarray, " rows"]
    order: Int64[np.ndarray, " rows"]
    edges: Int64[np.ndarray, " edges"]

    @classmethod
    def from_frame(cls, spans: pd.DataFrame) -> "LabelSpans":
        """Read and check a frame with the columns `COLUMNS`.

        Raises
        ------
        ValueError
            If there is no row, a column is missing, not timezone-aware or incomplete,
            or a target ends before it starts or resolves before it ends.
        """
        absent = [name for name in COLUMNS if name not in spans.columns]
        if absent or not len(spans):
            raise ValueError(
                f"spans must have rows and the columns {', '.join(COLUMNS)}; got"
                f" {len(spans)} rows without {', '.join(absent) or 'a gap'}."
                " Build them from the targets."
            )
        forecast, start, end, resolves = (_clock(spans[name]) for name in COLUMNS)
        _refuse_disorder(spans, start, end, ("target_start", "target_end"))
        _refuse_disorder(spans, end, resolves, ("target_end", "resolves_at"))
        days, date = np.unique(forecast // DAY * DAY, return_inverse=True)
        order = np.argsort(forecast, kind="stable")
        edges = np.searchsorted(date[order], np.arange(len(days) + 1))
        return cls(forecast, start, end, resolves, days, date, order, edges)

    def rows(self, first: int, stop: int) -> Int64[np.ndarray, " chosen"]:
        """Rows of the dates `first` up to `stop`, by forecast time."""
        chosen: Int64[np.ndarray, " chosen"]
        chosen = self.order[self.edges[first] : self.edges[stop]]
        return chosen

    def position(self, time: int) -> int:
        """Position of the first date at or after a midnight."""
        return int(np.searchsorted(self.days, time))

    def first_forecast(self, date: int) -> int:
        """First forecast time of a date; before everything for a negative position."""
        if date < 0:
            return _BEFORE_ALL
        return int(self.forecast[self.order[self.edges[date]]])

    def time_range(
        self, rows: Int64[np.ndarray, " chosen"]
    ) -> tuple[pd.Timestamp, pd.Timestamp]:
        """First and last forecast time of rows that are in order."""
        first, last = self.forecast[rows[0]], self.forecast[rows[-1]]
        return _instant(first), _instant(last)

    def resolved_apart(
        self, train: Int64[np.ndarray, " train"], later: Int64[np.ndarray, " later"]
    ) -> Bool[np.ndarray, " train"]:
        """Whether labels resolve by the first forecast of `later`, without overlap."""
        resolved = self.resolves[train] <= self.forecast[later].min()
        free: Bool[np.ndarray, " train"] = resolved & ~self.overlaps(train, later)
        return free

    def overlaps(
        self, train: Int64[np.ndarray, " train"], test: Int64[np.ndarray, " test"]
    ) -> Bool[np.ndarray, " train"]:
        """Whether the closed target span of a row meets that of any test row.

        Of the test spans that start by the end of a row's span, the one that ends
        last decides: a sort, a running maximum and a binary search.
        """
        by_start = test[np.argsort(self.start[test])]
        last_end = np.maximum.accumulate(self.end[by_start])
        started = np.searchsorted(self.start[by_start], self.end[train], side="right")
        meets: Bool[np.ndarray, " train"]
        meets = (started > 0) & (last_end[started - 1] >= self.start[train])
        return meets

    def follows(
        self,
        train: Int64[np.ndarray, " train"],
        test: Int64[np.ndarray, " test"],
        size: int | Term,
    ) -> Bool[np.ndarray, " train"]:
        """Whether a row is forecast after the end of a test target, within `size`."""
        ends = np.sort(self.end[test])
        ended = np.searchsorted(ends, self.forecast[train], side="left")
        last_end = ends[ended - 1]  # of no meaning where nothing has ended
        if isinstance(size, int):
            passed = np.searchsorted(self.days, last_end, side="right")
            near = (self.date[train] < passed + size) & (size > 0)
        else:
            limit = size.after(pd.DatetimeIndex(last_end, tz="UTC")).as_unit("ns").asi8
            near = self.forecast[train] <= limit
        follows: Bool[np.ndarray, " train"] = (ended > 0) & near
        return follows


def purge(
    spans: pd.DataFrame,
    train: Int64[np.ndarray, " train"],
    test: Int64[np.ndarray, " test"],
    *,
    embargo: int | str = 0,
) -> Int64[np.ndarray, " kept"]:
    """Keep training rows, on either side, whose labels share nothing with test rows.

    For cross-validation that also trains on later rows; `WalkForward` never does. A
    row is dropped if its closed target span overlaps or touches that of any test row,
    or if its forecast follows the end of a test target within `embargo`.

    Parameters
    ----------
    spans : DataFrame
        As for `WalkForward.split`.
    train, test : ndarray of int64
        Row positions in `spans`, in any order; `test` need not be contiguous.
    embargo : int or str
        Calendar term, or number of forecast dates, after each test target.

    Returns
    -------
    ndarray of int64
        The kept positions of `train`, in its order.

    Raises
    ------
    ValueError
        If `test` is empty, `embargo` is not a size, or `spans` is invalid.

    References
    ----------
    .. [1] López de Prado (2018), Advances in Financial Machine Learning, section 7.4
    """
    size = parse_size(embargo, "embargo", least=0)
    labels = LabelSpans.from_frame(spans)
    if not len(test):
        raise ValueError("test must hold rows; got none. Choose test rows first.")
    barred = labels.overlaps(train, test) | labels.follows(train, test, size)
    kept: Int64[np.ndarray, " kept"] = train[~barred]
    return kept


def _instant(time: np.int64) -> pd.Timestamp:
    return pd.Timestamp(int(time), unit="ns", tz="UTC")


def _clock(column: pd.Series) -> Int64[np.ndarray, " rows"]:
    if not isinstance(column.dtype, pd.DatetimeTZDtype):
        raise ValueError(  # noqa: TRY004 - it is the content that is wrong
            f"{column.name} must be timezone-aware datetimes; got {column.dtype}."
            " Localise it to UTC."
        )
    if column.isna().any():
        row = int(np.flatnonzero(column.isna())[0])
        raise ValueError(
            f"{column.name} must be known; got NaT in row {row}."
            " Leave rows without a target span out."
        )
    return pd.DatetimeIndex(column).as_unit("ns").asi8


def _refuse_disorder(
    spans: pd.DataFrame,
    earlier: Int64[np.ndarray, " rows"],
    later: Int64[np.ndarray, " rows"],
    names: tuple[str, str],
) -> None:
    wrong = np.flatnonzero(later < earlier)
    if len(wrong):
        first, last = (spans[name].iloc[wrong[0]] for name in names)
        raise ValueError(
            f"{names[1]} must not lie before {names[0]}; got {last} before {first} in"
            f" row {wrong[0]} ({len(wrong)} such rows). Correct the targets."
        )
