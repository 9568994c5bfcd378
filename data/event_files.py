"""Parquet files of events, in any order, as one relation for DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
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

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The numeric value columns, in order."""
        return tuple(n for n in self.values if not _is_text(self.schema.field(n).type))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text value columns, in order."""
        return tuple(name for name in self.values if name not in self.numbers)

    @cached_property
    def num_rows(self) -> int:
        """How many rows the files hold."""
        return sum(pq.read_metadata(path).num_rows for path in self.paths)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are used, the same in every file.

        Raises
        ------
        ValueError, TypeError
            If a column is missing, of another kind, or not the same in every file.
        """
        first = self._schema_of(self.paths[0])
        for path in self.paths[1:]:
            other = self._schema_of(path)
            if not other.equals(first):
                raise ValueError(
                    f"files must have the same columns; got {_listed(other)} in {path} "
                    f"after {_listed(first)} in {self.paths[0]}. Give the others "
                    "`EventFiles` of their own, or write them alike."
                )
        return first

    def _schema_of(self, path: Path) -> pa.Schema:
        found = pq.read_schema(path)
        used = ["entity", "event_time", "available_at", *self.values]
        used += [] if self.stream is not None else ["stream"]
        for column in used:
            if column not in found.names:
                raise ValueError(
                    f"column {column!r} must be in {path}; got "
                    f"{', '.join(found.names)}. Rename or declare the column."
                )
        used += ["sequence"] if "sequence" in found.names else []
        schema = pa.schema([(name, found.field(name).type) for name in used])
        for field in schema:
            _require_kind(field, path, self.values)
        return schema


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def _require_kind(field: pa.Field, path: Path, values: tuple[str, ...]) -> None:
    """Refuse a column that DuckDB would cast to what it should be."""
    kind, name = field.type, field.name
    if name in ("event_time", "available_at"):
        if not pa.types.is_timestamp(kind) or kind.tz is None:
            raise TypeError(
                f"{name} must hold instants with a zone; got {kind} in {path}. "
                "Write UTC timestamps."
            )
    elif name == "sequence":
        if not pa.types.is_integer(kind) or kind == pa.uint64():
            raise TypeError(
                f"sequence must hold integers of 64 bits with a sign; got {kind} in "
                f"{path}. Floats round ids above 2**53."
            )
    elif name in values:
        if not (_is_text(kind) or _is_number(kind)):
            raise TypeError(
                f"{name} must hold numbers or text; got {kind} in {path}. "
                "Convert the column before."
            )
    elif not _is_text(kind):
        raise TypeError(
            f"{name} must be text; got {kind} in {path}. "
            "Ids that look like numbers lose their zeros: write them as text."
        )


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(test(kind) for test in tests)


def _is_number(kind: pa.DataType) -> bool:
    tests = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def ordered_events(
    connection: duckdb.DuckDBPyConnection, files: Sequence[EventFiles]
) -> tuple[list[str], list[str], duckdb.DuckDBPyRelation]:
    """Return entities, streams and all events, by (entity, stream, event_time, ...).

    The order is (entity, stream, event_time, available_at, sequence), no sequence
    first. Rows without a whole key, with an infinite number or without any value are
    left out. Columns: `entity` and `stream` as dictionary codes, both clocks as
    nanoseconds, `sequence`, `part` (place in `files`), and the values as `n0`, `n1` ...
    (numbers) and `t0`, `t1` ... (texts).

    Raises
    ------
    ValueError, TypeError
        If a file is not what it should be.
    """
    num_numbers = max(len(part.numbers) for part in files)
    num_texts = max(len(part.texts) for part in files)
    for part in files:
        _require_exact(connection, part)
    parts = [
        _select(part, place, num_numbers, num_texts) for place, part in enumerate(files)
    ]
    connection.execute(
        f"CREATE VIEW events AS SELECT * FROM ({' UNION ALL '.join(parts)}) "
        f"WHERE {_usable(num_numbers, num_texts)}"
    )
    entities = _distinct(connection, "entity")
    declared = {part.stream for part in files if part.stream is not None}
    streams = sorted({*_distinct(connection, "stream"), *declared})
    # As positions in a list, texts are sorted like numbers.
    for name, texts in (("entity", entities), ("stream", streams)):
        listed = ", ".join(map(quoted, texts)) or "''"
        connection.execute(f"CREATE TYPE {name}_code AS ENUM ({listed})")
    ordered = connection.sql(
        "SELECT * REPLACE (entity::entity_code AS entity, stream::stream_code AS "
        "stream) FROM events ORDER BY entity, stream, event_time, available_at, "
        "sequence NULLS FIRST"
    )
    return entities, streams, ordered


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _distinct(connection: duckdb.DuckDBPyConnection, column: str) -> list[str]:
    found = connection.execute(
        f"SELECT DISTINCT {column} FROM events WHERE {column} IS NOT NULL ORDER BY 1"
    )
    return [name for (name,) in found.fetchall()]


def _usable(num_numbers: int, num_texts: int) -> str:
    """Return the condition of a whole key, finite numbers and some value."""
    keys = ("entity", "stream", "event_time", "available_at")
    infinite = [f"coalesce(isinf(n{i}), false)" for i in range(num_numbers)]
    some = [f"coalesce(NOT isnan(n{i}), false)" for i in range(num_numbers)]
    some += [f"t{i} IS NOT NULL" for i in range(num_texts)]
    return " AND ".join(
        [
            *(f"{key} IS NOT NULL" for key in keys),
            *(f"NOT {one}" for one in infinite),
            f"({' OR '.join(some)})",
        ]
    )


def _select(part: EventFiles, place: int, num_numbers: int, num_texts: int) -> str:
    numbers, texts = part.numbers, part.texts
    has_sequence = "sequence" in part.schema.names
    columns = [
        "entity::VARCHAR AS entity",
        f"{'stream::VARCHAR' if part.stream is None else quoted(part.stream)} AS stream",
        "epoch_ns(event_time) AS event_time",
        "epoch_ns(available_at) AS available_at",
        f"{'sequence' if has_sequence else 'NULL'}::BIGINT AS sequence",
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


def _require_exact(connection: duckdb.DuckDBPyConnection, part: EventFiles) -> None:
    for column in part.numbers:
        if not pa.types.is_floating(part.schema.field(column).type):
            cell = _name(column)
            found = connection.execute(
                f"SELECT {cell}::VARCHAR FROM {_scan(part)} WHERE abs({cell}) > {_EXACT}"
                " LIMIT 1"
            ).fetchone()
            if found is not None:
                raise ValueError(
                    f"{column} must fit a float64; got {found[0]} in one of "
                    f"{', '.join(map(str, part.paths))}. Keep ids as text."
                )


def _scan(part: EventFiles) -> str:
    # Folders named `x=1` would replace a column, and `[1]` in a name is a pattern.
    paths = ", ".join(
        quoted(re.sub(r"([*?\[])", r"[\1]", str(path))) for path in part.paths
    )
    return f"read_parquet([{paths}], hive_partitioning = false)"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'
