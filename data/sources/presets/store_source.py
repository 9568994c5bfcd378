"""A store of ingested events as the source of an experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from infoset.data.events import EventLog
from infoset.data.sources.row_counts import count_rows
from infoset.data.sources.source import Source
from infoset.data.store import Store


class StoreSource(Source):
    """Events that `infoset ingest` stored, as they stand or as they stood.

    Attributes
    ----------
    path : str
        A folder (relative to the configuration), or a URI such as
        ``s3://bucket/prefix?region=eu-central-1``.
    only : tuple of str, optional
        The streams to read, written `streams`. Default: all.
    as_of_ingest : int, optional
        Read the store as it stood after this ingest. Default: the newest, so that the
        experiment changes with the store.
    assumptions : tuple of str
        What is assumed about the clocks, for the report.
    """

    # `streams` is also what every source is asked for.
    model_config = ConfigDict(serialize_by_alias=True)

    preset: Literal["store"]
    path: str = Field(min_length=1)
    only: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(
        default=None, alias="streams"
    )
    as_of_ingest: int | None = Field(default=None, ge=1)
    assumptions: tuple[str, ...] = (
        "The clocks are those that the sources declared when they were ingested.",
    )

    @property
    def name(self) -> str:
        """The store, for messages; without options, which may be credentials."""
        return self.path.partition("?")[0]

    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the newest manifest that is read; none where it is not a local file.

        It names the digests of everything before it, so that its own digest changes
        with any ingest.
        """
        if self._is_uri:
            return ()
        path, _ = self._store(base).manifest(self.as_of_ingest)
        return (base / self.path / path,)

    def contents(self, *, base: Path) -> tuple[tuple[str, str], ...]:
        """Return the manifest and its digest, which stand for the whole store."""
        path, digest = self._store(base).manifest(self.as_of_ingest)
        return ((f"{self.name}/{path}", digest),)

    def streams(self, log: EventLog) -> tuple[str, ...]:
        """Return the streams of a log that this source can have given."""
        if self.only is None:
            return log.streams
        return tuple(name for name in log.streams if name in self.only)

    def log(self, *, base: Path) -> EventLog:
        """Read the events; see `Source` and `Store.log`."""
        store = self._store(base)
        log = store.log(streams=self.only, as_of_ingest=self.as_of_ingest)
        for stream in log.streams:
            unused = int((log.quarantine["stream"] == stream).sum())
            count_rows(stream, log.tables[stream].num_rows + unused)
        return log

    @property
    def _is_uri(self) -> bool:
        return "://" in self.path

    def _store(self, base: Path) -> Store:
        return Store.open(self.path if self._is_uri else base / self.path)
