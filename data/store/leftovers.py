"""What writers that died left behind: readers never see it, the next writer sweeps it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .manifests import Manifest
from .storage import Storage

_OURS = re.compile(
    r"(manifests/\d{8}\.json|(events|quarantine)/(.+/)?\d{8}-[0-9a-f]{32}\.parquet)"
    r"(\.partial)?"
)
_SHOWN = 3


def sweep(storage: Storage, manifests: Sequence[Manifest], *, older_than: int) -> int:
    """Remove files that no manifest lists; return how many.

    Only files that this package names, and that are older than the sweeper's right to
    write, so that nothing of a writer at work is among them.

    Parameters
    ----------
    storage : Storage
    manifests : sequence of Manifest
        All of them.
    older_than : int
        Nanoseconds, by the clock of the files.
    """
    listed = {path for manifest in manifests for path in manifest.paths}
    leftovers = [
        entry.path
        for entry in storage.entries()
        if entry.path not in listed
        and entry.modified < older_than
        and _OURS.fullmatch(entry.path)
    ]
    for path in leftovers:
        storage.delete(path)
    return len(leftovers)


def require_own_place(storage: Storage) -> None:
    """Refuse to make a store where other files lie.

    Raises
    ------
    ValueError
        With their names.
    """
    foreign = sorted(
        entry.path for entry in storage.entries() if not _OURS.fullmatch(entry.path)
    )
    if foreign:
        more = " ..." if len(foreign) > _SHOWN else ""
        raise ValueError(
            "a store must be made in an empty or a new folder; got "
            f"{', '.join(foreign[:_SHOWN])}{more} in {storage.name}. Choose another."
        )
