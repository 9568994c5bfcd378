"""A file that declares what to ingest: one source, or several under `sources:`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from infoset.data.sources import AnySource, Source
from infoset.data.strict import Strict

from .config_complaints import complaints
from .config_text import read_mapping

_MANY, _ONE = "sources", "source"


class _Sources(Strict):
    sources: tuple[AnySource, ...] = Field(min_length=1)


class _Source(Strict):
    source: AnySource


@dataclass(frozen=True)
class SourceFile:
    """The sources of a file.

    Attributes
    ----------
    sources : tuple of Source
    base : Path
        The folder that relative paths in it start from.
    """

    sources: tuple[Source, ...]
    base: Path

    @property
    def declaration(self) -> str:
        """The resolved declarations as JSON, every default filled in."""
        plain = [source.model_dump(mode="json") for source in self.sources]
        return json.dumps(plain, sort_keys=True, ensure_ascii=False, allow_nan=False)


def read_source_file(path: Path) -> SourceFile:
    """Read and validate a file of sources.

    Parameters
    ----------
    path : Path
        YAML: the mapping of one source, just as it stands in an experiment, or a list
        of them under the key `sources`.

    Raises
    ------
    ValueError
        If the file cannot be read or a setting is wrong; every wrong one is listed.
    """
    given = read_mapping(path)
    try:
        if _MANY in given:
            sources = _Sources.model_validate(given).sources
        else:
            sources = (_Source.model_validate({_ONE: given}).source,)
    except ValidationError as error:
        raise ValueError(_listed(path, error, given)) from error
    return SourceFile(sources, path.parent)


def _listed(path: Path, error: ValidationError, given: dict[str, Any]) -> str:
    content = given if _MANY in given else {_ONE: given}
    wrong = complaints(error, content, root="the file")
    told = f" {wrong[0]}" if len(wrong) == 1 else "\n  " + "\n  ".join(wrong)
    return f"{path.name}:{told}"
