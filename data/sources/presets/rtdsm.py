"""The Real-Time Data Set for Macroeconomists of the Philadelphia Fed.

References
----------
.. [1] Croushore, Stark (2001), "A real-time data set for macroeconomists",
   J. Econometrics 105(1), doi:10.1016/S0304-4076(01)00072-0
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.delimited import shown_name

from .month_vintages import MonthVintages
from .rtdsm_workbook import workbook_table
from .vintage_cells import day_numbers, number_columns, text_table
from .vintages import Vintage

_DATE_COLUMN = "DATE"
_VINTAGE = re.compile(r"(.+?)(\d\d)(?:M(1[0-2]|[1-9])|Q([1-4]))")
# The data set begins with periods of 1947 and vintages of 1962 [1].
_FIRST_YEAR = 47
_SUFFIXES = (".xlsx", ".csv", ".csv.gz")


class RtdsmSource(MonthVintages):
    """Vintage tables of the Real-Time Data Set: values are levels.

    Attributes
    ----------
    path : str
        A workbook (.xlsx) or delimited text (.csv, .csv.gz) with the periods in DATE
        (``1947:01`` or ``1947:Q1``) and a column per vintage (``EMPLOY64M12``,
        ``ROUTPUT65Q4``); or a pattern for several. A year of two digits is of this
        century up to 46.
    """

    preset: Literal["rtdsm"]
    assumptions: tuple[str, ...] = (
        "A vintage of the Real-Time Data Set says its month or quarter alone: a month "
        "counts as known from the first instant after it; a quarter's data are of its "
        "middle month, and count as known from the first instant after that.",
        "Values are levels; benchmarks and base years differ between vintages.",
    )

    def vintages(self, *, base: Path) -> Iterable[Vintage]:
        """Read the vintages of all files, oldest first."""
        vintages: list[Vintage] = []
        for path in self.files(base=base):
            name = shown_name(path, base)
            read = workbook_table if path.suffix == ".xlsx" else text_table
            vintages += _file_vintages(read(path, name))
        return sorted(vintages, key=lambda vintage: vintage.known)

    @model_validator(mode="after")
    def _known_suffix(self) -> RtdsmSource:
        if not self.path.endswith(_SUFFIXES):
            raise ValueError(
                f"must name files that end in {', '.join(_SUFFIXES)}; got {self.path!r}"
            )
        return self


def _file_vintages(table: SourceTable) -> list[Vintage]:
    names = table.columns.column_names
    if names[0] != _DATE_COLUMN:
        raise ValueError(
            f"the first column of {table.name} must be {_DATE_COLUMN}; got {names[0]!r}. "
            "Give a file of the Real-Time Data Set as it was downloaded."
        )
    table = SourceTable(table.name, _with_days(table), table.rows)
    days = day_numbers(table, _DATE_COLUMN, "%Y-%m-%d", "1947:01 or 1947:Q1")
    vintages = [
        Vintage(
            file=table.name,
            date_column=_DATE_COLUMN,
            known=month,
            days=days,
            series=(series,),
            values=number_columns(table, [name]),
            rows=table.rows,
        )
        for name in names[1:]
        for series, month in [_series_and_month(name, table.name)]
    ]
    _require_order(vintages, names[1:])
    return vintages


def _with_days(table: SourceTable) -> pa.Table:
    """Write the first day of a month; of a quarter, that of its last month.

    The end of that month is the end of the quarter.
    """
    cells = table.cells(_DATE_COLUMN)
    for quarter in range(1, 5):
        cells = pc.replace_substring_regex(
            cells, f":Q{quarter}$", f":{3 * quarter:02d}"
        )
    days = pc.replace_substring_regex(cells, r"^(\d{4}):(\d{2})$", r"\1-\2-01")
    return table.columns.set_column(0, _DATE_COLUMN, days)


def _series_and_month(column: str, file: str) -> tuple[str, str]:
    found = _VINTAGE.fullmatch(column)
    if found is None:
        raise ValueError(
            f"a column of {file} must name a series and a vintage, such as EMPLOY64M12 or "
            f"ROUTPUT65Q4; got {column!r}. Correct the header."
        )
    series, digits, month, quarter = found.groups()
    year = int(digits) + (1900 if int(digits) >= _FIRST_YEAR else 2000)
    return series, f"{year}-{int(month or 3 * int(quarter) - 1):02d}"


def _require_order(vintages: list[Vintage], columns: list[str]) -> None:
    """Refuse vintages of a series that go back in time: a year was read wrongly."""
    latest: dict[str, str] = {}
    for vintage, column in zip(vintages, columns, strict=True):
        (series,) = vintage.series
        if vintage.known <= latest.get(series, ""):
            raise ValueError(
                f"the vintages of {vintage.file} must be in order; got {column!r} after "
                f"that of {latest[series]}. Correct the header."
            )
        latest[series] = vintage.known
