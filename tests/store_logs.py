"""Small logs for tests of the store, and what a store's folder holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow as pa

from infoset.data import EventLog
from infoset.data.store import Origin

Row = tuple[str, str, float]


def origin(declaration: str = "test") -> Origin:
    """Return an origin whose time does not matter."""
    return Origin(declaration, time=datetime(2024, 1, 1, tzinfo=UTC))


def log_of(*rows: Row, stream: str = "s", scheduled: bool = False) -> EventLog:
    """Return a log of (entity, instant of the event, value), known an hour later."""
    event_time = pd.to_datetime([row[1] for row in rows], utc=True, format="ISO8601")
    frame = pd.DataFrame(
        {
            "entity": pd.Series([row[0] for row in rows], dtype="str"),
            "event_time": event_time.as_unit("ns"),
            "available_at": event_time.as_unit("ns") + pd.Timedelta("1h"),
            "value": pd.Series([row[2] for row in rows], dtype="float64"),
        }
    )
    return EventLog.from_pandas(
        frame, stream=stream, values=["value"], scheduled=scheduled
    )


def values_of(log: EventLog, stream: str = "s") -> list[float]:
    """Return the values of a stream in the log's order."""
    values: list[float] = log.table(stream)["value"].to_pylist()
    return values


def ipc_bytes(log: EventLog) -> bytes:
    """Return every table of a log as bytes: schemas, types and values."""
    sink = pa.BufferOutputStream()
    for stream in log.streams:
        table = log.table(stream).combine_chunks()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but the lock, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def parts_of(folder: Path, month: str = "") -> Sequence[Path]:
    """Return the event files of a store, of one month if it is named."""
    return sorted(folder.glob(f"events/*/month={month or '*'}/*.parquet"))


@contextmanager
def object_store(bucket: str) -> Iterator[str]:
    """Serve an empty bucket on this machine; yield its URI."""
    # Imported here: only some tests need a server.
    import pyarrow.fs  # noqa: PLC0415
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    keys = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    with mock.patch.dict("os.environ", keys):
        server.start()
        try:
            _, port = server.get_host_and_port()
            options = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
            uri = f"s3://{bucket}/store?{options}&allow_bucket_creation=true"
            filesystem, _ = pyarrow.fs.FileSystem.from_uri(uri)
            filesystem.create_dir(bucket)
            yield uri
        finally:
            server.stop()
