"""Vintages of series, and the cells that are new or changed from one to the next.

A vintage table repeats every value that is still valid. Only a value that is new or has
changed is an event; one that stays is no revision. A value that a later vintage lacks is
no event either (what was last known stays known), but it is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Int64

from infoset.data.sources.cells import SourceTable


@dataclass(frozen=True, eq=False)
class Vintage:
    """What one file says of one vintage.

    Attributes
    ----------
    file : str
        For messages.
    date_column : str
        What the file calls the column of its periods.
    known : str
        Day (2008-03-07) or month (2008-03) of the vintage; these sort as text. Empty
        where the file has no vintage.
    days : ndarray of shape (t,)
        The date of each period, in days since 1970; each once.
    series : tuple of str
        Name of each column of `values`.
    values : ndarray of shape (t, s)
        NaN where the vintage lacks a value.
    rows : ndarray of shape (t,)
        Row of the file that holds each period.
    is_complete : bool
        Whether a period that is not in `days` is missing from the vintage; otherwise
        it is as it was before.
    """

    file: str
    date_column: str
    known: str
    days: Int64[np.ndarray, " t"]
    series: tuple[str, ...]
    values: Float64[np.ndarray, "t s"]
    rows: Int64[np.ndarray, " t"]
    is_complete: bool = True

    def of_series(self, names: Sequence[str]) -> Vintage:
        """Return the vintage of those of its series that are named."""
        kept = [place for place, name in enumerate(self.series) if name in names]
        series = tuple(self.series[place] for place in kept)
        return replace(self, series=series, values=self.values[:, kept])

    def since(self, day: int) -> Vintage:
        """Return the vintage without the periods of earlier dates."""
        kept = self.days >= day
        return replace(
            self, days=self.days[kept], values=self.values[kept], rows=self.rows[kept]
        )


@dataclass(frozen=True, eq=False)
class _Changes:
    """The changed cells of one vintage."""

    vintage: Vintage
    place: Int64[np.ndarray, " k"]
    column: Int64[np.ndarray, " k"]
    value: Float64[np.ndarray, " k"]


class VintageWalk:
    """Goes through vintages, oldest first, and keeps the cells that are events.

    Attributes
    ----------
    first, last : dict of str to str
        The first and the last vintage in which a series has a value.
    num_events, num_censored, num_vanished : Counter of str
        Per series: new or changed values; those of them that stand in its first
        vintage, and were published some time before it; values that a later vintage
        lacks.
    """

    def __init__(self) -> None:
        self.first: dict[str, str] = {}
        self.last: dict[str, str] = {}
        self.num_events: Counter[str] = Counter()
        self.num_censored: Counter[str] = Counter()
        self.num_vanished: Counter[str] = Counter()
        self._known: dict[str, None] = {}
        self._changes: list[_Changes] = []
        self._days = np.empty(0, dtype=np.int64)
        self._columns: dict[str, int] = {}
        self._value = np.empty((0, 0))
        self._is_given = np.empty((0, 0), dtype=bool)

    @property
    def known(self) -> tuple[str, ...]:
        """The vintages that were seen, oldest first."""
        return tuple(self._known)

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the series that were seen, in order."""
        return tuple(self._columns)

    def add(self, vintage: Vintage) -> None:
        """Take in a vintage that is not older than those before it."""
        self._known[vintage.known] = None
        self._make_room(vintage)
        columns = np.array([self._columns[name] for name in vintage.series], np.int64)
        periods = np.searchsorted(self._days, vintage.days)
        cells = np.ix_(periods, columns)
        is_given, before = ~np.isnan(vintage.values), self._value[cells]
        is_changed = is_given & (vintage.values != before)
        self._value[cells] = np.where(is_given, vintage.values, before)
        self._count(vintage, is_given, is_changed)
        was_given = self._is_given[:, columns]
        stays = np.zeros_like(was_given) if vintage.is_complete else was_given.copy()
        stays[periods] = is_given
        self._is_given[:, columns] = stays
        vanished = (was_given & ~stays).sum(axis=0).tolist()
        self.num_vanished.update(dict(zip(vintage.series, vanished, strict=True)))
        place, column = np.nonzero(is_changed)
        if len(place):
            value = vintage.values[place, column]
            self._changes.append(_Changes(vintage, place, columns[column], value))

    def step_days(self, series: str) -> float:
        """Return the median number of days between periods; NaN for fewer than three."""
        has_value = ~np.isnan(self._value[:, self._columns[series]])
        steps = np.diff(self._days[has_value])
        return float(np.median(steps)) if len(steps) > 1 else float("nan")

    def tables(self, *, joined: str | None = None) -> list[tuple[str, SourceTable]]:
        """Return the events of each file, and the name of its column of dates.

        The tables have that column (dates), `series`, `vintage` (text) and `value`.
        With `joined`, files with one name for that column share a table of that name.
        """
        groups: dict[tuple[str, str], list[_Changes]] = {}
        for changes in self._changes:
            column = changes.vintage.date_column
            name = changes.vintage.file if joined is None else joined
            groups.setdefault((column, name), []).append(changes)
        return [
            (column, self._table(name, column, changes))
            for (column, name), changes in groups.items()
        ]

    def _count(
        self,
        vintage: Vintage,
        is_given: Bool[np.ndarray, "t s"],
        is_changed: Bool[np.ndarray, "t s"],
    ) -> None:
        for name, num_given, count in zip(
            vintage.series,
            is_given.sum(axis=0).tolist(),
            is_changed.sum(axis=0).tolist(),
            strict=True,
        ):
            if num_given:
                self.last[name] = vintage.known
                if self.first.setdefault(name, vintage.known) == vintage.known:
                    self.num_censored[name] += count
                self.num_events[name] += count

    def _make_room(self, vintage: Vintage) -> None:
        for name in vintage.series:
            self._columns.setdefault(name, len(self._columns))
        days = self._days
        if len(np.setdiff1d(vintage.days, days, assume_unique=True)):
            days = np.union1d(days, vintage.days)
        shape = len(days), len(self._columns)
        if shape == self._value.shape:
            return
        kept = np.ix_(
            np.searchsorted(days, self._days), np.arange(self._value.shape[1])
        )
        value, is_given = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
        value[kept], is_given[kept] = self._value, self._is_given
        self._days, self._value, self._is_given = days, value, is_given

    def _table(self, name: str, date_column: str, mine: list[_Changes]) -> SourceTable:
        days = np.concatenate([c.vintage.days[c.place] for c in mine])
        vintages = np.repeat(
            [c.vintage.known for c in mine], [len(c.place) for c in mine]
        )
        column = np.concatenate([c.column for c in mine])
        columns = {
            date_column: pa.array(days.astype(np.int32)).cast(pa.date32()),
            "series": pa.array(
                np.array(self.series, dtype=object)[column], pa.string()
            ),
            "vintage": pa.array(vintages.astype(object), pa.string()),
            "value": pa.array(np.concatenate([c.value for c in mine])),
        }
        rows = np.concatenate([c.vintage.rows[c.place] for c in mine])
        return SourceTable(name, pa.table(columns), rows)
