"""Cells of a file, and their strict reading as text or numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float64, Int64

from .declaration import TextFormat

_WHOLE = r"^[+-]?[0-9]+$"


@dataclass(frozen=True, eq=False)
class SourceTable:
    """The cells of the rows that a source uses.

    Attributes
    ----------
    name : str
        The file, for messages.
    columns : pyarrow.Table
        The declared columns; of text unless the file is Parquet.
    rows : ndarray of shape (n,)
        Row of each cell in the file.
    """

    name: str
    columns: pa.Table
    rows: Int64[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, column: str) -> pa.ChunkedArray:
        """Return a column."""
        return self.columns[column]

    def place(self, index: int, column: str) -> str:
        """Return what a cell holds and where it stands in the file."""
        cell = self.columns[column][index].as_py()
        return f"{cell!r} in row {self.rows[index]} of {self.name} (column {column!r})"

    def require(
        self, holds: Bool[np.ndarray, " n"], column: str, rule: str, remedy: str
    ) -> None:
        """Refuse the first cell for which a rule does not hold.

        Raises
        ------
        ValueError
            ``rule; got cell in row of file (column). remedy``
        """
        if not holds.all():
            index = int((~holds).argmax())
            raise ValueError(f"{rule}; got {self.place(index, column)}. {remedy}")


def text_cells(table: SourceTable, column: str) -> pa.ChunkedArray:
    """Return a column as text, null where a cell is empty.

    Raises
    ------
    TypeError
        If a Parquet column does not hold text.
    """
    cells = table.cells(column)
    if not _holds_text(cells.type):
        raise TypeError(
            f"column {column!r} of {table.name} must hold text; got {cells.type}. "
            "Write ids as text and dates as text or datetimes: as numbers they lose "
            "their zeros."
        )
    cells = cells.cast(pa.string())
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)


def matches(cells: pa.ChunkedArray, pattern: str) -> Bool[np.ndarray, " n"]:
    """Return whether each cell is empty or matches a pattern (RE2)."""
    matching = pc.match_substring_regex(cells, pattern)
    found: np.ndarray = pc.fill_null(matching, True).to_numpy()  # noqa: FBT003
    return found


def number_cells(
    table: SourceTable, column: str, layout: TextFormat, *, setting: str
) -> Float64[np.ndarray, " n"]:
    """Return a column as float64, NaN where a cell is empty.

    Parameters
    ----------
    table : SourceTable
    column : str
    layout : TextFormat
        The marks of decimals and thousands. Thousands must come in groups of three.
    setting : str
        Where the declaration names the column, for the message.

    Raises
    ------
    ValueError
        For a cell that is not a number, or an integer that float64 cannot hold.
    TypeError
        For a Parquet column that does not hold numbers.
    """
    cells = table.cells(column)
    if _is_number(cells.type):
        return _as_float64(table, column, cells, setting)
    if not _holds_text(cells.type):
        raise TypeError(
            f"{setting} must be numeric; got {cells.type} in column {column!r} of "
            f"{table.name}. Write the column as numbers."
        )
    cells = text_cells(table, column)
    table.require(
        matches(cells, _number_pattern(layout)),
        column,
        f"{setting} must be numeric",
        "Leave a missing cell empty; or declare `format.decimal` and "
        "`format.thousands`, or `kind: text`.",
    )
    if layout.thousands is not None:
        cells = pc.replace_substring(cells, layout.thousands, "")
    cells = pc.replace_substring(cells, layout.decimal, ".")
    return _to_numpy(cells.cast(pa.float64()))


def whole_cells(table: SourceTable, column: str, *, setting: str) -> pd.Series:
    """Return a column as nullable int64, exact for every 64-bit id.

    Raises
    ------
    ValueError
        For a cell that is not a whole number of 64 bits.
    TypeError
        For a Parquet column of another kind.
    """
    cells = table.cells(column)
    if not pa.types.is_integer(cells.type):
        cells = text_cells(table, column)
        table.require(
            matches(cells, _WHOLE),
            column,
            f"{setting} must be a whole number",
            "Name a column of whole numbers.",
        )
        cells = pc.replace_substring_regex(cells, r"^\+", "")
    try:
        whole = cells.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{setting} must fit 64 bits; got {error} in column {column!r} of "
            f"{table.name}. Name a column of smaller numbers."
        ) from error
    as_int64 = {pa.int64(): pd.Int64Dtype()}
    frame: pd.DataFrame = pa.table({column: whole}).to_pandas(types_mapper=as_int64.get)
    return frame[column]


def _number_pattern(layout: TextFormat) -> str:
    decimal = re.escape(layout.decimal)
    digits = "[0-9]+"
    if layout.thousands is not None:
        digits = rf"([0-9]{{1,3}}({re.escape(layout.thousands)}[0-9]{{3}})+|[0-9]+)"
    return rf"^[+-]?({digits}({decimal}[0-9]*)?|{decimal}[0-9]+)([eE][+-]?[0-9]+)?$"


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
    )


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_null(kind)
    )


def _as_float64(
    table: SourceTable, column: str, cells: pa.ChunkedArray, setting: str
) -> Float64[np.ndarray, " n"]:
    try:
        return _to_numpy(cells.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{setting} must fit a float64; got {error} in column {column!r} of "
            f"{table.name}. Keep ids as text."
        ) from error


def _to_numpy(cells: pa.ChunkedArray) -> Float64[np.ndarray, " n"]:
    numbers: np.ndarray = cells.fill_null(np.nan).to_numpy()
    return numbers
