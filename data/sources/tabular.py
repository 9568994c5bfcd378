"""A file as a table of cells, each traceable to its row in the file.

Delimited text is read as text: ids stay what they are, and an empty cell is the only
missing marker. Rows are counted from 0 after the header, blank lines aside.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from .cells import SourceTable, text_cells
from .declaration import RowDeclaration, TextFormat
from .nearest import did_you_mean

_BYTE_ORDER_MARK = "\ufeff"
_SHOWN = 5


def read_rows(path: Path, name: str, declaration: RowDeclaration) -> SourceTable:
    """Read the declared columns of a file, and keep the rows of its `where`.

    Parameters
    ----------
    path : Path
        Parquet if it ends so, otherwise delimited text.
    name : str
        What messages call it.
    declaration : RowDeclaration

    Raises
    ------
    ValueError
        If the file is empty, damaged, in another encoding or not of the
        declared columns; if a column name occurs twice; if `where` names no row.
    TypeError
        If a column of `where` does not hold text.
    """
    if path.suffix == ".parquet":
        columns = _parquet(path, name, declaration.columns)
    else:
        columns = _delimited(path, name, declaration)
    if columns.num_rows == 0:
        raise ValueError(
            f"{name} must hold a row; got a header only. "
            "Check the file, or remove the source."
        )
    table = SourceTable(name, columns, np.arange(columns.num_rows, dtype=np.int64))
    return _selected(table, declaration)


def require_columns(found: list[str], needed: tuple[str, ...], name: str) -> None:
    """Refuse a header that lacks a column or names one twice.

    Raises
    ------
    ValueError
        With the nearest name, or the names that occur twice.
    """
    twice = sorted({column for column in found if found.count(column) > 1})
    if twice:
        raise ValueError(
            f"columns of {name} must have different names; got "
            f"{', '.join(map(repr, twice))} more than once. Rename them in the file."
        )
    for column in needed:
        if column not in found:
            hint = did_you_mean(column, found)
            raise ValueError(
                f"column {column!r} must be in {name}; got {', '.join(found)}. "
                f"{hint}Check the column's name and `format.delimiter`."
            )


def _parquet(path: Path, name: str, needed: tuple[str, ...]) -> pa.Table:
    try:
        file = pa.parquet.ParquetFile(path)
        require_columns(file.schema_arrow.names, needed, name)
        return file.read(columns=list(needed))
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"{name} must be a whole Parquet file; got {error}. Write it again."
        ) from error


def _delimited(path: Path, name: str, declaration: RowDeclaration) -> pa.Table:
    layout = declaration.format
    content = _utf8(_bytes(path, name), name, layout)
    if content.count(b'"') % 2:
        raise ValueError(
            f"{name} must close every quotation mark; got an odd number of them. "
            'Write a mark inside a quoted cell twice ("").'
        )
    header = _header(content, name, layout)
    require_columns(header, declaration.columns, name)
    return _parsed(content, name, layout, declaration.columns)


def _bytes(path: Path, name: str) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{name} must be a whole gzip file; got {error}. "
                "Copy or download it again."
            ) from error
    if not content.strip():
        raise ValueError(
            f"{name} must hold a header and rows; got an empty file. "
            "Check the file, or remove the source."
        )
    return content


def _utf8(content: bytes, name: str, layout: TextFormat) -> bytes:
    """Return the text as UTF-8 without a byte-order mark."""
    try:
        text = content.decode(layout.encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} must be {layout.encoding} text; got byte "
            f"0x{content[error.start]:02x} in line {line}. "
            "Declare `format.encoding`, for example cp1252."
        ) from error
    return text.removeprefix(_BYTE_ORDER_MARK).encode("utf-8")


def _header(content: bytes, name: str, layout: TextFormat) -> list[str]:
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    try:
        return next(filter(None, csv.reader(text, delimiter=layout.delimiter)))
    except csv.Error as error:
        raise ValueError(
            f"{name} must start with a header; got {error}. "
            "Check the first line and `format.delimiter`."
        ) from error


def _parsed(
    content: bytes, name: str, layout: TextFormat, columns: tuple[str, ...]
) -> pa.Table:
    uneven: list[pa.csv.InvalidRow] = []

    def note(row: pa.csv.InvalidRow) -> str:
        uneven.append(row)
        return "error"

    try:
        return pa.csv.read_csv(
            pa.BufferReader(content),
            # One thread and one block: only then do uneven rows have a number.
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                invalid_row_handler=note,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if not uneven:
            raise ValueError(
                f"{name} must be delimited text; got {error}. Check `format`."
            ) from error
        row = uneven[0]
        raise ValueError(
            f"every row of {name} must have {row.expected_columns} cells; got "
            f"{row.actual_columns} in row {row.number - 2} ({row.text!r}). "
            "Complete the row, or check `format.delimiter`."
        ) from error


def _selected(table: SourceTable, declaration: RowDeclaration) -> SourceTable:
    kept = np.ones(len(table), dtype=bool)
    for column, wanted in declaration.where.items():
        cells = text_cells(table, column)
        present = pc.unique(cells).to_pylist()
        for value in wanted:
            if value not in present:
                known = [cell for cell in present if cell is not None]
                hint = did_you_mean(value, known) or (
                    f"It holds {', '.join(map(repr, known[:_SHOWN]))} ... "
                )
                raise ValueError(
                    f"where.{column} must list cells of column {column!r} of "
                    f"{table.name}; got {value!r}. {hint}Correct `where`."
                )
        kept &= pc.is_in(cells, pa.array(wanted, pa.string())).to_numpy()
    if not kept.any():
        raise ValueError(
            f"where must leave a row of {table.name}; got none with "
            f"{dict(declaration.where)}. Correct `where`."
        )
    if kept.all():
        return table
    return SourceTable(table.name, table.columns.filter(kept), table.rows[kept])
