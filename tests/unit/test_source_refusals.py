from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log

NEW_YORK = "America/New_York"
PLAIN = """id,t,v
007,2024-01-02T10:00:00Z,1.5
NA,2024-01-02T10:00:00Z,2
"""
EUROPEAN = """\ufeffdatum;asset;kurs;umsatz
2024-01-02;007;1.234,50;12.000
2024-01-02;NA;0,75;950
2024-01-02;TRUE;-2,40;1
"""
EUROPEAN_COLUMNS: dict[str, Any] = {
    "entity": {"column": "asset"},
    "event_time": {
        "column": "datum",
        "stamp": "date",
        "at": "17:30",
        "zone": "Europe/Berlin",
    },
    "values": {"price": "kurs", "volume": "umsatz"},
}
LOCAL: dict[str, Any] = {
    "entity": "*",
    "event_time": {"column": "t", "stamp": "instant", "zone": NEW_YORK},
}


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": {"column": "id"},
        "event_time": {"column": "t", "stamp": "instant"},
        "available_at": {"lag": "0s"},
        "values": {"v": "v"},
    }
    return TabularSource.model_validate(plain | changes)


def read(folder: Path, content: str | bytes, **changes: Any) -> EventLog:
    declaration = declared(**changes)
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / declaration.name).write_bytes(raw)
    return event_log([declaration], base=folder)


def rows(*cells: str) -> str:
    return "\n".join(["t,v", *(f"{cell},{n}" for n, cell in enumerate(cells))])


DATE_STAMP = {"column": "t", "stamp": "date", "at": "15:30", "zone": NEW_YORK}
SEMICOLON = {"delimiter": ";"}
REFUSED: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "empty file": ("", {}, "f.csv must hold a header and rows; got an empty file"),
    "header only": ("id,t,v\n", {}, "f.csv must hold a row; got a header only"),
    "missing column": (
        PLAIN.replace("id,t,v", "id,time,V "),
        {},
        "column 't' must be in f.csv; got id, time, V ",
    ),
    "nearest column": (
        PLAIN.replace("id,t,v", "id,t,V "),
        {},
        "column 'v' must be in f.csv; got id, t, V . Did you mean 'V '?",
    ),
    "repeated column": (
        PLAIN.replace("id,t,v", "id,v,v"),
        {},
        "columns of f.csv must have different names; got 'v' more than once",
    ),
    "short row": (
        PLAIN + "A,2024-01-02T10:00:00Z\n",
        {},
        "every row of f.csv must have 3 cells; got 2 in row 2 ('A,2024",
    ),
    "long row": (
        PLAIN.replace("1.5", "1,5"),
        {},
        "every row of f.csv must have 3 cells; got 4 in row 0",
    ),
    "open quotation": (
        PLAIN.replace("1.5", '"1.5'),
        {},
        "f.csv must close every quotation mark",
    ),
    "truncated gzip": (
        gzip.compress(PLAIN.encode())[:-9],
        {"path": "f.csv.gz"},
        "f.csv.gz must be a whole gzip file; got Compressed file ended",
    ),
    "not gzip": (
        PLAIN,
        {"path": "f.csv.gz"},
        "f.csv.gz must be a whole gzip file; got Not a gzipped file",
    ),
    "not Parquet": (
        PLAIN,
        {"path": "f.parquet"},
        "f.parquet must be a whole Parquet file; got Parquet magic bytes",
    ),
    "other encoding": (
        EUROPEAN.removeprefix("\ufeff").replace("umsatz", "stück").encode("cp1252"),
        EUROPEAN_COLUMNS | {"format": SEMICOLON},
        "f.csv must be utf-8 text; got byte 0xfc in line 1. Declare `format.encoding`",
    ),
    "undeclared delimiter": (
        EUROPEAN,
        EUROPEAN_COLUMNS,
        "column 'asset' must be in f.csv; got datum;asset;kurs;umsatz. "
        "Check the column's name and `format.delimiter`.",
    ),
    "undeclared decimal": (
        EUROPEAN,
        EUROPEAN_COLUMNS | {"format": SEMICOLON},
        "values.price must be numeric; got '1.234,50' in row 0 of f.csv (column 'kurs')."
        " Leave a missing cell empty; or declare `format.decimal`",
    ),
    "undeclared thousands": (
        EUROPEAN,
        EUROPEAN_COLUMNS | {"format": SEMICOLON | {"decimal": ","}},
        "values.price must be numeric; got '1.234,50' in row 0",
    ),
    "thousands in odd groups": (
        PLAIN.replace("1.5", '"12,34"'),
        {"format": {"thousands": ","}},
        "values.v must be numeric; got '12,34' in row 0 of f.csv (column 'v')",
    ),
    "word for missing": (
        PLAIN.replace("1.5", "nan"),
        {},
        "values.v must be numeric; got 'nan' in row 0 of f.csv (column 'v')",
    ),
    "number after `where`": (
        PLAIN.replace(",2\n", ",x\n"),
        {"where": {"id": ["NA"]}},
        "values.v must be numeric; got 'x' in row 1 of f.csv",
    ),
    "cell of `where`": (
        PLAIN,
        {"where": {"id": ["07"]}},
        "where.id must list cells of column 'id' of f.csv; got '07'. "
        "Did you mean '007'?",
    ),
    "`where` without rows": (
        PLAIN.replace("T10", "T11", 1),
        {"where": {"id": ["NA"], "t": ["2024-01-02T11:00:00Z"]}},
        "where must leave a row of f.csv; got none",
    ),
    "nameless stream": (
        PLAIN.replace("NA", ""),
        {"stream": "x/{id}"},
        "stream must have a name; got '' in row 1 of f.csv (column 'id')",
    ),
    "fractional sequence": (
        PLAIN,
        {"sequence": "v"},
        "sequence must be a whole number; got '1.5' in row 0 of f.csv (column 'v')",
    ),
    "long sequence": (
        PLAIN.replace("1.5", "9223372036854775808"),
        {"sequence": "v"},
        "sequence must fit 64 bits; got '9223372036854775808' in row 0 of f.csv",
    ),
    "two values of one event": (
        PLAIN.replace("NA", "007"),
        {},
        "f.csv: one event must have one set of values; got two for (entity 007",
    ),
    "rows of two values": (
        PLAIN.replace("NA", "007"),
        {},
        "Declare a `sequence` that says which came later. The rows are 0, 1.",
    ),
    "known before it was": (
        PLAIN,
        {"available_at": {"days": 0, "at": "01:00", "zone": "UTC"}},
        "event_time must not be after available_at; got 2024-01-02 10:00:00+00:00 > "
        "2024-01-02 01:00:00+00:00 in rows 0, 1 of f.csv (column 't')",
    ),
    "naive instant": (
        PLAIN.replace("Z", ""),
        {},
        "event_time must be timezone-aware; got '2024-01-02T10:00:00' in row 0 of f.csv "
        "(column 't'). Declare `event_time.zone` for this source.",
    ),
    "naive availability": (
        PLAIN.replace("Z", ""),
        {
            "event_time": {"column": "t", "stamp": "instant", "zone": "UTC"},
            "available_at": {"column": "t"},
        },
        "available_at must be timezone-aware; got '2024-01-02T10:00:00' in row 0",
    ),
    "some offsets": (
        PLAIN.replace("Z,2", ",2"),
        {},
        "event_time must have an offset in all rows or in none; got "
        "'2024-01-02T10:00:00' in row 1 of f.csv (column 't')",
    ),
    "date for an instant": (
        PLAIN.replace("T10:00:00Z", ""),
        {},
        "event_time must be an instant such as 2024-03-01T16:00:00Z; got '2024-01-02'",
    ),
    "instant for a date": (
        PLAIN,
        {"event_time": DATE_STAMP},
        "event_time must be a date such as 2024-03-01; got '2024-01-02T10:00:00Z'",
    ),
    "mixed layouts": (
        PLAIN.replace("2024-01-02T10:00:00Z,2", "02/01/2024 10:00,2"),
        {},
        "event_time must be an instant such as 2024-03-01T16:00:00Z; got "
        "'02/01/2024 10:00' in row 1 of f.csv (column 't')",
    ),
    "no such day": (
        PLAIN.replace("01-02", "02-30"),
        {},
        "event_time must be an instant such as 2024-03-01T16:00:00Z; got "
        "'2024-02-30T10:00:00Z' in row 0",
    ),
    "beyond nanoseconds": (
        PLAIN.replace("2024", "9999"),
        {},
        "event_time must lie in the years 1678 to 2261; got '9999-01-02T10:00:00Z'",
    ),
    "other than the format": (
        PLAIN,
        {"event_time": {"column": "t", "stamp": "instant", "format": "%d.%m.%Y %H%z"}},
        "event_time must match the format '%d.%m.%Y %H%z'; got '2024-01-02T10:00:00Z'",
    ),
    "unknown directive": (
        PLAIN,
        {"event_time": {"column": "t", "stamp": "instant", "format": "%Q"}},
        "event_time.format must hold strptime directives; got '%Q'",
    ),
    "time in a date's format": (
        PLAIN.replace("T10:00:00Z", " 10h"),
        {"event_time": DATE_STAMP | {"format": "%Y-%m-%d %Hh"}},
        "event_time must be a date without a time of day or a zone; got '2024-01-02 10h'",
    ),
    "no such period": (
        PLAIN.replace("2024-01-02T10:00:00Z", "2024-Q5"),
        {"event_time": {"column": "t", "stamp": "period_end", "zone": NEW_YORK}},
        "event_time must be a month such as 2008-01, a quarter such as 2008-Q1 or a year; "
        "got '2024-Q5' in row 0",
    ),
    "hour told once": (
        rows("2024-11-03 00:30:00", "2024-11-03 01:30:00", "2024-11-03 02:00:00"),
        LOCAL,
        "event_time must name one instant in America/New_York; got "
        "'2024-11-03 01:30:00' in row 1 of f.csv (column 't')",
    ),
    "hour told backwards": (
        rows(*(f"2024-11-03 {t}" for t in ("02:30", "01:30", "01:30", "00:30"))),
        LOCAL,
        "event_time must name one instant in America/New_York; got '2024-11-03 01:30'",
    ),
    "repeated stamps": (
        rows(*(f"2024-11-03 {t}" for t in ("00:30", "00:30", "01:30", "01:30"))),
        LOCAL,
        "event_time must name one instant in America/New_York; got '2024-11-03 01:30'",
    ),
    "hour left out": (
        rows("2024-03-10 01:30:00", "2024-03-10 02:30:00", "2024-03-10 03:00:00"),
        LOCAL,
        "event_time must exist in America/New_York; got '2024-03-10 02:30:00' in row 1 "
        "of f.csv (column 't')",
    ),
    "time of day left out": (
        rows("2024-03-10"),
        {"entity": "*", "event_time": DATE_STAMP | {"at": "02:30"}},
        "event_time must be one instant at 02:30 in America/New_York; got '2024-03-10'",
    ),
    "beyond the calendar": (
        rows("1960-01-04"),
        {
            "entity": "*",
            "event_time": DATE_STAMP,
            "available_at": {
                "sessions": 1,
                "calendar": "us_federal",
                "at": "16:15",
                "zone": NEW_YORK,
            },
        },
        "available_at of f.csv: calendar 'us_federal' covers 1978-01-01 to",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_file_is_refused_with_its_place_and_the_remedy(
    tmp_path: Path, case: str
) -> None:
    content, changes, message = REFUSED[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, content, **changes)


def test_missing_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text(PLAIN)
    with pytest.raises(
        ValueError, match=r"got 'price\.csv'.*Did you mean 'prices\.csv'"
    ):
        event_log([declared(path="price.csv")], base=tmp_path)


@pytest.mark.parametrize(
    ("column", "cells", "error", "message"),
    [
        ("id", [7], TypeError, "column 'id' of f.parquet must hold text; got int64"),
        ("v", [True], TypeError, "values.v must be numeric; got bool in column 'v'"),
        ("v", [2**53 + 1], ValueError, "values.v must fit a float64"),
        ("t", [5], TypeError, "column 't' of f.parquet must hold text; got int64"),
        (
            "t",
            [pd.Timestamp("2024-01-02 10:00")],
            ValueError,
            "event_time must be timezone-aware; got datetime.datetime(2024, 1, 2, 10, 0)",
        ),
    ],
)
def test_parquet_of_another_kind_is_refused(
    tmp_path: Path, column: str, cells: list[Any], error: type[Exception], message: str
) -> None:
    frame = pd.DataFrame(
        {"id": ["A"], "t": [pd.Timestamp("2024-01-02T10:00Z")], "v": [1.0]}
    )
    frame.assign(**{column: cells}).to_parquet(tmp_path / "f.parquet")
    with pytest.raises(error, match=re.escape(message)):
        event_log([declared(path="f.parquet")], base=tmp_path)


def test_a_format_for_datetimes_of_parquet_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [pd.Timestamp("2024-01-02T10:00Z")], "v": [1.0]})
    frame.to_parquet(tmp_path / "f.parquet")
    stamp = {"column": "t", "stamp": "instant", "format": "%Y-%m-%d %H%z"}
    source = declared(path="f.parquet", entity="*", event_time=stamp)
    with pytest.raises(ValueError, match=r"event_time\.format must be left out where"):
        event_log([source], base=tmp_path)


def test_announced_events_may_be_known_before_they_happen(tmp_path: Path) -> None:
    content = "t,v,known\n2024-02-01T00:00:00Z,1,2024-01-01T00:00:00Z\n"
    known = {"column": "known"}
    log = read(tmp_path, content, entity="*", available_at=known, scheduled=True)
    assert log.scheduled == {"s"}
    assert len(log) == 1


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"wher": {}}, "has no key 'wher'. Did you mean 'where'?"),
    "two files": (
        {"sample": "a.csv"},
        "must name its file by `path` or `sample`; got both",
    ),
    "no file": ({"path": None}, "must name its file by `path` or `sample`; got none"),
    "other kind of file": ({"path": "f.xlsx"}, "must name a file that ends in .csv,"),
    "text format of Parquet": (
        {"path": "f.parquet", "format": SEMICOLON},
        "must not declare a text `format` for Parquet",
    ),
    "no values": ({"values": {}}, "must have `values` or `text`; got neither"),
    "value named as a clock": (
        {"values": {"event_time": "v"}},
        "must name its `values` by words like `price` that no other column of a stream "
        "has; got 'event_time'",
    ),
    "two templates": (
        {"stream": "{a}/{b}"},
        "must have as `stream` a name, or a template",
    ),
    "open template": (
        {"stream": "x/{a"},
        "must have as `stream` a name, or a template",
    ),
    "number for an id": ({"entity": 7}, "text (in quotes if it looks like a number)"),
    "number in where": ({"where": {"id": [7]}}, "Input should be a valid string"),
    "change of a text": (
        {
            "values": {"v": {"column": "v", "kind": "text"}},
            "change": {"column": "v", "kind": "log"},
        },
        "must take its `change` of a number among its values (); got 'v'",
    ),
    "no stamp": (
        {"event_time": {"column": "t"}},
        "a mapping whose `stamp` is instant, date, session_close, local_midnight, ",
    ),
    "no rule": (
        {"available_at": {"at": "15:30"}},
        "a mapping with `column`, `vintage`, `sessions`, `days` or `lag`",
    ),
    "two rules": ({"available_at": {"column": "t", "lag": "1s"}}, "has no key 'lag'"),
    "date without time": (
        {"event_time": {"column": "t", "stamp": "date", "zone": NEW_YORK}},
        "Field required",
    ),
    "bar without length": (
        {"event_time": {"column": "t", "stamp": "bar_open", "bar": "0s"}},
        "must be longer than nothing; got '0s'",
    ),
    "duration in words": (
        {"available_at": {"lag": "1 hour"}},
        "must be a whole number and one of ns, us, ms, s, min, h, d, such as '90min'",
    ),
    "unknown zone": (
        {"event_time": DATE_STAMP | {"zone": "America/NewYork"}},
        "must be an IANA zone such as America/New_York; got 'America/NewYork'. "
        "Did you mean 'America/New_York'",
    ),
    "unknown calendar": (
        {
            "available_at": {
                "sessions": 1,
                "calendar": "NYES",
                "at": "16:00",
                "zone": NEW_YORK,
            }
        },
        "must be us_federal, us_federal_board or a name of exchange_calendars; got 'NYES'",
    ),
    "date without zone": (
        {"available_at": {"column": "t", "at": "16:00"}},
        "must have a `zone` for its `at`; got '16:00' alone",
    ),
    "offset of a date": (
        {"event_time": DATE_STAMP | {"format": "%Y-%m-%d%z"}},
        "must not hold %z, as a date has no offset",
    ),
    "zone names": (
        {"event_time": {"column": "t", "stamp": "instant", "format": "%H:%M %Z"}},
        "with %z for an offset and without %Z",
    ),
    "unknown encoding": (
        {"format": {"encoding": "utf8x"}},
        "must be a text encoding such as utf-8 or cp1252; got 'utf8x'",
    ),
    "one mark for two": (
        {"format": {"decimal": ",", "thousands": ","}},
        "must have different marks as `decimal` and `thousands`; got ','",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_setting_is_refused(case: str) -> None:
    changes, message = WRONG[case]
    with pytest.raises(ValidationError, match=re.escape(message)):
        declared(**changes)


def test_unquoted_time_of_day_is_refused_with_the_reason() -> None:
    stamp = yaml.safe_load("{column: t, stamp: date, at: 15:30, zone: UTC}")
    with pytest.raises(ValidationError, match="quoted text such as '15:30'; got 930"):
        declared(event_time=stamp)


def test_resolved_declaration_reads_back_as_itself() -> None:
    for source in (
        declared(where={"id": ["A"]}, format=SEMICOLON, assumptions=["assumed"]),
        declared(
            path="f.parquet", text={"column": "v", "hashing": {"num_features": 2}}
        ),
        declared(event_time=DATE_STAMP, change={"column": "v", "kind": "percent"}),
    ):
        plain = json.loads(json.dumps(source.model_dump(mode="json")))
        assert TabularSource.model_validate(plain) == source
