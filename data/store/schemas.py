"""The value columns of a stored stream, and how they may grow.

A value is a number (float64), a text or a date. Dates and texts come back as they were
given, so that an end of validity such as 9999-12-31 survives in them: no instant in
nanoseconds could hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from infoset.data.revisions import KEY_COLUMNS

_UTC_NS = pa.timestamp("ns", tz="UTC")
_KINDS = {"number": pa.float64(), "text": pa.string(), "date": pa.date32()}
# The revision is not stored: a later ingest may bring an earlier print.
STORED_KEY = pa.schema(
    [
        pa.field("entity", pa.string(), nullable=False),
        pa.field("event_time", _UTC_NS, nullable=False),
        pa.field("available_at", _UTC_NS, nullable=False),
        pa.field("sequence", pa.int64()),
    ]
)
KEY_NAMES = tuple(STORED_KEY.names)


@dataclass(frozen=True)
class StreamSchema:
    """What the rows of a stream hold.

    Attributes
    ----------
    kinds : Mapping[str, str]
        Value column to ``number``, ``text`` or ``date``, in the stream's order.
    scheduled : bool
        Whether its events may be known before they happen.
    """

    kinds: Mapping[str, str]
    scheduled: bool

    @property
    def arrow(self) -> pa.Schema:
        """The columns of a stored row."""
        values = [pa.field(name, _KINDS[kind]) for name, kind in self.kinds.items()]
        return pa.schema([*STORED_KEY, *values])

    def to_json(self) -> dict[str, Any]:
        """Return plain values; the columns keep their order."""
        columns = [[name, kind] for name, kind in self.kinds.items()]
        return {"columns": columns, "scheduled": self.scheduled}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> StreamSchema:
        """Return what `to_json` wrote."""
        return cls(dict(content["columns"]), content["scheduled"])


def schema_of(stream: str, table: pa.Table, *, scheduled: bool) -> StreamSchema:
    """Return the schema of a log's table.

    Raises
    ------
    TypeError
        If a value column is of a kind that a store does not keep.
    """
    kinds: dict[str, str] = {}
    for field in table.schema:
        if field.name in KEY_COLUMNS:
            continue
        kind = _kind(field.type)
        if kind is None:
            raise TypeError(
                f"a stored value must be a number (double), text or a date; got "
                f"{field.type} in column {field.name!r} of stream {stream!r}. "
                "Convert the column before."
            )
        kinds[field.name] = kind
    return StreamSchema(kinds, scheduled)


def grown(stream: str, before: StreamSchema, now: StreamSchema) -> StreamSchema:
    """Return the schema after rows of `now`; it may gain columns and nothing else.

    Stored events keep a gained column empty. Delivered again with a value there, they
    are refused as a clash (`overlap.already_stored`): a column that is wanted for events
    of the past goes into a stream of its own.

    Raises
    ------
    ValueError
        If a column was dropped or changed its kind, or `scheduled` changed.
    """
    dropped = [name for name in before.kinds if name not in now.kinds]
    if dropped:
        raise ValueError(
            f"stream {stream!r} must keep its value columns {_listed(before)}; got "
            f"{_listed(now)}, without {', '.join(map(repr, dropped))}. Give the column "
            "(its cells may be empty), or name another stream."
        )
    changed = [name for name, kind in before.kinds.items() if now.kinds[name] != kind]
    if changed:
        moved = ", ".join(
            f"{name!r} as {now.kinds[name]} after {before.kinds[name]}"
            for name in changed
        )
        raise ValueError(
            f"a column of stream {stream!r} must keep its kind; got {moved}. "
            "Declare the kind as before, or give the value another name."
        )
    if before.scheduled != now.scheduled:
        raise ValueError(
            f"scheduled of stream {stream!r} must stay {before.scheduled}; got "
            f"{now.scheduled}. Declare it as before, or name another stream."
        )
    return StreamSchema({**before.kinds, **now.kinds}, now.scheduled)


def conformed(table: pa.Table, schema: StreamSchema) -> pa.Table:
    """Return a table in a schema: its column order, and null where it has no column."""
    wanted = schema.arrow
    if table.schema.equals(wanted):
        return table
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in wanted
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def _kind(type_: pa.DataType) -> str | None:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_large_string(type_):
        type_ = pa.string()
    return next((kind for kind, arrow in _KINDS.items() if arrow == type_), None)


def _listed(schema: StreamSchema) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in schema.kinds.items())
