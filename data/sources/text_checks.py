"""What must hold of delimited text before it is parsed: no parser says so by itself."""

from __future__ import annotations

import re

_OTHER_FILES = {
    b"PAR1": ("a Parquet file", "Name it .parquet."),
    b"\x1f\x8b": ("a gzip file", "Let its name end in .gz."),
    b"PK\x03\x04": ("a zip archive or a workbook", "Save the table as text."),
}
_SHOWN = 40


def require_text(content: bytes, name: str) -> None:
    """Refuse content that starts like another kind of file.

    Raises
    ------
    ValueError
        With the kind.
    """
    for mark, (kind, remedy) in _OTHER_FILES.items():
        if content.startswith(mark):
            raise ValueError(f"{name} must be delimited text; got {kind}. {remedy}")


def require_no_nul(text: str, name: str) -> None:
    """Refuse the character that text never holds: its encoding is another one.

    Raises
    ------
    ValueError
        With the line of the first one.
    """
    place = text.find("\0")
    if place >= 0:
        line = text.count("\n", 0, place) + 1
        raise ValueError(
            f"{name} must not hold NUL characters; got one in line {line}. "
            "Declare `format.encoding`, for example utf-16, or write the file again."
        )


def require_closed_quotations(content: bytes, name: str, delimiter: str) -> None:
    """Refuse a quoted cell that goes on after its closing mark.

    Parsers drop the marks there and join the rest, which is another text. A mark in
    the middle of an unquoted cell is a character like others.

    Raises
    ------
    ValueError
        With the line and what stands there.
    """
    if b'"' not in content:
        return
    ends = rf"{re.escape(delimiter)}\r\n".encode()
    quoted = b'(?<![^%b])"(?:[^"]++|"")*+"(?=[%b]|\\Z)' % (ends, ends)
    inside = b'(?<=[^%b])"' % ends
    sound = re.compile(b'(?:[^"]++|%b|%b)*+' % (quoted, inside)).match(content)
    stop = 0 if sound is None else sound.end()
    if stop < len(content):
        shown = content[stop : stop + _SHOWN].decode(errors="replace")
        line = content.count(b"\n", 0, stop) + 1
        raise ValueError(
            f"{name} must close every quotation mark at the end of its cell; got "
            f"{shown!r} in line {line}. "
            'Write a mark inside a quoted cell twice ("").'
        )
