"""Timelines on disk: from event files in any order to arrays that are mapped, not read.

DuckDB brings the events into the order (entity, stream, event_time, available_at,
sequence), on disk where memory is short. In that order revisions and duplicates are
neighbours. Within an entity, a stable sort by availability then gives its timeline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from .arrays import EventArrays
from .column_files import ColumnWriter, new_columns, read_columns
from .event_files import EventFiles, ordered_events, quoted
from .event_schema import EventSchema, event_schema
from .fingerprints import added
from .ordered_block import Block, ordered_block

_FORMAT = 1
_BATCH = 500_000  # rows
_NO_SUM = np.zeros((1, 2), dtype=np.uint64)


def build_timelines(
    files: Sequence[EventFiles],
    folder: Path,
    *,
    memory_limit: str = "1GB",
    num_threads: int = 2,
) -> EventArrays:
    """Order events, count their revisions, digest them, and write the arrays.

    Parameters
    ----------
    files : sequence of EventFiles
        At least one.
    folder : Path
        Where the arrays go; it appears when they are whole.
    memory_limit : str
        What DuckDB may use, such as ``1GB``; it sorts on disk beyond that. The entity
        with most events must fit in memory besides.
    num_threads : int

    Returns
    -------
    EventArrays
        Mapped from the folder. Levels and changes are not derived.

    Raises
    ------
    ValueError
        If an event is after its availability, one key has two values, or the folder
        exists.
    TypeError
        If a column is of another kind.
    """
    schema = event_schema(files)
    layout = {
        "entity": (np.int32, None),
        "stream": (np.int16, None),
        "event_time": (np.int64, None),
        "available_at": (np.int64, None),
        "sequence": (np.int64, None),
        "revision": (np.int32, None),
        "values": (np.float64, schema.num_numbers),
        "sums": (np.uint64, 2),
    }
    with (
        duckdb.connect(config={"threads": num_threads}) as connection,
        new_columns(folder, layout) as (writer, spill),
    ):
        connection.execute(f"SET memory_limit = {quoted(memory_limit)}")
        connection.execute(f"SET temp_directory = {quoted(str(spill))}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        try:
            _build(connection, files, schema, writer, num_threads)
        except duckdb.Error as error:
            names = ", ".join(str(path) for part in files for path in part.paths)
            raise ValueError(
                f"files must hold events that can be ordered; got {error} in one of "
                f"{names}. Correct the rows, or give more `memory_limit` or disk."
            ) from error
    return open_timelines(folder)


def _build(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[EventFiles],
    schema: EventSchema,
    writer: ColumnWriter,
    num_threads: int,
) -> None:
    entities, streams, ordered = ordered_events(connection, files)
    schema = replace(schema, entities=tuple(entities), streams=tuple(streams))
    batches = ordered.to_arrow_reader(_BATCH)
    num_events, num_duplicates = _write(
        writer, _whole_entities(batches), schema, num_threads
    )
    num_rows = sum(part.num_rows for part in files)
    writer.close(
        {
            "format": _FORMAT,
            "entities": entities,
            "streams": streams,
            "channels": schema.channels,
            "num_duplicates": num_duplicates,
            "num_unusable": num_rows - num_events - num_duplicates,
        }
    )


def open_timelines(folder: Path) -> EventArrays:
    """Return the arrays of a folder that `build_timelines` wrote.

    Raises
    ------
    ValueError
        If it is not such a folder.
    """
    arrays, about = read_columns(folder)
    if about.get("format") != _FORMAT:
        raise ValueError(
            f"{folder} must be of format {_FORMAT}; got {about.get('format')!r}. "
            "Build the timelines again."
        )
    return EventArrays(
        entities=tuple(about["entities"]),
        streams=tuple(about["streams"]),
        channels=tuple((stream, column) for stream, column in about["channels"]),
        levels=frozenset(),
        **arrays,
    )


def _whole_entities(reader: pa.RecordBatchReader) -> Iterator[list[pa.RecordBatch]]:
    """Yield pieces of batches, never an entity in two of them."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        codes = batch.column("entity").indices.cast(pa.int64()).fill_null(-1).to_numpy()
        changes = np.flatnonzero(codes[1:] != codes[:-1])
        cut = int(changes[-1]) + 1 if len(changes) else 0
        if cut:
            yield [*held, batch.slice(0, cut)]
            held = []
        held.append(batch.slice(cut))
    if held:
        yield held


def _write(
    writer: ColumnWriter,
    pieces: Iterator[list[pa.RecordBatch]],
    schema: EventSchema,
    num_threads: int,
) -> tuple[int, int]:
    """Write all blocks; return how many events and how many duplicates there were."""
    total, num_events, num_duplicates = _NO_SUM, 0, 0
    writer.append({"sums": total})
    with ThreadPoolExecutor(num_threads) as pool:
        for block in _in_order(pool, pieces, schema, num_threads):
            sums = added(block.sums[1:], total)
            writer.append({**block.columns, "sums": sums})
            total = sums[-1:] if len(sums) else total
            num_events += len(sums)
            num_duplicates += block.num_duplicates
    return num_events, num_duplicates


def _in_order(
    pool: ThreadPoolExecutor,
    pieces: Iterator[list[pa.RecordBatch]],
    schema: EventSchema,
    num_threads: int,
) -> Iterator[Block]:
    """Yield the blocks of pieces in order, a few of them made at the same time."""
    waiting: deque[Future[Block]] = deque()
    for piece in pieces:
        waiting.append(pool.submit(ordered_block, piece, schema))
        if len(waiting) > num_threads:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
