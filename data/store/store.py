"""A store of events: what each ingest added, and the log as it stood after any of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from infoset.data.events import EventLog

from .delivery import delivery, require_storable
from .errors import StoreUnwritableError
from .ledger import Ledger
from .leftovers import require_own_place, sweep
from .manifests import FOLDER
from .places import storage_at
from .reading import quarantined, read_parts, stored_log
from .receipts import Origin, Receipt
from .storage import Held, Storage
from .writing import write_ingest

_A_MINUTE = 60.0


class Store:
    """Events on local disk or in an object store; append-only.

    Every ingest adds files and, last, a manifest that lists them; nothing is changed or
    removed afterwards. Readers need no lock, and see whole ingests only.

    Parameters
    ----------
    storage : Storage
        Where its files lie; see `Store.open`.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._ledger = Ledger(storage)

    @classmethod
    def open(cls, place: str | Path, *, create: bool = False) -> Store:
        """Open a store.

        Parameters
        ----------
        place : str or Path
            A folder, or a URI such as ``s3://bucket/prefix?region=eu-central-1``.
        create : bool
            Whether there may be none yet; the first `append` then makes it.

        Raises
        ------
        ValueError
            If there is no store, or the URI names no place for one.
        StoreDamagedError
            If a manifest is missing or altered.
        """
        store = cls(storage_at(place))
        if not create and not store.receipts:
            raise ValueError(
                f"a store must hold an ingest; got {store.name}, which holds none. "
                "Correct the path, or fill it: infoset ingest SOURCE.yaml --into ..."
            )
        return store

    @property
    def name(self) -> str:
        """The folder, or the URI without its options."""
        return self._storage.name

    @property
    def receipts(self) -> list[Receipt]:
        """The account of every ingest, oldest first."""
        return [manifest.receipt for manifest in self._ledger.manifests()]

    def manifest(self, ingest: int | None = None) -> tuple[str, str]:
        """Return where the manifest of an ingest lies in the store, and its digest.

        The digest stands for the whole store as of this ingest: it covers the digests
        of the ingest's files and that of the manifest before.

        Raises
        ------
        ValueError
            If there is no such ingest, or none at all.
        """
        manifests = self._ledger.manifests(ingest)
        if not manifests:
            raise ValueError(f"a store must hold an ingest; got none in {self.name}.")
        return manifests[-1].path, manifests[-1].digest

    def append(
        self, log: EventLog, *, origin: Origin, wait_seconds: float = _A_MINUTE
    ) -> Receipt:
        """Store what is new in a log: all of it or nothing.

        When this returns, the ingest is durable. When it raises, or the process dies,
        it is either whole or not there.

        Parameters
        ----------
        log : EventLog
            As its sources gave it, without derived changes.
        origin : Origin
        wait_seconds : float
            How long to wait for another writer.

        Returns
        -------
        Receipt
            `is_new` is False where the very same source was ingested before and
            nothing is new: nothing was written then.

        Raises
        ------
        ValueError
            If a stream drops a column or changes the kind of one, an event is stored
            with other values, the log has derived changes or an encoder's numbers, or
            the name of a stream is too long for a folder.
        TypeError
            If a value is neither a number nor a text nor a date.
        StoreBusyError
            If another writer is at work for longer than `wait_seconds`.
        StoreDamagedError
            If a file that must be compared is missing or altered.
        StoreUnwritableError
            If the place cannot be written or is full: nothing was stored.
        OSError
            If the very last step failed, so that it is not certain that the ingest was
            stored. Appending again is safe.
        """
        require_storable(log)
        try:
            with self._storage.locked(wait_seconds=wait_seconds) as held:
                return self._appended(log, origin, held)
        except StoreUnwritableError as error:
            raise StoreUnwritableError(
                f"{error} Nothing of this ingest was stored: make room or choose "
                "another place, and run again."
            ) from error

    def log(
        self,
        *,
        streams: Sequence[str] | None = None,
        until: pd.Timestamp | None = None,
        as_of_ingest: int | None = None,
    ) -> EventLog:
        """Return the stored events; revisions are counted over all ingests.

        Parameters
        ----------
        streams : sequence of str, optional
            Default: all.
        until : Timestamp, optional
            With a zone. What became available later is left out; its months are not
            read.
        as_of_ingest : int, optional
            Return the log as it stood after this ingest. Default: after the newest.

        Returns
        -------
        EventLog
            Its quarantine has the further column `ingest`. Duplicates were dropped and
            counted when they came in (`receipts`), so that none are counted here.

        Raises
        ------
        ValueError
            If a stream or the ingest is unknown, or `until` has no zone.
        StoreDamagedError
            If a file is missing or is not the one that was written.
        """
        manifests = self._ledger.manifests(as_of_ingest)
        return stored_log(self._storage, manifests, streams=streams, until=until)

    def quarantine(self, ingest: int | None = None) -> pd.DataFrame:
        """Return the rows that are never used; of one ingest, or of all.

        Returns
        -------
        DataFrame
            Columns ingest, stream, row, column, reason, and source (the file, if the
            rows came from one).

        Raises
        ------
        ValueError
            If there is no such ingest.
        StoreDamagedError
            If a file is missing or is not the one that was written.
        """
        manifests = self._ledger.manifests(ingest)
        return quarantined(
            self._storage, manifests if ingest is None else manifests[-1:]
        )

    def _appended(self, log: EventLog, origin: Origin, held: Held) -> Receipt:
        storage = self._storage
        storage.settle(FOLDER)  # what a writer that died has left unsettled
        before = self._ledger.manifests()
        if not before:
            require_own_place(storage)
        sweep(storage, before, older_than=held.since)
        new = delivery(log, before, partial(read_parts, storage))
        if not new.changes_anything:
            for manifest in before:
                if manifest.receipt.origin.is_same(origin):
                    number = manifest.receipt.ingest
                    return new.receipt(number, origin, is_new=False)
        return write_ingest(storage, held, before, new, origin)
