"""A file as a table of cells, each traceable to its row in the file.

Delimited text is read as text: ids stay what they are, and an empty cell is the only
missing marker. Rows are counted from 0 after the header, blank lines aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from .cells import SourceTable, text_cells
from .declaration import RowDeclaration, TextFormat
from .delimited import first_cells, parsed_cells, text_content
from .nearest import did_you_mean
from .stamp_cells import YEARS

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
        columns = text_columns(path, name, declaration.format, declaration.columns)
    if columns.num_rows == 0:
        raise ValueError(
            f"{name} must hold a row; got a header only. "
            "Check the file, or remove the source."
        )
    table = SourceTable(name, columns, np.arange(columns.num_rows, dtype=np.int64))
    return selected_rows(table, declaration.where)


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
        file = pa.parquet.ParquetFile(path, page_checksum_verification=True)
        require_columns(file.schema_arrow.names, needed, name)
        return _within_range(path, file, file.read(columns=list(needed)))
    except PermissionError as error:
        raise ValueError(
            f"{name} must be readable; got {error}. Check its permissions."
        ) from error
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(
            f"{name} must be a whole Parquet file; got {error}. "
            "Write it again; if it is text, name it .csv."
        ) from error


def _within_range(
    path: Path, file: pa.parquet.ParquetFile, columns: pa.Table
) -> pa.Table:
    """Return columns in seconds where nanoseconds have wrapped around.

    Timestamps of the old kind (INT96, as Spark and Impala write them) hold any year;
    as 64-bit nanoseconds, the year 9999 reads as 1816. Seconds are refused later on.
    """
    stored = [file.schema.column(place) for place in range(len(file.schema))]
    old = {kind.path for kind in stored if kind.physical_type == "INT96"}
    if not old:
        return columns
    coarse = pa.parquet.ParquetFile(path, coerce_int96_timestamp_unit="s")
    for place, column in enumerate(columns.column_names):
        if column in old:
            seconds = coarse.read(columns=[column])[column]
            years = pc.year(seconds).drop_null().to_numpy()
            if ((years < YEARS[0]) | (years > YEARS[1])).any():
                columns = columns.set_column(place, column, seconds)
    return columns


def text_columns(
    path: Path, name: str, layout: TextFormat, needed: tuple[str, ...] | None = None
) -> pa.Table:
    """Return columns of delimited text as text; all of them where none is named.

    Raises
    ------
    ValueError
        See `read_rows`.
    """
    content = text_content(path, name, encoding=layout.encoding)
    header = first_cells(content, name, layout)
    require_columns(header, needed or (), name)
    kept = tuple(header) if needed is None else needed
    return parsed_cells(content, name, layout, kept)


def selected_rows(
    table: SourceTable, where: Mapping[str, tuple[str, ...]]
) -> SourceTable:
    """Keep the rows of a `where`; see `RowDeclaration`.

    Raises
    ------
    ValueError
        If it names a cell that is nowhere, or leaves no row.
    TypeError
        If a column of `where` does not hold text.
    """
    kept = np.ones(len(table), dtype=bool)
    for column, wanted in where.items():
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
            f"{dict(where)}. Correct `where`."
        )
    if kept.all():
        return table
    return SourceTable(table.name, table.columns.filter(kept), table.rows[kept])
