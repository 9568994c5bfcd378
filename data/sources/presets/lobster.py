"""LOBSTER: each change of a Nasdaq order book, and the book after it.

Layout: https://lobsterdata.com/info/DataStructure.php. A message file and the order book
file of the same name have a row for each event, and no header. Times are seconds after
midnight in New York, decimal to the nanosecond; many events share one. Prices are US
dollars times 10000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64

from infoset.data.durations import Duration
from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable, matches, text_cells, whole_cells
from infoset.data.sources.clock_settings import Day
from infoset.data.sources.declaration import (
    FileOrder,
    RowDeclaration,
    TextFormat,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import (
    AfterLag,
    InstantStamp,
)
from infoset.data.sources.delimited import (
    parsed_cells,
    shown_name,
    text_content,
)
from infoset.data.sources.source import VendorSource

from .lobster_book import book_columns

_TEXT = TextFormat()
_MESSAGE = ("time", "type", "order_id", "size", "price", "direction")
_FILE_NAME = re.compile(
    r"(?P<ticker>.+)_(?P<day>\d{4}-\d{2}-\d{2})_\d+_\d+_message_\d+\.csv(\.gz)?"
)
_SECONDS = r"^[0-9]{1,5}(\.[0-9]{1,9})?$"
_HALT = 7


class LobsterSource(VendorSource):
    """Message files with their order books.

    The values of an event: `type` (1 a new limit order; 2 a part of it cancelled; 3 it is
    deleted; 4 a visible and 5 a hidden order executed; 6 a cross trade, such as an
    auction; 7 a halt), `order_id` (text), `size`, `price` in dollars, `direction` (1 a buy
    and -1 a sell *order*: the execution of a sell order was started by a buyer), `halt`, and
    of each level of the book `ask_price_1`, `ask_size_1`, `bid_price_1`, `bid_size_1` ...
    after the event.

    A message of type 7 has a code where others have a price. It stands in `halt` (-1 a halt
    begins, 0 quoting resumes, 1 trading resumes), which all others lack, and its `price`,
    `size` and `direction` are missing. Levels that no order occupies are missing.

    Attributes
    ----------
    path : str
        The message files. Each order book is found beside it.
    ticker, day : optional
        The entity and the date. By default they stand in the name of the file:
        ``AMZN_2012-06-21_34200000_57600000_message_10.csv``.
    orderbook : bool
        Whether the order book is read.
    lag : str
        How long after its time an event is known.
    """

    preset: Literal["lobster"]
    stream: str = "lobster"
    ticker: str | None = None
    day: Day | None = None
    orderbook: bool = True
    lag: Duration = "0s"
    assumptions: tuple[str, ...] = (
        "An event is known at Nasdaq's own time: the way from there to you is `lag`.",
    )

    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the message files, each followed by its order book."""
        found: list[Path] = []
        for path in super().files(base=base):
            found += [path, _book_of(path)] if self.orderbook else [path]
        return tuple(found)

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the events of each message file, with the book after each."""
        for path in super().files(base=base):
            name = shown_name(path, base)
            content = text_content(path, name)
            cells = parsed_cells(content, name, _TEXT, _MESSAGE, header=_MESSAGE)
            rows = np.arange(cells.num_rows, dtype=np.int64)
            ticker, day = self._named(path, name)
            table = _decoded(SourceTable(name, cells, rows), day)
            books: dict[str, pa.Array] = {}
            if self.orderbook:
                book = _book_of(path)
                books = book_columns(book, shown_name(book, base), len(table), name)
            yield table.with_columns(books), self._declaration(ticker, list(books))

    def notices(self, log: EventLog) -> tuple[str, ...]:
        """Say after how many events the best bid is not below the best ask."""
        said: list[str] = []
        for stream in self.streams(log):
            table = log.table(stream)
            if "bid_price_1" not in table.column_names:
                continue
            crossed = pc.greater_equal(table["bid_price_1"], table["ask_price_1"])
            count = pc.sum(crossed).as_py() or 0
            if count:
                said.append(
                    f"The book of stream {stream!r} is locked or crossed (best bid at or "
                    f"above best ask) after {count} of {len(table)} events."
                )
        return tuple(said)

    def _named(self, path: Path, name: str) -> tuple[str, date]:
        """Return a file's ticker and day: declared, or from its name."""
        found = _FILE_NAME.fullmatch(path.name)
        ticker = self.ticker or (None if found is None else found["ticker"])
        day = self.day or (None if found is None else date.fromisoformat(found["day"]))
        if ticker is None or day is None:
            raise ValueError(
                "ticker and day must stand in the name of the file, as in "
                f"AMZN_2012-06-21_34200000_57600000_message_10.csv; got {name}. "
                "Declare `ticker` and `day`."
            )
        return ticker, day

    def _declaration(self, ticker: str, book: list[str]) -> RowDeclaration:
        numbers = ("type", "size", "price", "direction", "halt", *book)
        values = {name: ValueColumn(column=name) for name in numbers}
        return RowDeclaration(
            stream=self.stream,
            entity=ticker,
            event_time=InstantStamp(
                column="time", stamp="instant", zone="America/New_York"
            ),
            available_at=AfterLag(lag=self.lag),
            sequence=FileOrder(order="file"),
            values=values | {"order_id": ValueColumn(column="order_id", kind="text")},
            assumptions=self.assumptions,
            change=self.change,
        )


def _book_of(path: Path) -> Path:
    """Return the order book file beside a message file."""
    before, mark, after = path.name.rpartition("_message_")
    if not mark:
        raise ValueError(
            "path must match message files of LOBSTER, such as *_message_10.csv; got "
            f"{path.name}. Correct `path`."
        )
    book = path.with_name(f"{before}_orderbook_{after}")
    if not book.is_file():
        raise ValueError(
            f"the order book must stand beside {path.name}; got no {book.name}. "
            "Put it there, or declare `orderbook: false`."
        )
    return book


def _decoded(table: SourceTable, day: date) -> SourceTable:
    """Return the messages with instants, prices in dollars, and halts apart."""
    kinds = _numbers(table, "type")
    table.require(
        np.isin(kinds, range(1, 8)),
        "type",
        "type must be 1 to 7",
        "Remove a header row, or check the file.",
    )
    is_halt, code = kinds == _HALT, _numbers(table, "price")
    table.require(
        ~is_halt | np.isin(code, (-1, 0, 1)),
        "price",
        "price must be -1, 0 or 1 in a message of type 7",
        "Correct the row.",
    )
    numbers = {
        "type": kinds,
        "halt": np.where(is_halt, code, np.nan),
        # Divided, not multiplied by 0.0001: then each price is the nearest float.
        "price": np.where(is_halt, np.nan, code / 10_000),
        "size": np.where(is_halt, np.nan, _numbers(table, "size")),
        "direction": np.where(is_halt, np.nan, _numbers(table, "direction")),
    }
    columns = {
        name: pa.array(given, from_pandas=True) for name, given in numbers.items()
    }
    return table.with_columns(columns | {"time": _times(table, day)})


def _numbers(table: SourceTable, column: str) -> Float64[np.ndarray, " n"]:
    whole = whole_cells(table, column, setting=column)
    numbers: np.ndarray = whole.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _times(table: SourceTable, day: date) -> pa.ChunkedArray:
    """Return local times, exact: from the digits of the seconds, not from a float."""
    cells = text_cells(table, "time")
    seconds = pc.replace_substring_regex(cells, r"\..*$", "")
    table.require(
        matches(cells, _SECONDS),
        "time",
        "time must be seconds after midnight, with at most 9 decimals",
        "Correct the row.",
    )
    decimals = pc.replace_substring_regex(cells, r"^[0-9]+\.?", "")
    parts = [seconds.cast(pa.int64()), pc.utf8_rpad(decimals, 9, "0").cast(pa.int64())]
    nanos = pc.add(pc.multiply(parts[0], 10**9), parts[1])
    table.require(
        pc.fill_null(pc.less(parts[0], 86_400), True).to_numpy(),  # noqa: FBT003
        "time",
        "time must lie inside the day, before 86400 seconds",
        "Correct the row.",
    )
    midnight = pd.Timestamp(day).as_unit("ns").value
    return pc.add(nanos, midnight).cast(pa.timestamp("ns"))
