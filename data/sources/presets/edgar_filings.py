"""Lists of filings as EDGAR serves them, or flat tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from infoset.data.sources.cells import SourceTable

from .edgar_files import (
    cik_in_name,
    cik_of,
    first_tickers,
    flat_columns,
    is_flat,
    json_columns,
    json_mapping,
    padded_ciks,
    with_columns,
)

STAMP = "acceptanceDateTime"
_NEEDED = ("accessionNumber", "filingDate", STAMP, "form")
_OPTIONAL = ("reportDate", "items", "size")
_SHOWN = 8


@dataclass(frozen=True)
class OlderPage:
    """A file that holds a filer's older filings: its name, their number and last day."""

    name: str
    num_filings: str
    last_day: str


@dataclass(frozen=True, eq=False)
class Filings:
    """The filings of a file.

    Attributes
    ----------
    table : SourceTable
        Text, by the names of EDGAR's JSON, and `cik` (ten digits). Rows are places in
        the list, or rows of the flat table, from 0.
    tickers : Mapping[str, str]
        The first ticker of each CIK that has one.
    older : tuple of OlderPage
        The files that hold older filings.
    """

    table: SourceTable
    tickers: Mapping[str, str]
    older: tuple[OlderPage, ...] = ()


def read_filings(path: Path, name: str, *, stamp_column: str = STAMP) -> Filings:
    """Read a list of filings: submissions in JSON, an older page of it, or a flat table.

    Parameters
    ----------
    path : Path
    name : str
        What messages call it.
    stamp_column : str
        What a flat table calls `acceptanceDateTime`.

    Raises
    ------
    ValueError, TypeError
        If the file is damaged, or is something else.
    """
    if is_flat(path):
        return _flat(path, name, stamp_column)
    found = json_mapping(path, name)
    filings = found.get("filings")
    recent = filings.get("recent") if isinstance(filings, dict) else found
    if not isinstance(recent, dict) or "accessionNumber" not in recent:
        raise ValueError(
            f"{name} must be EDGAR's JSON of submissions, with `filings.recent`, or an "
            f"older page of it; got the keys {', '.join(list(found)[:_SHOWN])}. "
            "Check `path`."
        )
    cik = cik_of(found.get("cik", cik_in_name(path)), name)
    tickers = found.get("tickers")
    return Filings(
        table=_listed(recent, cik, name),
        tickers={cik: tickers[0]} if tickers else {},
        older=_older(filings) if isinstance(filings, dict) else (),
    )


def _listed(recent: Mapping[str, Any], cik: str, name: str) -> SourceTable:
    for field in _NEEDED:
        if field not in recent:
            raise ValueError(
                f"{name} must hold {field!r} of each filing; got {', '.join(recent)}. "
                "Check the file."
            )
    num_rows = len(recent["accessionNumber"])
    lists = {f: recent.get(f, [None] * num_rows) for f in (*_NEEDED, *_OPTIONAL)}
    columns = json_columns(lists | {"cik": [cik] * num_rows}, num_rows, name)
    return SourceTable(name, columns, np.arange(num_rows, dtype=np.int64))


def _older(filings: Mapping[str, Any]) -> tuple[OlderPage, ...]:
    return tuple(
        OlderPage(page["name"], page["filingCount"], page["filingTo"])
        for page in filings.get("files", [])
    )


def _flat(path: Path, name: str, stamp_column: str) -> Filings:
    needed = [stamp_column if field == STAMP else field for field in _NEEDED]
    columns = flat_columns(path, name, [*needed, "cik"], [*_OPTIONAL, "ticker"])
    columns = columns.rename_columns(
        [STAMP if field == stamp_column else field for field in columns.column_names]
    )
    table = SourceTable(name, columns, np.arange(len(columns), dtype=np.int64))
    ciks = padded_ciks(table, "cik")
    return Filings(
        table=with_columns(table, {"cik": ciks}),
        tickers=first_tickers(ciks, columns["ticker"]),
    )
