"""A store in an object store: whole objects under unique names, locked by intentions.

There is no rename and no lock there. An object appears whole when its writer closes it,
and a listing shows every object that was written before it was asked for (S3, Google
Cloud Storage and Azure promise both). A writer therefore first writes an intention and
then lists all of them: of two writers at least one sees the other, so that both may
step back but never both go on.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.fs

from .errors import StoreBusyError, StoreUnwritableError
from .storage import Entry, Held, Storage, writer_in_words, writer_record

_INTENTIONS = "intentions"
_POLL_SECONDS = 0.5


@dataclass(frozen=True, eq=False)
class ObjectStorage(Storage):
    """See `Storage`.

    Attributes
    ----------
    filesystem : pyarrow.fs.FileSystem
    root : str
        Bucket and prefix.
    uri : str
        Without options and credentials.
    """

    filesystem: pa.fs.FileSystem
    root: str
    uri: str

    @property
    def name(self) -> str:
        """The URI."""
        return self.uri

    @property
    def num_threads(self) -> int:
        """Requests that wait for the network, not for a processor."""
        return 16

    def read(self, path: str) -> bytes:
        """Return an object's content."""
        with self.filesystem.open_input_stream(self._at(path)) as stream:
            content: bytes = stream.read()
        return content

    def files(self, folder: str) -> list[str]:
        """Return the names of the objects in a folder, not below it."""
        found = self._infos(self._at(folder), recursive=False)
        return [info.base_name for info in found]

    def entries(self) -> list[Entry]:
        """Return every object of the store, intentions aside."""
        start = len(self.root) + 1
        found = [
            Entry(info.path[start:], info.mtime_ns or 0)
            for info in self._infos(self.root, recursive=True)
        ]
        return [e for e in found if not e.path.startswith(f"{_INTENTIONS}/")]

    def write(self, path: str, content: bytes) -> None:
        """Write an object: it is there when its stream is closed, and not before."""
        try:
            with self.filesystem.open_output_stream(self._at(path)) as stream:
                stream.write(content)
        except (OSError, pa.ArrowException) as error:
            raise StoreUnwritableError(
                f"{self.name} must be writable; got {error}. Check the bucket and the "
                "credentials."
            ) from error

    def publish(self, paths: Sequence[str]) -> None:
        """Nothing to do: an object has its name from the start, and it is unique."""

    def settle(self, folder: str) -> None:
        """Nothing to do: an object that is listed is durable."""

    def delete(self, path: str) -> None:
        """Remove an object, if it is there."""
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(self._at(path))

    @contextmanager
    def locked(self, *, wait_seconds: float) -> Iterator[Held]:
        """Keep other writers out, as long as they ask by the same rule."""
        until = time.monotonic() + wait_seconds
        while True:
            own = f"{_INTENTIONS}/{uuid.uuid4().hex}.json"
            self.write(own, writer_record().encode())
            try:
                others = self._other_intentions(own)
                if not others:
                    yield _Intention(self, own)
                    return
            finally:
                self.delete(own)
            if time.monotonic() >= until:
                raise self._busy(others, wait_seconds)
            # Two that met step back for unequal times.
            time.sleep(_POLL_SECONDS * random.uniform(0.5, 2))  # noqa: S311

    def _other_intentions(self, own: str) -> list[str]:
        found = [f"{_INTENTIONS}/{name}" for name in self.files(_INTENTIONS)]
        return sorted(path for path in found if path != own)

    def _busy(self, others: list[str], wait_seconds: float) -> StoreBusyError:
        first = others[0]
        try:
            writer = writer_in_words(self.read(first))
        except OSError:  # it has just finished
            writer = "another writer"
        return StoreBusyError(
            f"a store must have one writer at a time; {writer}, writes to {self.name} "
            f"(waited {wait_seconds:g} s). Nothing was stored: run again when it has "
            f"finished. If it died, delete the object {first} of the store."
        )

    def _infos(self, path: str, *, recursive: bool) -> list[pa.fs.FileInfo]:
        selector = pa.fs.FileSelector(path, recursive=recursive, allow_not_found=True)
        found = self.filesystem.get_file_info(selector)
        return [info for info in found if info.type == pa.fs.FileType.File]

    def _at(self, path: str) -> str:
        return f"{self.root}/{path}"


@dataclass(frozen=True, eq=False)
class _Intention(Held):
    storage: ObjectStorage
    path: str

    @property
    def since(self) -> int:
        """When the intention was written, by the clock of the object store."""
        return self._info().mtime_ns or 0

    def require(self) -> None:
        """Refuse to go on where the intention was removed."""
        if self._info().type != pa.fs.FileType.File:
            raise StoreBusyError(
                f"a writer's intention must stay until it ends; {self.path} of "
                f"{self.storage.name} was removed. Nothing of this ingest was stored: "
                "run again."
            )

    def _info(self) -> pa.fs.FileInfo:
        at = f"{self.storage.root}/{self.path}"
        return self.storage.filesystem.get_file_info(at)
