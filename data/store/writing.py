"""Storing an ingest: its files first, all of them durable, then the manifest."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from .delivery import Delivery
from .errors import StoreBusyError, StoreUnwritableError
from .manifests import FOLDER, Manifest, Part, StoredFile
from .parts import by_month, write_part, write_quarantine
from .receipts import Origin, Receipt
from .side_by_side import side_by_side
from .storage import Held, Storage

Write = Callable[[], StoredFile]


def write_ingest(
    storage: Storage,
    held: Held,
    before: tuple[Manifest, ...],
    new: Delivery,
    origin: Origin,
) -> Receipt:
    """Store a delivery as the next ingest, and return its receipt when it is durable.

    Raises
    ------
    OSError
        If a file cannot be written.
    StoreBusyError
        If the right to write was taken away meanwhile.
    """
    receipt = new.receipt(len(before) + 1, origin)
    _require_whole_account(new, receipt)
    files = _write_all(storage, _tasks(storage, receipt.ingest, new))
    parts = [file for file in files if isinstance(file, Part)]
    quarantine = [file for file in files if not isinstance(file, Part)]
    manifest = Manifest(
        receipt=receipt,
        previous=before[-1].digest if before else "",
        schemas=new.schemas,
        parts=tuple(sorted(parts, key=lambda part: (part.stream, part.month))),
        quarantine=quarantine[0] if quarantine else None,
    )
    held.require()
    if manifest.path in {f"{FOLDER}/{name}" for name in storage.files(FOLDER)}:
        raise StoreBusyError(
            f"an ingest must be the next of {storage.name}; got number "
            f"{receipt.ingest}, which another writer has just taken. Nothing of this "
            "ingest was stored: run again."
        )
    try:
        storage.write(manifest.path, manifest.to_bytes())
        storage.publish([manifest.path])
    except StoreUnwritableError as error:
        # The files stay: the next writer removes them if no manifest lists them.
        raise OSError(
            f"{error} It is not certain that ingest {receipt.ingest} was stored: run "
            "again, nothing is stored twice."
        ) from error
    return receipt


def _tasks(storage: Storage, ingest: int, new: Delivery) -> list[Write]:
    tasks: list[Write] = [
        partial(write_part, storage, ingest, stream, month_rows)
        for stream, table in new.rows.items()
        for month_rows in by_month(table)
    ]
    if len(new.log.quarantine):
        tasks.append(partial(write_quarantine, storage, ingest, new.log.quarantine))
    return tasks


def _write_all(storage: Storage, tasks: list[Write]) -> list[StoredFile]:
    """Write and publish files; if that fails, remove them."""
    written: list[StoredFile] = []  # also where another task fails

    def write(task: Write) -> None:
        written.append(task())

    try:
        side_by_side(write, tasks, storage.num_threads)
        storage.publish([file.path for file in written])
    except BaseException:
        for file in written:
            with suppress(OSError):
                storage.delete(file.path)
        raise
    return written


def _require_whole_account(new: Delivery, receipt: Receipt) -> None:
    for stream, table in new.log.tables.items():
        counted = receipt.stored[stream] + receipt.already_stored[stream]
        if counted != table.num_rows:
            raise RuntimeError(
                f"every row of stream {stream!r} must be stored or be there already; "
                f"got {counted} of {table.num_rows}. Nothing was stored; please report."
            )
