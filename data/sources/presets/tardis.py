"""Tardis.dev CSV files: trades, quotes and order books of crypto exchanges.

Layout: https://docs.tardis.dev/downloadable-csv-files/data-types. `timestamp` is the
exchange's, `local_timestamp` when the message reached the recorder; both count
microseconds since 1970. Where an exchange gives no time, Tardis writes the arrival into
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.declaration import (
    ColumnRef,
    FileOrder,
    RowDeclaration,
    TextFormat,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import AvailableColumn, InstantStamp
from infoset.data.sources.delimited import (
    first_cells,
    parsed_cells,
    shown_name,
    text_content,
)
from infoset.data.sources.epochs import epoch_instants
from infoset.data.sources.source import VendorSource
from infoset.data.sources.tabular import require_columns

from .arrivals import ArrivalClock
from .flags import flag_numbers

_LAYOUT = TextFormat()
_COMMON = ("exchange", "symbol", "timestamp", "local_timestamp")
_LEVEL = re.compile(r"(ask|bid)s\[(\d+)\]\.(price|amount)")
_TRADE = {"trade_id": "id", "side": "side", "price": "price", "amount": "amount"}
_QUOTE = {name: name for name in ("ask_amount", "ask_price", "bid_price", "bid_amount")}
_UPDATE = {name: name for name in ("is_snapshot", "side", "price", "amount")}
_TICKER = {
    name: name
    for name in (
        "funding_rate",
        "predicted_funding_rate",
        "open_interest",
        "last_price",
        "index_price",
        "mark_price",
    )
}
# Our names to the file's columns; where two types share a header, the first is it
# unless the file's name says the other.
_TYPES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("trades", _TRADE),
    ("liquidations", _TRADE),
    ("quotes", _QUOTE),
    ("book_ticker", _QUOTE),
    ("incremental_book_L2", _UPDATE),
    ("derivative_ticker", _TICKER),
)
_UNUSED = {"funding_timestamp"}  # the time of the next funding: no clock of the event
_TEXTS = ("trade_id", "side")


class TardisSource(ArrivalClock, VendorSource):
    """Files of one type of data; its header says which.

    Types: trades, liquidations, quotes, book_ticker, incremental_book_L2,
    derivative_ticker, and book_snapshot_N of any depth. The entity is the symbol. Rows of one
    arrival keep the order of the file (`sequence`, counted from 1).

    Attributes
    ----------
    stream : str
        ``{data_type}`` stands for the type of data; one column can stand beside it.
    """

    preset: Literal["tardis"]
    stream: str = "tardis/{data_type}/{exchange}"
    assumptions: tuple[str, ...] = (
        "A message is known when it reached the recorder of Tardis (local_timestamp); "
        "the way from there to you is `lag`.",
    )

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the messages of each file."""
        for path in self.files(base=base):
            name = shown_name(path, base)
            content = text_content(path, name)
            header = first_cells(content, name, _LAYOUT)
            require_columns(header, _COMMON, name)
            kind, values = _type_of(header, name)
            cells = parsed_cells(content, name, _LAYOUT, (*_COMMON, *values.values()))
            rows = np.arange(cells.num_rows, dtype=np.int64)
            yield self._declared(SourceTable(name, cells, rows), kind, values)

    def _declared(
        self, table: SourceTable, kind: str, values: Mapping[str, str]
    ) -> tuple[SourceTable, RowDeclaration]:
        clocks = {name: epoch_instants(table, name, "us") for name in _COMMON[2:]}
        if "is_snapshot" in values:
            table = table.with_columns(
                {"is_snapshot": flag_numbers(table, "is_snapshot")}
            )
        table = table.with_columns(clocks)
        table, event, available = self.clocked(table, *_COMMON[2:])
        declaration = RowDeclaration(
            stream=self.stream.replace("{data_type}", kind),
            entity=ColumnRef(column="symbol"),
            event_time=InstantStamp(column=event, stamp="instant"),
            available_at=AvailableColumn(column=available),
            sequence=FileOrder(order="file"),
            values={
                name: ValueColumn(
                    column=column, kind="text" if name in _TEXTS else "number"
                )
                for name, column in values.items()
            },
            assumptions=self.assumptions,
            change=self.change,
        )
        return table, declaration


def _type_of(header: list[str], name: str) -> tuple[str, Mapping[str, str]]:
    """Return the type of a file's data, and our names of its values."""
    special = [column for column in header if column not in {*_COMMON, *_UNUSED}]
    levels = [_LEVEL.fullmatch(column) for column in special]
    if special and all(levels):
        values = {
            f"{found[1]}_{found[3]}_{int(found[2]) + 1}": found[0]
            for found in levels
            if found is not None
        }
        return f"book_snapshot_{len(levels) // 4}", values
    fitting = [
        (kind, values)
        for kind, values in _TYPES
        if set(values.values()) == set(special)
    ]
    if not fitting:
        raise ValueError(
            f"{name} must have the header of a type of data of Tardis "
            f"({', '.join(kind for kind, _ in _TYPES)}, book_snapshot_N); got "
            f"{', '.join(header)}. Declare another table without `preset`."
        )
    said = [(kind, values) for kind, values in fitting if f"_{kind}_" in name]
    return (said or fitting)[0]
