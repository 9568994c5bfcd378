"""Where a store's files lie: a folder of this machine, or an object store."""

from __future__ import annotations

import json
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import NamedTuple

PARTIAL = ".partial"


class Entry(NamedTuple):
    """A file: its path within the store, and when it was written (ns, its own clock)."""

    path: str
    modified: int


class Held(ABC):
    """The right to write, as long as it is held."""

    @property
    @abstractmethod
    def since(self) -> int:
        """When it was obtained, in nanoseconds by the clock of the files."""

    @abstractmethod
    def require(self) -> None:
        """Refuse to go on where somebody took the right away (`StoreBusyError`)."""


class Storage(ABC):
    """What a store asks of the place where its files lie.

    Paths are relative to the store and have `/` between their parts. A file that was
    written is never written again.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call the place; without credentials."""

    @property
    @abstractmethod
    def num_threads(self) -> int:
        """How many files are best read or written at the same time."""

    @abstractmethod
    def read(self, path: str) -> bytes:
        """Return a file's content (`FileNotFoundError` where there is none)."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, not below it; none if absent."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """Return every file of the store, the one of the lock aside."""

    @abstractmethod
    def write(self, path: str, content: bytes) -> None:
        """Write a file that nobody sees or misses before it is published (`StoreUnwritableError`)."""

    @abstractmethod
    def publish(self, paths: Sequence[str]) -> None:
        """Give written files their names; they are durable afterwards (`StoreUnwritableError`)."""

    @abstractmethod
    def settle(self, folder: str) -> None:
        """Make the names in a folder durable, whoever published them."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file, published or not, if it is there."""

    @abstractmethod
    def locked(self, *, wait_seconds: float) -> AbstractContextManager[Held]:
        """Keep other writers out; wait for one up to a limit (`StoreBusyError`)."""


def writer_record() -> str:
    """Return who writes, for those who wait."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "since": now})


def writer_in_words(record: str | bytes) -> str:
    """Return who writes, in words."""
    try:
        found = json.loads(record)
        return f"process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return "an unknown process"
