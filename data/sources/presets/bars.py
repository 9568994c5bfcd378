"""Bars (open, high, low, close, volume) of any vendor: known when they close.

A bar's stamp says nothing by itself: some vendors write when it opens, some when it
closes, some the date of its session. So this must be declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Int64
from pydantic import Discriminator, Field, Tag, model_validator

from infoset.data.durations import Duration
from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable, text_cells
from infoset.data.sources.declaration import (
    ColumnRef,
    RowDeclaration,
    TextFormat,
    Value,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import AfterLag, InstantStamp
from infoset.data.sources.delimited import shown_name
from infoset.data.sources.source import VendorSource
from infoset.data.sources.tabular import read_rows
from infoset.data.strict import Strict

from .bar_checks import ohlc_faults, overlap_notices
from .bar_times import BarClock


class BarColumns(Strict):
    """The file's columns; a bar needs no more than a time and a close."""

    time: str
    open: str | None = None
    high: str | None = None
    low: str | None = None
    close: str
    volume: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """Our names of the values that are there, to the file's columns."""
        named = self.model_dump(exclude={"time"}, exclude_none=True)
        return {name: str(column) for name, column in named.items()}


class FileName(Strict):
    """An entity that stands in the name of its file: ``*_1min.csv``."""

    file: Annotated[str, Field(pattern=r"^[^*]*\*[^*]*$")]

    def entity_of(self, path: Path) -> str:
        """Return what stands where the star is.

        Raises
        ------
        ValueError
            If the file's name is another.
        """
        before, after = self.file.split("*")
        name = path.name
        entity = name[len(before) : len(name) - len(after)]
        if name != f"{before}{entity}{after}" or not entity:
            raise ValueError(
                f"entity.file must match the name of every file; got {self.file!r} "
                f"for {name}. Correct it, or `path`."
            )
        return entity


def _entity_kind(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    if isinstance(given, str):
        return "constant"
    keys = set(given) if isinstance(given, Mapping) else set(dir(given))
    return next((key for key in ("column", "file") if key in keys), None)


BarEntity = Annotated[
    Annotated[str, Field(min_length=1), Tag("constant")]
    | Annotated[ColumnRef, Tag("column")]
    | Annotated[FileName, Tag("file")],
    Discriminator(
        _entity_kind,
        custom_error_type="entity",
        custom_error_message=(
            "text (in quotes if it looks like a number), {column: name} or "
            "{file: '*.csv'}"
        ),
    ),
]


class BarsSource(BarClock, VendorSource):
    """Bars in delimited text or Parquet.

    Attributes
    ----------
    stream : str
        By default ``bars/`` and the length of a bar: ``bars/1min``, ``bars/1d``.
    format, where
        See `RowDeclaration`.
    columns : BarColumns
    entity : str, ColumnRef or FileName
        A constant, the column of the symbols, or the part of the file's name where a
        star stands.
    lag : str
        How long after its close a bar is known.
    values : Mapping[str, ValueColumn]
        More columns, such as ``vwap: vw``.
    unit : str, optional
        Of the prices, for the record.
    """

    preset: Literal["bars"]
    format: TextFormat = TextFormat()
    where: Mapping[str, tuple[str, ...]] = {}
    columns: BarColumns
    entity: BarEntity
    lag: Duration = "0s"
    values: Mapping[str, Value] = {}
    unit: str | None = None
    assumptions: tuple[str, ...] = (
        "A bar is known when it closes: nothing of it is used before.",
    )

    @model_validator(mode="before")
    @classmethod
    def _stream_by_length(cls, given: object) -> object:
        if not isinstance(given, dict) or "stream" in given:
            return given
        length = "1d" if given.get("stamped") == "session" else given.get("bar")
        return {**given, "stream": f"bars/{length}"}

    @model_validator(mode="after")
    def _own_names(self) -> BarsSource:
        twice = sorted(self.values.keys() & self.columns.named.keys())
        if twice:
            raise ValueError(
                "must not name in `values` what `columns` has already; got "
                f"{', '.join(twice)}"
            )
        return self

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the rows of each file; bars whose prices cannot be are set aside."""
        for path in self.files(base=base):
            declaration = self._declaration(path)
            table = read_rows(path, shown_name(path, base), declaration)
            faults = ohlc_faults(table, self.columns.named, self.format)
            time = self.columns.time
            closes = self.closes(table, time, series=_series(table, declaration))
            table = table.with_columns({time: closes})
            yield table.with_faults(faults), declaration

    def notices(self, log: EventLog) -> tuple[str, ...]:
        """Say which bars are closer than their length."""
        if self.bar is None:
            return ()
        return tuple(overlap_notices(log, self.streams(log), self.bar))

    def _declaration(self, path: Path) -> RowDeclaration:
        named = {
            name: ValueColumn(
                column=column, unit=None if name == "volume" else self.unit
            )
            for name, column in self.columns.named.items()
        }
        entity = self.entity
        return RowDeclaration(
            format=self.format,
            where=self.where,
            stream=self.stream,
            entity=entity.entity_of(path) if isinstance(entity, FileName) else entity,
            event_time=InstantStamp(column=self.columns.time, stamp="bar_close"),
            available_at=AfterLag(lag=self.lag),
            values={**named, **self.values},
            assumptions=self.assumptions,
            change=self.change,
        )


def _series(table: SourceTable, declaration: RowDeclaration) -> Int64[np.ndarray, " n"]:
    if not isinstance(declaration.entity, ColumnRef):
        return np.zeros(len(table), dtype=np.int64)
    names = text_cells(table, declaration.entity.column).to_pandas()
    codes: np.ndarray = pd.factorize(names)[0].astype(np.int64)
    return codes
