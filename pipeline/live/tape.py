"""A Parquet tape: the events of a log, all streams together, in order of availability."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from infoset.data.events import EventLog
from infoset.data.instants import nanoseconds_of

from .feed_instants import text_of
from .vocabulary import Vocabulary

_CLOCKS = ("event_time", "available_at")
_KEYS = ("entity", "stream", *_CLOCKS, "sequence", "revision")
_UTC_NS = pa.timestamp("ns", tz="UTC")
_ROWS = 1024


def write_tape(log: EventLog, path: Path) -> None:
    """Write all events of a log, so that `infoset stream` can feed them again.

    Texts are left out: models read numbers.
    """
    tables = []
    for stream in log.streams:
        table = log.table(stream)
        texts = [f.name for f in table.schema if f.type == pa.string()]
        table = table.drop_columns([name for name in texts if name != "entity"])
        name = pa.array([stream] * table.num_rows, pa.string())
        tables.append(table.replace_schema_metadata().append_column("stream", name))
    tape = pa.concat_tables(tables, promote_options="default")
    order = ["available_at", "stream", "event_time", "sequence", "entity"]
    # Market-wide events (`*`) sort before all letters and digits.
    tape = tape.sort_by([(name, "ascending") for name in order])
    pq.write_table(tape, path)


class Tape:
    """A tape as a feed: each row is read as the line that says the same.

    Raises
    ------
    ValueError
        If it is no Parquet file, lacks a column, or is not in order of availability.
    TypeError
        If a clock is not timezone-aware, or the numbers are none.
    """

    def __init__(self, path: Path, words: Vocabulary) -> None:
        try:
            self._file = pq.ParquetFile(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise ValueError(
                f"a tape must be a Parquet file; got {path} ({error}). Correct --events."
            ) from error
        self._path, self._words = path, words
        self._require_columns()
        self._require_order()
        self._batches = self._file.iter_batches(_ROWS, columns=self._columns())

    def read(self, seconds: float | None) -> list[bytes] | None:  # noqa: ARG002
        """See `Feed`; a tape is never silent."""
        for batch in self._batches:
            if batch.num_rows:
                return list(self._lines(batch))
        return None

    def _lines(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        columns = [_plain(batch.column(name)) for name in batch.schema.names]
        streams = batch.column("stream").to_pylist()
        wanted = {name: self._wanted(name, batch.schema.names) for name in set(streams)}
        for stream, row in zip(streams, zip(*columns, strict=True), strict=True):
            said = {
                name: value
                for name, value, always in zip(
                    batch.schema.names, row, wanted[stream], strict=True
                )
                if always or value is not None
            }
            yield json.dumps(said).encode()

    def _wanted(self, stream: str | None, names: list[str]) -> list[bool]:
        """Return which cells are said also where they are missing."""
        about = self._words.streams.get(stream or "")
        columns = about.columns if about else ()
        return [name in columns for name in names]

    def _columns(self) -> list[str]:
        """Leave out texts, which models do not read."""
        schema = self._file.schema_arrow
        texts = [field.name for field in schema if _is_text(field.type)]
        return [n for n in schema.names if n in _KEYS or n not in texts]

    def _require_columns(self) -> None:
        schema = self._file.schema_arrow
        absent = [name for name in _KEYS[:4] if name not in schema.names]
        if absent:
            raise ValueError(
                f"a tape must have the columns {', '.join(_KEYS[:4])} and values; "
                f"{self._path} has no {', '.join(absent)}. Write it with `write_tape`."
            )
        for name in _CLOCKS:
            kind = schema.field(name).type
            if not pa.types.is_timestamp(kind) or kind.tz is None:
                raise TypeError(
                    f"{name} must be timezone-aware; got {kind} in {self._path}. Write "
                    "the tape with UTC timestamps."
                )
        for field in schema:
            numeric = pa.types.is_integer(field.type) or pa.types.is_floating(
                field.type
            )
            if not (numeric or _is_text(field.type) or field.name in _CLOCKS):
                raise TypeError(
                    f"a value of a tape must be a number; got {field.type} in column "
                    f"{field.name!r} of {self._path}. Leave the column out."
                )

    def _require_order(self) -> None:
        last, row = np.iinfo(np.int64).min, 0
        for batch in self._file.iter_batches(columns=["available_at"]):
            column = pa.chunked_array([batch.column(0)]).cast(_UTC_NS)
            if column.null_count:
                raise ValueError(
                    f"available_at must be there in each row of a tape; got none in "
                    f"{self._path}. Leave such rows out."
                )
            nanos = np.concatenate([[last], nanoseconds_of(column)])
            back = np.flatnonzero(nanos[1:] < nanos[:-1])
            if len(back):
                place = int(back[0])
                raise ValueError(
                    "a tape must be ordered by available_at; got "
                    f"{text_of(int(nanos[place + 1]))} after {text_of(int(nanos[place]))} "
                    f"in row {row + place} of {self._path}. Sort it, or write it with "
                    "`write_tape`."
                )
            last, row = int(nanos[-1]), row + len(nanos) - 1


def _plain(column: pa.Array) -> list[object]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(_UTC_NS).cast(pa.int64())
    elif pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    cells: list[object] = column.to_pylist()
    return cells


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
