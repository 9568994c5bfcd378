"""LOBSTER's order book files: the levels of the book after each message."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from infoset.data.sources.cells import SourceTable, whole_cells
from infoset.data.sources.declaration import TextFormat
from infoset.data.sources.delimited import first_cells, parsed_cells, text_content

_TEXT = TextFormat()
_LEVEL = ("ask_price", "ask_size", "bid_price", "bid_size")
_NO_PRICE = 9_999_999_999  # asks; with a minus for bids


def book_columns(
    path: Path, name: str, num_messages: int, messages: str
) -> dict[str, pa.Array]:
    """Return the columns of an order book: dollars and shares, a level after the other.

    Parameters
    ----------
    path : Path
    name : str
        What messages to people call the file.
    num_messages : int
        Rows of the message file.
    messages : str
        What it is called.

    Returns
    -------
    dict of str to Array
        ``ask_price_1``, ``ask_size_1``, ``bid_price_1``, ``bid_size_1`` and so on;
        missing where a level is not occupied.

    Raises
    ------
    ValueError
        If the rows are not as many, the columns are not four for each level, or a cell
        is not a whole number.
    """
    content = text_content(path, name)
    num_columns = len(first_cells(content, name, _TEXT))
    levels, left = divmod(num_columns, len(_LEVEL))
    if left:
        raise ValueError(
            f"{name} must have four columns for each level of the book; got "
            f"{num_columns}. Check the file."
        )
    names = [f"{part}_{level + 1}" for level in range(levels) for part in _LEVEL]
    cells = parsed_cells(content, name, _TEXT, names, header=names)
    if cells.num_rows != num_messages:
        raise ValueError(
            f"{name} must have a row for each of the {num_messages} messages of "
            f"{messages}; got {cells.num_rows}. Check that the files belong together."
        )
    table = SourceTable(name, cells, np.arange(num_messages, dtype=np.int64))
    return {
        f"{side}_{part}_{level + 1}": column
        for level in range(levels)
        for side in ("ask", "bid")
        for part, column in _side(table, side, level + 1).items()
    }


def _side(table: SourceTable, side: str, level: int) -> dict[str, pa.Array]:
    """Return the price and size of one side of a level."""
    place = f"{side}_price_{level}", f"{side}_size_{level}"
    price, size = (
        whole_cells(table, column, setting=column).to_numpy(
            dtype=np.float64, na_value=np.nan
        )
        for column in place
    )
    empty = np.abs(price) == _NO_PRICE
    table.require(
        ~empty | (size == 0),
        place[1],
        f"{place[1]} must be 0 where no order has a price",
        "Check the file.",
    )
    return {
        "price": pa.array(np.where(empty, np.nan, price / 10_000), from_pandas=True),
        "size": pa.array(np.where(empty, np.nan, size), from_pandas=True),
    }
