"""What the presets of EDGAR share: filers, streams, and filings known by date alone."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool
from pydantic import Discriminator, Field, Tag, model_validator

from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable
from infoset.data.sources.declaration import (
    ColumnRef,
    RowDeclaration,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import (
    AvailableColumn,
    InstantStamp,
)
from infoset.data.sources.load import logged_rows
from infoset.data.sources.nearest import did_you_mean
from infoset.data.sources.source import VendorSource

from .edgar_clock import Cik
from .edgar_dates import DateRule

_SHOWN = 8
_FIELD = re.compile(r"\{([^{}]*)\}")


def _entity_kind(given: Any) -> str | None:  # noqa: ANN401 (any YAML value)
    if isinstance(given, str):
        return "kind"
    return "names" if isinstance(given, Mapping) else None


FilerEntity = Annotated[
    Annotated[Literal["cik", "ticker"], Tag("kind")]
    | Annotated[Mapping[Cik, str], Tag("names")],
    Discriminator(
        _entity_kind,
        custom_error_type="entity",
        custom_error_message=(
            "cik, ticker, or a mapping of CIKs of ten digits (in quotes) to names"
        ),
    ),
]


@dataclass(frozen=True, eq=False)
class EdgarReading:
    """The events of a file.

    Attributes
    ----------
    table : SourceTable
        With the columns `entity`, `stream`, `event_time`, `available_at`, `sequence`
        and those of the values.
    declaration : RowDeclaration
    notices : tuple of str
    """

    table: SourceTable
    declaration: RowDeclaration
    notices: tuple[str, ...]


class EdgarSource(VendorSource):
    """Files of EDGAR.

    Attributes
    ----------
    stream : str
        A name, or a template with any of the preset's fields.
    entity : str or Mapping[str, str]
        `cik`: the CIK as text of ten digits. `ticker`: the file's first ticker of the
        filer, which is that of the day of download. Or our names, by CIK; a filer that
        is not named keeps its CIK.
    date_only : AfterSessions or AfterDays, optional
        When a filing of which only the date is known counts as known.
    assumptions : tuple of str
        What is assumed about the clocks, for the report.
    """

    template_fields: ClassVar[tuple[str, ...]]

    stream: str = Field(min_length=1)
    entity: FilerEntity = "cik"
    date_only: DateRule | None = None
    assumptions: tuple[str, ...] = ()

    @abstractmethod
    def readings(self, *, base: Path) -> Iterator[EdgarReading]:
        """Read the events of each file."""

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the events of each file, with what its rows mean."""
        for reading in self.readings(base=base):
            yield reading.table, reading.declaration

    def log(self, *, base: Path) -> EventLog:
        """Read the events; see `Source`."""
        read = list(self.readings(base=base))
        log = logged_rows((one.table, one.declaration) for one in read)
        notices = [notice for one in read for notice in one.notices]
        return replace(log, notices=(*log.notices, *notices, *self.notices(log)))

    def declared(self, values: Mapping[str, ValueColumn]) -> RowDeclaration:
        """Return what the rows of a reading mean."""
        return RowDeclaration(
            stream="{stream}",
            entity=ColumnRef(column="entity"),
            event_time=InstantStamp(column="event_time", stamp="instant"),
            available_at=AvailableColumn(column="available_at"),
            sequence="sequence",
            values=values,
            assumptions=self.assumptions,
            change=self.change,
        )

    def stream_cells(self, table: SourceTable) -> pa.ChunkedArray:
        """Return the stream of each row; missing where a field of its name is."""
        names = pa.array(np.full(len(table), ""), pa.string())
        for place, part in enumerate(_FIELD.split(self.stream)):
            cells = table.cells(part) if place % 2 else pa.scalar(part, pa.string())
            names = pc.binary_join_element_wise(names, cells, "")
        return pa.chunked_array([names]) if isinstance(names, pa.Array) else names

    def entity_cells(
        self, ciks: pa.ChunkedArray, tickers: Mapping[str, str], name: str
    ) -> pa.ChunkedArray:
        """Return the entity of each row.

        Parameters
        ----------
        ciks : ChunkedArray
            Text of ten digits.
        tickers : Mapping[str, str]
            The first ticker of each CIK that has one.
        name : str
            The file, for messages.

        Raises
        ------
        ValueError
            If tickers are wanted and a filer has none.
        """
        if self.entity == "cik":
            return ciks
        names = self.entity if isinstance(self.entity, Mapping) else tickers
        found = pc.unique(ciks).to_pylist()
        for cik in found:
            if self.entity == "ticker" and cik not in tickers:
                raise ValueError(
                    f"entity of {name} must be a ticker; got none for filer {cik}. "
                    f"Declare `entity: cik`, or {{'{cik}': TICKER}}."
                )
        renamed = pa.array([names.get(cik, cik) for cik in found], pa.string())
        return renamed.take(pc.index_in(ciks, pa.array(found, pa.string())))

    @model_validator(mode="after")
    def _template(self) -> EdgarSource:
        used = _FIELD.findall(self.stream)
        for name in used:
            if name not in self.template_fields:
                raise ValueError(
                    f"must have as `stream` a name, or a template with fields of "
                    f"{', '.join(self.template_fields)}; got {{{name}}}. "
                    f"{did_you_mean(name, self.template_fields)}"
                )
        if set("{}") & set(_FIELD.sub("", self.stream)):
            raise ValueError(
                f"must close every bracket of its `stream`; got {self.stream!r}"
            )
        return self


def is_chosen(
    table: SourceTable, column: str, names: tuple[str, ...]
) -> Bool[np.ndarray, " n"]:
    """Return whether each cell is one of some names; all are if none is named."""
    if not names:
        return np.ones(len(table), dtype=bool)
    chosen: np.ndarray = pc.is_in(table.cells(column), pa.array(names)).to_numpy()
    return chosen


def require_names(
    setting: str, names: tuple[str, ...], found: set[str], source: str
) -> None:
    """Refuse a name that no file of a source has.

    Raises
    ------
    ValueError
        With similar names.
    """
    known = sorted(filter(None, found))
    for name in names:
        if name not in found:
            raise ValueError(
                f"{setting} must name {setting} of {source}; got {name!r}. "
                f"{did_you_mean(name, known)}It holds {', '.join(known[:_SHOWN])} ... "
                f"Correct `{setting}`."
            )
