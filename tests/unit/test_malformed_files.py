"""Files that are wrong as files: refused in words, or read as documented here.

No value is ever changed without a word. What is accepted although it looks odd is
listed with the exact result.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from malformed import (
    HEAD,
    ROWS,
    TEN,
    TEXT,
    TWO,
    Accepted,
    Case,
    Refused,
    a,
    check_file,
    date,
    declared,
    line,
    lines,
    not_numeric,
)

from infoset.data.sources import event_log

ENCODINGS: dict[str, Case] = {
    "a byte-order mark": (f"\ufeff{lines(*ROWS)}", {}, Accepted(TWO)),
    "a byte-order mark before a quotation": (
        f'\ufeff"id","t","v"\nA,{TEN},1\n',
        {},
        a(1.0),
    ),
    "two byte-order marks": (
        f"\ufeff\ufeff{lines(*ROWS)}",
        {},
        Refused(
            "column 'id' must be in f.csv; got \ufeffid, t, v. Did you mean '\\ufeffid'"
        ),
    ),
    "UTF-16 as declared": (
        lines(*ROWS).encode("utf-16"),
        {"format": {"encoding": "utf-16"}},
        Accepted(TWO),
    ),
    "UTF-16 undeclared": (
        lines(*ROWS).encode("utf-16"),
        {},
        Refused(
            "f.csv must be utf-8 text; got byte 0xff in line 1. Declare `format.enc"
        ),
    ),
    "UTF-16 without its mark": (
        lines(*ROWS).encode("utf-16-le"),
        {},
        Refused(
            "f.csv must not hold NUL characters; got one in line 1. Declare `format.enc"
        ),
    ),
    "a NUL byte": (
        lines(f"A\0B,{TEN},1"),
        {},
        Refused("f.csv must not hold NUL characters; got one in line 2."),
    ),
    "an invalid byte": (
        lines(*ROWS).encode().replace(b"B,", b"\xc3\x28,"),
        {},
        Refused(
            "f.csv must be utf-8 text; got byte 0xc3 in line 3. Declare `format.enc"
        ),
    ),
    "half a surrogate pair": (
        lines(*ROWS).encode().replace(b"B,", b"\xed\xa0\x80,"),
        {},
        Refused("f.csv must be utf-8 text; got byte 0xed in line 3."),
    ),
    "cp1252 as declared": (
        lines(f"Z\u00fcrich\u20ac,{TEN},1").encode("cp1252"),
        {"format": {"encoding": "cp1252"}},
        a(1.0, entity="Z\u00fcrich\u20ac"),
    ),
    "a byte that cp1252 has not": (
        b"id,t,v\n\x81," + TEN.encode() + b",1\n",
        {"format": {"encoding": "cp1252"}},
        Refused("f.csv must be cp1252 text; got byte 0x81 in line 2."),
    ),
}
LINES: dict[str, Case] = {
    "ends of lines as on Windows": (lines(*ROWS, end="\r\n"), {}, Accepted(TWO)),
    "ends of lines as on old Macs": (lines(*ROWS, end="\r"), {}, Accepted(TWO)),
    "mixed ends of lines": (f"id,t,v\r\n{ROWS[0]}\n{ROWS[1]}\r", {}, Accepted(TWO)),
    "no end of the last line": (lines(*ROWS).rstrip(), {}, Accepted(TWO)),
    "one row": (line(), {}, a(1.5)),
    "unsorted rows": (lines(*reversed(ROWS)), {}, Accepted(TWO)),
    "blank lines": (lines("", ROWS[0], "", "", ROWS[1], ""), {}, Accepted(TWO)),
    "blank lines only": (
        "\n\r\n\n",
        {},
        Refused("f.csv must hold a header and rows; got an empty file."),
    ),
    "a line of blanks": (
        lines("   ", *ROWS),
        {},
        Refused(
            "every row of f.csv must have 3 cells; got 1 in row 0 ('   '). Complete"
        ),
    ),
    "a row of empty cells": (
        lines(",,", *ROWS),
        {},
        Accepted(TWO, ((0, "entity", "missing"),)),
    ),
    "a short row after blank lines": (
        lines("", ROWS[0], "", "B,"),
        {},
        Refused(
            "every row of f.csv must have 3 cells; got 2 in row 1 ('B,'). Complete"
        ),
    ),
    "a trailing delimiter everywhere": (
        f"id,t,v,\n{ROWS[0]},\n{ROWS[1]},\n",
        {},
        Accepted(TWO),
    ),
    "two trailing delimiters": (
        f"id,t,v,,\n{ROWS[0]},,\n",
        {},
        Refused("columns of f.csv must have different names; got '' more than once"),
    ),
    "a trailing delimiter in a row": (
        lines(ROWS[0], f"{ROWS[1]},"),
        {},
        Refused(
            "every row of f.csv must have 3 cells; got 4 in row 1 (", "Complete the row"
        ),
    ),
    "a second header": (
        lines(ROWS[0], "id,t,v", ROWS[1]),
        {},
        Refused("got 't' in row 1"),
    ),
    "a line above the header": (
        f"# made by hand\n{lines(*ROWS)}",
        {},
        Refused("column 'id' must be in f.csv; got # made by hand. Check the column's"),
    ),
    "a page of a website": (
        "<!DOCTYPE html>\n<html>Too many requests</html>\n",
        {},
        Refused(
            "column 'id' must be in f.csv; got <!DOCTYPE html>. Check the column's"
        ),
    ),
    "tabs as declared": (
        lines(*ROWS).replace(",", "\t"),
        {"path": "f.tsv", "format": {"delimiter": "\t"}},
        Accepted(TWO),
    ),
    "tabs undeclared": (
        lines(*ROWS).replace(",", "\t"),
        {"path": "f.tsv"},
        Refused("column 'id' must be in f.tsv; got id\tt\tv.", "`format.delimiter`"),
    ),
    "columns that differ in case": (f"id,t,V,v\nA,{TEN},1,2\n", {}, a(2.0)),
    "columns that differ in blanks": (f"id,t, v,v\nA,{TEN},1,2\n", {}, a(2.0)),
    "a column with a blank": (
        f"id,t, v\nA,{TEN},1\n",
        {},
        Refused("column 'v' must be in f.csv; got id, t,  v. Did you mean ' v'?"),
    ),
    "a repeated column that is not used": (
        f"id,t,v,x,x\nA,{TEN},1,2,3\n",
        {},
        Refused("columns of f.csv must have different names; got 'x' more than once"),
    ),
}
QUOTES: dict[str, Case] = {
    "a delimiter inside a quoted cell": (line(id='"A,B"'), {}, a(1.5, entity="A,B")),
    "a line break inside a quoted cell": (
        line(id='"A\r\nB"'),
        {},
        a(1.5, entity="A\r\nB"),
    ),
    "quotation marks inside a quoted cell": (
        line(id='"A ""b"""'),
        {},
        a(1.5, entity='A "b"'),
    ),
    "quotation marks inside a cell": (
        line(id='5" to 6"'),
        {},
        a(1.5, entity='5" to 6"'),
    ),
    "other quotation marks are letters": (line(id="'A'"), {}, a(1.5, entity="'A'")),
    "a backslash is a letter": (line(id='"A\\"'), {}, a(1.5, entity="A\\")),
    "text after a closing mark": (
        line(id='"A"B"'),
        {},
        Refused("f.csv must close every quotation mark; got an odd number"),
    ),
    "text between marks and delimiter": (
        line(id='"A"B'),  # parsers read AB
        {},
        Refused(
            'f.csv must close every quotation mark at the end of its cell; got \'"A"B,',
            'in line 2. Write a mark inside a quoted cell twice ("").',
        ),
    ),
    "a blank after a closing mark": (
        line(v='"1.5" '),
        {},
        Refused("f.csv must close every quotation mark at the end of its cell; got"),
    ),
    "a blank before an opening mark": (line(v=' "1.5"'), {}, not_numeric(' "1.5"')),
    "two marks that swallow a row": (
        f'{HEAD}A,{TEN},"x\nB,{TEN},y"\n',  # one cell, by the rules of quotation
        TEXT,
        a(f"x\nB,{TEN},y"),
    ),
}

# Files of another kind


def parquet(options: dict[str, Any] | None = None, /, **columns: Any) -> bytes:
    stamp = pa.array([dt.datetime(2024, 1, 2, 10, tzinfo=dt.UTC)])
    table = pa.table({"id": ["A"], "t": stamp, "v": [1.5]} | columns)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **(options or {}))
    return buffer.getvalue()


def stored(outcome: Refused | Accepted, /, **columns: Any) -> Case:
    return lambda: parquet(**columns), {"path": "f.parquet"}, outcome


def other_kind(column: str, kind: str) -> Refused:
    word = "must be numeric; got" if column == "v" else "must hold text; got"
    return Refused(f"{word} {kind}", error=TypeError)


OLD_STAMPS = {"use_deprecated_int96_timestamps": True}
PACKED = {"path": "f.csv.gz"}
NAIVE = {
    "path": "f.parquet",
    "event_time": {"column": "t", "stamp": "instant", "zone": "UTC"},
}
KINDS: dict[str, Case] = {
    "a folder": (None, {}, Refused("path must name a file; got 'f.csv'")),
    "text named as Parquet": (
        line(),
        {"path": "f.parquet"},
        Refused(
            "f.parquet must be a whole Parquet file; got", "if it is text, name it .csv"
        ),
    ),
    "Parquet named as text": (
        parquet,
        {},
        Refused("f.csv must be delimited text; got a Parquet file. Name it .parquet."),
    ),
    "gzip named as text": (
        gzip.compress(line().encode()),
        {},
        Refused(
            "f.csv must be delimited text; got a gzip file. Let its name end in .gz."
        ),
    ),
    "a workbook named as text": (
        b"PK\x03\x04 and so on",
        {},
        Refused("f.csv must be delimited text; got a zip archive or a workbook. Save"),
    ),
    "an empty gzip": (
        gzip.compress(b""),
        PACKED,
        Refused("f.csv.gz must hold a header"),
    ),
    "rubbish after a gzip": (
        gzip.compress(line().encode()) + b"rubbish",
        PACKED,
        Refused(
            "f.csv.gz must be a whole gzip file; got", "Copy or download it again."
        ),
    ),
    "a gzip with another checksum": (
        gzip.compress(line().encode())[:-8] + b"\1\2\3\4\0\0\0\0",
        PACKED,
        Refused("f.csv.gz must be a whole gzip file; got CRC check failed"),
    ),
    "zeros after a gzip": (gzip.compress(line().encode()) + b"\0" * 9, PACKED, a(1.5)),
    "a gzip of two members": (
        gzip.compress(lines(ROWS[0]).encode()) + gzip.compress(ROWS[1].encode()),
        PACKED,
        Accepted(TWO),
    ),
    "half a Parquet file": (
        lambda: parquet()[:-20],
        {"path": "f.parquet"},
        Refused("f.parquet must be a whole Parquet file; got", "Write it again"),
    ),
    "a damaged page of Parquet": (
        lambda: parquet()[:30] + b"\xff" + parquet()[31:],
        {"path": "f.parquet"},
        Refused("f.parquet must be a whole Parquet file; got", "Write it again"),
    ),
    "an empty Parquet file": (
        b"",
        {"path": "f.parquet"},
        Refused("f.parquet must be a whole Parquet file; got Parquet file size is 0"),
    ),
    "Parquet without rows": stored(
        Refused("f.parquet must hold a row; got a header only."),
        id=pa.array([], pa.string()),
        t=pa.array([], pa.timestamp("us", "UTC")),
        v=pa.array([], pa.float64()),
    ),
    "old stamps of Parquet beyond nanoseconds": (
        # As 64-bit nanoseconds, the year 9999 is 1816.
        lambda: parquet(OLD_STAMPS, t=pa.array([dt.datetime(9999, 12, 31)])),
        NAIVE,
        Refused(
            "event_time must lie in the years 1678 to 2261; got datetime.datetime(9999, 12,",
            "in row 0 of f.parquet (column 't'). Correct or remove the row.",
        ),
    ),
    "old stamps of Parquet": (
        lambda: parquet(OLD_STAMPS, t=pa.array([dt.datetime(2024, 1, 2, 10)])),
        NAIVE,
        a(1.5),
    ),
}
PARQUET: dict[str, Case] = {
    "ids in a dictionary": stored(a(1.5), id=pa.array(["A"]).dictionary_encode()),
    "ids as views": stored(a(1.5), id=pa.array(["A"], pa.string_view())),
    "ids as floats": stored(other_kind("id", "double"), id=pa.array([7.0])),
    "ids as bytes": stored(other_kind("id", "binary"), id=pa.array([b"A"])),
    "values as decimals": stored(a(0.1), v=pa.array([Decimal("0.1")])),
    "values as long decimals": stored(
        a(123456789.123456789), v=pa.array([Decimal("123456789.123456789")])
    ),
    "a decimal that a float cannot hold": stored(
        Refused(
            "values.v must fit a float64; got Decimal('9007199254740993') in row 0 of "
            "f.parquet (column 'v'). Keep ids as text"
        ),
        v=pa.array([Decimal("9007199254740993")]),
    ),
    "an integer that a float cannot hold": stored(
        Refused(
            "values.v must fit a float64; got 18446744073709551615 in row 0 of f.parq"
        ),
        v=pa.array([2**64 - 1], pa.uint64()),
    ),
    "a long integer that a float can hold": stored(
        a(2.0**53 + 2), v=pa.array([2**53 + 2])
    ),
    "single precision is widened exactly": stored(
        a(0.10000000149011612), v=pa.array([0.1], pa.float32())
    ),
    "no number": stored(
        Accepted([], ((0, "v", "no value"),)), v=pa.array([float("nan")])
    ),
    "an infinite number": stored(
        Accepted([], ((0, "v", "infinite"),)), v=pa.array([float("-inf")])
    ),
    "a null": stored(Accepted([], ((0, "v", "no value"),)), v=pa.nulls(1)),
    "numbers as text": stored(a(1.5), v=pa.array(["1.5"])),
    "a list": stored(other_kind("v", "list<element: double>"), v=pa.array([[1.0]])),
    "a struct": stored(other_kind("v", "struct<a: double>"), v=pa.array([{"a": 1.0}])),
    "dates as values": stored(
        other_kind("v", "date32"), v=pa.array([dt.date(2024, 1, 2)])
    ),
    "durations as values": stored(
        other_kind("v", "duration"), v=pa.array([5], pa.duration("s"))
    ),
    "a list that is not used": stored(a(1.5), x=pa.array([[1]])),
    "dates for instants": stored(
        other_kind("t", "date32"), t=pa.array([dt.date(2024, 1, 2)])
    ),
    "times for instants": stored(other_kind("t", "time64"), t=pa.array([dt.time(10)])),
    "stamps as text": stored(a(1.5), t=pa.array([TEN])),
    "a stamp beyond nanoseconds": stored(
        Refused(
            "event_time must lie in the years 1678 to 2261; got", "in row 0 of f.parq"
        ),
        t=pa.array([253402214400], pa.timestamp("s", "UTC")),
    ),
    "a date of Parquet after 2261": (
        lambda: parquet(t=pa.array([dt.date(9999, 12, 31)])),
        date() | {"path": "f.parquet"},
        Refused(
            "event_time must lie in the years 1678 to 2261; got datetime.date(9999"
        ),
    ),
    "a time of day in a date of Parquet": (
        lambda: parquet(t=pa.array([dt.datetime(2024, 1, 2, 3)])),
        date() | {"path": "f.parquet"},
        Refused(
            "event_time must be a date without a time of day", "in row 0 of f.parquet"
        ),
    ),
    "a sequence of floats": (
        lambda: parquet(n=pa.array([1.0])),
        {"path": "f.parquet", "sequence": "n"},
        Refused(
            "sequence must hold whole numbers; got double in column 'n'",
            error=TypeError,
        ),
    ),
    "a sequence of Parquet above 64 bits": (
        lambda: parquet(n=pa.array([2**63], pa.uint64())),
        {"path": "f.parquet", "sequence": "n"},
        Refused(
            "sequence must fit 64 bits; got 9223372036854775808 in row 0 of f.parquet"
        ),
    ),
    "numbers where texts are declared": (
        parquet,
        TEXT | {"path": "f.parquet"},
        Refused("column 'v' of f.parquet must hold text; got double", error=TypeError),
    ),
}
CASES = ENCODINGS | LINES | QUOTES | KINDS | PARQUET


@pytest.mark.parametrize("case", CASES)
def test_a_malformed_file_is_refused_in_words_or_read_as_documented(
    tmp_path: Path, case: str
) -> None:
    check_file(tmp_path, CASES[case])


@pytest.mark.parametrize("name", ["f.csv", "f.parquet"])
def test_a_file_that_may_not_be_read_is_refused_by_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    (tmp_path / name).write_text(line())
    monkeypatch.setattr(Path, "read_bytes", forbidden)
    monkeypatch.setattr(pq, "ParquetFile", forbidden)
    message = rf"{name} must be readable; got .*Permission denied.* permissions"
    with pytest.raises(ValueError, match=message):
        event_log([declared(path=name)], base=tmp_path)
