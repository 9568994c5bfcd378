"""Cells of a file, and their strict reading as text or numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Float64, Int64

from .declaration import TextFormat

_WHOLE = r"^[+-]?[0-9]+$"
_NOT_ZERO = "^[^eE]*[1-9]"
_WITHOUT_FRACTION = re.compile(r"([+-]?[0-9]+)(\.0*)?")
_FIRST_INEXACT = 2**53  # below it, every whole number is a float64


@dataclass(frozen=True, eq=False)
class Fault:
    """Rows that a source sets aside: never used, and listed in the quarantine.

    Attributes
    ----------
    at : ndarray of shape (n,)
        Whether each row of the table has the fault.
    column, reason : str
    """

    at: Bool[np.ndarray, " n"]
    column: str
    reason: str


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
    faults : tuple of Fault
        The first that a row has counts.
    """

    name: str
    columns: pa.Table
    rows: Int64[np.ndarray, " n"]
    faults: tuple[Fault, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, column: str) -> pa.ChunkedArray:
        """Return a column."""
        return self.columns[column]

    def with_columns(
        self, columns: Mapping[str, pa.Array | pa.ChunkedArray]
    ) -> SourceTable:
        """Return the table with columns added, or replaced where it has them."""
        table = self.columns
        for name, cells in columns.items():
            if name in table.column_names:
                table = table.set_column(table.column_names.index(name), name, cells)
            else:
                table = table.append_column(name, cells)
        return replace(self, columns=table)

    def with_faults(self, faults: tuple[Fault, ...]) -> SourceTable:
        """Return the table with more rows set aside."""
        return replace(self, faults=(*self.faults, *faults))

    def without_faults(self) -> SourceTable:
        """Return the rows that have no fault."""
        if not self.faults:
            return self
        sound = ~np.logical_or.reduce([fault.at for fault in self.faults])
        return SourceTable(self.name, self.columns.filter(sound), self.rows[sound])

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
        For a cell that is not a number, or one that float64 cannot hold: a whole number
        that would be rounded, what would become infinite, or zero without being it.
        (Decimal fractions are read as the nearest float64.)
    TypeError
        For a Parquet column that does not hold numbers.
    """
    cells = table.cells(column)
    if pa.types.is_floating(cells.type):
        return _to_numpy(cells.cast(pa.float64()))
    if pa.types.is_integer(cells.type):
        with suppress(pa.ArrowInvalid):  # fast, and refused from 2**53 on
            return _to_numpy(cells.cast(pa.float64()))
    if pa.types.is_integer(cells.type) or pa.types.is_decimal(cells.type):
        return _as_float64(table, column, cells.cast(pa.string()), setting)
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
    return _as_float64(table, column, cells, setting)


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
    if not pa.types.is_signed_integer(cells.type):
        cells = _whole_texts(table, column, setting)
    whole = cells.cast(pa.int64())
    as_int64 = {pa.int64(): pd.Int64Dtype()}
    frame: pd.DataFrame = pa.table({column: whole}).to_pandas(types_mapper=as_int64.get)
    return frame[column]


def _whole_texts(table: SourceTable, column: str, setting: str) -> pa.ChunkedArray:
    """Return whole numbers of 64 bits as they are written, without a plus."""
    cells = table.cells(column)
    if pa.types.is_unsigned_integer(cells.type):
        cells = cells.cast(pa.string())
    elif _holds_text(cells.type):
        cells = text_cells(table, column)
    else:
        raise TypeError(
            f"{setting} must hold whole numbers; got {cells.type} in column "
            f"{column!r} of {table.name}. Write the column as int64."
        )
    table.require(
        matches(cells, _WHOLE),
        column,
        f"{setting} must be a whole number",
        "Name a column of whole numbers.",
    )
    table.require(
        _fits_int64(cells),
        column,
        f"{setting} must fit 64 bits",
        "Name a column of smaller numbers.",
    )
    return pc.replace_substring_regex(cells, r"^\+", "")


def _number_pattern(layout: TextFormat) -> str:
    decimal = re.escape(layout.decimal)
    digits = "[0-9]+"
    if layout.thousands is not None:
        digits = rf"([0-9]{{1,3}}({re.escape(layout.thousands)}[0-9]{{3}})+|[0-9]+)"
    return rf"^[+-]?({digits}({decimal}[0-9]*)?|{decimal}[0-9]+)([eE][+-]?[0-9]+)?$"


def _holds_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_null(kind)
    )


def _as_float64(
    table: SourceTable, column: str, cells: pa.ChunkedArray, setting: str
) -> Float64[np.ndarray, " n"]:
    """Return numbers that are written out as text; the nearest float64 of each."""
    numbers = _to_numpy(cells.cast(pa.float64()))
    held, zero = np.ones(len(numbers), dtype=bool), numbers == 0
    if zero.any():
        held[zero] = ~matches(cells.filter(pa.array(zero)), _NOT_ZERO)
    large = np.flatnonzero(np.abs(numbers) >= _FIRST_INEXACT)
    written = cells.take(pa.array(large)).to_pylist()
    held[large] = [
        _is_exact(*pair) for pair in zip(numbers[large], written, strict=True)
    ]
    table.require(
        held,
        column,
        f"{setting} must fit a float64",
        "Keep ids as text (`kind: text`); write a large quantity with an exponent.",
    )
    return numbers


def _is_exact(number: float, written: str) -> bool:
    """Return whether a float is finite, and the whole number that was written if any."""
    whole = _WITHOUT_FRACTION.fullmatch(written)
    if whole is None or not np.isfinite(number):
        return bool(np.isfinite(number))
    return int(whole[1]) == int(number)


def _fits_int64(cells: pa.ChunkedArray) -> Bool[np.ndarray, " n"]:
    fits = matches(cells, "^[+-]?0*[0-9]{1,18}$")
    bounds = np.iinfo(np.int64)
    for row in np.flatnonzero(~fits):
        fits[row] = bounds.min <= int(cells[int(row)].as_py()) <= bounds.max
    return fits


def _to_numpy(cells: pa.ChunkedArray) -> Float64[np.ndarray, " n"]:
    numbers: np.ndarray = cells.fill_null(np.nan).to_numpy()
    return numbers
