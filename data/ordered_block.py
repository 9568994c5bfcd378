"""One stretch of ordered events as finished columns: revisions, digests, timelines.

The events come in the order (entity, stream, event_time, available_at, sequence), and
leave in that of `EventArrays`: (entity, available_at, stream, event_time, sequence).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Bool, Int64, UInt64

from .arrays import NO_SEQUENCE
from .event_schema import EventSchema
from .fingerprints import event_digests, float_words, prefix_sums, text_words

_MISSING_TEXT = "\1"  # as in the digests of `arrays`


@dataclass(frozen=True, eq=False)
class Block:
    """Finished columns of whole entities.

    Attributes
    ----------
    columns : Mapping[str, ndarray]
        As in `EventArrays`, without sums.
    sums : ndarray of shape (n + 1, 2)
        Running sums of the digests, from zero.
    num_duplicates : int
        Rows that were left out.
    """

    columns: Mapping[str, np.ndarray]
    sums: UInt64[np.ndarray, "m 2"]
    num_duplicates: int


def ordered_block(batches: Sequence[pa.RecordBatch], schema: EventSchema) -> Block:
    """Return the columns of whole entities.

    Raises
    ------
    ValueError
        If an event is after its availability, or one key has two values.
    """
    table = pa.Table.from_batches(batches).combine_chunks()
    given, rows = table.num_rows, _Rows(table)
    _require_columns(rows, schema)
    _require_known_after(rows, schema)
    again = _repeated(rows, schema)
    if again.any():
        table = table.filter(pa.array(~again))
        rows = _Rows(table)
    revision = _revisions(rows)
    digests = _digests(rows, revision, schema)
    order = _by_availability(rows)
    columns = {
        "entity": rows.entity[order],
        "stream": rows.stream[order],
        "event_time": rows.event_time[order],
        "available_at": rows.available_at[order],
        "sequence": rows.sequence[order],
        "revision": revision[order],
        "values": rows.numbers(schema.num_numbers)[order],
    }
    return Block(
        columns,
        prefix_sums(digests[order]),
        num_duplicates=given - table.num_rows,
    )


class _Rows:
    """The columns of a stretch as arrays."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.entity, self.stream = (self._codes(name) for name in ("entity", "stream"))
        self.event_time = table["event_time"].to_numpy()
        self.available_at = table["available_at"].to_numpy()
        self.sequence = table["sequence"].fill_null(NO_SEQUENCE).to_numpy()
        self.part = table["part"].to_numpy()

    def __len__(self) -> int:
        return len(self.entity)

    def _codes(self, name: str) -> Int64[np.ndarray, " n"]:
        chunks = self.table[name].chunks
        codes = [chunk.indices.to_numpy() for chunk in chunks]
        joined = np.concatenate(codes) if codes else np.empty(0)
        return joined.astype(np.int64)

    def number(self, place: int) -> np.ndarray:
        values: np.ndarray = self.table[f"n{place}"].fill_null(np.nan).to_numpy()
        return values

    def numbers(self, width: int) -> np.ndarray:
        columns = [self.number(place) for place in range(width)]
        return np.column_stack(columns) if columns else np.empty((len(self), 0))

    def neighbours(self, *names: str) -> Bool[np.ndarray, " n"]:
        """Return whether a row has the same columns as the one before it."""
        same = np.zeros(len(self), dtype=bool)
        if len(self):
            same[1:] = True
        for name in names:
            column = getattr(self, name)
            same[1:] &= column[1:] == column[:-1]
        return same


def _require_columns(rows: _Rows, schema: EventSchema) -> None:
    """Refuse a stream whose rows come from files of different columns."""
    fits = schema.fits[rows.stream, rows.part]
    if not fits.all():
        row = int((~fits).argmax())
        part = schema.files[rows.part[row]]
        raise ValueError(
            f"stream {schema.streams[rows.stream[row]]!r} must keep its value columns; "
            f"got {', '.join(part.values)} in {part.paths[0]}. "
            "Give the other values a stream of their own."
        )


def _require_known_after(rows: _Rows, schema: EventSchema) -> None:
    scheduled = np.array([part.scheduled for part in schema.files])
    early = np.flatnonzero(rows.event_time > rows.available_at)
    early = early[~scheduled[rows.part[early]]]
    if len(early):
        event_time, available_at = (
            pd.Timestamp(int(clock[early[0]]), tz="UTC")
            for clock in (rows.event_time, rows.available_at)
        )
        raise ValueError(
            f"event_time must not be after available_at; got {event_time} > "
            f"{available_at} for {schema.entities[rows.entity[early[0]]]} in stream "
            f"{schema.streams[rows.stream[early[0]]]!r} ({len(early)} such rows at "
            "least). Correct the clock, or declare the stream `scheduled`."
        )


def _repeated(rows: _Rows, schema: EventSchema) -> Bool[np.ndarray, " n"]:
    """Return which rows repeat the one before them in everything.

    Raises
    ------
    ValueError
        If a row has the key of the one before it, and other values.
    """
    same = rows.neighbours("entity", "stream", "event_time", "available_at", "sequence")
    places = np.flatnonzero(same)
    for name in rows.table.column_names if len(places) else ():
        if name[0] not in "nt" or not name[1:].isdigit():
            continue
        column = rows.table[name]
        pair = [column.take(pa.array(at)).to_pandas() for at in (places - 1, places)]
        equal = (pair[0] == pair[1]) | (pair[0].isna() & pair[1].isna())
        if not equal.all():
            row = int(places[int((~equal).to_numpy().argmax())])
            raise ValueError(
                "one event must have one set of values; got two for (entity "
                f"{schema.entities[rows.entity[row]]}, event_time "
                f"{pd.Timestamp(int(rows.event_time[row]), tz='UTC')}, available_at "
                f"{pd.Timestamp(int(rows.available_at[row]), tz='UTC')}) in stream "
                f"{schema.streams[rows.stream[row]]!r}. "
                "Declare a `sequence` that says which came later."
            )
    return same


def _revisions(rows: _Rows) -> Int64[np.ndarray, " n"]:
    place = np.arange(len(rows))
    begins = ~rows.neighbours("entity", "stream", "event_time")
    revision: np.ndarray = place - np.maximum.accumulate(np.where(begins, place, 0))
    return revision


def _digests(
    rows: _Rows, revision: Int64[np.ndarray, " n"], schema: EventSchema
) -> UInt64[np.ndarray, "n 2"]:
    """Return the digests of `arrays`: equal for equal events, whatever the way here."""
    clocks = (rows.event_time, rows.available_at, rows.sequence, revision)
    columns = [
        schema.entity_words[rows.entity],
        schema.stream_words[rows.stream],
        *(clock.view(np.uint64) for clock in clocks),
    ]
    numbers = [float_words(rows.number(i)) for i in range(schema.num_numbers)]
    texts = [_text_words(rows, i) for i in range(schema.num_texts)]
    counts = np.array(
        [[len(schema.numbers[p]), len(schema.texts[p])] for p in schema.parts]
    )
    shapes = np.unique(counts, axis=0)
    digests = np.empty((len(rows), 2), dtype=np.uint64)
    for num_numbers, num_texts in shapes:
        words = [*columns, *numbers[:num_numbers], *texts[:num_texts]]
        if len(shapes) == 1:
            return event_digests(words)
        mine = (counts[rows.stream] == (num_numbers, num_texts)).all(axis=1)
        digests[mine] = event_digests([column[mine] for column in words])
    return digests


def _text_words(rows: _Rows, place: int) -> UInt64[np.ndarray, " n"]:
    column = rows.table[f"t{place}"].fill_null(_MISSING_TEXT).combine_chunks()
    encoded = column.dictionary_encode()
    words = text_words(encoded.dictionary.to_pylist())
    of_rows: np.ndarray = words[encoded.indices.to_numpy()]
    return of_rows


def _by_availability(rows: _Rows) -> Int64[np.ndarray, " n"]:
    """Return the order of timelines; what is available at once keeps its order."""
    order = np.empty(len(rows), dtype=np.int64)
    starts = np.flatnonzero(~rows.neighbours("entity"))
    stops = np.append(starts, len(rows))[1:]
    for start, stop in zip(starts, stops, strict=True):
        mine = np.argsort(rows.available_at[start:stop], kind="stable")
        np.add(mine, start, out=order[start:stop])
    return order
