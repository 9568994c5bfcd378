"""Binance's public files: klines (bars), aggregated trades and trades.

Stamps count milliseconds since 1970; in spot files from 2025 on, microseconds. The close
time of a kline is the last instant inside it (``...59999``): it closes one unit later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64
from pydantic import model_validator

from infoset.data.durations import Duration
from infoset.data.events import EventLog
from infoset.data.sources.cells import Fault, SourceTable, whole_cells
from infoset.data.sources.declaration import RowDeclaration, TextFormat, ValueColumn
from infoset.data.sources.declared_clocks import AfterLag, InstantStamp
from infoset.data.sources.delimited import (
    first_cells,
    parsed_cells,
    shown_name,
    text_content,
)
from infoset.data.sources.epochs import utc_instants
from infoset.data.sources.source import VendorSource

from .bar_checks import ohlc_faults, overlap_notices
from .binance_layouts import BINANCE_LAYOUTS, OHLCV, BinanceData, BinanceLayout
from .file_names import symbol_in_name
from .flags import flag_numbers

_TEXT = TextFormat()
_EXAMPLE = "BTCUSDT-1m-2024-01.csv"
_FILE_NAME = re.compile(r"([^-]+)-([^-]+)-\d{4}-\d{2}(-\d{2})?\..+")
_INTERVAL = re.compile(r"-(\d+)([smhdw]|mo)-")
# Weeks and months have no length that a duration could write.
_LENGTHS = {"s": "s", "m": "min", "h": "h", "d": "d"}
_EVENT = "time of the event"
# Digits of a stamp between 2001 and 2286, and the nanoseconds of its unit.
_UNITS = {13: 10**6, 16: 10**3}


class BinanceSource(VendorSource):
    """Files of one type of data: klines, aggTrades or trades.

    A kline is dated, and known, when it closes. A trade is dated and known at its time;
    trades of one instant keep the order of their ids (`sequence`). `buyer_is_maker` is 1
    where the buyer was the maker: the trade was started by a seller. `num_trades` of an
    aggregated trade is counted from its first and last id, and missing where Binance
    gives -1 for them.

    Attributes
    ----------
    data : str
    symbol : str, optional
        The entity. By default what the file's name starts with:
        ``BTCUSDT-1m-2024-01.csv``.
    stream : str
        By default ``binance/`` and the type of data; for klines also the interval, if
        it stands in `path`.
    lag : str
        How long after its close or trade a row is known.
    """

    preset: Literal["binance"]
    data: BinanceData
    symbol: str | None = None
    lag: Duration = "0s"
    assumptions: tuple[str, ...] = (
        "A kline is known when it closes, and a trade at the time that Binance gives it: "
        "the way from there to you is `lag`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _stream_by_data(cls, given: object) -> object:
        if not isinstance(given, dict) or "stream" in given:
            return given
        data = given.get("data")
        interval = _INTERVAL.search(Path(str(given.get("path"))).name)
        if data == "klines" and interval is not None:
            return {**given, "stream": f"binance/klines/{interval[1]}{interval[2]}"}
        return {**given, "stream": f"binance/{data}"}

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the rows of each file; bars whose prices cannot be are set aside."""
        layout = BINANCE_LAYOUTS[self.data]
        files = self.files(base=base)
        _require_one_kind(files)
        for path in files:
            table = _read(path, shown_name(path, base), layout)
            known = _dated(table, layout)
            if self.data == "klines":
                ohlcv = dict(zip(OHLCV, OHLCV, strict=True))
                known = known.with_faults(ohlc_faults(table, ohlcv, _TEXT))
            yield (
                known,
                self._declaration(
                    layout, self.symbol or symbol_in_name(path, _FILE_NAME, _EXAMPLE)
                ),
            )

    def notices(self, log: EventLog) -> tuple[str, ...]:
        """Say which klines are closer than the interval that `path` names."""
        interval = _INTERVAL.search(Path(self.path).name)
        if self.data != "klines" or interval is None or interval[2] not in _LENGTHS:
            return ()
        bar = f"{interval[1]}{_LENGTHS[interval[2]]}"
        return tuple(overlap_notices(log, self.streams(log), bar))

    def _declaration(self, layout: BinanceLayout, symbol: str) -> RowDeclaration:
        names = [*layout.numbers, *layout.flags]
        if self.data == "aggTrades":
            names.append("num_trades")
        return RowDeclaration(
            stream=self.stream,
            entity=symbol,
            event_time=InstantStamp(column=_EVENT, stamp="instant"),
            available_at=AfterLag(lag=self.lag),
            sequence=layout.sequence,
            values={name: ValueColumn(column=name) for name in names},
            assumptions=self.assumptions,
            change=self.change,
        )


def _require_one_kind(files: tuple[Path, ...]) -> None:
    names = [_FILE_NAME.fullmatch(path.name) for path in files]
    kinds = sorted({found[2] for found in names if found is not None})
    if len(kinds) > 1:
        raise ValueError(
            "path must match files of one interval, or of one type of data; got "
            f"{', '.join(kinds)}. Declare a source for each."
        )


def _read(path: Path, name: str, layout: BinanceLayout) -> SourceTable:
    content = text_content(path, name)
    first = first_cells(content, name, _TEXT)
    names, has_header = layout.names_of(first, name)
    if has_header:
        cells = parsed_cells(content, name, _TEXT, first).rename_columns(list(names))
    else:
        cells = parsed_cells(content, name, _TEXT, names, header=names)
    rows = np.arange(cells.num_rows, dtype=np.int64)
    return SourceTable(name, cells, rows)


def _dated(table: SourceTable, layout: BinanceLayout) -> SourceTable:
    """Return the table with the time of each event, exact in nanoseconds."""
    stamps = {name: whole_cells(table, name, setting=name) for name in layout.stamps}
    unit = _unit(table, stamps)
    nanos = {name: _counts(whole) * unit for name, whole in stamps.items()}
    last = layout.stamps[-1]
    given = stamps[last].notna().to_numpy()
    columns = {name: flag_numbers(table, name) for name in layout.flags}
    if last != "close_time":
        columns[_EVENT] = utc_instants(nanos[last], given)
    else:
        columns[_EVENT] = utc_instants(nanos[last] + unit, given)
    dated = table.with_columns(columns)
    if "open_time" in nanos:
        backwards = given & (nanos["open_time"] > nanos[last])
        dated = dated.with_faults((Fault(backwards, last, "before its open"),))
    if "first_id" in table.columns.column_names:
        dated = dated.with_columns({"num_trades": _num_trades(table)})
    return dated


def _unit(table: SourceTable, stamps: Mapping[str, pd.Series]) -> int:
    """Return the nanoseconds of what a file's stamps count: all of them the same."""
    unit = 0
    for name, whole in stamps.items():
        counts, given = _counts(whole), whole.notna().to_numpy()
        units = np.zeros(len(counts), dtype=np.int64)
        for digits, length in _UNITS.items():
            units[(counts >= 10 ** (digits - 1)) & (counts < 10**digits)] = length
        table.require(
            (units > 0) | ~given,
            name,
            f"{name} must count milliseconds or microseconds since 1970",
            "Correct the row, or check `data`.",
        )
        if not unit and given.any():
            unit = int(units[given.argmax()])
        table.require(
            (units == unit) | ~given,
            name,
            f"{name} must count one unit in a file, that of its first row",
            "Split the file where the unit changes.",
        )
    return unit


def _counts(whole: pd.Series) -> Int64[np.ndarray, " n"]:
    return whole.fillna(0).to_numpy(dtype=np.int64)


def _num_trades(table: SourceTable) -> pa.Array:
    first, last = (
        whole_cells(table, name, setting=name) for name in ("first_id", "last_id")
    )
    count = (last - first + 1).where((first >= 0) & (last >= first))
    return pa.array(count.to_numpy(dtype=np.float64, na_value=np.nan), from_pandas=True)
