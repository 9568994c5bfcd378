"""Filings by form from EDGAR's index files, which have dates and no times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool
from pydantic import Field

from infoset.data.instants import nanoseconds
from infoset.data.sources.cells import Fault
from infoset.data.sources.declaration import ValueColumn
from infoset.data.sources.delimited import shown_name

from .edgar_dates import DateRule, days_ended, known_after
from .edgar_files import accession_numbers, instants_column, kept_rows, with_columns
from .edgar_forms import PUBLISHED_LATER
from .edgar_index_files import FilingIndex, read_index
from .edgar_source import (
    EdgarReading,
    EdgarSource,
    is_chosen,
    require_names,
)

_VALUES = {
    "accession": ValueColumn(column="accession", kind="text"),
    "filing_date": ValueColumn(column="filed", kind="text"),
}


class EdgarIndex(EdgarSource):
    """Form, company and master indexes of a day or a quarter.

    Attributes
    ----------
    date_only : AfterSessions or AfterDays
        When a filing counts as known, after its date, or after the day of the daily
        index that lists it if that is later.
    forms : tuple of str
        Forms to use, as EDGAR writes them; all if none is named.
    encoding : str
    """

    template_fields: ClassVar[tuple[str, ...]] = ("form", "cik")

    preset: Literal["edgar_index"]
    stream: str = Field(default="filing_index/{form}", min_length=1)
    date_only: DateRule
    forms: tuple[str, ...] = ()
    encoding: Literal["utf-8", "latin-1", "cp1252"] = "utf-8"
    assumptions: tuple[str, ...] = (
        "An index has dates and no times: a filing is dated by the end of its day in New "
        "York, and known when `date_only` says.",
        "A daily index also lists what was dated earlier and published on its day, such "
        "as staff letters: these are known by the day of the index.",
        "Company names are left out: a filing may be listed under a former and a new "
        "one, which are then exact duplicates.",
    )

    def readings(self, *, base: Path) -> Iterator[EdgarReading]:
        """Read the filings of each file."""
        found: set[str] = set()
        for path in self.files(base=base):
            index = read_index(path, shown_name(path, base), encoding=self.encoding)
            found.update(pc.unique(index.table.cells("form")).to_pylist())
            yield self._reading(index)
        require_names("forms", self.forms, found, self.name)

    def _reading(self, index: FilingIndex) -> EdgarReading:
        chosen = kept_rows(index.table, is_chosen(index.table, "form", self.forms))
        filed = chosen.cells("filed")
        earlier = np.zeros(len(chosen), dtype=bool)
        if index.day is not None:
            earlier = pc.less(filed, index.day).to_numpy()
            filed = pc.if_else(earlier, index.day, filed)
        table = with_columns(chosen, {"listed": filed})
        known = nanoseconds(known_after(table, "listed", self.date_only))
        table = with_columns(
            table,
            {
                "entity": self.entity_cells(table.cells("cik"), {}, table.name),
                "stream": self.stream_cells(table),
                "event_time": instants_column(nanoseconds(days_ended(table, "filed"))),
                "available_at": instants_column(known),
                "sequence": accession_numbers(table, "accession"),
            },
            faults=_faults(table.cells("form"), index),
        )
        return EdgarReading(
            table=table,
            declaration=self.declared(_VALUES),
            notices=_notices(index, earlier),
        )


def _faults(forms: pa.ChunkedArray, index: FilingIndex) -> tuple[Fault, ...]:
    if index.day is not None:
        return ()
    later = pc.is_in(forms, pa.array(PUBLISHED_LATER)).to_numpy()
    return (Fault(later, "form", "published later than its date, on a day unknown"),)


def _notices(index: FilingIndex, earlier: Bool[np.ndarray, " n"]) -> tuple[str, ...]:
    if not earlier.any():
        return ()
    return (
        f"{index.table.name}: {int(earlier.sum()):,} of {len(earlier):,} filings are "
        f"dated before {index.day}, the day of this index, and are known by that day.",
    )
