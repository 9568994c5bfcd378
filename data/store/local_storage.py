"""A store in a folder: written aside, synced, renamed; locked by the kernel."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from infoset.data.durable import sync

from .errors import StoreBusyError, StoreUnwritableError
from .side_by_side import side_by_side
from .storage import PARTIAL, Entry, Held, Storage, writer_in_words, writer_record

_LOCK = ".lock"
_POLL_SECONDS = 0.05
_SYNC_THREADS = 16  # they wait for the disk


@dataclass(frozen=True)
class _Flock(Held):
    obtained: int

    @property
    def since(self) -> int:
        """When the lock's file was written."""
        return self.obtained

    def require(self) -> None:
        """Nothing to check: only this process's end releases the kernel's lock."""


@dataclass(frozen=True)
class LocalStorage(Storage):
    """See `Storage`. Files are durable when `write` returns, renames included.

    Attributes
    ----------
    folder : Path
        On local disk: network file systems do not always keep `flock`'s promise.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.folder)

    @property
    def num_threads(self) -> int:
        """Few: small files keep one processor busy."""
        return 4

    def read(self, path: str) -> bytes:
        """Return a file's content."""
        return (self.folder / path).read_bytes()

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, not below it."""
        try:
            with os.scandir(self.folder / folder) as found:
                return [entry.name for entry in found if entry.is_file()]
        except FileNotFoundError:
            return []

    def entries(self) -> list[Entry]:
        """Return every file of the store, the one of the lock aside."""
        found: list[Entry] = []
        for folder, _, names in os.walk(self.folder):
            inner = Path(folder).relative_to(self.folder).as_posix()
            for name in names:
                path = name if inner == "." else f"{inner}/{name}"
                modified = os.stat(f"{folder}/{name}").st_mtime_ns  # noqa: PTH116 (fast)
                found.append(Entry(path, modified))
        return [entry for entry in found if entry.path != _LOCK]

    def write(self, path: str, content: bytes) -> None:
        """Write a file aside."""
        partial = self._aside(path)
        try:
            partial.parent.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
        except OSError as error:
            with suppress(OSError):  # the first error is the one to tell
                partial.unlink()
            raise self._unwritable(path, error) from error

    def publish(self, paths: Sequence[str]) -> None:
        """Sync files, rename them, and sync their folders.

        All files first, then all folders: where thousands are written, a disk settles
        most of them at once.
        """
        finals = [self.folder / path for path in paths]
        try:
            side_by_side(sync, [self._aside(path) for path in paths], _SYNC_THREADS)
            for path, final in zip(paths, finals, strict=True):
                if final.exists():
                    raise FileExistsError(f"{final} is there already")
                os.rename(self._aside(path), final)  # noqa: PTH104 (never onto a file)
            side_by_side(sync, self._folders_of(finals), _SYNC_THREADS)
        except OSError as error:
            raise self._unwritable(", ".join(paths[:1]), error) from error

    def settle(self, folder: str) -> None:
        """Make the names in a folder durable, whoever published them."""
        if (self.folder / folder).is_dir():
            sync(self.folder / folder)

    def delete(self, path: str) -> None:
        """Remove a file, published or not, if it is there."""
        self._aside(path).unlink(missing_ok=True)
        (self.folder / path).unlink(missing_ok=True)

    @contextmanager
    def locked(self, *, wait_seconds: float) -> Iterator[Held]:
        """Keep other writers out; the kernel lets go when this process ends."""
        try:
            _make_folder(self.folder)
            handle = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise self._unwritable(_LOCK, error) from error
        try:
            self._obtain(handle, wait_seconds)
            try:
                os.ftruncate(handle, 0)
                os.write(handle, writer_record().encode())
            except OSError as error:
                raise self._unwritable(_LOCK, error) from error
            yield _Flock(os.fstat(handle).st_mtime_ns)
        finally:
            os.close(handle)

    def _aside(self, path: str) -> Path:
        final = self.folder / path
        return final.with_name(final.name + PARTIAL)

    def _folders_of(self, files: Sequence[Path]) -> list[Path]:
        """Return the folders of some files, and those above them within the store."""
        found: dict[Path, None] = {}
        for folder in dict.fromkeys(file.parent for file in files):
            inner = folder.relative_to(self.folder)
            found |= dict.fromkeys(
                self.folder / part for part in (inner, *inner.parents)
            )
        return list(found)

    def _obtain(self, handle: int, wait_seconds: float) -> None:
        until = time.monotonic() + wait_seconds
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    writer = writer_in_words((self.folder / _LOCK).read_bytes())
                    raise StoreBusyError(
                        f"a store must have one writer at a time; {writer}, writes to "
                        f"{self.name} (waited {wait_seconds:g} s). Nothing was stored: "
                        "run again when it has finished, or wait longer."
                    ) from error
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _unwritable(self, path: str, error: OSError) -> StoreUnwritableError:
        return StoreUnwritableError(
            f"{self.name} must be writable and have room; got "
            f"{error.strerror or error} for {path}."
        )


def _make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they survive a power cut."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)
