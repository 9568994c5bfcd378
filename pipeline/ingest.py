"""Reading declared sources into a store, with an account of every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from infoset.data.events import EventLog
from infoset.data.sources import event_log
from infoset.data.sources.row_counts import row_counts
from infoset.data.store import Origin, OriginFile, Receipt, Store

from .source_file import SourceFile, read_source_file

QUARANTINED = ("source", "stream", "row", "column", "reason")


@dataclass(frozen=True)
class StreamAccount:
    """What became of the rows of one stream; each is in one count.

    Attributes
    ----------
    stream : str
    read : int
        Rows that the sources gave: those of the files, or, of a table of vintages, the
        values that are new or changed. Rows that `where` leaves out do not count.
    stored : int
        New to the store. Without a store: usable.
    already_stored : int
        In the store before, with the same values.
    duplicates : int
        Exact repetitions of another row that was read.
    quarantined : int
        Never used.
    """

    stream: str
    read: int
    stored: int
    already_stored: int
    duplicates: int
    quarantined: int


@dataclass(frozen=True, eq=False)
class Ingested:
    """The account of an ingest, or of a rehearsal of one.

    Attributes
    ----------
    store : str, optional
        None where nothing was to be stored.
    receipt : Receipt, optional
    accounts : tuple of StreamAccount
        Sorted by stream.
    notices : tuple of str
    quarantine : DataFrame
        Columns `QUARANTINED`.
    """

    store: str | None
    receipt: Receipt | None
    accounts: tuple[StreamAccount, ...]
    notices: tuple[str, ...]
    quarantine: pd.DataFrame

    @property
    def result(self) -> str:
        """What was done, in a sentence."""
        if self.receipt is None:
            return "Nothing was stored: give a store with --into."
        number = self.receipt.ingest
        if not self.receipt.is_new:
            return (
                f"Nothing was stored: ingest {number} of {self.store} had read the same "
                "files by the same declaration."
            )
        if not self.receipt.num_stored:
            return f"Ingest {number} of {self.store}: no row was new."
        return f"Ingest {number} of {self.store}: {self.receipt.num_stored:,} new rows."

    def to_json(self) -> dict[str, Any]:
        """Return plain values; the quarantine is whole."""
        receipt = self.receipt
        streams = [asdict(account) for account in self.accounts]
        if receipt is None:
            for plain in streams:
                plain["usable"] = plain.pop("stored")
        listed = self.quarantine.astype(object)
        return {
            "store": self.store,
            "ingest": None if receipt is None else receipt.ingest,
            "is_new": receipt is not None and receipt.is_new,
            "streams": streams,
            "notices": list(self.notices),
            "quarantine": listed.where(listed.notna(), None).to_dict("records"),
        }


def ingest(
    source_file: Path, *, into: str | None = None, wait_seconds: float = 60.0
) -> Ingested:
    """Read the sources of a file, account for every row, and store what is new.

    Parameters
    ----------
    source_file : Path
        See `read_source_file`.
    into : str, optional
        A store: a folder or a URI; made if there is none. Without it nothing is
        stored, but everything is read, checked and accounted for.
    wait_seconds : float
        How long to wait for another writer of the store.

    Raises
    ------
    ValueError, TypeError
        If the declaration, a file, a row or a cell is wrong, an event is stored with
        other values, or the store is busy or damaged. Nothing was stored then.
    OSError
        If a file cannot be read or the store cannot be written.
    """
    declared = read_source_file(source_file)
    files = _contents(declared)
    with row_counts() as read:
        log = event_log(declared.sources, base=declared.base)
    _require_unchanged(files, _contents(declared))
    duplicates = _duplicates(log, read)
    store, receipt = None, None
    if into is not None:
        store = Store.open(into, create=True)
        origin = Origin(declaration=declared.declaration, files=files)
        receipt = store.append(log, origin=origin, wait_seconds=wait_seconds)
    return Ingested(
        store=None if store is None else store.name,
        receipt=receipt,
        accounts=_accounts(log, read, duplicates, receipt),
        notices=(*log.notices, *_unstored_changes(declared, log)),
        quarantine=log.quarantine.reindex(columns=list(QUARANTINED)),
    )


def _contents(declared: SourceFile) -> tuple[OriginFile, ...]:
    return tuple(
        OriginFile(name, digest)
        for source in declared.sources
        for name, digest in source.contents(base=declared.base)
    )


def _require_unchanged(
    before: tuple[OriginFile, ...], after: tuple[OriginFile, ...]
) -> None:
    changed = sorted({file.name for file in set(before) ^ set(after)})
    if changed:
        raise ValueError(
            "a file must stay as it is while it is read; got another content of "
            f"{', '.join(changed)} afterwards. Nothing was stored: run again when "
            "nobody writes to it."
        )


def _quarantined(log: EventLog) -> Counter[str]:
    return Counter(log.quarantine["stream"].tolist())


def _duplicates(log: EventLog, read: Mapping[str, int]) -> dict[str, int]:
    """Return the duplicates of each stream: what is left of the rows that were read.

    Raises
    ------
    RuntimeError
        If the log knows of another number of them: a row was lost or counted twice.
    """
    quarantined = _quarantined(log)
    streams = sorted({*read, *log.tables, *quarantined})
    left = {
        stream: read.get(stream, 0)
        - (log.tables[stream].num_rows if stream in log.tables else 0)
        - quarantined[stream]
        for stream in streams
    }
    if min(left.values(), default=0) < 0 or sum(left.values()) != log.num_duplicates:
        raise RuntimeError(
            f"rows must add up; got {sum(read.values())} read, {len(log)} usable, "
            f"{log.num_duplicates} duplicates and {len(log.quarantine)} quarantined. "
            "Nothing was stored; please report this source."
        )
    return left


def _accounts(
    log: EventLog,
    read: Mapping[str, int],
    duplicates: Mapping[str, int],
    receipt: Receipt | None,
) -> tuple[StreamAccount, ...]:
    quarantined = _quarantined(log)
    usable = {stream: table.num_rows for stream, table in log.tables.items()}
    stored = usable if receipt is None else receipt.stored
    already = {} if receipt is None else receipt.already_stored
    accounts = tuple(
        StreamAccount(
            stream=stream,
            read=read.get(stream, 0),
            stored=stored.get(stream, 0),
            already_stored=already.get(stream, 0),
            duplicates=duplicates[stream],
            quarantined=quarantined[stream],
        )
        for stream in duplicates
    )
    for one in accounts:
        parts = (one.stored, one.already_stored, one.duplicates, one.quarantined)
        if one.read != sum(parts):
            raise RuntimeError(
                f"rows of stream {one.stream!r} must add up; got {one}. "
                "Please report this source."
            )
    return accounts


def _unstored_changes(declared: SourceFile, log: EventLog) -> tuple[str, ...]:
    """Say where a declared change has to be declared again."""
    streams = sorted(
        {
            stream
            for source in declared.sources
            if source.change is not None
            for stream in source.streams(log)
        }
    )
    if not streams:
        return ()
    return (
        f"`change` of {', '.join(streams)} is not stored: declare it again where an "
        "experiment reads the store.",
    )
