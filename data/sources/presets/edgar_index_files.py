"""EDGAR's index files as columns of text: fixed width, or with bars between."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from infoset.data.sources.cells import SourceTable
from infoset.data.sources.delimited import file_content

_FILED = r"(?P<filed>\d{8}|\d{4}-\d{2}-\d{2})"
_FIXED = rf"^(?P<head>.*?) +(?P<cik>\d{{1,10}}) +{_FILED} +(?P<file>edgar/\S+) *$"
_BARRED = (
    r"^(?P<cik>\d{1,10})\|(?P<company>[^|]*)\|(?P<form>[^|]+)\|"
    rf"{_FILED}\|(?P<file>edgar/\S+) *$"
)
_ACCESSION = r"/(?P<accession>\d{10}-\d{2}-\d{6})\.txt$"
_PREAMBLE = 20  # lines, at most


@dataclass(frozen=True, eq=False)
class FilingIndex:
    """The lines of an index file.

    Attributes
    ----------
    table : SourceTable
        Text: `cik` (ten digits), `company`, `form`, `filed` (a date) and `accession`.
        Rows are lines after the ruler, from 0, blank ones aside.
    day : str, optional
        The day of a daily index; None for one of a quarter, which is made anew.
    """

    table: SourceTable
    day: str | None


def read_index(path: Path, name: str, *, encoding: str = "utf-8") -> FilingIndex:
    """Read a form, company or master index, of a day or a quarter.

    Parameters
    ----------
    path : Path
    name : str
        What messages call it.
    encoding : str

    Raises
    ------
    ValueError
        If it is in another layout or encoding, or a line is not of the index.
    """
    lines = _lines(path, name, encoding)
    preamble, header, rows = _parts(lines, name)
    texts = pa.array([line for line in rows if line.strip()], pa.string())
    if not len(texts):
        raise ValueError(
            f"{name} must hold a filing; got a header only. Remove it from `path`."
        )
    numbers = np.arange(len(texts), dtype=np.int64)
    lined = SourceTable(name, pa.table({"line": texts}), numbers)
    columns = _barred(lined) if "|" in header else _fixed(lined, header)
    return FilingIndex(SourceTable(name, columns, numbers), _day(preamble, name))


def _lines(path: Path, name: str, encoding: str) -> list[str]:
    try:
        return file_content(path, name).decode(encoding).splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} must be {encoding} text; got byte 0x{error.object[error.start]:02x} "
            f"at {error.start}. Declare `encoding`, for example latin-1."
        ) from error


def _parts(lines: list[str], name: str) -> tuple[list[str], str, list[str]]:
    """Return the lines before the header, the header, and those after the ruler."""
    for place, line in enumerate(lines[:_PREAMBLE]):
        if line.startswith("-----"):
            headers = [text for text in lines[:place] if "Company Name" in text]
            if headers:
                return lines[:place], headers[-1], lines[place + 1 :]
    raise ValueError(
        f"{name} must be a form, company or master index of EDGAR, with a header and a "
        f"ruler; got {lines[0]!r} as first line. Check `path`."
    )


def _fixed(lined: SourceTable, header: str) -> pa.Table:
    found = _extracted(lined, _FIXED)
    # The two names stand first, in an order that the header gives.
    names = {"company": header.find("Company Name"), "form": header.find("Form Type")}
    (first, _), (second, at) = sorted(names.items(), key=lambda name: name[1])
    head = found["head"]
    gaps = pc.equal(pc.utf8_slice_codeunits(head, at - 1, at), " ")
    lined.require(
        pc.fill_null(gaps, False).to_numpy(),  # noqa: FBT003
        "line",
        f"the second column of an index must start at {at}, after a blank",
        "Correct the line, or declare `encoding`.",
    )
    return _named(
        found,
        **{
            first: pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(head, 0, at)),
            second: pc.utf8_trim_whitespace(pc.utf8_slice_codeunits(head, at)),
        },
    )


def _barred(lined: SourceTable) -> pa.Table:
    found = _extracted(lined, _BARRED)
    return _named(found, company=found["company"], form=found["form"])


def _extracted(lined: SourceTable, pattern: str) -> pa.Table:
    found = pc.extract_regex(lined.cells("line"), pattern)
    lined.require(
        found.is_valid().to_numpy(),
        "line",
        "a line of an index must have a form, a company, a CIK, a date and a file",
        "Correct the line; a crawler index is not read.",
    )
    return pa.Table.from_struct_array(found)


def _named(
    found: pa.Table, *, company: pa.ChunkedArray, form: pa.ChunkedArray
) -> pa.Table:
    digits = pc.replace_substring(found["filed"], "-", "")
    filed = pc.replace_substring_regex(digits, r"^(\d{4})(\d{2})(\d{2})$", r"\1-\2-\3")
    accession = pc.extract_regex(found["file"], _ACCESSION)
    return pa.table(
        {
            "cik": pc.utf8_lpad(found["cik"], 10, "0"),
            "company": company,
            "form": form,
            "filed": filed,
            "accession": pc.struct_field(accession, "accession"),
        }
    )


def _day(preamble: list[str], name: str) -> str | None:
    said = dict(line.split(":", 1) for line in preamble if ":" in line)
    if "Description" not in said or "Last Data Received" not in said:
        raise ValueError(
            f"{name} must start with `Description` and `Last Data Received`, which tell "
            "an index of a day from one of a quarter; got neither or one. Keep the "
            "file's first lines."
        )
    if "Daily" not in said["Description"]:
        return None
    written = said["Last Data Received"].strip()
    for pattern in ("%b %d, %Y", "%B %d, %Y"):
        try:
            # pandas would read `today` as the day on which this runs.
            day = datetime.strptime(written, pattern)
        except ValueError:
            continue
        return f"{day:%Y-%m-%d}"
    raise ValueError(
        f"`Last Data Received` of {name} must be a date such as Mar 18, 2020; got "
        f"{written!r}. Correct it."
    )
