"""XBRL facts, each known from the filing that first stated it so.

A fact is told by its concept, unit and period. The fiscal year and quarter beside it
are those of the filing, and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool
from pydantic import Field, model_validator

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.declaration import ValueColumn
from infoset.data.sources.delimited import shown_name
from infoset.data.sources.source import matching_files

from .edgar_acceptance import StampedSource, filing_clocks
from .edgar_dates import DateRule
from .edgar_fact_clocks import FactClocks, fact_clocks, readable_from
from .edgar_fact_files import CompanyFacts, read_facts, unit_names
from .edgar_fact_keys import duration_names, fact_numbers, is_new, require_apart
from .edgar_files import accession_numbers, instants_column, kept_rows, with_columns
from .edgar_filings import read_filings
from .edgar_source import EdgarReading, is_chosen, require_names

_VALUES = {
    "value": ValueColumn(column="val"),
    "accession": ValueColumn(column="accn", kind="text"),
    "form": ValueColumn(column="form", kind="text"),
    "start": ValueColumn(column="start", kind="text"),
}


@dataclass(frozen=True, eq=False)
class _Accepted:
    """What lists of filings say: when each could be read, and who has which ticker."""

    readable: pd.Series
    tickers: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


class EdgarCompanyFacts(StampedSource):
    """Facts of companies: JSON, or flat tables with the same fields.

    Attributes
    ----------
    concepts : tuple of str
        Concepts to use, without their taxonomy; all if none is named.
    submissions : str, optional
        Lists of filings (see `EdgarSubmissions`), a file or a pattern: a fact is known
        when its filing could be read. For a filing that they lack, `date_only` says.
    """

    template_fields: ClassVar[tuple[str, ...]] = (
        *("taxonomy", "concept", "unit", "duration", "cik"),
    )

    preset: Literal["edgar_companyfacts"]
    stream: str = Field(
        default="xbrl/{taxonomy}/{concept}/{unit}/{duration}", min_length=1
    )
    concepts: tuple[str, ...] = ()
    submissions: str | None = None
    assumptions: tuple[str, ...] = (
        "A fact describes its period up to the end of its last day in New York. Fiscal "
        "year and quarter are those of the filing, and are not read.",
        "A fact is known when its filing could be read, by the lists in `submissions`, "
        "or else when `date_only` says for the filing's date.",
        "A value that a later filing repeats is no news: only new and changed values "
        "are events.",
    )

    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the files of facts, then those of filings."""
        facts = matching_files(self.path, base)
        if self.submissions is None:
            return facts
        return (*facts, *matching_files(self.submissions, base))

    def readings(self, *, base: Path) -> Iterator[EdgarReading]:
        """Read the facts of each file."""
        accepted = self._accepted(base)
        notices, found = accepted.notices, set[str]()
        for path in matching_files(self.path, base):
            facts = read_facts(path, shown_name(path, base))
            found.update(pc.unique(facts.table.cells("concept")).to_pylist())
            yield self._reading(facts, accepted, notices)
            notices = ()
        require_names("concepts", self.concepts, found, self.name)

    def _accepted(self, base: Path) -> _Accepted:
        if self.submissions is None:
            return _Accepted(readable_from([]))
        lists = [
            read_filings(path, shown_name(path, base), stamp_column=self.stamp_column)
            for path in matching_files(self.submissions, base)
        ]
        clocks = [
            filing_clocks(
                one.table, clock=self.clock, released=self.released, date_only=None
            )
            for one in lists
        ]
        return _Accepted(
            readable=readable_from(zip(lists, clocks, strict=True)),
            tickers={c: t for one in lists for c, t in one.tickers.items()},
            notices=tuple(notice for one in clocks for notice in one.notices),
        )

    def _reading(
        self, facts: CompanyFacts, accepted: _Accepted, notices: tuple[str, ...]
    ) -> EdgarReading:
        table = kept_rows(facts.table, is_chosen(facts.table, "concept", self.concepts))
        clocks = fact_clocks(table, accepted.readable, self.date_only)
        tickers = {**facts.tickers, **accepted.tickers}
        table = with_columns(
            table,
            {
                "unit": unit_names(table),
                "sequence": accession_numbers(table, "accn"),
                "event_time": instants_column(clocks.event_time),
                "available_at": instants_column(clocks.available_at),
                "entity": self.entity_cells(table.cells("cik"), tickers, table.name),
            },
            faults=clocks.faults,
        )
        kept, table = self._news(table, clocks)
        return EdgarReading(
            table=kept_rows(table, kept),
            declaration=self.declared(_VALUES),
            notices=(*notices, *_notices(table, clocks, kept, self.date_only)),
        )

    def _news(
        self, table: SourceTable, clocks: FactClocks
    ) -> tuple[Bool[np.ndarray, " n"], SourceTable]:
        """Return which facts are news or faulty, and the table with their streams."""
        sound = clocks.is_sound
        # What has a fault comes last, so that it decides nothing about the others.
        known = np.where(sound, clocks.available_at, np.iinfo(np.int64).max)
        sequence = table.cells("sequence").cast(pa.int64()).to_numpy()
        names = duration_names(table, clocks.days, known)
        table = with_columns(table, {"duration": names})
        table = with_columns(table, {"stream": self.stream_cells(table)})
        numbers = fact_numbers(table)
        require_apart(kept_rows(table, sound), numbers[sound])
        new = is_new(numbers, known, sequence, clocks.values)
        return new | ~sound, table

    @model_validator(mode="after")
    def _knowable(self) -> EdgarCompanyFacts:
        if self.submissions is None and self.date_only is None:
            raise ValueError(
                "must have `submissions` or `date_only`, which say when a filing could "
                "be read; got neither"
            )
        return self


def _notices(
    table: SourceTable,
    clocks: FactClocks,
    kept: Bool[np.ndarray, " n"],
    date_only: DateRule | None,
) -> tuple[str, ...]:
    num_others = len(table) - clocks.num_accepted
    how = "are set aside" if date_only is None else "by `date_only`"
    notices = [
        f"{table.name}: {clocks.num_accepted:,} of {len(table):,} facts are known from "
        f"the acceptance of their filing, {num_others:,} {how}."
    ]
    if not kept.all():
        notices.append(
            f"{table.name}: {int((~kept).sum()):,} facts repeat the value that was known "
            "of their period, and are no events."
        )
    return tuple(notices)
