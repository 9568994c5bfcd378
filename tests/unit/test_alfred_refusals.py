from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from infoset.data.sources import AnySource, Source, event_log

NEW_YORK = "America/New_York"
SOURCE: TypeAdapter[Source] = TypeAdapter(AnySource)
WIDE = """observation_date,PAYEMS_20080201,PAYEMS_20080307
2007-11-01,138037,138037
2007-12-01,138119,138078
2008-01-01,138102,138056
"""
PLAIN = "DATE,PAYEMS\n2007-12-01,138119\n2008-01-01,138102\n"
MONTHLY = {
    "preset": "alfred",
    "path": "f.csv",
    "frequency": "monthly",
    "at": "08:30",
    "zone": NEW_YORK,
}
JSON = {"path": "f.json", "series": ["PAYEMS"]}
LISTED = {
    "realtime_start": "2008-02-01",
    "realtime_end": "9999-12-31",
    "date": "2008-01-01",
    "value": "138102",
}
FILES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no date column": (
        WIDE.replace("observation_date", "date"),
        {},
        "the first column of f.csv must be observation_date or DATE; got 'date'",
    ),
    "no values": (
        "DATE\n2008-01-01\n",
        {},
        "f.csv must hold a column of values; got DATE alone",
    ),
    "no value": (
        "DATE,X_20080201\n2008-01-01,.\n",
        {},
        "f.csv must hold a value; got none for X",
    ),
    "no vintage": (
        PLAIN,
        {},
        "f.csv must say its vintage; got column 'PAYEMS' instead of PAYEMS_YYYYMMDD: "
        "values as they read on the day of the download, whenever they were published. "
        "Declare that day, such as `vintage: 2024-08-07`; or `published`",
    ),
    "vintage and none": (
        WIDE.replace("PAYEMS_20080307", "UNRATE"),
        {},
        "every column of f.csv must name a vintage (SERIES_YYYYMMDD) or none; got UNRATE",
    ),
    "no such day": (
        WIDE.replace("20080307", "20080231"),
        {},
        "must end in the day of its vintage, YYYYMMDD; got 'PAYEMS_20080231'",
    ),
    "vintage of vintages": (
        WIDE,
        {"vintage": "2008-03-08"},
        "vintage must be left out for files that name their vintages; got 2008-03-08",
    ),
    "schedule of vintages": (
        WIDE,
        {"published": {"days": 3, "at": "08:30", "zone": NEW_YORK}, "at": None},
        "published must be left out for files with vintages; got 2 of them in f.csv",
    ),
    "other frequency": (
        WIDE,
        {"frequency": "quarterly"},
        "frequency must fit the dates of PAYEMS in f.csv; got 'quarterly', but they lie "
        "30.5 days apart. Declare `frequency: monthly`",
    ),
    "day inside a month": (
        WIDE.replace("2007-12-01", "2007-12-02"),
        {},
        "event_time must be the first day of a month; got datetime.date(2007, 12, 2) in "
        "row 1 of f.csv (column 'observation_date')",
    ),
    "no date": (
        WIDE.replace("2007-12-01", "12/1/2007"),
        {},
        "observation_date must be a date such as 2008-01-01; got '12/1/2007' in row 1",
    ),
    "date twice": (
        WIDE.replace("2007-12-01", "2007-11-01"),
        {},
        "observation_date must name a period once; got '2007-11-01' in row 1 of f.csv",
    ),
    "no number": (
        WIDE.replace("138078", "n.a."),
        {},
        "a value must be a number; got 'n.a.' in row 1 of f.csv (column "
        "'PAYEMS_20080307'). Correct the cell; a missing value is empty, '.' or '#N/A'.",
    ),
    "infinite": (
        WIDE.replace("138078", "1e999"),
        {},
        "a value must be finite; got '1e999' in row 1",
    ),
    "known before its end": (
        WIDE.replace("20080201", "20080131"),
        {},
        "event_time must not be after available_at; got 2008-02-01 05:00:00+00:00 > "
        "2008-01-31 13:30:00+00:00 in rows 2 of f.csv",
    ),
    "unknown series": (
        WIDE,
        {"series": ["PAYEM"]},
        "series must name series of f.csv; got 'PAYEM'. Did you mean 'PAYEMS'?",
    ),
    "series without a name": (
        WIDE.replace("PAYEMS_20080307", "UNRATE_20080307"),
        {"stream": "macro"},
        "stream or entity must tell the series of f.csv apart (PAYEMS, UNRATE); got "
        "'macro' and '*'",
    ),
    "error of the API": (
        json.dumps({"error_code": 400, "error_message": "Bad Request."}),
        JSON,
        "f.json must hold observations of the FRED API, each with its date; got Bad Req",
    ),
    "broken JSON": ("{", JSON, "f.json must be JSON; got Expecting property name"),
    "nameless answer": (
        json.dumps({"observations": [LISTED]}),
        {"path": "f.json"},
        "series must name the one series of f.json, as an answer of output type 1 does "
        "not; got none. Declare `series: [NAME]`",
    ),
    "no real-time period": (
        json.dumps({"observations": [{"date": "2008-01-01", "value": "1"}]}),
        JSON,
        "every observation of f.json must have realtime_start, realtime_end, date, "
        "value; got no realtime_start",
    ),
    "period that ends first": (
        json.dumps({"observations": [LISTED | {"realtime_end": "2008-01-31"}]}),
        JSON,
        "realtime_end must not be before realtime_start; got '2008-01-31' in row 0",
    ),
}
DECLARATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "no time of day": (
        {"at": None},
        "must have `at`, the local time of day at which a vintage appears: the files hold "
        "its day alone",
    ),
    "daily without a time": (
        {"frequency": "daily"},
        "must have `observed_at` (the local time of day of a value) for `frequency: daily`",
    ),
    "monthly with a time": ({"observed_at": "16:00"}, "must have `observed_at`"),
    "no zone": ({"zone": None}, "Input should be a valid string"),
    "number for a day": (
        {"vintage": 20240807},
        "must be a date such as 2024-08-07; got 20240807",
    ),
    "backfilled vintages": (
        {"backfilled": [{"first": "2002-02-19", "last": "2006-02-08"}]},
        "must have `backfilled` periods only with `published`",
    ),
    "span in reverse": (
        {"backfilled": [{"first": "2006-02-08", "last": "2002-02-19"}]},
        "must not have `first` after `last`; got 2006-02-08 > 2002-02-19",
    ),
    "schedule and vintage": (
        {"published": {"lag": "1d"}, "vintage": "2024-08-07"},
        "must have `vintage` and `at` beside `published` if there are `backfilled`",
    ),
    "column of a schedule": (
        {"published": {"column": "known"}},
        "a mapping with `sessions`, `days` or `lag`",
    ),
    "other suffix": ({"path": "f.xls"}, "must name files that end in .csv, .tsv, .txt"),
    "other template": ({"stream": "macro/{id}"}, "or a template with {series}; got"),
    "other entity": ({"entity": {"column": "id"}}, "a name or {column: series}; got"),
    "mistyped preset": ({"preset": "alfrd"}, "got 'alfrd'. Did you mean 'alfred'?"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_say_something_else_are_refused(tmp_path: Path, case: str) -> None:
    content, changes, message = FILES[case]
    source = SOURCE.validate_python(MONTHLY | changes)
    (tmp_path / source.name).write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        event_log([source], base=tmp_path)


@pytest.mark.parametrize("case", DECLARATIONS)
def test_declarations_that_leave_time_open_are_refused(case: str) -> None:
    changes, message = DECLARATIONS[case]
    with pytest.raises(ValidationError, match=re.escape(message)):
        SOURCE.validate_python(MONTHLY | changes)
