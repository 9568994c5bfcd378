"""The event log: what was known, and when, kept per stream in Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .instants import nanoseconds
from .revisions import KEY_COLUMNS, ordered_with_revisions
from .validation import QUARANTINE_COLUMNS, checked_frame, utc_instants

Boundary = Literal["inclusive", "strict"]
MARKET_WIDE = "*"
# In a table's metadata: an encoder made its numbers (see `encoded_streams`).
ENCODING_MARK = b"infoset.encoding"
_UTC_NS = pa.timestamp("ns", tz="UTC")
_KEY_SCHEMA = pa.schema(
    [
        pa.field("entity", pa.string(), nullable=False),
        pa.field("event_time", _UTC_NS, nullable=False),
        pa.field("available_at", _UTC_NS, nullable=False),
        pa.field("sequence", pa.int64()),
        pa.field("revision", pa.int32(), nullable=False),
    ]
)


def _no_quarantine() -> pd.DataFrame:
    return pd.DataFrame({name: [] for name in QUARANTINE_COLUMNS})


@dataclass(frozen=True, eq=False)
class EventLog:
    """Dated events of any number of streams; append-only, and immutable as a value.

    Attributes
    ----------
    tables : Mapping[str, pyarrow.Table]
        Stream name to its events, ordered by (entity, available_at, event_time,
        sequence). A declared stream stays here when it has no event.
    quarantine : DataFrame
        Rows that are never used: stream, row (position in the given frame), column,
        reason.
    num_duplicates : int
        Exact duplicates that were dropped.
    scheduled : frozenset of str
        Streams whose events may be known before they happen.
    levels : frozenset of (stream, column)
        Values that wander and have a `change` beside them, which is what forecasters
        read instead.
    notices : tuple of str
        What a reader noticed and people should know: nothing was changed for it.
    """

    tables: Mapping[str, pa.Table]
    quarantine: pd.DataFrame = field(default_factory=_no_quarantine)
    num_duplicates: int = 0
    scheduled: frozenset[str] = frozenset()
    levels: frozenset[tuple[str, str]] = frozenset()
    notices: tuple[str, ...] = ()

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        stream: str,
        values: Sequence[str],
        zone: str | None = None,
        scheduled: bool = False,
    ) -> EventLog:
        """Validate the events of one stream.

        Parameters
        ----------
        frame : DataFrame
            Columns `entity` (text, `*` = market-wide), `event_time`, `available_at`
            (datetimes), optionally `sequence` (integer), and the value columns.
        stream : str
            Name of the stream, e.g. ``macro/CPIAUCSL``.
        values : sequence of str
            Value columns, numeric or text.
        zone : str, optional
            IANA zone of naive datetimes. Without it a naive column is refused.
        scheduled : bool
            Whether an event may be known before it happens (calendars, guidance).

        Returns
        -------
        EventLog

        Raises
        ------
        ValueError
            For a missing column, a naive clock without a zone, an event after its
            availability, or one key with two different values.
        TypeError
            For a column of the wrong kind.
        """
        checked, quarantine = checked_frame(
            frame, stream=stream, values=tuple(values), zone=zone, scheduled=scheduled
        )
        ordered, num_duplicates = ordered_with_revisions(checked, stream=stream)
        return cls(
            tables={stream: _to_table(ordered, tuple(values))},
            quarantine=quarantine,
            num_duplicates=num_duplicates,
            scheduled=frozenset([stream] if scheduled else []),
        )

    def append(self, other: EventLog) -> EventLog:
        """Return a log with the events of both; revisions are counted anew.

        Raises
        ------
        ValueError
            If a stream has other value columns in `other`, one key has two values, a
            change was derived already, or a stream of both has an encoder's numbers.
        """
        if self.levels or other.levels:
            raise ValueError(
                "events must be appended before changes are derived; got a log with a "
                f"change in {', '.join(sorted(s for s, _ in self.levels | other.levels))}"
                ". Append to the log as it was, then call `with_change`."
            )
        tables = dict(self.tables)
        num_duplicates = self.num_duplicates + other.num_duplicates
        for stream, table in other.tables.items():
            if stream in tables:
                tables[stream], dropped = _merged(stream, tables[stream], table)
                num_duplicates += dropped
            else:
                tables[stream] = table
        return EventLog(
            tables=tables,
            quarantine=pd.concat([self.quarantine, other.quarantine], ignore_index=True)
            if len(other.quarantine)
            else self.quarantine,
            num_duplicates=num_duplicates,
            scheduled=self.scheduled | other.scheduled,
            notices=(*self.notices, *other.notices),
        )

    def until(
        self, time: pd.Timestamp, *, boundary: Boundary = "inclusive"
    ) -> EventLog:
        """Return the log as it stood at `time`; the streams stay declared."""
        cut = pa.scalar(utc_instants(pd.Series([time]), name="time").iloc[0], _UTC_NS)
        compare = pc.less_equal if boundary == "inclusive" else pc.less
        tables = {
            stream: table.filter(compare(table["available_at"], cut))
            for stream, table in self.tables.items()
        }
        return replace(self, tables=tables)

    def with_table(self, stream: str, table: pa.Table) -> EventLog:
        """Return the log with the events of one stream replaced (new value columns)."""
        return replace(self, tables={**self.tables, stream: table})

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the declared streams, sorted."""
        return tuple(sorted(self.tables))

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities with at least one event, sorted; without the market-wide `*`."""
        names: set[str] = set()
        for table in self.tables.values():
            names.update(pc.unique(table["entity"]).to_pylist())
        return tuple(sorted(names - {MARKET_WIDE}))

    def values_of(self, stream: str) -> tuple[str, ...]:
        """Names of the value columns of a stream."""
        return tuple(n for n in self.table(stream).column_names if n not in KEY_COLUMNS)

    def table(self, stream: str) -> pa.Table:
        """Return the events of a stream as an Arrow table.

        Raises
        ------
        ValueError
            If the stream is not declared.
        """
        if stream not in self.tables:
            raise ValueError(
                f"stream must be one of {', '.join(self.streams)}; got {stream!r}."
            )
        return self.tables[stream]

    def to_pandas(self, stream: str) -> pd.DataFrame:
        """Return the events of a stream as a frame, in the log's order."""
        return _to_frame(self.table(stream))

    def __len__(self) -> int:
        return sum(table.num_rows for table in self.tables.values())


def _to_table(frame: pd.DataFrame, values: tuple[str, ...]) -> pa.Table:
    columns = {
        "entity": pa.array(frame["entity"].tolist(), pa.string()),
        "event_time": _clock_array(frame["event_time"]),
        "available_at": _clock_array(frame["available_at"]),
        "sequence": pa.array(frame["sequence"].tolist(), pa.int64(), from_pandas=True),
        "revision": pa.array(frame["revision"].to_numpy(), pa.int32()),
    }
    for name in values:
        if pd.api.types.is_numeric_dtype(frame[name]):
            numbers = frame[name].to_numpy(np.float64)
            columns[name] = pa.array(numbers, pa.float64(), from_pandas=True)
        else:
            texts = frame[name].tolist()
            columns[name] = pa.array(texts, pa.string(), from_pandas=True)
    fields = [*_KEY_SCHEMA, *(pa.field(n, columns[n].type) for n in values)]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _described(table: pa.Table) -> str:
    values = [f for f in table.schema if f.name not in KEY_COLUMNS]
    return ", ".join(f"{field.name} ({field.type})" for field in values)


def _to_frame(table: pa.Table) -> pd.DataFrame:
    # Nullable integers from the start: through floats, ids above 2**53 change.
    nullable = {pa.int64(): pd.Int64Dtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=nullable.get)
    return frame


def _clock_array(clock: pd.Series) -> pa.Array:
    return pa.array(nanoseconds(clock), pa.int64()).cast(_UTC_NS)


def _merged(stream: str, first: pa.Table, second: pa.Table) -> tuple[pa.Table, int]:
    if first.schema != second.schema:
        raise ValueError(
            f"stream {stream!r} must keep its value columns; got "
            f"{_described(second)} after {_described(first)}. "
            "Give the other values a stream of their own."
        )
    if any(ENCODING_MARK in (table.schema.metadata or {}) for table in (first, second)):
        raise ValueError(
            "events must be appended before their texts are encoded; got numbers of an "
            f"encoder in stream {stream!r}. Append to the log as it was, then call "
            "`with_embeddings`."
        )
    frame = _to_frame(pa.concat_tables([first, second]))
    ordered, dropped = ordered_with_revisions(frame, stream=stream)
    values = tuple(n for n in first.column_names if n not in KEY_COLUMNS)
    return _to_table(ordered, values), dropped
