"""HistData.com's ASCII files of currencies: ticks, and bars of a minute.

Layout: https://www.histdata.com/f-a-q/data-files-detailed-specification. All times are
Eastern Standard Time without daylight saving: five hours behind UTC the whole year. The
time of a bar is its open, and its prices are bids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from infoset.data.durations import Duration
from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable, matches, text_cells
from infoset.data.sources.declaration import (
    FileOrder,
    RowDeclaration,
    TextFormat,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import AfterLag, BarOpen, InstantStamp
from infoset.data.sources.delimited import parsed_cells, shown_name, text_content
from infoset.data.sources.source import VendorSource

from .bar_checks import ohlc_faults, overlap_notices
from .file_names import symbol_in_name

_EST = "Etc/GMT+5"  # the sign is that of POSIX: five hours behind UTC
_EXAMPLE = "DAT_ASCII_EURUSD_T_202001.csv"
_FILE_NAME = re.compile(r"DAT_ASCII_([A-Z]+)_(T|M1)_\d{4,6}\..+")
_PRICES = ("open", "high", "low", "close")


@dataclass(frozen=True)
class _Layout:
    name: str
    delimiter: str
    columns: tuple[str, ...]
    time: str
    time_format: str


# The last column, the volume, is always 0 and is left out.
_TICKS = _Layout(
    "ticks",
    ",",
    ("time", "bid", "ask", "volume"),
    r"^\d{8} \d{9}$",
    "%Y%m%d %H%M%S%f",
)
_BARS = _Layout(
    "bars", ";", ("time", *_PRICES, "volume"), r"^\d{8} \d{6}$", "%Y%m%d %H%M%S"
)


class HistDataSource(VendorSource):
    """Files of ticks (`bid`, `ask`) or of bars (`open`, `high`, `low`, `close` of bids).

    Ticks of one millisecond keep the order of the file (`sequence`, counted from 1). A bar
    is known a minute after its stamp.

    Attributes
    ----------
    stream : str
        ``{data}`` stands for ticks or bars.
    symbol : str, optional
        The entity. By default it stands in the name of the file:
        ``DAT_ASCII_EURUSD_T_202001.csv``.
    lag : str
        How long after its time or close a row is known.
    """

    preset: Literal["histdata"]
    stream: str = "histdata/{data}"
    symbol: str | None = None
    lag: Duration = "0s"
    assumptions: tuple[str, ...] = (
        "A tick is known at its time, and a bar when it closes: the way from there to you "
        "is `lag`.",
    )

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the rows of each file; bars whose prices cannot be are set aside."""
        for path in self.files(base=base):
            name = shown_name(path, base)
            content = text_content(path, name)
            layout = _layout_of(content, name)
            text = TextFormat(delimiter=layout.delimiter)
            cells = parsed_cells(
                content, name, text, layout.columns, header=layout.columns
            )
            rows = np.arange(cells.num_rows, dtype=np.int64)
            table = SourceTable(name, cells, rows)
            table.require(
                matches(text_cells(table, "time"), layout.time),
                "time",
                f"time must be digits such as {_EXAMPLES[layout.name]}",
                "Correct the row.",
            )
            if layout is _BARS:
                prices = dict(zip(_PRICES, _PRICES, strict=True))
                table = table.with_faults(ohlc_faults(table, prices, text))
            yield (
                table,
                self._declaration(
                    layout, self.symbol or symbol_in_name(path, _FILE_NAME, _EXAMPLE)
                ),
            )

    def notices(self, log: EventLog) -> tuple[str, ...]:
        """Say how many asks are below their bid, and which bars overlap."""
        said: list[str] = []
        for stream in self.streams(log):
            table = log.table(stream)
            if "ask" not in table.column_names:
                said += overlap_notices(log, (stream,), "1min")
                continue
            below = pc.sum(pc.less(table["ask"], table["bid"])).as_py()
            if below:
                said.append(
                    f"The ask is below the bid in {below} of {len(table)} ticks of "
                    f"stream {stream!r}."
                )
        return tuple(said)

    def _declaration(self, layout: _Layout, symbol: str) -> RowDeclaration:
        pattern = layout.time_format
        is_bars = layout is _BARS
        return RowDeclaration(
            format=TextFormat(delimiter=layout.delimiter),
            stream=self.stream.replace("{data}", layout.name),
            entity=symbol,
            event_time=BarOpen(
                column="time", stamp="bar_open", bar="1min", zone=_EST, format=pattern
            )
            if is_bars
            else InstantStamp(
                column="time", stamp="instant", zone=_EST, format=pattern
            ),
            available_at=AfterLag(lag=self.lag),
            sequence=None if is_bars else FileOrder(order="file"),
            values={
                name: ValueColumn(column=name)
                for name in layout.columns
                if name not in ("time", "volume")
            },
            assumptions=self.assumptions,
            change=self.change,
        )


_EXAMPLES = {"ticks": "20200101 170000065", "bars": "20200101 170000"}


def _layout_of(content: bytes, name: str) -> _Layout:
    """Return the layout that the first row of a file has."""
    first = content.strip().split(b"\n", 1)[0].decode("utf-8").strip()
    for layout in (_TICKS, _BARS):
        if len(first.split(layout.delimiter)) == len(layout.columns):
            return layout
    raise ValueError(
        f"{name} must be an ASCII file of HistData: ticks ({_EXAMPLES['ticks']},bid,"
        f"ask,0) or bars ({_EXAMPLES['bars']};open;high;low;close;0); got {first!r}. "
        "Download the ASCII format, or declare the table without `preset`."
    )
