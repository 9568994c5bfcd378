"""An append-only journal: what was acknowledged survives a kill and a power cut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import BinaryIO, NamedTuple
from zlib import crc32

from infoset.data.durable import sync

_HEAD = Struct("<BI")  # kind, length of the content
_SUM = Struct("<I")
_HEAD_BYTES = _HEAD.size + 2 * _SUM.size  # then a sum of the head, and of the content


class Kind(IntEnum):
    """What a record says.

    LINE: a line of the feed was taken in. COMPLETE: the instant was complete, as the
    feed was silent or at its end. DELIVERED: the answers to all records before are
    written. NEW_FEED: another feed begins, whose lines are numbered from 1.
    """

    LINE = 1
    COMPLETE = 2
    DELIVERED = 3
    NEW_FEED = 4


class Record(NamedTuple):
    """One record of a journal."""

    kind: Kind
    content: bytes = b""


class Journal:
    """A journal that is open for more records.

    A record that was cut off at the end, or was never written where the file has grown
    already, was never acknowledged; it is removed.

    Raises
    ------
    ValueError
        If a record was changed since it was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.ftruncate(self._file, _end(path))
            os.fsync(self._file)
            sync(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def append(self, records: list[Record], *, durable: bool = True) -> None:
        """Add records; with `durable` they are on the disk when this returns."""
        content = memoryview(b"".join(map(_framed, records)))
        while content:
            content = content[os.write(self._file, content) :]
        if durable:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the records of a journal, oldest first; see `Journal`."""
    for record, _ in _records(path):
        yield record


def _end(path: Path) -> int:
    return max((end for _, end in _records(path)), default=0)


def _records(path: Path) -> Iterator[tuple[Record, int]]:
    """Yield the whole records and where each ends."""
    end = 0
    with path.open("rb") as file:
        while len(head := file.read(_HEAD_BYTES)) == _HEAD_BYTES:
            kind, length = _HEAD.unpack_from(head)
            [head_sum] = _SUM.unpack_from(head, _HEAD.size)
            [content_sum] = _SUM.unpack_from(head, _HEAD.size + _SUM.size)
            if head_sum != crc32(head[: _HEAD.size]):
                if head.endswith(bytes(_HEAD_BYTES - _HEAD.size)) and _is_empty(file):
                    return
                raise _damaged(path, end)
            content = file.read(length)
            if len(content) < length:
                return
            if content_sum != crc32(content):
                if content.endswith(b"\0") and _is_empty(file):
                    return
                raise _damaged(path, end)
            end += _HEAD_BYTES + length
            yield Record(Kind(kind), content), end


def _is_empty(file: BinaryIO) -> bool:
    """Whether nothing but zeros follows.

    After a power cut a file may be as long as it should be without what was written.
    """
    return not file.read().strip(b"\0")


def _framed(record: Record) -> bytes:
    head = _HEAD.pack(record.kind, len(record.content))
    sums = _SUM.pack(crc32(head)) + _SUM.pack(crc32(record.content))
    return head + sums + record.content


def _damaged(path: Path, place: int) -> ValueError:
    return ValueError(
        f"a journal must be as it was written; {path} was changed at byte {place} since. "
        "Restore the folder from a copy, or begin anew in another one."
    )
