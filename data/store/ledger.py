"""The manifests of a store, read once and checked against one another."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from .manifests import (
    FOLDER,
    Manifest,
    count_manifests,
    damaged,
    manifest_path,
    read_manifest,
    require_follows,
)
from .schemas import StreamSchema
from .side_by_side import side_by_side
from .storage import Storage


class Ledger:
    """What a store's manifests say. They never change, so that each is read once.

    Any number of threads may ask at the same time.

    Parameters
    ----------
    storage : Storage
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: list[Manifest] = []
        self._lock = threading.Lock()

    def manifests(self, ingest: int | None = None) -> tuple[Manifest, ...]:
        """Return the manifests up to an ingest; by default all that are there now.

        Raises
        ------
        ValueError
            If there is no such ingest.
        StoreDamagedError
            If a manifest is missing, altered, or does not follow the one before.
        """
        name = self._storage.name
        wanted = count_manifests(self._storage.files(FOLDER))
        if ingest is not None:
            if not 1 <= ingest <= wanted:
                held = f"1 to {wanted}" if wanted else "none yet"
                raise ValueError(
                    f"an ingest must be one of those of {name} ({held}); got {ingest}."
                )
            wanted = ingest
        with self._lock:
            known = list(self._known)
            missing = range(len(known) + 1, wanted + 1)
            for manifest in side_by_side(
                self._read, missing, self._storage.num_threads
            ):
                require_follows(manifest, known, name)
                known.append(manifest)
            self._known = known
        return tuple(known[:wanted])

    def _read(self, ingest: int) -> Manifest:
        path = manifest_path(ingest)
        place = f"{path} of {self._storage.name}"
        try:
            return read_manifest(self._storage.read(path), place)
        except FileNotFoundError as error:
            raise damaged(place, "no such file") from error


def latest_schemas(manifests: Sequence[Manifest]) -> dict[str, StreamSchema]:
    """Return the schema of every stream after some ingests, in order of arrival."""
    schemas: dict[str, StreamSchema] = {}
    for manifest in manifests:
        schemas |= manifest.schemas
    return schemas
