"""What a log brings that a store does not hold yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from infoset.data.encoded_streams import encodings
from infoset.data.events import EventLog

from .ledger import latest_schemas
from .manifests import Manifest, Part
from .overlap import already_stored
from .parts import MAX_NAME_BYTES, by_month, stream_folder
from .receipts import Origin, Receipt
from .schemas import StreamSchema, conformed, grown, schema_of

ReadParts = Callable[[Sequence[Part]], list[pa.Table]]


@dataclass(frozen=True, eq=False)
class Delivery:
    """A log against what is stored.

    Attributes
    ----------
    log : EventLog
    schemas : dict
        Stream to its schema once this is stored.
    rows : dict
        Stream to its new rows.
    grows : bool
        Whether a stream or a column is new.
    """

    log: EventLog
    schemas: dict[str, StreamSchema]
    rows: dict[str, pa.Table]
    grows: bool

    @property
    def changes_anything(self) -> bool:
        """Whether there is a new row, column or stream."""
        return self.grows or any(table.num_rows for table in self.rows.values())

    def receipt(self, ingest: int, origin: Origin, *, is_new: bool = True) -> Receipt:
        """Return the account of storing this under a number."""
        stored = {stream: table.num_rows for stream, table in self.rows.items()}
        quarantined = self.log.quarantine.groupby("stream").size()
        return Receipt(
            ingest=ingest,
            origin=origin,
            stored=stored,
            already_stored={
                stream: self.log.tables[stream].num_rows - count
                for stream, count in stored.items()
            },
            quarantined={str(name): int(n) for name, n in quarantined.items()},
            num_duplicates=self.log.num_duplicates,
            notices=self.log.notices,
            is_new=is_new,
        )


def delivery(log: EventLog, before: Sequence[Manifest], read: ReadParts) -> Delivery:
    """Hold a log against the ingests before it.

    Parameters
    ----------
    log : EventLog
    before : sequence of Manifest
    read : callable
        Returns the rows of stored parts. Only those are asked for that overlap with
        the log in stream, month and span of availability.

    Raises
    ------
    ValueError, TypeError
        See `Store.append`.
    """
    known = latest_schemas(before)
    schemas: dict[str, StreamSchema] = {}
    for stream, table in log.tables.items():
        now = schema_of(stream, table, scheduled=stream in log.scheduled)
        old = known.get(stream)
        schemas[stream] = now if old is None else grown(stream, old, now)
    rows = {
        stream: _new_rows(stream, table, schemas[stream], before, read)
        for stream, table in log.tables.items()
    }
    grows = any(schema != known.get(stream) for stream, schema in schemas.items())
    return Delivery(log, schemas, rows, grows)


def require_storable(log: EventLog) -> None:
    """Refuse a log that no store can hold.

    Raises
    ------
    ValueError
        If it declares no stream, has derived changes or an encoder's numbers, or the
        name of a stream is too long for a folder.
    TypeError
        If a value is neither a number nor a text nor a date.
    """
    if log.levels:
        raise ValueError(
            "events must be stored before changes are derived; got a log with a change "
            f"in {', '.join(sorted(stream for stream, _ in log.levels))}. Store the log "
            "as its sources gave it: a change is derived when an experiment reads it."
        )
    if not log.tables:
        raise ValueError("a log must declare a stream; got none. Nothing was stored.")
    if made := encodings(log):
        # Their columns alone would not say until when the encoder was trained.
        raise ValueError(
            "events must be stored before their texts are encoded; got numbers of an "
            f"encoder in {', '.join(made)}. Store the log with its text: it is encoded "
            "where an experiment reads it (`encoders`)."
        )
    for stream, table in log.tables.items():
        _require_short(stream)
        schema_of(stream, table, scheduled=stream in log.scheduled)


def _require_short(stream: str) -> None:
    size = len(stream_folder(stream))
    if size > MAX_NAME_BYTES:
        raise ValueError(
            f"the folder of a stream must have a name of {MAX_NAME_BYTES} bytes at most "
            f"(all but letters, digits and _.-~ take 3 a byte); got {size} for stream "
            f"{stream[:40] + '...'!r}. Choose a shorter name."
        )


def _new_rows(
    stream: str,
    table: pa.Table,
    schema: StreamSchema,
    before: Sequence[Manifest],
    read: ReadParts,
) -> pa.Table:
    delivered = conformed(table, schema)
    spans = {of.month: (of.first, of.last) for of in by_month(delivered)}
    near = [
        (manifest.receipt.ingest, part)
        for manifest in before
        for part in manifest.parts
        if part.stream == stream and _overlaps(part, spans.get(part.month))
    ]
    if not near:
        return delivered
    found = read([part for _, part in near])
    stored = pa.concat_tables([conformed(rows, schema) for rows in found])
    ingests = np.repeat([n for n, _ in near], [part.num_rows for _, part in near])
    known = already_stored(stream, delivered, stored, ingests)
    return delivered.filter(pa.array(~known)) if known.any() else delivered


def _overlaps(part: Part, span: tuple[int, int] | None) -> bool:
    return span is not None and part.first <= span[1] and span[0] <= part.last
