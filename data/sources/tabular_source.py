"""A file with a header and one row per event, described by its declaration."""

from __future__ import annotations

from pathlib import Path

from pydantic import model_validator

from infoset.data.events import EventLog
from infoset.data.samples import sample_path

from .declaration import RowDeclaration, TextFormat
from .load import logged_rows
from .source import Source, existing_file
from .tabular import read_rows

_SUFFIXES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet")


class TabularSource(RowDeclaration, Source):
    """One file of delimited text or Parquet, whose columns are declared.

    Attributes
    ----------
    path, sample : str
        A file (relative to the configuration), or the name of a shipped one.
    """

    path: str | None = None
    sample: str | None = None

    @property
    def name(self) -> str:
        """The file, for messages."""
        return self.path or self.sample or ""

    def files(self, *, base: Path) -> tuple[Path, ...]:
        """Return the file that is read."""
        if self.sample is not None:
            return (sample_path(self.sample),)
        return (existing_file(self.name, base),)

    def log(self, *, base: Path) -> EventLog:
        """Read the events; see `Source`."""
        (path,) = self.files(base=base)
        return logged_rows([(read_rows(path, self.name, self), self)])

    @model_validator(mode="after")
    def _one_file(self) -> TabularSource:
        if (self.path is None) == (self.sample is None):
            got = "none" if self.path is None else "both"
            raise ValueError(f"must name its file by `path` or `sample`; got {got}")
        if not self.name.endswith(_SUFFIXES):
            raise ValueError(
                f"must name a file that ends in {', '.join(_SUFFIXES)}; "
                f"got {self.name!r}"
            )
        if self.name.endswith(".parquet") and self.format != TextFormat():
            raise ValueError(
                f"must not declare a text `format` for Parquet; got {self.name!r}"
            )
        return self
