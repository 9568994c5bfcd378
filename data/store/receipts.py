"""Where an ingest came from, and the account of what it stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple


class OriginFile(NamedTuple):
    """A file that was read: its name, and the SHA-256 of its content."""

    name: str
    sha256: str


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Origin:
    """Where the events of an ingest come from.

    Attributes
    ----------
    declaration : str
        The resolved declaration of the source or sources, as JSON.
    files : tuple of OriginFile
    time : datetime
        When they were read, with a zone.
    """

    declaration: str
    files: tuple[OriginFile, ...] = ()
    time: datetime = field(default_factory=_now)

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise ValueError(
                f"time of an origin must be timezone-aware; got {self.time}. "
                "Use datetime.now(UTC)."
            )

    @property
    def source(self) -> str:
        """16 hexadecimal digits of the declaration."""
        return sha256(self.declaration.encode()).hexdigest()[:16]

    def is_same(self, other: Origin) -> bool:
        """Whether the other one read the same bytes by the same declaration."""
        contents = [[file.sha256 for file in of.files] for of in (self, other)]
        return self.declaration == other.declaration and contents[0] == contents[1]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "declaration": self.declaration,
            "files": [file._asdict() for file in self.files],
            "time": self.time.astimezone(UTC).isoformat(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Origin:
        """Return what `to_json` wrote."""
        return cls(
            declaration=content["declaration"],
            files=tuple(OriginFile(**file) for file in content["files"]),
            time=datetime.fromisoformat(content["time"]),
        )


@dataclass(frozen=True)
class Receipt:
    """What an ingest did. Rows are counted by stream; each row is in one count.

    Attributes
    ----------
    ingest : int
        Its number, from 1: the argument of `as_of_ingest`.
    origin : Origin
    stored, already_stored, quarantined : Mapping[str, int]
        By stream: new rows; rows that an earlier ingest had stored with the same
        values; rows that are never used.
    num_duplicates : int
        Exact duplicates within what was read, dropped; over all streams.
    notices : tuple of str
    is_new : bool
        False where an earlier ingest (`ingest`) had read the same files by the same
        declaration, and nothing was new: nothing was written then.
    """

    ingest: int
    origin: Origin
    stored: Mapping[str, int]
    already_stored: Mapping[str, int]
    quarantined: Mapping[str, int]
    num_duplicates: int
    notices: tuple[str, ...] = ()
    is_new: bool = True

    @property
    def num_stored(self) -> int:
        """New rows over all streams."""
        return sum(self.stored.values())

    @property
    def num_already_stored(self) -> int:
        """Rows over all streams that were there already."""
        return sum(self.already_stored.values())

    @property
    def num_quarantined(self) -> int:
        """Rows over all streams that are never used."""
        return sum(self.quarantined.values())

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        plain = asdict(self) | {"origin": self.origin.to_json()}
        del plain["is_new"]
        return plain

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Receipt:
        """Return what `to_json` wrote."""
        given = dict(content)
        given["origin"] = Origin.from_json(given["origin"])
        given["notices"] = tuple(given["notices"])
        return cls(**given)


def canonical_json(content: object) -> str:
    """Return the one way in which content is written where its digest counts."""
    return json.dumps(
        content,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )
