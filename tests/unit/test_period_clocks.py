from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log
from infoset.pipeline.report.clocks import available_words, dated_words

NEW_YORK = "America/New_York"
# Growth of real GDP (BEA, % a year, public domain). The first estimate of 2018-Q4 came
# out on 2019-02-28, after the government's shutdown; a table has it a year too early.
GDP = """ref_quarter,estimate,release_date,growth
2017-Q4,1,2018-01-26,2.6
2018-Q4,1,2018-01-26,2.6
2018-Q4,2,2019-02-28,2.6
"""


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": "*",
        "event_time": {"column": "t", "stamp": "period_end", "zone": NEW_YORK},
        "available_at": {"column": "known", "stamp": "period_end", "zone": NEW_YORK},
        "values": {"v": "v"},
    }
    return TabularSource.model_validate(plain | changes)


def read(folder: Path, content: str, **changes: Any) -> EventLog:
    (folder / "f.csv").write_text(content)
    return event_log([declared(**changes)], base=folder)


def clock(log: EventLog, name: str) -> list[str]:
    return [f"{time:%Y-%m-%dT%H:%M}" for time in log.to_pandas("s")[name]]


@pytest.mark.parametrize(
    ("cell", "end"),
    [
        ("2008-01", "2008-02-01T05:00"),
        ("2008:12", "2009-01-01T05:00"),
        ("2008-Q2", "2008-07-01T04:00"),
        ("2008Q2", "2008-07-01T04:00"),
        ("2008:Q2", "2008-07-01T04:00"),
        ("2008", "2009-01-01T05:00"),
    ],
)
def test_periods_are_known_by_their_names(tmp_path: Path, cell: str, end: str) -> None:
    log = read(tmp_path, f"t,known,v\n1999,{cell},1\n")
    assert clock(log, "event_time") == ["2000-01-01T05:00"]
    assert clock(log, "available_at") == [end]


@pytest.mark.parametrize(
    ("period", "date", "end"),
    [
        ("month", "12/1/85", "1986-01-01T05:00"),
        ("quarter", "4/1/85", "1985-07-01T04:00"),
        ("half_year", "7/1/85", "1986-01-01T05:00"),
        ("year", "1/1/85", "1986-01-01T05:00"),
    ],
)
def test_a_date_can_stand_for_the_period_it_begins(
    tmp_path: Path, period: str, date: str, end: str
) -> None:
    stamp = {
        "column": "t",
        "stamp": "period_start",
        "period": period,
        "zone": NEW_YORK,
        "format": "%m/%d/%y",
    }
    log = read(tmp_path, f"t,known,v\n{date},2008-01,1\n", event_time=stamp)
    assert clock(log, "event_time") == [end]


def test_a_whole_file_can_be_one_vintage(tmp_path: Path) -> None:
    vintage = {"vintage": "2016-06-29", "at": "24:00", "zone": NEW_YORK}
    content = "t,v\n2016-04,1\n2016-05,2\n"
    log = read(tmp_path, content, available_at=vintage)
    assert clock(log, "available_at") == ["2016-06-30T04:00"] * 2


@pytest.mark.parametrize(
    ("date", "message"),
    [
        (
            "2008-02-02",
            "event_time must be the first day of a quarter; got '2008-02-02'",
        ),
        (
            "2008-02-01",
            "event_time must be the first day of a quarter; got '2008-02-01'",
        ),
    ],
)
def test_a_date_inside_its_period_is_refused(
    tmp_path: Path, date: str, message: str
) -> None:
    stamp = {
        "column": "t",
        "stamp": "period_start",
        "period": "quarter",
        "zone": NEW_YORK,
    }
    with pytest.raises(ValueError, match=re.escape(message) + r" in row 0 of f\.csv"):
        read(tmp_path, f"t,known,v\n{date},2008-12,1\n", event_time=stamp)


def test_a_vintage_that_is_no_period_is_refused(tmp_path: Path) -> None:
    message = (
        "available_at must be a month such as 2008-01, a quarter such as 2008-Q1 or a "
        "year; got '2008-13' in row 0 of f.csv (column 'known')"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, "t,known,v\n2007,2008-13,1\n")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {"column": "k", "stamp": "period_end"},
            "must have a `zone` for its period's end",
        ),
        (
            {"column": "k", "stamp": "period_end", "zone": "UTC", "at": "08:30"},
            "must not have `at` or `format` with `stamp: period_end`; got '08:30'",
        ),
        (
            {"vintage": "2016-06-31", "at": "24:00", "zone": "UTC"},
            "Input should be a valid date",
        ),
        (
            {"vintage": 20160629, "at": "24:00", "zone": "UTC"},
            "must be a date such as 2024-08-07; got 20160629",
        ),
        ({"vintage": "2016-06-29", "at": "24:30", "zone": "UTC"}, "got '24:30'"),
    ],
)
def test_unclear_vintages_are_refused(rule: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        declared(available_at=rule)


def test_a_release_before_its_quarter_ended_is_refused(tmp_path: Path) -> None:
    table = {
        "event_time": {
            "column": "ref_quarter",
            "stamp": "period_end",
            "zone": NEW_YORK,
        },
        "available_at": {"column": "release_date", "at": "08:30", "zone": NEW_YORK},
        "sequence": "estimate",
        "values": {"growth": "growth"},
    }
    message = (
        "event_time must not be after available_at; got 2019-01-01 05:00:00+00:00 > "
        "2018-01-26 13:30:00+00:00 in rows 1 of f.csv (column 'ref_quarter'). Correct the "
        "clock, or declare `scheduled: true` if such events are announced before they "
        "happen."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, GDP, **table)
    corrected = GDP.replace("2018-Q4,1,2018-01-26,2.6\n", "")
    assert len(read(tmp_path, corrected, **table)) == 2


def test_the_clocks_of_periods_are_said_in_words() -> None:
    start = {
        "column": "t",
        "stamp": "period_start",
        "period": "half_year",
        "zone": "UTC",
    }
    assert dated_words(start) == (
        "the first instant after the half-year that begins on the date in column t (UTC)"
    )
    end = {"column": "k", "stamp": "period_end", "zone": "UTC"}
    assert (
        available_words(end) == "the first instant after the period in column k (UTC)"
    )
    vintage = {"vintage": "2016-06-29", "at": "24:00", "zone": "UTC"}
    assert available_words(vintage) == "all rows on 2016-06-29, at 24:00 UTC"
