"""Rows of one stream and month as a Parquet file, and back, digest first.

Parquet 2.6 keeps nanoseconds; texts are dictionary-encoded. Folders are named as Hive
does, so that any tool that reads Parquet finds its way without this package.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .manifests import Part, StoredFile, damaged
from .storage import Storage

EVENTS, QUARANTINE = "events", "quarantine"
MAX_NAME_BYTES = 255  # of a file or folder on the usual file systems
_WORTH_COMPRESSING = 1000
QUARANTINE_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("row", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("source", pa.string()),
    ]
)


class MonthRows(NamedTuple):
    """Rows of one month.

    Attributes
    ----------
    month : str
        Of availability, in UTC.
    rows : pyarrow.Table
    first, last : int
        The earliest and the latest availability, in nanoseconds.
    """

    month: str
    rows: pa.Table
    first: int
    last: int


def by_month(table: pa.Table) -> Iterator[MonthRows]:
    """Yield the rows of each month of availability, in the order they had."""
    if table.num_rows == 0:
        return
    instants = table["available_at"].cast(pa.int64()).to_numpy()
    months = instants.view("datetime64[ns]").astype("datetime64[M]")
    order = np.argsort(months, kind="stable")
    names, starts = np.unique(months[order], return_index=True)
    firsts, lasts = (
        extreme.reduceat(instants[order], starts).tolist()
        for extreme in (np.minimum, np.maximum)
    )
    sizes = np.diff([*starts, len(order)]).tolist()
    ordered = table.take(pa.array(order)).combine_chunks()
    for place, name in enumerate(names.tolist()):
        rows = ordered.slice(starts[place], sizes[place])
        yield MonthRows(f"{name:%Y-%m}", rows, firsts[place], lasts[place])


def stream_folder(stream: str) -> str:
    """Return the name of a stream's folder, in ASCII."""
    return f"stream={quote(stream, safe='')}"


def write_part(storage: Storage, ingest: int, stream: str, of: MonthRows) -> Part:
    """Write rows of one stream and month under a name of their own."""
    folder = f"{EVENTS}/{stream_folder(stream)}/month={of.month}"
    file = _write(storage, folder, ingest, of.rows)
    return Part(
        path=file.path,
        num_rows=file.num_rows,
        sha256=file.sha256,
        stream=stream,
        month=of.month,
        first=of.first,
        last=of.last,
    )


def write_quarantine(
    storage: Storage, ingest: int, quarantine: pd.DataFrame
) -> StoredFile:
    """Write the rows that are never used."""
    columns = [
        pa.array(quarantine[field.name].tolist(), field.type, from_pandas=True)
        if field.name in quarantine.columns  # rows of a frame have no file
        else pa.nulls(len(quarantine), field.type)
        for field in QUARANTINE_SCHEMA
    ]
    table = pa.Table.from_arrays(columns, schema=QUARANTINE_SCHEMA)
    return _write(storage, QUARANTINE, ingest, table)


def read_table(storage: Storage, file: StoredFile) -> pa.Table:
    """Return a file's rows.

    Raises
    ------
    StoreDamagedError
        If the file is missing or not the one that was written.
    """
    place = f"{file.path} of {storage.name}"
    try:
        content = storage.read(file.path)
    except FileNotFoundError as error:
        raise damaged(place, "no such file") from error
    if sha256(content).hexdigest() != file.sha256:
        raise damaged(place, "a content of another digest")
    return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def _write(storage: Storage, folder: str, ingest: int, table: pa.Table) -> StoredFile:
    texts = [field.name for field in table.schema if field.type == pa.string()]
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        version="2.6",
        # Setting zstd up takes longer than reading a small file.
        compression="zstd" if table.num_rows >= _WORTH_COMPRESSING else "none",
        use_dictionary=texts or False,
    )
    content = sink.getvalue().to_pybytes()
    path = f"{folder}/{ingest:08d}-{uuid.uuid4().hex}.parquet"
    storage.write(path, content)
    return StoredFile(path, table.num_rows, sha256(content).hexdigest())
