"""ALFRED and FRED of the Federal Reserve Bank of St. Louis.

A file says on which day a vintage appeared, not at which time of day; and a plain FRED
download does not even say the day. Neither is guessed: both are declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from jaxtyping import Bool
from pydantic import model_validator

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.clock_settings import Day, TimeOfDay, Zone
from infoset.data.sources.declaration import RowDeclaration
from infoset.data.sources.declared_clocks import (
    Availability,
    AvailableColumn,
    DateStamp,
    EventTime,
    KnownVintage,
    PeriodStart,
)
from infoset.data.sources.delimited import shown_name

from .alfred_api import Answer, answer_vintages, read_answer, require_whole
from .alfred_clocks import PERIODS, STEP_DAYS, Frequency, Schedule, Span
from .alfred_wide import wide_vintages
from .vintage_notices import vintage_notices
from .vintage_source import VintageSource
from .vintages import Vintage, VintageWalk

_KINDS = (".csv", ".tsv", ".txt", ".json")
_SUFFIXES = (*_KINDS, *(f"{kind}.gz" for kind in _KINDS), ".zip")


def _assumed(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the assumptions that follow from what is declared."""
    if given.get("published") is not None:
        return (
            "The file has no vintages: every value counts as published on the declared "
            "schedule, and as never revised.",
        )
    return (
        f"A value counts as known at {given.get('at')} {given.get('zone')} on the day of "
        "its vintage; the file holds the day alone.",
        "Values of a series' first vintage count as known from that vintage, though most "
        "were published earlier.",
    )


class AlfredSource(VintageSource):
    """Downloads of ALFRED or FRED, or answers of their API.

    Attributes
    ----------
    path : str
        Delimited text (observation_date or DATE, then SERIES_YYYYMMDD or SERIES) or
        JSON of series/observations; or a pattern for several such files.
    frequency : str
        What a date stands for. daily: that day; weekly: the week that ends on it; the
        others: the period that begins on it.
    zone : str
        IANA zone in which days begin and end, and times of day are meant.
    at : str, optional
        Local time of day of a release on the day of its vintage. The files do not hold
        it, so it must be declared; ``24:00``, the end of the day, is the safe bound.
    observed_at : str, optional
        Local time of day of a daily value; for other frequencies a period's end counts.
    vintage : date, optional
        The day on which a file without vintages was downloaded.
    published : Schedule, optional
        When each value of a file without vintages was published, if it is known that
        none was revised since.
    backfilled : tuple of Span
        With `published`: periods whose values were added later. They count as known
        from `vintage` on.
    """

    preset: Literal["alfred"]
    frequency: Frequency
    zone: Zone
    at: TimeOfDay | None = None
    observed_at: TimeOfDay | None = None
    vintage: Day | None = None
    published: Schedule | None = None
    backfilled: tuple[Span, ...] = ()

    def vintages(self, *, base: Path) -> Iterable[Vintage]:
        """Read the vintages of all files, oldest first."""
        vintages: list[Vintage] = []
        answers: list[Answer] = []
        for path in self.files(base=base):
            name = shown_name(path, base)
            if ".json" in path.suffixes:
                answers.append(read_answer(path, name))
            else:
                vintages += wide_vintages(path, name)
        require_whole(answers)
        for answer in answers:
            vintages += answer_vintages(answer, self._series_of(answer))
        return sorted(self._dated(vintages), key=lambda vintage: vintage.known)

    @property
    def availability(self) -> Availability:
        """The declared schedule, or the declared time on the day of the vintage."""
        if self.published is not None:
            return self.published
        return AvailableColumn(column="vintage", zone=self.zone, at=self.at)

    def event_time(self, date_column: str) -> EventTime:
        """Return when the day or period of a date was over."""
        if self.frequency in PERIODS:
            return PeriodStart(
                column=date_column,
                stamp="period_start",
                period=PERIODS[self.frequency],
                zone=self.zone,
            )
        at = self.observed_at or "24:00"
        return DateStamp(column=date_column, stamp="date", at=at, zone=self.zone)

    def declared(
        self, table: SourceTable, date_column: str
    ) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the values as they are declared, and those that were added later."""
        declared = self.declaration(date_column)
        if not self.backfilled or self.vintage is None or self.at is None:
            yield table, declared
            return
        later = KnownVintage(vintage=self.vintage, at=self.at, zone=self.zone)
        is_late = self._is_backfilled(table, date_column)
        for kept, known in ((~is_late, declared.available_at), (is_late, later)):
            part = SourceTable(table.name, table.columns.filter(kept), table.rows[kept])
            yield part, declared.model_copy(update={"available_at": known})

    def notices_of(self, walk: VintageWalk) -> tuple[str, ...]:
        """Return what people should know about the vintages, or that there are none."""
        if self.published is None:
            return vintage_notices(self.name, walk)
        return (
            f"{self.name}: there are no vintages, so nothing tells a value that was "
            f"revised, or added years later. All {walk.num_events.total():,} values "
            "count as published on the declared schedule, but for those in `backfilled`. "
            "Download the vintages from ALFRED to be sure.",
        )

    def check(self, walk: VintageWalk) -> None:
        """Refuse a frequency that the dates of a series contradict."""
        low, high = STEP_DAYS[self.frequency]
        for name in walk.series:
            step = walk.step_days(name)
            if step < low or step > high:
                near = [kind for kind, (a, b) in STEP_DAYS.items() if a <= step <= b]
                hint = f"Declare `frequency: {near[0]}`" if near else "Correct it"
                raise ValueError(
                    f"frequency must fit the dates of {name} in {self.name}; got "
                    f"{self.frequency!r}, but they lie {step:g} days apart. {hint}, and "
                    "give series of another frequency a source of their own (`series`)."
                )

    def _series_of(self, answer: Answer) -> str:
        if not answer.is_listed:
            return ""
        if len(self.series) != 1:
            raise ValueError(
                f"series must name the one series of {answer.table.name}, as an answer "
                f"of output type {answer.output_type} does not; got "
                f"{', '.join(self.series) or 'none'}. Declare `series: [NAME]`, one "
                "source per series."
            )
        return self.series[0]

    def _dated(self, vintages: list[Vintage]) -> list[Vintage]:
        """Return vintages with the declared day where the file has none."""
        known = sorted({vintage.known for vintage in vintages})
        if self.published is not None:
            if len(known) > 1:
                raise ValueError(
                    f"published must be left out for files with vintages; got "
                    f"{len(known)} of them in {self.name} ({known[0] or 'one without'} to "
                    f"{known[-1]}). Remove `published`, and declare `at`."
                )
            return [replace(vintage, known="") for vintage in vintages]
        if self.vintage is not None and known != [""]:
            raise ValueError(
                f"vintage must be left out for files that name their vintages; got "
                f"{self.vintage} for {self.name}, which holds {known[-1]}. Remove it."
            )
        if self.vintage is None and "" in known:
            bare = next(vintage for vintage in vintages if not vintage.known)
            raise ValueError(
                f"{bare.file} must say its vintage; got column {bare.series[0]!r} instead "
                f"of {bare.series[0]}_YYYYMMDD: values as they read on the day of the "
                "download, whenever they were published. Declare that day, such as "
                "`vintage: 2024-08-07`; or `published`, if none was revised or added "
                "later."
            )
        day = "" if self.vintage is None else self.vintage.isoformat()
        return [replace(vintage, known=vintage.known or day) for vintage in vintages]

    def _is_backfilled(
        self, table: SourceTable, date_column: str
    ) -> Bool[np.ndarray, " n"]:
        dates = table.cells(date_column)
        found = np.zeros(len(table), dtype=bool)
        for span in self.backfilled:
            inside = pc.and_(
                pc.greater_equal(dates, span.first), pc.less_equal(dates, span.last)
            )
            found |= inside.to_numpy()
        return found

    @model_validator(mode="before")
    @classmethod
    def _assuming(cls, given: object) -> object:
        if isinstance(given, dict) and "assumptions" not in given:
            return given | {"assumptions": _assumed(given)}
        return given

    @model_validator(mode="after")
    def _clocks(self) -> AlfredSource:
        if (self.frequency == "daily") != (self.observed_at is not None):
            raise ValueError(
                "must have `observed_at` (the local time of day of a value) for "
                f"`frequency: daily`, and for no other; got {self.frequency!r} and "
                f"{self.observed_at!r}"
            )
        if self.published is None and self.at is None:
            raise ValueError(
                "must have `at`, the local time of day at which a vintage appears: the "
                "files hold its day alone. Declare the agency's, such as '08:30', or "
                "'24:00', the end of the day, as a safe bound; got none"
            )
        given = [self.vintage is not None, self.at is not None]
        if self.published is not None and given != [bool(self.backfilled)] * 2:
            raise ValueError(
                "must have `vintage` and `at` beside `published` if there are "
                "`backfilled` periods, which count as known from then on, and only then"
            )
        if self.backfilled and self.published is None:
            raise ValueError("must have `backfilled` periods only with `published`")
        return self

    @model_validator(mode="after")
    def _known_suffix(self) -> AlfredSource:
        if not self.path.endswith(_SUFFIXES):
            raise ValueError(
                f"must name files that end in {', '.join(_SUFFIXES)}; got {self.path!r}"
            )
        return self
