"""Parquet files of events, in any order, as one relation for DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

_EXACT = 2**53  # the whole numbers up to here are float64 values


@dataclass(frozen=True)
class EventFiles:
    """Files with the columns of one log: entity, event_time, available_at and values.

    Attributes
    ----------
    paths : tuple of Path
        Parquet files of one layout. Clocks are timestamps with a zone; `sequence`, if
        there, holds integers.
    values : tuple of str
        Value columns, numeric or text.
    stream : str, optional
        Whose events they are; None = the column `stream` says so.
    scheduled : bool
        Whether an event may be known before it happens.
    """

    paths: tuple[Path, ...]
    values: tuple[str, ...]
    stream: str | None = None
    scheduled: bool = False

    def numbers(self) -> tuple[str, ...]:
        """Return the numeric value columns, in order."""
        schema = self.schema()
        return tuple(n for n in self.values if not _is_text(schema.field(n).type))

    def texts(self) -> tuple[str, ...]:
        """Return the text value columns, in order."""
        numbers = self.numbers()
        return tuple(name for name in self.values if name not in numbers)

    def schema(self) -> pa.Schema:
        """Return the columns of the first file.

        Raises
        ------
        ValueError, TypeError
            If a column is missing or of another kind.
        """
        name, schema = self.paths[0], pq.read_schema(self.paths[0])
        needed = ["entity", "event_time", "available_at", *self.values]
        for column in [*needed, *([] if self.stream is not None else ["stream"])]:
            if column not in schema.names:
                raise ValueError(
                    f"column {column!r} must be in {name}; got "
                    f"{', '.join(schema.names)}. Rename or declare the column."
                )
        for column in ("event_time", "available_at"):
            kind = schema.field(column).type
            if not pa.types.is_timestamp(kind) or kind.tz is None:
                raise TypeError(
                    f"{column} must hold instants with a zone; got {kind} in {name}. "
                    "Write UTC timestamps."
                )
        if "sequence" in schema.names:
            kind = schema.field("sequence").type
            if not pa.types.is_integer(kind):
                raise TypeError(
                    f"sequence must hold integers; got {kind} in {name}. Floats round "
                    "ids above 2**53."
                )
        return schema


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def ordered_events(
    connection: duckdb.DuckDBPyConnection, files: Sequence[EventFiles]
) -> tuple[list[str], list[str], duckdb.DuckDBPyRelation]:
    """Return entities, streams and all events, by (entity, stream, event_time, ...).

    The order is (entity, stream, event_time, available_at, sequence), no sequence
    first. Columns: `entity` and `stream` as dictionary codes, both clocks as
    nanoseconds, `sequence`, `part` (place in `files`), and the values as `n0`, `n1` ...
    (numbers) and `t0`, `t1` ... (texts).

    Raises
    ------
    ValueError, TypeError
        If a file is not what it should be.
    """
    num_numbers = max(len(part.numbers()) for part in files)
    num_texts = max(len(part.texts()) for part in files)
    parts = [
        _select(connection, part, place, num_numbers, num_texts)
        for place, part in enumerate(files)
    ]
    connection.execute(f"CREATE VIEW events AS {' UNION ALL '.join(parts)}")
    entities = _distinct(connection, "entity")
    streams = _distinct(connection, "stream")
    # As positions in a list, texts are sorted like numbers.
    for name in ("entity", "stream"):
        connection.execute(
            f"CREATE TYPE {name}_code AS ENUM (SELECT DISTINCT {name} FROM events "
            f"WHERE {name} IS NOT NULL ORDER BY {name})"
        )
    ordered = connection.sql(
        "SELECT * REPLACE (entity::entity_code AS entity, stream::stream_code AS "
        "stream) FROM events ORDER BY entity, stream, event_time, available_at, "
        "sequence NULLS FIRST"
    )
    return entities, streams, ordered


def _distinct(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    found = connection.execute(
        f"SELECT DISTINCT {column} FROM events WHERE {column} IS NOT NULL ORDER BY 1"
    )
    return [name for (name,) in found.fetchall()]


def _select(
    connection: duckdb.DuckDBPyConnection,
    part: EventFiles,
    place: int,
    num_numbers: int,
    num_texts: int,
) -> str:
    schema, numbers, texts = part.schema(), part.numbers(), part.texts()
    _require_exact(connection, part, schema)
    sequence = "sequence::BIGINT" if "sequence" in schema.names else "NULL::BIGINT"
    columns = [
        "entity::VARCHAR AS entity",
        f"{'stream::VARCHAR' if part.stream is None else _quoted(part.stream)} AS stream",
        "epoch_ns(event_time) AS event_time",
        "epoch_ns(available_at) AS available_at",
        f"{sequence} AS sequence",
        f"{place}::INTEGER AS part",
        *(
            f"{_name(numbers[i]) if i < len(numbers) else 'NULL'}::DOUBLE AS n{i}"
            for i in range(num_numbers)
        ),
        *(
            f"{_name(texts[i]) if i < len(texts) else 'NULL'}::VARCHAR AS t{i}"
            for i in range(num_texts)
        ),
    ]
    return f"SELECT {', '.join(columns)} FROM {_scan(part)}"


def _require_exact(
    connection: duckdb.DuckDBPyConnection, part: EventFiles, schema: pa.Schema
) -> None:
    for column in part.numbers():
        if pa.types.is_integer(schema.field(column).type):
            [largest] = connection.execute(
                f"SELECT max(abs({_name(column)}::HUGEINT)) FROM {_scan(part)}"
            ).fetchone() or [None]
            if largest is not None and largest > _EXACT:
                raise ValueError(
                    f"{column} must fit a float64; got {largest} in {part.paths[0]}. "
                    "Keep ids as text."
                )


def _scan(part: EventFiles) -> str:
    paths = ", ".join(_quoted(str(path)) for path in part.paths)
    return f"read_parquet([{paths}])"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
