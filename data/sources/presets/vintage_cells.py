"""Cells of a vintage table: the dates of its rows, the numbers of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64, Int64

from infoset.data.sources.cells import SourceTable, matches
from infoset.data.sources.declaration import TextFormat
from infoset.data.sources.delimited import first_cells, parsed_cells, text_content
from infoset.data.sources.tabular import require_columns

# What FRED, ALFRED and the Philadelphia Fed write for a missing value.
_MISSING = ("", ".", "#N/A")
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def text_table(path: Path, name: str) -> SourceTable:
    """Read delimited text (.csv, .tsv or .txt, also .gz) with padding and markers gone.

    Rows whose cells are all empty are left out; missing cells are null.
    """
    suffix = Path(path.name.removesuffix(".gz")).suffix
    layout = TextFormat(delimiter=_DELIMITERS.get(suffix, ","))
    content = text_content(path, name)
    header = first_cells(content, name, layout)
    require_columns(header, (), name)
    cells = parsed_cells(content, name, layout, header)
    rows = np.arange(cells.num_rows, dtype=np.int64)
    return without_markers(SourceTable(name, cells, rows))


def without_markers(table: SourceTable) -> SourceTable:
    """Return a table of text with null for every missing value, without empty rows."""
    missing = pa.array(_MISSING)
    columns = {}
    is_empty = np.ones(len(table), dtype=bool)
    for column in table.columns.column_names:
        cells = pc.utf8_trim_whitespace(table.columns[column])
        cells = pc.if_else(
            pc.is_in(cells, missing), pa.scalar(None, pa.string()), cells
        )
        is_empty &= ~cells.is_valid().to_numpy()
        columns[column] = cells
    kept = ~is_empty
    return SourceTable(table.name, pa.table(columns).filter(kept), table.rows[kept])


def day_numbers(
    table: SourceTable, column: str, pattern: str, example: str
) -> Int64[np.ndarray, " t"]:
    """Return a column of dates in days since 1970; each must be there once.

    Parameters
    ----------
    table : SourceTable
    column : str
    pattern, example : str
        How strptime reads such a date, and one for the message.

    Raises
    ------
    ValueError
        For a cell that is missing, no date, or a second time the same.
    """
    dates = pd.to_datetime(
        table.cells(column).to_pandas(), format=pattern, errors="coerce"
    )
    table.require(
        dates.notna().to_numpy(),
        column,
        f"{column} must be a date such as {example}",
        "Correct or remove the row.",
    )
    table.require(
        ~dates.duplicated().to_numpy(),
        column,
        f"{column} must name a period once",
        "Remove the row that is there a second time.",
    )
    days: np.ndarray = dates.to_numpy().astype("datetime64[D]").astype(np.int64)
    return days


def number_columns(
    table: SourceTable, columns: Sequence[str]
) -> Float64[np.ndarray, "t s"]:
    """Return columns of text as numbers, NaN where a cell is missing.

    Raises
    ------
    ValueError
        For a cell that is neither a number nor a missing value.
    """
    numbers = np.empty((len(table), len(columns)))
    for place, column in enumerate(columns):
        cells = table.cells(column)
        table.require(
            matches(cells, _NUMBER),
            column,
            "a value must be a number",
            "Correct the cell; a missing value is empty, '.' or '#N/A'.",
        )
        number = cells.cast(pa.float64()).fill_null(np.nan).to_numpy()
        table.require(
            ~np.isinf(number), column, "a value must be finite", "Correct the cell."
        )
        numbers[:, place] = number
    return numbers
