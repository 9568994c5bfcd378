"""Columns of true and false as numbers."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from infoset.data.sources.cells import SourceTable, matches, text_cells

_FLAG = r"^([Tt]rue|[Ff]alse)$"


def flag_numbers(table: SourceTable, column: str) -> pa.ChunkedArray:
    """Return 1 where a cell is true, 0 where it is false; missing where it is empty.

    Raises
    ------
    ValueError
        For another cell.
    """
    cells = text_cells(table, column)
    table.require(
        matches(cells, _FLAG),
        column,
        f"{column} must be true or false",
        "Correct the row.",
    )
    return pc.equal(pc.utf8_lower(cells), "true").cast(pa.float64())
