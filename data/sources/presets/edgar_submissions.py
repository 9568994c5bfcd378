"""Filings by form, dated by their acceptance: EDGAR's lists of submissions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Literal

import pyarrow.compute as pc
from pydantic import Field

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.declaration import ValueColumn
from infoset.data.sources.delimited import shown_name

from .edgar_acceptance import StampedSource, filing_clocks
from .edgar_files import accession_numbers, instants_column, kept_rows, with_columns
from .edgar_filings import Filings, OlderPage, read_filings
from .edgar_notices import filing_notices
from .edgar_source import EdgarReading, is_chosen, require_names

_VALUES = {
    "accession": ValueColumn(column="accessionNumber", kind="text"),
    "items": ValueColumn(column="items", kind="text"),
    "filing_date": ValueColumn(column="filingDate", kind="text"),
    "report_date": ValueColumn(column="reportDate", kind="text"),
    "size": ValueColumn(column="size", unit="bytes"),
}


class EdgarSubmissions(StampedSource):
    """Submissions of filers: JSON, its older pages, or flat tables with these columns.

    Attributes
    ----------
    forms : tuple of str
        Forms to use, as EDGAR writes them; all if none is named.
    """

    template_fields: ClassVar[tuple[str, ...]] = ("form", "cik")

    preset: Literal["edgar_submissions"]
    stream: str = Field(default="filing/{form}", min_length=1)
    forms: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = (
        "A filing is dated by its acceptance. Stamps end in Z, but some filers' are New "
        "York time: they are read so that they lie in EDGAR's hours (06:00 to 22:00 New "
        "York). A single stray stamp inside these hours cannot be noticed.",
        "A filing that EDGAR dates on a later day than accepted is known from 06:00 New "
        "York of that day, unless `released: acceptance` is declared.",
        "Staff letters, answers to them and drafts are never used: they are published "
        "later than their stamps.",
    )

    def readings(self, *, base: Path) -> Iterator[EdgarReading]:
        """Read the filings of each file."""
        paths = {shown_name(path, base): path for path in self.files(base=base)}
        lists = {
            name: read_filings(path, name, stamp_column=self.stamp_column)
            for name, path in paths.items()
        }
        read = {path.name for path in paths.values()}
        tickers = {c: t for one in lists.values() for c, t in one.tickers.items()}
        found = {f for one in lists.values() for f in _forms(one)}
        require_names("forms", self.forms, found, self.name)
        for name, filings in lists.items():
            missing = [page for page in filings.older if not _is_read(page, read)]
            notices = [_older_notice(name, page) for page in missing]
            yield self._reading(filings.table, tickers, notices)

    def _reading(
        self, filings: SourceTable, tickers: Mapping[str, str], notices: list[str]
    ) -> EdgarReading:
        # Before forms are chosen: every stamp of a filer tells of its clock.
        clocks = filing_clocks(
            filings,
            clock=self.clock,
            released=self.released,
            date_only=self.date_only,
        )
        chosen = is_chosen(filings, "form", self.forms)
        counts = filing_notices(
            filings,
            clocks,
            chosen,
            released=self.released,
            date_only=self.date_only,
        )
        table = with_columns(
            filings,
            {
                "entity": self.entity_cells(
                    filings.cells("cik"), tickers, filings.name
                ),
                "stream": self.stream_cells(filings),
                "event_time": instants_column(clocks.event_time),
                "available_at": instants_column(clocks.available_at),
                "sequence": accession_numbers(filings, "accessionNumber"),
            },
            faults=clocks.faults,
        )
        return EdgarReading(
            table=kept_rows(table, chosen),
            declaration=self.declared(_VALUES),
            notices=(*clocks.notices, *counts, *notices),
        )


def _forms(filings: Filings) -> list[str]:
    forms: list[str] = pc.unique(filings.table.cells("form")).to_pylist()
    return forms


def _is_read(page: OlderPage, read: set[str]) -> bool:
    return page.name in read or f"{page.name}.gz" in read


def _older_notice(name: str, page: OlderPage) -> str:
    return (
        f"{name}: {page.num_filings} older filings, up to {page.last_day}, are in "
        f"{page.name}, which this source does not read."
    )
