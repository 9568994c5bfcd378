"""Files that give events: what every kind of source has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path

from infoset.data.changes import Change
from infoset.data.events import EventLog
from infoset.data.strict import Strict

from .cells import SourceTable
from .declaration import RowDeclaration, streams_like
from .load import logged_rows
from .nearest import did_you_mean


class Source(Strict, ABC):
    """Anything that an experiment or a store reads events from.

    Attributes
    ----------
    change : Change, optional
        Carried along; computed elsewhere.
    """

    change: Change | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it: its file or files."""

    @abstractmethod
    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the files that are read, in order; a missing one is refused."""

    def contents(self, *, base: Path) -> tuple[tuple[str, str], ...]:
        """Return the name and the SHA-256 of everything that is read, in order."""
        return tuple(
            (_shown(path, base), _sha256(path)) for path in self.files(base=base)
        )

    @abstractmethod
    def streams(self, log: EventLog) -> tuple[str, ...]:
        """Return the streams of a log that this source can have given."""

    @abstractmethod
    def log(self, *, base: Path) -> EventLog:
        """Read the events.

        Parameters
        ----------
        base : Path
            Folder that relative paths start from.

        Returns
        -------
        EventLog
            Its quarantine has the further column `source` (the file), and `row` is a
            row of that file.

        Raises
        ------
        ValueError, TypeError
            If a file, row or cell is not what the source says.
        """


class VendorSource(Source):
    """A file in the layout of a vendor, whose clocks are known; or several of them.

    A preset reads its files into tables of one row per event, and declares how these
    rows become events. Everything after that is the same for all sources.

    Attributes
    ----------
    path : str
        A file (relative to the configuration), or a pattern such as ``2020-*.csv``.
    stream : str
        A name, or a template; see `RowDeclaration`.
    """

    path: str
    stream: str

    @abstractmethod
    def tables(self, *, base: Path) -> Iterator[tuple[SourceTable, RowDeclaration]]:
        """Yield tables of one row per event, each with its declaration."""

    @property
    def name(self) -> str:
        """The file, for messages."""
        return self.path

    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the files that are read, sorted by name."""
        return matching_files(self.path, base)

    def streams(self, log: EventLog) -> tuple[str, ...]:
        """Return the streams of a log that this source can have given."""
        return streams_like(self.stream, log)

    def notices(self, log: EventLog) -> tuple[str, ...]:  # noqa: ARG002
        """Return what people should know about these events; nothing is changed."""
        return ()

    def log(self, *, base: Path) -> EventLog:
        """Read the events; see `Source`."""
        log = logged_rows(self.tables(base=base))
        return replace(log, notices=(*log.notices, *self.notices(log)))


def matching_files(pattern: str, base: Path) -> tuple[Path, ...]:
    """Return a declared file, or the files that match a pattern, sorted by name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not set(pattern) & set("*?["):
        return (existing_file(pattern, base),)
    whole = base / pattern
    root = Path(whole.anchor) if Path(pattern).is_absolute() else base
    found = sorted(
        path for path in root.glob(str(whole.relative_to(root))) if path.is_file()
    )
    if not found:
        raise ValueError(
            f"path must match a file; got {pattern!r}, relative to {base}. "
            "Correct `path`."
        )
    return tuple(found)


def existing_file(name: str, base: Path) -> Path:
    """Return where a declared file is.

    Raises
    ------
    ValueError
        If it is not there.
    """
    path = base / name
    if not path.is_file():
        near = [entry.name for entry in path.parent.glob("*") if entry.is_file()]
        raise ValueError(
            f"path must name a file; got {name!r}, relative to {base}. "
            f"{did_you_mean(path.name, near)}Correct `path`."
        )
    return path


def _shown(path: Path, base: Path) -> str:
    return str(path.relative_to(base) if path.is_relative_to(base) else path.name)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
