"""The manifest of an ingest: what it stored, its files' digests, and what was before.

An ingest is there when its manifest is, and not before. Manifests are numbered from 1
and never written again; each names the digest of the one before it, so that a lost or
altered one is noticed. The newest is named by none: where it (or a run of the newest)
is lost, the store reads as it stood before, and nothing in it tells: whoever must notice
that keeps its digest (`Store.manifest`) elsewhere. The store as of ingest k is what the
manifests 1 to k list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from .errors import StoreDamagedError
from .receipts import Receipt, canonical_json
from .schemas import StreamSchema

FOLDER = "manifests"
_FORMAT = 1
_NAME = re.compile(r"(\d{8})\.json")


@dataclass(frozen=True)
class StoredFile:
    """A file of a store: its path within it, its rows, and its SHA-256."""

    path: str
    num_rows: int
    sha256: str


@dataclass(frozen=True)
class Part(StoredFile):
    """Rows of one stream and one month, in one file.

    Attributes
    ----------
    stream : str
    month : str
        Of availability in UTC, such as 2024-03.
    first, last : int
        The earliest and the latest availability, in nanoseconds since 1970.
    """

    stream: str
    month: str
    first: int
    last: int


@dataclass(frozen=True)
class Manifest:
    """One ingest.

    Attributes
    ----------
    receipt : Receipt
    previous : str
        Digest of the manifest before; empty for the first.
    schemas : Mapping[str, StreamSchema]
        Of the streams that this ingest declared, as they are after it.
    parts : tuple of Part
    quarantine : StoredFile, optional
        None where no row was quarantined.
    """

    receipt: Receipt
    previous: str
    schemas: Mapping[str, StreamSchema]
    parts: tuple[Part, ...]
    quarantine: StoredFile | None

    @property
    def path(self) -> str:
        """Where it lies in the store."""
        return manifest_path(self.receipt.ingest)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where it and its files lie in the store."""
        files = [*self.parts, *([self.quarantine] if self.quarantine else [])]
        return (self.path, *(file.path for file in files))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of its content."""
        return _digest(self._content())

    def to_bytes(self) -> bytes:
        """Return the file's content."""
        content = canonical_json(self._content())
        return f'{{"sha256":"{self.digest}","content":{content}}}\n'.encode()

    def _content(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "receipt": self.receipt.to_json(),
            "previous": self.previous,
            "schemas": {name: s.to_json() for name, s in self.schemas.items()},
            "parts": [dict(vars(part)) for part in self.parts],
            "quarantine": None if self.quarantine is None else vars(self.quarantine),
        }


def manifest_path(ingest: int) -> str:
    """Return where the manifest of an ingest lies in the store."""
    return f"{FOLDER}/{ingest:08d}.json"


def read_manifest(content: bytes, place: str) -> Manifest:
    """Return the manifest that a file holds.

    Raises
    ------
    StoreDamagedError
        If the file is not the one that was written.
    ValueError
        If a later version of the format wrote it.
    """
    try:
        whole = json.loads(content)
        given = whole["content"]
        is_whole = whole["sha256"] == _digest(given)
        version = given["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(place, f"something that cannot be read ({error})") from error
    if not is_whole:
        raise damaged(place, "a content of another digest")
    if version != _FORMAT:
        raise ValueError(
            f"a store must have format {_FORMAT}; got {version} in {place}. "
            "Read it with the version of infoset that wrote it, or a later one."
        )
    quarantine = given["quarantine"]
    return Manifest(
        receipt=Receipt.from_json(given["receipt"]),
        previous=given["previous"],
        schemas={n: StreamSchema.from_json(s) for n, s in given["schemas"].items()},
        parts=tuple(Part(**part) for part in given["parts"]),
        quarantine=None if quarantine is None else StoredFile(**quarantine),
    )


def count_manifests(names: Iterable[str]) -> int:
    """Return the number of the newest manifest among a folder's file names; 0 if none."""
    matches = (_NAME.fullmatch(name) for name in names)
    return max((int(match[1]) for match in matches if match is not None), default=0)


def require_follows(manifest: Manifest, before: Sequence[Manifest], place: str) -> None:
    """Refuse a manifest that does not follow the ones before it.

    Raises
    ------
    StoreDamagedError
        If it has another number, or names another manifest as its predecessor.
    """
    expected = (len(before) + 1, before[-1].digest if before else "")
    if (manifest.receipt.ingest, manifest.previous) != expected:
        raise damaged(
            f"{manifest_path(expected[0])} of {place}",
            "a manifest that does not follow the one before it",
        )


def damaged(place: str, got: str) -> StoreDamagedError:
    """Return the error for a file that is not the one that was written."""
    return StoreDamagedError(
        f"{place} must be as it was written; got {got}. "
        "Restore it from a copy: nothing else of the store was read."
    )


def _digest(content: object) -> str:
    return sha256(canonical_json(content).encode()).hexdigest()
