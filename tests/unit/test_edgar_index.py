"""Indexes of EDGAR. Lines are those of the form index of 2020-03-18 (public domain)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from edgar_lists import NEXT_OPEN

from infoset.data.events import EventLog
from infoset.data.sources.presets.edgar_index import EdgarIndex

PREAMBLE = """\
Description:           Daily Index of EDGAR Dissemination Feed by Form Type
Last Data Received:    Mar 18, 2020
Comments:              webmaster@sec.gov
Anonymous FTP:         ftp://ftp.sec.gov/edgar/




"""
FORM_INDEX = f"""{PREAMBLE}\
Form Type   Company Name                                                  CIK         Date Filed  File Name
---------------------------------------------------------------------------------------------------------------------------------------------
1-A POS     Belpointe REIT, Inc.                                          1749817     20200318    edgar/data/1749817/0001010549-20-000033.txt         
8-K         AAON, INC.                                                    824142      20200318    edgar/data/824142/0000824142-20-000061.txt          
CORRESP     Canada Goose Holdings Inc.                                    1690511     20200211    edgar/data/1690511/0001193125-20-031314.txt         
UPLOAD      GLORY STAR NEW MEDIA GROUP HOLDINGS Ltd                       1738758     20191025    edgar/data/1738758/0000000000-19-014851.txt         
UPLOAD      TKK SYMPHONY ACQUISITION Corp                                 1738758     20191025    edgar/data/1738758/0000000000-19-014851.txt         
"""  # noqa: W291 (as EDGAR writes it)
COMPANY_INDEX = f"""{PREAMBLE.replace("Form Type", "Company Name")}\
Company Name                                                  Form Type   CIK         Date Filed  File Name
---------------------------------------------------------------------------------------------------------------------------------------------
AAON, INC.                                                    8-K         824142      20200318    edgar/data/824142/0000824142-20-000061.txt         
Belpointe REIT, Inc.                                          1-A POS     1749817     20200318    edgar/data/1749817/0001010549-20-000033.txt         
"""  # noqa: W291
# The same filings as the index of the quarter has them.
MASTER_INDEX = """\
Description:           Master Index of EDGAR Dissemination Feed
Last Data Received:    March 31, 2020
Comments:              webmaster@sec.gov

CIK|Company Name|Form Type|Date Filed|Filename
--------------------------------------------------------------------------------
824142|AAON, INC.|8-K|2020-03-18|edgar/data/824142/0000824142-20-000061.txt
1749817|Belpointe REIT, Inc.|1-A POS|2020-03-18|edgar/data/1749817/0001010549-20-000033.txt

1690511|Canada Goose Holdings Inc.|CORRESP|2020-02-11|edgar/data/1690511/0001193125-20-031314.txt
"""


def read_index(folder: Path, content: str | bytes, **settings: Any) -> EventLog:
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / "form.idx").write_bytes(raw)
    given = {"path": "form.idx", "date_only": NEXT_OPEN} | settings
    source = EdgarIndex.model_validate({"preset": "edgar_index"} | given)
    return source.log(base=folder)


def filings_of(log: EventLog) -> list[list[str]]:
    frames = [log.to_pandas(stream).assign(stream=stream) for stream in log.streams]
    columns = ["stream", "entity", "accession", "filing_date", "available_at"]
    found = pd.concat(frames)[columns].astype("str").sort_values(columns)
    rows: list[list[str]] = found.to_numpy().tolist()
    return rows


BOTH = [
    ["filing_index/1-A POS", "0001749817", "0001010549-20-000033", "2020-03-18", "2020-03-19 13:30:00+00:00"],
    ["filing_index/8-K", "0000824142", "0000824142-20-000061", "2020-03-18", "2020-03-19 13:30:00+00:00"],
]  # fmt: skip


def test_every_layout_of_an_index_gives_the_same_filings(tmp_path: Path) -> None:
    forms = {"forms": ["8-K", "1-A POS"]}
    for content in (FORM_INDEX, COMPANY_INDEX, MASTER_INDEX):
        assert filings_of(read_index(tmp_path, content, **forms)) == BOTH


def test_a_filing_is_dated_by_the_end_of_its_day(tmp_path: Path) -> None:
    frame = read_index(tmp_path, FORM_INDEX).to_pandas("filing_index/8-K")
    assert frame["event_time"].to_list() == [pd.Timestamp("2020-03-19T04:00Z")]
    assert frame["sequence"].to_list() == [82414220000061]


def test_a_letter_is_known_by_the_day_of_the_index_not_by_its_date(
    tmp_path: Path,
) -> None:
    log = read_index(tmp_path, FORM_INDEX)
    letter = log.to_pandas("filing_index/CORRESP")
    assert letter["event_time"].to_list() == [pd.Timestamp("2020-02-12T05:00Z")]
    assert letter["available_at"].to_list() == [pd.Timestamp("2020-03-19T13:30Z")]
    assert log.notices == (
        "form.idx: 3 of 5 filings are dated before 2020-03-18, the day of this index, "
        "and are known by that day.",
    )


def test_an_index_of_a_quarter_does_not_date_letters(tmp_path: Path) -> None:
    log = read_index(tmp_path, MASTER_INDEX)
    assert log.quarantine[["stream", "row", "column", "reason"]].to_numpy().tolist() == [
        ["filing_index/CORRESP", 2, "form", "published later than its date, on a day unknown"]
    ]  # fmt: skip
    assert len(log) == 2


def test_one_filing_under_two_names_of_its_filer_is_one_event(tmp_path: Path) -> None:
    log = read_index(tmp_path, FORM_INDEX)
    assert (len(log), log.num_duplicates) == (4, 1)


def test_other_encodings_are_declared(tmp_path: Path) -> None:
    content = MASTER_INDEX.replace("AAON", "SOCIÉTÉ").encode("latin-1")
    message = "form.idx must be utf-8 text; got byte 0xc9 at .* Declare `encoding`, for"
    with pytest.raises(ValueError, match=message):
        read_index(tmp_path, content)
    assert len(read_index(tmp_path, content, encoding="latin-1")) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "must be a form, company or master index of EDGAR, with a header"),
        (
            FORM_INDEX[FORM_INDEX.index("Form Type  ") :],
            "must start with `Description` and `Last Data Received`",
        ),
        (
            FORM_INDEX.replace("Mar 18, 2020", "today"),
            "`Last Data Received` of form.idx must be a date such as Mar 18, 2020; got 'today'",
        ),
        (
            FORM_INDEX.replace("824142      2020", "x           2020"),
            "a line of an index must have a form, a company, a CIK, a date and a file; "
            "got '8-K         AAON, INC.",
        ),
        (
            FORM_INDEX.replace("AAON, INC.", "AAON, INC.").replace("8-K         ", "8-K        X"),
            "the second column of an index must start at 12, after a blank; got '8-K ",
        ),
        (
            FORM_INDEX.replace("20200318    edgar/data/824142", "20200332    edgar/data/824142"),
            "event_time must match the format '%Y-%m-%d'; got '2020-03-32' in row 1",
        ),
        ("\n".join(FORM_INDEX.splitlines()[:10]) + "\n", "must hold a filing; got a header only"),
    ],
)  # fmt: skip
def test_a_bad_index_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_index(tmp_path, content)


def test_the_assumptions_travel_with_the_rows(tmp_path: Path) -> None:
    (tmp_path / "form.idx").write_text(FORM_INDEX)
    said = ("We looked it up.",)
    for assumptions in (None, said):
        given: dict[str, Any] = {} if assumptions is None else {"assumptions": said}
        source = EdgarIndex.model_validate(
            {"preset": "edgar_index", "path": "form.idx", "date_only": NEXT_OPEN}
            | given
        )
        ((_, declaration),) = source.tables(base=tmp_path)
        assert declaration.assumptions == (assumptions or source.assumptions)
        assert declaration.assumptions
