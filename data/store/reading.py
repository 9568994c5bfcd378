"""The rows that manifests list, as a log and as a table of what is never used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import pyarrow as pa

from infoset.data.events import EventLog
from infoset.data.validation import utc_instants

from .ledger import latest_schemas
from .manifests import Manifest, Part
from .ordering import with_revisions
from .parts import QUARANTINE_SCHEMA, read_table
from .schemas import conformed
from .side_by_side import side_by_side
from .storage import Storage


def read_parts(storage: Storage, parts: Sequence[Part]) -> list[pa.Table]:
    """Return the rows of some parts, read side by side."""
    return side_by_side(partial(read_table, storage), parts, storage.num_threads)


def stored_log(
    storage: Storage,
    manifests: Sequence[Manifest],
    *,
    streams: Sequence[str] | None,
    until: pd.Timestamp | None,
) -> EventLog:
    """Return the log of some ingests; see `Store.log`."""
    schemas = latest_schemas(manifests)
    chosen = tuple(schemas if streams is None else dict.fromkeys(streams))
    for stream in chosen:
        if stream not in schemas:
            raise ValueError(
                f"stream must be one of {', '.join(sorted(schemas))}; got {stream!r}, "
                f"which is not in {storage.name}."
            )
    parts = _parts(manifests, chosen, until)
    rows = {stream: [schemas[stream].arrow.empty_table()] for stream in chosen}
    for part, table in zip(parts, read_parts(storage, parts), strict=True):
        rows[part.stream].append(conformed(table, schemas[part.stream]))
    quarantine = quarantined(storage, manifests)
    if streams is not None:  # otherwise also of streams that have faulty rows only
        of_chosen = quarantine["stream"].isin(chosen)
        quarantine = quarantine[of_chosen].reset_index(drop=True)
    log = EventLog(
        tables={s: with_revisions(pa.concat_tables(rows[s])) for s in chosen},
        quarantine=quarantine,
        scheduled=frozenset(s for s in chosen if schemas[s].scheduled),
        notices=tuple(dict.fromkeys(n for m in manifests for n in m.receipt.notices)),
    )
    return log if until is None else log.until(until)


def quarantined(storage: Storage, manifests: Sequence[Manifest]) -> pd.DataFrame:
    """Return the rows of some ingests that are never used, by ingest."""
    files = {m.receipt.ingest: m.quarantine for m in manifests if m.quarantine}
    tables = [
        read_table(storage, file).add_column(
            0, "ingest", pa.repeat(pa.scalar(ingest, pa.int64()), file.num_rows)
        )
        for ingest, file in files.items()
    ]
    empty = pa.schema([("ingest", pa.int64()), *QUARANTINE_SCHEMA]).empty_table()
    frame: pd.DataFrame = pa.concat_tables([empty, *tables]).to_pandas()
    return frame


def _parts(
    manifests: Sequence[Manifest], streams: Sequence[str], until: pd.Timestamp | None
) -> list[Part]:
    last = None
    if until is not None:
        last = utc_instants(pd.Series([until]), name="until").iloc[0].value
    return [
        part
        for manifest in manifests
        for part in manifest.parts
        if part.stream in streams and (last is None or part.first <= last)
    ]
