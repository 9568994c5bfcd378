"""Delimited text as columns of text: packed or not, with a header or without."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from .declaration import TextFormat
from .text_checks import require_closed_quotations, require_no_nul, require_text

_BYTE_ORDER_MARK = "\ufeff"


def shown_name(path: Path, base: Path) -> str:
    """Return what messages call a file: relative to the configuration, if it can be."""
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def file_content(path: Path, name: str) -> bytes:
    """Return what a file holds, unpacked; see `text_content`.

    Raises
    ------
    ValueError
        If it is empty or damaged.
    """
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{name} must be readable; got {error}. Check the file and its permissions."
        ) from error
    content = _unpacked(packed, path.suffix, name) if packed else packed
    if not content.strip():
        raise ValueError(
            f"{name} must hold a header and rows; got an empty file. "
            "Check the file, or remove the source."
        )
    return content


def text_content(path: Path, name: str, *, encoding: str = "utf-8") -> bytes:
    """Return a file's text as UTF-8 without a byte-order mark.

    Parameters
    ----------
    path : Path
        Unpacked if it ends in .gz, .zst or .zip (with one .csv in it).
    name : str
        What messages call it.
    encoding : str

    Raises
    ------
    ValueError
        If it is empty, damaged, no text, in another encoding, or leaves a quotation
        open.
    """
    content = file_content(path, name)
    require_text(content, name)
    text = _utf8(content, name, encoding)
    if text.count(b'"') % 2:
        raise ValueError(
            f"{name} must close every quotation mark; got an odd number of them. "
            'Write a mark inside a quoted cell twice ("").'
        )
    return text


def first_cells(content: bytes, name: str, layout: TextFormat) -> list[str]:
    """Return the cells of the first line that is not blank: the header, if any.

    Raises
    ------
    ValueError
        If the line is not delimited text.
    """
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    try:
        return next(filter(None, csv.reader(text, delimiter=layout.delimiter)))
    except csv.Error as error:
        raise ValueError(
            f"{name} must start with a header; got {error}. "
            "Check the first line and `format.delimiter`."
        ) from error


def parsed_cells(
    content: bytes,
    name: str,
    layout: TextFormat,
    columns: Sequence[str],
    *,
    header: Sequence[str] | None = None,
) -> pa.Table:
    """Return columns of delimited text as text; an empty cell is an empty text.

    Parameters
    ----------
    content : bytes
        See `text_content`.
    name : str
        What messages call the file.
    layout : TextFormat
    columns : sequence of str
        Which to keep, in this order.
    header : sequence of str, optional
        The names of all columns of a text whose first line is a row already.

    Raises
    ------
    ValueError
        If a row has more or fewer cells than the header, a cell goes on after its
        quotation, or no row is there.
    """
    require_closed_quotations(content, name, layout.delimiter)
    uneven: list[pa.csv.InvalidRow] = []

    def note(row: pa.csv.InvalidRow) -> str:
        uneven.append(row)
        return "error"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(content),
            # One thread and one block: only then do uneven rows have a number.
            read_options=pa.csv.ReadOptions(
                use_threads=False,
                block_size=len(content) + 1,
                column_names=None if header is None else list(header),
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=layout.delimiter,
                newlines_in_values=True,
                invalid_row_handler=note,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                include_columns=list(columns),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        if not uneven:
            raise ValueError(
                f"{name} must be delimited text; got {error}. Check `format`."
            ) from error
        row = uneven[0]
        before = 2 if header is None else 1  # lines are counted from 1
        raise ValueError(
            f"every row of {name} must have {row.expected_columns} cells; got "
            f"{row.actual_columns} in row {row.number - before} ({row.text!r}). "
            "Complete the row, or check `format.delimiter`."
        ) from error
    if table.num_rows == 0:
        raise ValueError(
            f"{name} must hold a row; got a header only. "
            "Check the file, or remove the source."
        )
    return table


def _unpacked(content: bytes, suffix: str, name: str) -> bytes:
    try:
        match suffix:
            case ".gz":
                return gzip.decompress(content)
            case ".zst":
                packed = pa.BufferReader(content)
                whole: bytes = pa.input_stream(packed, compression="zstd").read()
                return whole
            case ".zip":
                return _only_table(content, name)
            case _:
                return content
    except (EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        kind = {".gz": "gzip", ".zst": "zstd"}.get(suffix, "zip")
        raise ValueError(
            f"{name} must be a whole {kind} file; got {error}. "
            "Copy or download it again."
        ) from error


def _only_table(content: bytes, name: str) -> bytes:
    """Return the one table of an archive; vendors put a status report beside it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = [entry for entry in archive.namelist() if not entry.endswith("/")]
        tables = [entry for entry in files if entry.lower().endswith(".csv")]
        if len(tables) != 1:
            raise ValueError(
                f"{name} must hold one .csv file; got {', '.join(files) or 'nothing'}. "
                "Unpack it, and name the file in `path`."
            )
        return archive.read(tables[0])


def _utf8(content: bytes, name: str, encoding: str) -> bytes:
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} must be {encoding} text; got byte "
            f"0x{content[error.start]:02x} in line {line}. "
            "Declare `format.encoding`, for example cp1252."
        ) from error
    require_no_nul(text, name)
    return text.removeprefix(_BYTE_ORDER_MARK).encode("utf-8")
