"""Arrays that grow on disk and are read back in place.

A folder holds one `.npy` file per array and a JSON file, and appears under its name
only when all of it is written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .durable import sync

_ABOUT = "about.json"


class ColumnWriter:
    """Appends rows to arrays of one folder.

    Parameters
    ----------
    folder : Path
        Existing; use `new_columns`.
    layout : Mapping[str, tuple of (dtype, width)]
        Name of each array to the type of its elements and the length of a row; width
        None = one number per row.
    """

    def __init__(
        self, folder: Path, layout: Mapping[str, tuple[type, int | None]]
    ) -> None:
        self._folder, self._layout = folder, layout
        self._files = {name: (folder / f"{name}.npy").open("w+b") for name in layout}
        self._lengths = dict.fromkeys(layout, 0)
        for name in layout:
            self._write_header(name)

    def append(self, rows: Mapping[str, np.ndarray]) -> None:
        """Append the same number of rows to each given array."""
        for name, values in rows.items():
            dtype, _ = self._layout[name]
            np.ascontiguousarray(values, dtype=dtype).tofile(self._files[name])
            self._lengths[name] += len(values)

    def close(self, about: Mapping[str, Any]) -> None:
        """Write the final lengths and what readers must know, safe against a crash."""
        for name, file in self._files.items():
            self._write_header(name)
            _sync(file)
            file.close()
        with (self._folder / _ABOUT).open("wb") as described:
            described.write(json.dumps(about).encode())
            _sync(described)

    def abandon(self) -> None:
        """Close the files as they are."""
        for file in self._files.values():
            file.close()

    def _write_header(self, name: str) -> None:
        dtype, width = self._layout[name]
        shape = (
            (self._lengths[name],) if width is None else (self._lengths[name], width)
        )
        descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
        file = self._files[name]
        file.seek(0)
        # NumPy leaves room in the header for a growing first axis.
        np.lib.format.write_array_header_1_0(
            file, {"descr": descr, "fortran_order": False, "shape": shape}
        )
        file.seek(0, os.SEEK_END)


@contextmanager
def new_columns(
    folder: Path, layout: Mapping[str, tuple[type, int | None]]
) -> Iterator[tuple[ColumnWriter, Path]]:
    """Give a writer whose `close` makes the folder appear; else nothing is left of it.

    Yields the writer, and a place for temporary files that goes away.

    Raises
    ------
    ValueError
        If the folder exists.
    """
    if folder.exists():
        raise ValueError(
            f"folder must be new; got {folder}, which exists. Remove it or name another."
        )
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    spill, writer = partial / "spill", None
    try:
        spill.mkdir(parents=True)
        writer = ColumnWriter(partial, layout)
        yield writer, spill
        shutil.rmtree(spill)
        sync(partial)
        partial.rename(folder)
        sync(folder.parent)
    except BaseException:
        if writer is not None:
            writer.abandon()
        shutil.rmtree(partial, ignore_errors=True)
        raise


def read_columns(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a folder, mapped into memory, and what was said about them.

    Raises
    ------
    ValueError
        If the folder is not one that was written whole.
    """
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{folder} must be a folder of timelines; got {error}. Build it again."
        ) from error
    # As plain arrays: views of a `memmap` cost several times as much.
    arrays = {
        path.stem: np.asarray(np.load(path, mmap_mode="r"))
        for path in folder.glob("*.npy")
    }
    return arrays, about


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
