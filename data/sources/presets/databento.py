"""Databento's CSV files: trades, quotes, order books and bars.

`ts_event` is when the exchange's matching engine received a message, `ts_recv` when it
reached Databento's recorder. The `ts_event` of a bar is its *open*.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from infoset.data.durations import PositiveDuration
from infoset.data.events import EventLog
from infoset.data.sources.cells import SourceTable
from infoset.data.sources.declaration import (
    ColumnRef,
    FileOrder,
    RowDeclaration,
    TextFormat,
    ValueColumn,
)
from infoset.data.sources.declared_clocks import (
    AfterLag,
    AvailableColumn,
    BarOpen,
    InstantStamp,
)
from infoset.data.sources.delimited import (
    first_cells,
    parsed_cells,
    shown_name,
    text_content,
)
from infoset.data.sources.source import VendorSource
from infoset.data.sources.tabular import require_columns, selected_rows

from .arrivals import ArrivalClock
from .bar_checks import ohlc_faults
from .databento_layout import (
    DatabentoRecord,
    decimal_prices,
    instant_cells,
    record_of,
    value_kinds,
)

_TEXT = TextFormat()
_BAD_TS_RECV = 8


class DatabentoSource(ArrivalClock, VendorSource):
    """Files of one schema; their record type (`rtype`) says which.

    Schemas: trades, tbbo, mbp-1, mbp-10, mbo, cmbp-1, tcbbo: an event is when `ts_event`
    says, and is known from `ts_recv` on. Of bbo and cbbo by the second or minute, both are
    `ts_recv`, the end of the interval (`ts_event` is that of the last trade). Of ohlcv bars,
    both are the close: `ts_event` and the length of the bar.

    Values are the file's prices, sizes, counts and flags, and as text `action`, `side`,
    `order_id`, `publisher_id` and `instrument_id` (which shows the roll of a continuous
    contract). Except for bars, rows of one arrival keep the order of the file (`sequence`,
    counted from 1): messages share the venue's own sequence numbers.

    Attributes
    ----------
    stream : str
        ``{schema}`` stands for the schema; one column can stand beside it.
    entity : ColumnRef
    where : Mapping[str, tuple of str]
        See `RowDeclaration`.
    bar : str, optional
        Length of bars whose record type does not say it (ohlcv-eod).
    """

    preset: Literal["databento"]
    stream: str = "databento/{schema}"
    entity: ColumnRef = ColumnRef(column="symbol")
    where: Mapping[str, tuple[str, ...]] = {}
    bar: PositiveDuration | None = None
    assumptions: tuple[str, ...] = (
        "A message is known when it reached the recorder of Databento (ts_recv), and a bar "
        "when it closes: the way from there to you is `lag`.",
    )

    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield the records of each file; bars whose prices cannot be are set aside."""
        for path in self.files(base=base):
            name = shown_name(path, base)
            content = text_content(path, name)
            header = first_cells(content, name, _TEXT)
            self._require_columns(header, name)
            known = [column for column in header if column]
            cells = parsed_cells(content, name, _TEXT, known)
            rows = np.arange(cells.num_rows, dtype=np.int64)
            table = selected_rows(SourceTable(name, cells, rows), self.where)
            yield self._declared(table, record_of(table), value_kinds(header))

    def notices(self, log: EventLog) -> tuple[str, ...]:
        """Say of how many records Databento doubts the time of arrival."""
        said: list[str] = []
        for stream in self.streams(log):
            table = log.table(stream)
            if "flags" not in table.column_names:
                continue
            flags = pc.fill_null(table["flags"], 0).cast(pa.int64())
            doubted = pc.sum(
                pc.greater(pc.bit_wise_and(flags, _BAD_TS_RECV), 0)
            ).as_py()
            if doubted:
                said.append(
                    f"{doubted} of {len(table)} events of stream {stream!r} have a time of "
                    "arrival (ts_recv) that Databento flags as inaccurate."
                )
        return tuple(said)

    def _require_columns(self, header: list[str], name: str) -> None:
        if self.entity.column not in header:
            raise ValueError(
                f"column {self.entity.column!r} must be in {name}; got "
                f"{', '.join(header)}. Ask for the file with symbols (map_symbols), or "
                "declare `entity: {column: instrument_id}`."
            )
        require_columns(header, ("rtype", "ts_event", *self.where), name)

    def _declared(
        self, table: SourceTable, record: DatabentoRecord, kinds: Mapping[str, str]
    ) -> tuple[SourceTable, RowDeclaration]:
        prices = [column for column, kind in kinds.items() if kind == "price"]
        table = table.with_columns(decimal_prices(table, prices))
        table = table.with_columns({"ts_event": instant_cells(table, "ts_event")})
        if record.bar is not None:
            return self._bars(table, record, kinds)
        happened = "ts_recv" if record.is_sampled else "ts_event"
        require_columns(table.columns.column_names, ("ts_recv",), table.name)
        table = table.with_columns({"ts_recv": instant_cells(table, "ts_recv")})
        table, event, known = self.clocked(table, happened, "ts_recv")
        stamp = InstantStamp(column=event, stamp="instant")
        available = AvailableColumn(column=known)
        order = FileOrder(order="file")
        return table, self._rows(record, kinds, stamp, available, sequence=order)

    def _bars(
        self, table: SourceTable, record: DatabentoRecord, kinds: Mapping[str, str]
    ) -> tuple[SourceTable, RowDeclaration]:
        length = self.bar or record.bar
        if not length or (record.bar and record.bar != length):
            raise ValueError(
                f"bar must be the length of a bar of {record.schema}"
                f"{' (' + record.bar + ')' if record.bar else ''}; got {self.bar!r} for "
                f"{table.name}. Correct `bar`."
            )
        self._require_one_publisher(table)
        ohlcv = {name: name for name, kind in kinds.items() if kind != "text"}
        table = table.with_faults(ohlc_faults(table, ohlcv, _TEXT))
        stamp = BarOpen(column="ts_event", stamp="bar_open", bar=length)
        return table, self._rows(record, kinds, stamp, AfterLag(lag=self.lag))

    def _require_one_publisher(self, table: SourceTable) -> None:
        """Refuse bars of several venues under one name: each would hide the others."""
        names = [self.entity.column, "publisher_id"]
        has_publisher = "publisher_id" in table.columns.column_names
        if not has_publisher or "{publisher_id}" in self.stream:
            return
        pairs = table.columns.select(names).group_by(names).aggregate([]).to_pandas()
        twice = pairs[pairs.duplicated(names[0], keep=False)].sort_values(names)
        if len(twice):
            entity = twice[names[0]].iloc[0]
            found = twice.loc[twice[names[0]] == entity, "publisher_id"]
            raise ValueError(
                f"bars of {entity!r} must be of one publisher; got publisher_id "
                f"{', '.join(found)} in {table.name}. Choose one with `where`, or write "
                "{publisher_id} into `stream`."
            )

    def _rows(
        self,
        record: DatabentoRecord,
        kinds: Mapping[str, str],
        stamp: InstantStamp | BarOpen,
        known: AvailableColumn | AfterLag,
        *,
        sequence: FileOrder | None = None,
    ) -> RowDeclaration:
        return RowDeclaration(
            stream=self.stream.replace("{schema}", record.schema),
            entity=self.entity,
            event_time=stamp,
            available_at=known,
            sequence=sequence,
            values={
                column: ValueColumn(
                    column=column, kind="text" if kind == "text" else "number"
                )
                for column, kind in kinds.items()
            },
            assumptions=self.assumptions,
            change=self.change,
        )
