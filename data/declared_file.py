"""A table that a setting names by its path, beside the sources."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import PrivateAttr

from .strict import Strict

_Own = TypeVar("_Own", bound="DeclaredFile")


class DeclaredFile(Strict):
    """A setting that names a file.

    Attributes
    ----------
    path : Path
        As the configuration writes it, relative to the configuration.
    """

    SETTING: ClassVar[str]  # where the configuration holds it, for messages
    path: Path
    _base: Path = PrivateAttr(default=Path())

    def based_at(self: _Own, base: Path) -> _Own:
        """Return the same setting with a folder from which a relative path starts."""
        setting = self.model_copy()
        setting._base = base  # noqa: SLF001 (of this class)
        return setting

    @property
    def file(self) -> Path:
        """The file itself.

        Raises
        ------
        ValueError
            If it is not there.
        """
        file = self._base / self.path
        if not file.is_file():
            raise ValueError(
                f"{self.SETTING}.path must be a readable file; got {str(self.path)!r}, "
                f"relative to {self._base}. Correct `path`."
            )
        return file
