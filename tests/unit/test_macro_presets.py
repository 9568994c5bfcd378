from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from infoset.data import as_of
from infoset.data.events import EventLog
from infoset.data.sources import AnySource, Source, event_log

SOURCE: TypeAdapter[Source] = TypeAdapter(AnySource)
# FRED-MD, vintages of the pandemic (BLS: percent, thousands of persons; Federal Reserve:
# 2012 = 100; public domain), in the layouts that its vintages had over the years.
MARCH = """sasdate,UNRATE,PAYEMS,INDPRO
Transform:,2,5,5
1/1/2020,3.6,152271,108.9993
2/1/2020,3.5,152544,109.6035
,,,
"""
APRIL = """sasdate,UNRATE,PAYEMS,INDPRO
Transform:,2,5,5
01/01/2020,    3.600000000,152212.000000000,  109.083000000
02/01/2020,    3.500000000,152487.000000000,  109.581900000
03/01/2020,    4.400000000,151786.000000000,  103.663500000
"""
MAY = """sasdate,UNRATE,INDPRO,BUSLOANS
Transform:,2,5,6
1/1/20,3.6,109.1337,2354.5487
2/1/20,3.5,109.2569,2360.4999
3/1/20,4.4,104.3262,2590.9556
4/1/20,14.7,92.5919,
"""
# EMPLOY of the Philadelphia Fed's Real-Time Data Set (BLS, public domain).
EMPLOY = pd.DataFrame(
    {
        "DATE": ["2007:11", "2007:12", "2008:01", "2008:02"],
        "EMPLOY08M1": [138477.0, 138495.0, "#N/A", "#N/A"],
        "EMPLOY08M2": [138037.0, 138119.0, 138102.0, "#N/A"],
        "EMPLOY08M3": [138037.0, 138078.0, 138056.0, 137993.0],
    }
)


def read(folder: Path, preset: str, path: str, **changes: Any) -> EventLog:
    source = SOURCE.validate_python({"preset": preset, "path": path} | changes)
    return event_log([source], base=folder)


def rows(log: EventLog, stream: str) -> list[tuple[str, str, float]]:
    """Return the local month that ended, that of the vintage, and the value."""
    frame = log.to_pandas(stream)
    months = [
        (frame[clock].dt.tz_convert("America/New_York") - pd.Timedelta(hours=1))
        for clock in ("event_time", "available_at")
    ]
    for clock in months:  # both are the first instants of a month
        assert (clock.dt.hour == 23).all()
        assert (clock.dt.day >= 28).all()
    texts = [clock.dt.strftime("%Y-%m").to_list() for clock in months]
    return list(zip(*texts, frame["value"].to_list(), strict=True))


def pandemic(folder: Path) -> Path:
    (folder / "2020-03.csv").write_text(MARCH)
    (folder / "2020-04.csv.gz").write_bytes(gzip.compress(APRIL.encode()))
    (folder / "2020-05-md.csv").write_text(MAY)
    return folder


def test_vintages_of_fred_md_give_new_and_changed_levels(tmp_path: Path) -> None:
    log = read(pandemic(tmp_path), "fred_md", "2020-0*")
    assert log.streams == tuple(
        f"macro/{name}" for name in ("BUSLOANS", "INDPRO", "PAYEMS", "UNRATE")
    )
    assert rows(log, "macro/UNRATE") == [
        ("2020-01", "2020-03", 3.6),
        ("2020-02", "2020-03", 3.5),
        ("2020-03", "2020-04", 4.4),  # padded 3.6 and 3.5 are no revisions
        ("2020-04", "2020-05", 14.7),
    ]
    assert rows(log, "macro/PAYEMS") == [
        ("2020-01", "2020-03", 152271),
        ("2020-02", "2020-03", 152544),
        ("2020-01", "2020-04", 152212),
        ("2020-02", "2020-04", 152487),
        ("2020-03", "2020-04", 151786),
    ]
    assert len(log.quarantine) == log.num_duplicates == 0


def test_what_vintages_of_fred_md_leave_out_is_noticed(tmp_path: Path) -> None:
    pandemic(tmp_path)
    (tmp_path / "2020-05-md.csv").write_text(MAY.replace("109.1337", ""))
    log = read(tmp_path, "fred_md", "2020-0*")
    assert [notice.partition(": ")[2][:70] for notice in log.notices] == [
        "9 of 20 values stand in the first vintage of their series (UNRATE 2020",
        "values that a later vintage does not have any more: 1 (INDPRO 1). What",
        "1 of 4 series are not in the last vintage any more, 2020-05 (last in: ",
    ]
    assert "PAYEMS 2020-04" in log.notices[2]
    (tmp_path / "2014-12.csv").write_text(MARCH.replace("/2020", "/2014"))
    notices = read(tmp_path, "fred_md", "20*").notices
    assert "62 of the 66 months from 2014-12 to 2020-05 have no vintage" in notices[2]
    assert "vintages before 2015-01 were put together afterwards" in notices[4]


def test_a_vintage_of_fred_md_is_known_when_its_month_is_over(tmp_path: Path) -> None:
    log = read(pandemic(tmp_path), "fred_md", "2020-0*", series=["PAYEMS"])
    before, at = (pd.Timestamp(f"2020-05-01T0{hour}Z") for hour in ("3:59", "4:00"))
    points = pd.DataFrame({"entity": "*", "forecast_time": [before, at]})
    assert as_of(log, points)["value"].to_list() == [152544, 151786]


def test_years_of_two_digits_begin_in_1959(tmp_path: Path) -> None:
    content = "sasdate,RPI\nTransform:,5\n1/1/59,2583.56\n12/1/99,9000\n1/1/00,9050\n"
    (tmp_path / "2023-11.csv").write_text(content)
    assert [
        row[0] for row in rows(read(tmp_path, "fred_md", "2023-11.csv"), "macro/RPI")
    ] == [
        "1959-01",
        "1999-12",
        "2000-01",
    ]


def test_a_file_of_another_name_says_its_vintage(tmp_path: Path) -> None:
    (tmp_path / "current.csv").write_text(MARCH)
    with pytest.raises(
        ValueError, match=r"must be named by its vintage, such as 2024-03"
    ):
        read(tmp_path, "fred_md", "current.csv")
    log = read(tmp_path, "fred_md", "current.csv", vintage="2020-03")
    assert rows(log, "macro/UNRATE")[0] == ("2020-01", "2020-03", 3.6)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_vintages_of_the_real_time_data_set_are_read(
    tmp_path: Path, suffix: str
) -> None:
    if suffix == "xlsx":
        EMPLOY.to_excel(tmp_path / "employMvMd.xlsx", index=False)
    else:
        EMPLOY.to_csv(tmp_path / "employMvMd.csv", index=False)
    log = read(tmp_path, "rtdsm", f"employMvMd.{suffix}")
    assert rows(log, "macro/EMPLOY") == [
        ("2007-11", "2008-01", 138477),
        ("2007-12", "2008-01", 138495),
        ("2007-11", "2008-02", 138037),
        ("2007-12", "2008-02", 138119),
        ("2008-01", "2008-02", 138102),
        ("2007-12", "2008-03", 138078),
        ("2008-01", "2008-03", 138056),
        ("2008-02", "2008-03", 137993),
    ]
    assert "2 of 8 values stand in the first vintage" in log.notices[0]


def test_quarterly_vintages_are_of_their_middle_month(tmp_path: Path) -> None:
    # ROUTPUT in 1958 dollars, from its first vintage; M1 ends like a vintage.
    content = "DATE,ROUTPUT65Q4,M165Q4,M146Q1\n1947:Q1,306.4,112,113\n"
    (tmp_path / "q.csv").write_text(content)
    log = read(tmp_path, "rtdsm", "q.csv")
    assert rows(log, "macro/ROUTPUT") == [("1947-03", "1965-11", 306.4)]
    # 47 is 1947, 46 is 2046.
    assert rows(log, "macro/M1") == [
        ("1947-03", "1965-11", 112),
        ("1947-03", "2046-02", 113),
    ]


REFUSED: dict[str, tuple[str, str, str, str]] = {
    "no codes": (
        "fred_md",
        "2020-03.csv",
        MARCH.replace("Transform:,2,5,5\n", ""),
        "the first row of 2020-03.csv must hold the transformation codes ('Transform:'); "
        "got '1/1/2020'",
    ),
    "other first column": (
        "fred_md",
        "2020-03.csv",
        MARCH.replace("sasdate", "date"),
        "the first column of 2020-03.csv must be sasdate; got 'date'",
    ),
    "a value without a date": (
        "fred_md",
        "2020-03.csv",
        MARCH.replace(",,,", ",3.5,,"),
        "sasdate must be a date such as 1/1/1959; got None in row 3 of 2020-03.csv",
    ),
    "a file of another month": (
        "fred_md",
        "2020-01.csv",
        MARCH,
        "event_time must not be after available_at; got 2020-03-01 05:00:00+00:00 > "
        "2020-02-01 05:00:00+00:00 in rows 2 of 2020-01.csv",
    ),
    "no period": (
        "rtdsm",
        "e.csv",
        "DATE,EMPLOY64M12\n1947-01,1\n",
        "DATE must be a date such as 1947:01 or 1947:Q1; got '1947-01' in row 0 of e.csv",
    ),
    "no vintage": (
        "rtdsm",
        "e.csv",
        "DATE,EMPLOY64M13\n1947:01,1\n",
        "must name a series and a vintage, such as EMPLOY64M12 or ROUTPUT65Q4; got "
        "'EMPLOY64M13'",
    ),
    "vintages out of order": (
        "rtdsm",
        "e.csv",
        "DATE,EMPLOY65M1,EMPLOY64M12\n1947:01,1,1\n",
        "the vintages of e.csv must be in order; got 'EMPLOY64M12' after that of 1965-01",
    ),
    "other layout": (
        "rtdsm",
        "e.csv",
        "date,EMPLOY65M1\n1947:01,1\n",
        "the first column of e.csv must be DATE; got 'date'",
    ),
    "no workbook": (
        "rtdsm",
        "e.xlsx",
        "DATE,EMPLOY65M1\n",
        "e.xlsx must be a whole workbook; got File is not a zip file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_layouts_are_refused(tmp_path: Path, case: str) -> None:
    preset, path, content, message = REFUSED[case]
    (tmp_path / path).write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path, preset, path)


def test_the_message_names_the_file_among_many(tmp_path: Path) -> None:
    pandemic(tmp_path)
    (tmp_path / "2020-02.csv").write_text(MARCH)
    assert len(read(tmp_path, "fred_md", "2020-0*")) == 21  # it ends in February
    (tmp_path / "2020-02.csv").write_text(APRIL)
    with pytest.raises(ValueError, match=r"in rows 3 of 2020-02\.csv"):
        read(tmp_path, "fred_md", "2020-0*")


def test_two_files_of_one_vintage_are_refused(tmp_path: Path) -> None:
    pandemic(tmp_path)
    (tmp_path / "2020-03.csv.gz").write_bytes(gzip.compress(MARCH.encode()))
    with pytest.raises(
        ValueError, match=r"path must match one file per vintage; got 2020"
    ):
        read(tmp_path, "fred_md", "2020-0*")


def test_a_workbook_of_several_sheets_is_refused(tmp_path: Path) -> None:
    with pd.ExcelWriter(tmp_path / "e.xlsx") as writer:
        for sheet in ("employ", "notes"):
            EMPLOY.to_excel(writer, sheet_name=sheet, index=False)
    with pytest.raises(
        ValueError, match=r"must hold one sheet; got employ, notes\. Save"
    ):
        read(tmp_path, "rtdsm", "e.xlsx")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"preset": "rtdsm", "path": "e.xls"},
            "must name files that end in .xlsx, .csv",
        ),
        (
            {"preset": "fred_md", "path": "*.csv", "vintage": "2020-03"},
            "with a pattern",
        ),
        ({"preset": "fred_md", "path": "a.csv", "vintage": "2020-3"}, "match pattern"),
    ],
)
def test_unclear_declarations_are_refused(
    changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        SOURCE.validate_python(changes)
