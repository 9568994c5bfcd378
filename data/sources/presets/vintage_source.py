"""Presets whose files are vintages: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from pydantic import Field, model_validator

from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable
from infoset.data.sources.clock_settings import Day
from infoset.data.sources.declaration import (
    ColumnRef,
    Entity,
    RowDeclaration,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import (
    Availability,
    EventTime,
)
from infoset.data.sources.load import logged_rows
from infoset.data.sources.nearest import did_you_mean
from infoset.data.sources.source import VendorSource

from .vintage_notices import vintage_notices
from .vintages import Vintage, VintageWalk

_SHOWN = 5


class VintageSource(VendorSource):
    """Vintages of one or more series: an event for every value that is new or changed.

    Attributes
    ----------
    stream : str
        A name, or a template with ``{series}``.
    entity : str or ColumnRef
        A constant, or ``{column: series}``.
    series : tuple of str
        Series to use; all of the files if none is named.
    since : date, optional
        Date of the first period to use; earlier ones are left out.
    assumptions : tuple of str
        What is assumed about the clocks, for the report.
    """

    stream: str = Field(default="macro/{series}", min_length=1)
    entity: Entity = "*"
    series: tuple[str, ...] = ()
    since: Day | None = None
    assumptions: tuple[str, ...] = ()

    @abstractmethod
    def vintages(self, *, base: Path) -> Iterable[Vintage]:
        """Read the vintages, oldest first."""

    @abstractmethod
    def event_time(self, date_column: str) -> EventTime:
        """Return the clock of the periods, whose dates stand in that column."""

    @property
    @abstractmethod
    def availability(self) -> Availability:
        """The clock of the vintages, which stand in the column `vintage`."""

    def streams(self, log: EventLog) -> tuple[str, ...]:
        """Return the streams of a log that this source can have given."""
        possible = {self.stream.replace("{series}", name) for name in self.series}
        names = super().streams(log)
        return tuple(n for n in names if n in possible) if possible else names

    def check(self, walk: VintageWalk) -> None:
        """Refuse series that do not fit what is declared."""

    def notices_of(self, walk: VintageWalk) -> tuple[str, ...]:
        """Return what people should know about the vintages; nothing is changed."""
        return vintage_notices(self.name, walk)

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the new and changed values of each file."""
        for date_column, table in self._walk(base).tables():
            yield from self.declared(table, date_column)

    def log(self, *, base: Path) -> EventLog:
        """Read the events; see `Source`."""
        walk = self._walk(base)
        try:
            log = self._logged(walk.tables(joined=self.name))
        except ValueError:
            # One large table is read fast; a table per file says where a row stands.
            log = self._logged(walk.tables())
        found = (*self.notices_of(walk), *self.notices(log))
        return replace(log, notices=(*log.notices, *found))

    def declaration(self, date_column: str) -> RowDeclaration:
        """Return what the rows of a table with that column of dates mean."""
        return RowDeclaration(
            stream=self.stream,
            entity=self.entity,
            event_time=self.event_time(date_column),
            available_at=self.availability,
            values={"value": ValueColumn(column="value")},
            assumptions=self.assumptions,
            change=self.change,
        )

    def declared(
        self, table: SourceTable, date_column: str
    ) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield a table of events, or the parts of it that have clocks of their own."""
        yield table, self.declaration(date_column)

    def _logged(self, tables: list[tuple[str, SourceTable]]) -> EventLog:
        return logged_rows(
            declared
            for date_column, table in tables
            for declared in self.declared(table, date_column)
        )

    def _walk(self, base: Path) -> VintageWalk:
        walk, found = VintageWalk(), dict[str, None]()
        for vintage in self.vintages(base=base):
            found.update(dict.fromkeys(vintage.series))
            walk.add(self._used(vintage))
        self._require_series(list(found), walk)
        self.check(walk)
        return walk

    def _used(self, vintage: Vintage) -> Vintage:
        if self.series:
            vintage = vintage.of_series(self.series)
        if self.since is not None:
            vintage = vintage.since((self.since - date(1970, 1, 1)).days)
        return vintage

    def _require_series(self, found: list[str], walk: VintageWalk) -> None:
        for name in self.series:
            if name not in found:
                near = did_you_mean(name, found)
                raise ValueError(
                    f"series must name series of {self.name}; got {name!r}. {near}It "
                    f"holds {_listed(found)}. Correct `series`."
                )
        if not walk.num_events.total():
            raise ValueError(
                f"{self.name} must hold a value; got none for {_listed(found) or 'any'}. "
                "Check the file, or remove the source."
            )
        if "{" not in self.stream and isinstance(self.entity, str) and len(found) > 1:
            used = self.series or tuple(found)
            if len(used) > 1:
                raise ValueError(
                    f"stream or entity must tell the series of {self.name} apart "
                    f"({_listed(list(used))}); got {self.stream!r} and {self.entity!r}. "
                    "Write `{series}` into `stream`, declare `entity: {column: series}`,"
                    " or name one series in `series`."
                )

    @model_validator(mode="after")
    def _one_column(self) -> VintageSource:
        entity = self.entity.column if isinstance(self.entity, ColumnRef) else "series"
        if entity != "series":
            raise ValueError(
                "must have as `entity` a name or {column: series}; got column "
                f"{entity!r}"
            )
        if set("{}") & set(self.stream.replace("{series}", "", 1)):
            raise ValueError(
                "must have as `stream` a name, or a template with {series}; got "
                f"{self.stream!r}"
            )
        return self


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
