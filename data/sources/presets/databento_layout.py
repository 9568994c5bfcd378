"""The record types of Databento's CSV files, and their prices and times.

Sources: https://databento.com/docs/conventions/common-fields-enums-types and the CSV
encoder of https://github.com/databento/dbn. Numbers are written in one of two ways. Plain:
prices are whole numbers of 1e-9, times whole nanoseconds since 1970, and what is not
defined is the largest number of the type. Pretty: decimals, ISO 8601 in UTC, and empty.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from infoset.data.instants import nanoseconds
from infoset.data.sources.cells import SourceTable, matches, text_cells
from infoset.data.sources.clocks import event_times
from infoset.data.sources.declared_clocks import InstantStamp
from infoset.data.sources.epochs import epoch_instants, utc_instants

_PRICE = re.compile(r"price|open|high|low|close|(bid|ask)_px_\d\d")
_NUMBER = re.compile(
    r"size|volume|depth|flags|ts_in_delta|channel_id|(bid|ask)_(sz|ct|pb)_\d\d"
)
_TEXTS = ("action", "side", "order_id", "publisher_id", "instrument_id")
_UNDEFINED_PRICE = "9223372036854775807"  # the largest of 64 bits with a sign
_UNDEFINED_TIMES = ["0", "18446744073709551615"]  # the largest of 64 bits without one
_WHOLE = r"^-?[0-9]+$"


@dataclass(frozen=True)
class DatabentoRecord:
    """A type of record.

    Attributes
    ----------
    schema : str
    bar : str, optional
        Length of a bar, whose `ts_event` is its open; empty where it is not said.
    is_sampled : bool
        Whether `ts_recv` is the end of the interval that the record sums up, and
        `ts_event` that of the last trade.
    """

    schema: str
    bar: str | None = None
    is_sampled: bool = False


DATABENTO_RECORDS = {
    0: DatabentoRecord("trades"),
    1: DatabentoRecord("mbp-1"),
    10: DatabentoRecord("mbp-10"),
    17: DatabentoRecord("ohlcv", bar=""),
    32: DatabentoRecord("ohlcv-1s", bar="1s"),
    33: DatabentoRecord("ohlcv-1m", bar="1min"),
    34: DatabentoRecord("ohlcv-1h", bar="1h"),
    35: DatabentoRecord("ohlcv-1d", bar="1d"),
    36: DatabentoRecord("ohlcv-eod", bar=""),
    160: DatabentoRecord("mbo"),
    177: DatabentoRecord("cmbp-1"),
    192: DatabentoRecord("cbbo-1s", is_sampled=True),
    193: DatabentoRecord("cbbo-1m", is_sampled=True),
    194: DatabentoRecord("tcbbo"),
    195: DatabentoRecord("bbo-1s", is_sampled=True),
    196: DatabentoRecord("bbo-1m", is_sampled=True),
}


def record_of(table: SourceTable) -> DatabentoRecord:
    """Return the type of a file's records, which is one.

    Raises
    ------
    ValueError
        If it holds several, or one of which no events are made.
    """
    cells = text_cells(table, "rtype")
    known = [str(number) for number in DATABENTO_RECORDS]
    schemas = ", ".join(record.schema for record in DATABENTO_RECORDS.values())
    table.require(
        pc.is_in(cells, pa.array(known)).to_numpy(),
        "rtype",
        f"rtype must be that of {schemas}",
        "Declare another schema as a table without `preset`.",
    )
    first = cells[0].as_py()
    table.require(
        pc.equal(cells, first).to_numpy(),
        "rtype",
        f"rtype must be one in a file, that of its first row ({first})",
        "Split the file.",
    )
    record = DATABENTO_RECORDS[int(first)]
    if record.schema == "mbp-1" and ".tbbo." in table.name:
        return DatabentoRecord("tbbo")  # one record type, told apart by the file's name
    return record


def value_kinds(header: list[str]) -> dict[str, str]:
    """Return the values among the columns of a file, each `price`, `number` or `text`."""
    kinds: dict[str, str] = {}
    for column in header:
        if _PRICE.fullmatch(column):
            kinds[column] = "price"
        elif _NUMBER.fullmatch(column):
            kinds[column] = "number"
        elif column in _TEXTS:
            kinds[column] = "text"
    return kinds


def decimal_prices(
    table: SourceTable, columns: Sequence[str]
) -> dict[str, pa.ChunkedArray]:
    """Return prices as decimal text, missing where they are not defined.

    Raises
    ------
    ValueError
        Unless all prices of a file are whole units of 1e-9, or all are decimals.
    """
    cells = {column: text_cells(table, column) for column in columns}
    plain = [
        pc.any(pc.match_substring_regex(c, _WHOLE)).as_py() for c in cells.values()
    ]
    if not any(plain):
        return cells
    for column in columns:
        table.require(
            matches(cells[column], _WHOLE),
            column,
            f"{column} must be in whole units of 1e-9, as other prices of the file are",
            "Write all prices in one way: all in whole units, or all as decimals.",
        )
    return {column: _pointed(found) for column, found in cells.items()}


def _pointed(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return whole units of 1e-9 with their decimal point: exact, as text."""
    none = pa.scalar(None, pa.string())
    cells = pc.if_else(pc.equal(cells, _UNDEFINED_PRICE), none, cells)
    sign = pc.if_else(pc.starts_with(cells, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(cells, "-"), 10, "0")
    whole, rest = (pc.utf8_slice_codeunits(digits, *cut) for cut in ((0, -9), (-9,)))
    return pc.binary_join_element_wise(sign, whole, ".", rest, "")


def instant_cells(table: SourceTable, column: str) -> pa.Array:
    """Return times as UTC nanoseconds, missing where they are not defined.

    Raises
    ------
    ValueError
        For a cell that is neither a whole number nor an instant.
    """
    cells = text_cells(table, column)
    undefined = pc.is_in(cells, pa.array(_UNDEFINED_TIMES))
    cells = pc.if_else(undefined, pa.scalar(None, pa.string()), cells)
    table = table.with_columns({column: cells})
    if matches(cells, _WHOLE).all():
        return epoch_instants(table, column, "ns")
    stamp = InstantStamp(column=column, stamp="instant", zone="UTC")
    zeros = np.zeros(len(table), dtype=np.int64)
    times = event_times(table, stamp, series=zeros)
    return utc_instants(nanoseconds(times), times.notna().to_numpy())
