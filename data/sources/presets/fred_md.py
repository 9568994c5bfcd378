"""FRED-MD, the monthly database of McCracken and Ng, as a file per vintage.

References
----------
.. [1] McCracken, Ng (2016), "FRED-MD: A monthly database for macroeconomic research",
   JBES 34(4), doi:10.1080/07350015.2015.1086655
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pyarrow.compute as pc
from pydantic import Field, model_validator

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.delimited import shown_name

from .month_vintages import MonthVintages
from .vintage_cells import day_numbers, number_columns, text_table
from .vintage_notices import ended_notices, gap_notices, vintage_notices
from .vintages import Vintage, VintageWalk

_DATE_COLUMN = "sasdate"
_FILE = re.compile(r"(\d{4}-(?:0[1-9]|1[0-2]))(?:-md)?\.csv(?:\.gz)?")
_CODES = "transform"
# Vintages before this one were put together afterwards, from ALFRED [1].
_FIRST_REAL_TIME = "2015-01"


class FredMdSource(MonthVintages):
    """Vintages of FRED-MD in their original layout: values are levels.

    Attributes
    ----------
    path : str
        A file, or a pattern that matches one per vintage. Its name says the month:
        ``2024-03.csv``, also ``2024-03-md.csv`` and packed as ``.gz``.
    vintage : str, optional
        The month of a file of another name, such as ``2024-03``.
    """

    preset: Literal["fred_md"]
    vintage: Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")] | None = None
    assumptions: tuple[str, ...] = (
        "A vintage of FRED-MD says its month alone, in which it was posted: it counts as "
        "known from the first instant of the month after it.",
        "Values are levels: the transformation codes of the file are not applied.",
    )

    def vintages(self, *, base: Path) -> Iterator[Vintage]:
        """Yield the vintage of each file, oldest first."""
        months: dict[str, Path] = {}
        for path in self.files(base=base):
            month = self.vintage or _month_of(path, shown_name(path, base))
            other = months.setdefault(month, path)
            if other != path:
                raise ValueError(
                    f"path must match one file per vintage; got {other.name} and "
                    f"{path.name} for {month}. Correct `path`."
                )
        for month in sorted(months):
            yield _vintage(months[month], shown_name(months[month], base), month)

    def notices_of(self, walk: VintageWalk) -> tuple[str, ...]:
        """Return what people should know about the vintages; nothing is changed."""
        rebuilt = min(walk.first.values()) < _FIRST_REAL_TIME
        return (
            *vintage_notices(self.name, walk),
            *gap_notices(self.name, walk),
            *ended_notices(self.name, walk),
            *((self._rebuilt,) if rebuilt else ()),
        )

    @property
    def _rebuilt(self) -> str:
        return (
            f"{self.name}: vintages before {_FIRST_REAL_TIME} were put together afterwards "
            "from ALFRED by the authors of FRED-MD; nobody could have downloaded them then."
        )

    @model_validator(mode="after")
    def _one_vintage(self) -> FredMdSource:
        if self.vintage is not None and set(self.path) & set("*?["):
            raise ValueError(
                "must not have a `vintage` with a pattern for several files; got "
                f"{self.vintage!r}"
            )
        return self


def _month_of(path: Path, name: str) -> str:
    found = _FILE.fullmatch(path.name)
    if found is None:
        raise ValueError(
            f"a file of FRED-MD must be named by its vintage, such as 2024-03.csv; got "
            f"{name}. Rename it, or declare `vintage`."
        )
    return found[1]


def _vintage(path: Path, name: str, month: str) -> Vintage:
    table = _with_full_years(_without_codes(text_table(path, name)))
    series = [name for name in table.columns.column_names if name != _DATE_COLUMN]
    return Vintage(
        file=name,
        date_column=_DATE_COLUMN,
        known=month,
        days=day_numbers(table, _DATE_COLUMN, "%m/%d/%Y", "1/1/1959"),
        series=tuple(series),
        values=number_columns(table, series),
        rows=table.rows,
    )


def _with_full_years(table: SourceTable) -> SourceTable:
    """Write years of two digits in full; the periods begin in 1959.

    Vintages such as 2023-11 have 1/1/59, which strptime reads as 2059.
    """
    dates = table.cells(_DATE_COLUMN)
    dates = pc.replace_substring_regex(dates, r"/(59|[6-9]\d)$", r"/19\1")
    dates = pc.replace_substring_regex(dates, r"/(\d\d)$", r"/20\1")
    columns = table.columns.set_column(0, _DATE_COLUMN, dates)
    return SourceTable(table.name, columns, table.rows)


def _without_codes(table: SourceTable) -> SourceTable:
    """Return the table without its first row, the transformation codes."""
    names = table.columns.column_names
    if names[0] != _DATE_COLUMN:
        raise ValueError(
            f"the first column of {table.name} must be {_DATE_COLUMN}; got {names[0]!r}. "
            "Give a file of FRED-MD in its original layout."
        )
    first = table.columns[_DATE_COLUMN][0].as_py() if len(table) else None
    if first is None or not first.lower().startswith(_CODES):
        raise ValueError(
            f"the first row of {table.name} must hold the transformation codes "
            f"('Transform:'); got {first!r}. Give a file of FRED-MD in its original "
            "layout."
        )
    kept = np.arange(len(table)) > 0
    return SourceTable(table.name, table.columns.filter(kept), table.rows[kept])
