"""Companies' facts as EDGAR serves them, or flat tables of them, as rows of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from infoset.data.sources.cells import SourceTable

from .edgar_files import (
    cik_of,
    first_tickers,
    flat_columns,
    is_flat,
    json_columns,
    json_mapping,
    padded_ciks,
    with_columns,
)

_WHAT = ("taxonomy", "concept", "unit")
_FACT = ("start", "end", "val", "accn", "form", "filed")
_SHOWN = 8


@dataclass(frozen=True, eq=False)
class CompanyFacts:
    """The facts of a file.

    Attributes
    ----------
    table : SourceTable
        Text: `cik` (ten digits), `taxonomy`, `concept`, `unit`, and the names of
        EDGAR's JSON. Rows are places in the file, over all concepts, from 0.
    tickers : Mapping[str, str]
        The ticker of each CIK that has one.
    """

    table: SourceTable
    tickers: Mapping[str, str]


def read_facts(path: Path, name: str) -> CompanyFacts:
    """Read the facts of a company in JSON, or a flat table of facts.

    Raises
    ------
    ValueError, TypeError
        If the file is damaged, or is something else.
    """
    if is_flat(path):
        return _flat(path, name)
    found = json_mapping(path, name)
    if not isinstance(found.get("facts"), dict):
        raise ValueError(  # noqa: TRY004 (a file of the wrong kind)
            f"{name} must be EDGAR's JSON of company facts, with `facts`; got the keys "
            f"{', '.join(list(found)[:_SHOWN])}. Check `path`."
        )
    what, facts = _unfolded(found["facts"], name)
    lists = {field: [fact.get(field) for fact in facts] for field in _FACT}
    cik = cik_of(found.get("cik"), name)
    columns = json_columns(
        {**what, **lists, "cik": [cik] * len(facts)}, len(facts), name
    )
    return CompanyFacts(
        SourceTable(name, columns, np.arange(len(facts), dtype=np.int64)), {}
    )


def _unfolded(
    found: Mapping[str, Any], name: str
) -> tuple[dict[str, list[str]], list[Mapping[str, Any]]]:
    """Return what each fact is about, and the facts, in the order of the file."""
    what: dict[str, list[str]] = {field: [] for field in _WHAT}
    facts: list[Mapping[str, Any]] = []
    try:
        for about, stated in _units(found):
            facts.extend(stated)
            for field, text in zip(_WHAT, about, strict=True):
                what[field].extend([text] * len(stated))
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(
            f"{name} must hold facts by taxonomy, concept and unit; got another nesting "
            f"({error}). Check the file."
        ) from error
    return what, facts


def _units(
    found: Mapping[str, Any],
) -> Iterator[tuple[tuple[str, str, str], Sequence[Mapping[str, Any]]]]:
    for taxonomy, concepts in found.items():
        for concept, described in concepts.items():
            for unit, stated in described["units"].items():
                yield (taxonomy, concept, unit), stated


def _flat(path: Path, name: str) -> CompanyFacts:
    columns = flat_columns(
        path,
        name,
        ["cik", *_WHAT, *(f for f in _FACT if f != "start")],
        ["start", "ticker"],
    )
    table = SourceTable(name, columns, np.arange(len(columns), dtype=np.int64))
    ciks = padded_ciks(table, "cik")
    return CompanyFacts(
        table=with_columns(table, {"cik": ciks}),
        tickers=first_tickers(ciks, columns["ticker"]),
    )


def unit_names(table: SourceTable) -> pa.ChunkedArray:
    """Return units as EDGAR's addresses write them: ``USD-per-shares``."""
    return pc.replace_substring(table.cells("unit"), "/", "-per-")
