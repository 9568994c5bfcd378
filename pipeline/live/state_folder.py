"""The folder of a stream's state: one snapshot, and the journal of what came after."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from infoset.data.durable import sync
from infoset.models.stream_snapshot import read_snapshot, write_snapshot
from infoset.pipeline.run_files import remove_leftovers

from .journal import Journal, Record, read_journal

_SNAPSHOT = re.compile(r"snapshot-(\d{8})\.safetensors")


class StateFolder:
    """A folder that holds, at any moment, all that was acknowledged.

    `snapshot-N.safetensors` is the state after which `journal-N` goes on. A new snapshot
    is whole and durable before its journal begins, and only then is the old pair removed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = max(self._numbers(), default=0)

    @classmethod
    @contextmanager
    def locked(cls, folder: Path) -> Iterator[StateFolder]:
        """Create the folder and keep other streams out of it meanwhile.

        Raises
        ------
        ValueError
            If it cannot be written, or another stream works in it.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise ValueError(
                f"--state must name a writable folder; got {folder} ({error.strerror}). "
                "Name another one."
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise ValueError(
                f"a stream's folder must be free; another stream works in {folder}. End "
                "it, or give this one another --state."
            ) from error
        try:
            remove_leftovers(folder)
            yield cls(folder)
        finally:
            os.close(handle)

    @property
    def is_new(self) -> bool:
        """Whether there is no snapshot yet."""
        return self._number == 0

    @property
    def snapshot(self) -> Path:
        """The newest snapshot."""
        return self.folder / f"snapshot-{self._number:08d}.safetensors"

    @property
    def journal(self) -> Path:
        """The journal that goes on after the newest snapshot."""
        return self.folder / f"journal-{self._number:08d}"

    def read(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the newest snapshot; see `read_snapshot`."""
        return read_snapshot(self.snapshot)

    def records(self) -> Iterator[Record]:
        """Yield what the journal holds; see `read_journal`."""
        if self.journal.exists():
            yield from read_journal(self.journal)

    def opened(self) -> Journal:
        """Open the journal for more."""
        return Journal(self.journal)

    def begin(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Keep a new snapshot; the old one and its journal are removed."""
        old = self.folder / f"snapshot-{self._number + 1:08d}.safetensors"
        write_snapshot(old, header, tensors)
        self._number += 1
        for path in self.folder.iterdir():
            is_own = path in {self.snapshot, self.journal}
            if path.name.startswith(("snapshot-", "journal-")) and not is_own:
                path.unlink()
        sync(self.folder)

    def _numbers(self) -> list[int]:
        found = (_SNAPSHOT.fullmatch(path.name) for path in self.folder.iterdir())
        return [int(name[1]) for name in found if name]
