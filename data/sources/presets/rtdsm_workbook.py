"""A workbook with one sheet, as a table of text."""

from __future__ import annotations

import warnings
from itertools import zip_longest
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pyarrow as pa

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.tabular import require_columns

from .vintage_cells import without_markers


def workbook_table(path: Path, name: str) -> SourceTable:
    """Read the only sheet of a workbook; numbers keep all their digits.

    Raises
    ------
    ValueError
        If it is damaged, has another number of sheets, or no header and rows.
    """
    first, *others = _rows(path, name) or [()]
    header = ["" if cell is None else str(cell) for cell in first]
    while header and not header[-1]:
        header.pop()
    if not header or not others:
        raise ValueError(
            f"{name} must hold a header and rows; got {len(others)} rows. Check the file."
        )
    require_columns(header, (), name)
    columns = list(zip_longest(*others))[: len(header)]
    cells = {
        column: pa.array([None if c is None else str(c) for c in values], pa.string())
        for column, values in zip(header, columns, strict=True)
    }
    rows = np.arange(len(others), dtype=np.int64)
    return without_markers(SourceTable(name, pa.table(cells), rows))


def _rows(path: Path, name: str) -> list[tuple[object, ...]]:
    # A tenth of a second, and no other source needs it.
    import openpyxl  # type: ignore[import-untyped]  # noqa: PLC0415

    with warnings.catch_warnings():
        # It reports styles that a file lacks; only cells are read here.
        warnings.filterwarnings("ignore", module="openpyxl")
        try:
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        except (BadZipFile, KeyError, OSError, ValueError) as error:
            raise ValueError(
                f"{name} must be a whole workbook; got {error}. Download it again."
            ) from error
        if len(book.sheetnames) != 1:
            raise ValueError(
                f"{name} must hold one sheet; got {', '.join(book.sheetnames)}. Save the "
                "sheet with the vintages on its own."
            )
        try:
            return list(book[book.sheetnames[0]].iter_rows(values_only=True))
        finally:
            book.close()
