"""Tables of ALFRED and FRED with one column per vintage, or none: SERIES_YYYYMMDD."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from infoset.data.sources.cells import SourceTable

from .vintage_cells import day_numbers, number_columns, text_table
from .vintages import Vintage

DATE_COLUMNS = ("observation_date", "DATE")
_VINTAGE = re.compile(r"(.+)_(\d{8})")
_SHOWN = 3


def wide_vintages(path: Path, name: str) -> list[Vintage]:
    """Read a download whose first column holds the dates of the periods.

    Returns
    -------
    list of Vintage
        Oldest first; a single one without `known` if the columns name no vintage.

    Raises
    ------
    ValueError
        For another layout, or a cell that is neither a number nor a missing value.
    """
    table = text_table(path, name)
    first = table.columns.column_names[0]
    if first not in DATE_COLUMNS:
        raise ValueError(
            f"the first column of {name} must be observation_date or DATE; got "
            f"{first!r}. Give a download of FRED or ALFRED, or declare the file's "
            "columns without a `preset`."
        )
    return column_vintages(table, first)


def column_vintages(
    table: SourceTable, date_column: str, *, is_complete: bool = True
) -> list[Vintage]:
    """Return the vintages of a table of text; see `wide_vintages`.

    Parameters
    ----------
    table : SourceTable
        Null where a value is missing.
    date_column : str
    is_complete : bool
        Whether a column has every value of its vintage, or only the new and changed.
    """
    days = day_numbers(table, date_column, "%Y-%m-%d", "2008-01-01")
    names = [name for name in table.columns.column_names if name != date_column]
    if not names:
        raise ValueError(
            f"{table.name} must hold a column of values; got {date_column} alone. Check "
            "the file."
        )
    found = {name: match for name in names if (match := _VINTAGE.fullmatch(name))}
    if not found:
        return [
            _vintage(table, date_column, days, "", dict(zip(names, names, strict=True)))
        ]
    plain = [name for name in names if name not in found]
    if plain:
        raise ValueError(
            f"every column of {table.name} must name a vintage (SERIES_YYYYMMDD) or "
            f"none; got {', '.join(plain[:_SHOWN])} beside {next(iter(found))}. Split "
            "the file."
        )
    by_day: dict[str, dict[str, str]] = {}
    for name, match in found.items():
        day = _iso_day(match[2], name, table.name)
        by_day.setdefault(day, {})[match[1]] = name
    vintages = [
        _vintage(table, date_column, days, day, by_day[day]) for day in sorted(by_day)
    ]
    return vintages if is_complete else [_given(vintage) for vintage in vintages]


def _vintage(
    table: SourceTable,
    date_column: str,
    days: Int64[np.ndarray, " t"],
    known: str,
    columns: dict[str, str],
) -> Vintage:
    return Vintage(
        file=table.name,
        date_column=date_column,
        known=known,
        days=days,
        series=tuple(columns),
        values=number_columns(table, list(columns.values())),
        rows=table.rows,
    )


def _given(vintage: Vintage) -> Vintage:
    """Return a vintage of changes: the rows that it lists, all others unchanged."""
    listed = ~np.isnan(vintage.values).all(axis=1)
    return replace(
        vintage,
        days=vintage.days[listed],
        values=vintage.values[listed],
        rows=vintage.rows[listed],
        is_complete=False,
    )


def _iso_day(digits: str, column: str, name: str) -> str:
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:])).isoformat()
    except ValueError as error:
        raise ValueError(
            f"a column of {name} must end in the day of its vintage, YYYYMMDD; got "
            f"{column!r}. Correct the header."
        ) from error
