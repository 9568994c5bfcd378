"""Files of EDGAR as columns of text: JSON as the SEC serves it, or flat tables of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from infoset.data.sources.cells import Fault, SourceTable, text_cells
from infoset.data.sources.declaration import TextFormat
from infoset.data.sources.delimited import file_content
from infoset.data.sources.tabular import require_columns, text_columns

_CIK = re.compile(r"\d{1,10}")
_CIK_IN_NAME = re.compile(r"CIK(\d{10})")
_ACCESSION = r"^\d{10}-\d{2}-\d{6}$"
_TABLES = {".csv", ".tsv", ".txt"}
NEVER = int(np.iinfo(np.int64).min)  # a missing instant, as NumPy has it


def is_flat(path: Path) -> bool:
    """Return whether a file is delimited text, not JSON."""
    return not _TABLES.isdisjoint(path.suffixes)


def json_mapping(path: Path, name: str) -> dict[str, Any]:
    """Read a JSON file; numbers stay the text that they are written as.

    Raises
    ------
    ValueError
        If it is not whole JSON, or not an object.
    """
    try:
        found = json.loads(
            file_content(path, name),
            parse_int=str,
            parse_float=str,
            parse_constant=_no_constant,
        )
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{name} must be whole JSON; got {error}. Download it again."
        ) from error
    if not isinstance(found, dict):
        raise ValueError(  # noqa: TRY004 (a file of the wrong kind)
            f"{name} must be a JSON object; got {type(found).__name__}. Check the file."
        )
    return found


def _no_constant(constant: str) -> NoReturn:
    raise json.JSONDecodeError(f"{constant}, which is no number", constant, 0)


def cik_of(given: object, name: str) -> str:
    """Return a CIK as the ten digits that EDGAR's file names have.

    Raises
    ------
    ValueError
        Unless it has one to ten digits.
    """
    if not isinstance(given, str) or not _CIK.fullmatch(given):
        raise ValueError(
            f"cik of {name} must have one to ten digits; got {given!r}. Check the file."
        )
    return given.zfill(10)


def cik_in_name(path: Path) -> str | None:
    """Return the CIK in a name such as ``CIK0000320193-submissions-001.json``."""
    found = _CIK_IN_NAME.search(path.name)
    return None if found is None else found[1]


def padded_ciks(table: SourceTable, column: str) -> pa.ChunkedArray:
    """Return a column of CIKs as text of ten digits.

    Raises
    ------
    ValueError
        For a cell that has not one to ten digits.
    """
    cells = text_cells(table, column)
    matching = pc.match_substring_regex(cells, r"^[0-9]{1,10}$")
    table.require(
        pc.fill_null(matching, False).to_numpy(),  # noqa: FBT003
        column,
        "cik must have one to ten digits",
        "Correct the row.",
    )
    return pc.utf8_lpad(cells, 10, "0")


def json_columns(
    lists: Mapping[str, Sequence[object]], num_rows: int, name: str
) -> pa.Table:
    """Return lists of a JSON file as columns of text.

    Raises
    ------
    ValueError
        If a list is shorter or longer than the others.
    TypeError
        If a list holds anything but text, numbers and nulls.
    """
    columns: dict[str, pa.Array] = {}
    for field, values in lists.items():
        if len(values) != num_rows:
            raise ValueError(
                f"every list of {name} must have {num_rows} items; got {len(values)} "
                f"in {field!r}. Download it again."
            )
        try:
            columns[field] = pa.array(values, pa.string())
        except (pa.ArrowInvalid, TypeError) as error:
            raise TypeError(
                f"{field!r} of {name} must hold text or numbers; got {error}. "
                "Check the file."
            ) from error
    return pa.table(columns)


def flat_columns(
    path: Path, name: str, needed: Sequence[str], optional: Sequence[str]
) -> pa.Table:
    """Read columns of a flat table; an optional one that is not there is empty.

    Raises
    ------
    ValueError
        See `text_columns`.
    """
    layout = TextFormat(delimiter="\t" if ".tsv" in path.suffixes else ",")
    columns = text_columns(path, name, layout)
    require_columns(columns.column_names, tuple(needed), name)
    for field in optional:
        if field not in columns.column_names:
            columns = columns.append_column(field, pa.nulls(len(columns), pa.string()))
    return columns.select([*needed, *optional])


def first_tickers(ciks: pa.ChunkedArray, tickers: pa.ChunkedArray) -> Mapping[str, str]:
    """Return the first ticker of each CIK; those without one are left out."""
    named = pa.table({"cik": ciks, "ticker": tickers}).to_pandas()
    named = named[named["ticker"].fillna("") != ""].drop_duplicates("cik")
    return dict(zip(named["cik"].tolist(), named["ticker"].tolist(), strict=True))


def accession_numbers(table: SourceTable, column: str) -> pa.ChunkedArray:
    """Return accession numbers as digits: within one filing agent, the later is larger.

    Raises
    ------
    ValueError
        For a cell that is no accession number.
    """
    cells = text_cells(table, column)
    matching = pc.match_substring_regex(cells, _ACCESSION)
    table.require(
        pc.fill_null(matching, False).to_numpy(),  # noqa: FBT003
        column,
        "accession must be a number such as 0000320193-20-000096",
        "Correct the row.",
    )
    return pc.replace_substring(cells, "-", "")


def with_columns(
    table: SourceTable,
    columns: Mapping[str, pa.ChunkedArray | pa.Array],
    *,
    faults: tuple[Fault, ...] = (),
) -> SourceTable:
    """Return a table with further columns, or other cells in those it has."""
    cells = table.columns
    for name, values in columns.items():
        if name in cells.column_names:
            cells = cells.set_column(cells.column_names.index(name), name, values)
        else:
            cells = cells.append_column(name, values)
    return SourceTable(table.name, cells, table.rows, (*table.faults, *faults))


def kept_rows(table: SourceTable, kept: Bool[np.ndarray, " n"]) -> SourceTable:
    """Return some rows of a table, with their faults."""
    return SourceTable(
        table.name,
        table.columns.filter(kept),
        table.rows[kept],
        tuple(Fault(f.at[kept], f.column, f.reason) for f in table.faults),
    )


def rows_at(table: SourceTable, places: Int64[np.ndarray, " k"]) -> SourceTable:
    """Return some rows of a table, without its faults."""
    return SourceTable(table.name, table.columns.take(places), table.rows[places])


def instants_column(nanos: Int64[np.ndarray, " n"]) -> pa.Array:
    """Return UTC nanoseconds since 1970 as a column of instants."""
    return pa.array(nanos, pa.int64(), mask=nanos == NEVER).cast(
        pa.timestamp("ns", tz="UTC")
    )
