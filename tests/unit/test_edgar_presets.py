"""Filings of EDGAR, and the settings of its presets."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from edgar_lists import ANNUAL, APPLE, QUARTER, submissions

from infoset.data.events import EventLog
from infoset.data.sources.presets.edgar_facts import EdgarCompanyFacts
from infoset.data.sources.presets.edgar_index import EdgarIndex
from infoset.data.sources.presets.edgar_source import EdgarSource
from infoset.data.sources.presets.edgar_submissions import EdgarSubmissions

KINDS: dict[str, type[EdgarSource]] = {
    "edgar_companyfacts": EdgarCompanyFacts,
    "edgar_index": EdgarIndex,
    "edgar_submissions": EdgarSubmissions,
}


def read_filings(folder: Path, *contents: object, **settings: Any) -> EventLog:
    for number, content in enumerate(contents):
        (folder / f"{number}.json").write_text(json.dumps(content))
    given = {"path": "*.json", "clock": "new_york"} | settings
    given |= {"preset": "edgar_submissions"}
    return EdgarSubmissions.model_validate(given).log(base=folder)


# Apple's results of the first quarter of 2024, and two forms of one instant.
SAME = [
    ("0000320193-24-000006", "8-K", "2024-02-01", "2024-02-01T16:30:26.000Z"),
    ("0000320193-22-000097", "4", "2022-10-04", "2022-10-04T19:05:07.000Z"),
    ("0000320193-22-000095", "4", "2022-10-04", "2022-10-04T19:05:07.000Z"),
]


def test_a_filing_keeps_its_items_and_its_ids_as_text(tmp_path: Path) -> None:
    frame = read_filings(tmp_path, submissions(SAME)).to_pandas("filing/8-K")
    (filing,) = frame.to_dict("records")
    assert filing["entity"] == APPLE
    assert filing["items"] == "2.02,9.01"
    assert filing["accession"] == "0000320193-24-000006"
    assert (filing["filing_date"], filing["report_date"]) == (
        "2024-02-01",
        "2019-09-28",
    )
    assert filing["size"] == 1000.0
    assert filing["event_time"] == filing["available_at"]
    assert filing["available_at"] == pd.Timestamp("2024-02-01T21:30:26Z")


def test_filings_of_one_instant_are_ordered_by_their_number(tmp_path: Path) -> None:
    frame = read_filings(tmp_path, submissions(SAME)).to_pandas("filing/4")
    assert frame["sequence"].to_list() == [32019322000095, 32019322000097]
    assert frame["items"].isna().all()


def test_entities_are_ciks_tickers_or_our_names(tmp_path: Path) -> None:
    both = (submissions(SAME), submissions(SAME, cik="789019", tickers=["MSFT", "X"]))
    assert read_filings(tmp_path, *both).entities == (APPLE, "0000789019")
    assert read_filings(tmp_path, *both, entity="ticker").entities == ("AAPL", "MSFT")
    named = read_filings(tmp_path, *both, entity={APPLE: "apple"})
    assert named.entities == ("0000789019", "apple")
    without = submissions(SAME, cik="1", tickers=[])
    message = r"entity of 0\.json must be a ticker; got none for filer 0000000001"
    with pytest.raises(ValueError, match=message):
        read_filings(tmp_path, without, entity="ticker")


def test_older_pages_are_read_and_missed_ones_are_said(tmp_path: Path) -> None:
    page = "CIK0000320193-submissions-001.json"
    newest = submissions(SAME)
    newest["filings"]["files"] = [
        {"name": page, "filingCount": 1206, "filingTo": "2015-03-11"}
    ]
    log = read_filings(tmp_path, newest)
    assert log.notices[-1] == (
        f"0.json: 1206 older filings, up to 2015-03-11, are in {page}, which this "
        "source does not read."
    )
    older = submissions([QUARTER])["filings"]["recent"]
    (tmp_path / f"{page}.gz").write_bytes(gzip.compress(json.dumps(older).encode()))
    whole = read_filings(tmp_path, newest, path="*.json*", entity="ticker")
    assert len(whole) == len(SAME) + 1
    assert whole.entities == ("AAPL",)
    assert not any("does not read" in notice for notice in whole.notices)


def test_forms_are_chosen_after_the_clock_was_found(tmp_path: Path) -> None:
    log = read_filings(tmp_path, submissions([*SAME, *ANNUAL]), forms=["8-K"])
    assert log.streams == ("filing/8-K",)
    assert "of 5 stamps" in log.notices[0]
    # The annual reports, of the next day, are not of the chosen forms.
    assert len(log.notices) == 1
    message = r"forms must name forms of \*\.json; got '8K'\. Did you mean '8-K'"
    with pytest.raises(ValueError, match=message):
        read_filings(tmp_path, submissions(SAME), forms=["8K"])


def test_a_template_may_hold_the_cik(tmp_path: Path) -> None:
    log = read_filings(tmp_path, submissions(SAME[:1]), stream="sec/{cik}/{form}")
    assert log.streams == (f"sec/{APPLE}/8-K",)


def test_a_flat_table_of_filings_may_call_the_stamps_otherwise(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        SAME, columns=["accessionNumber", "form", "filingDate", "acceptedRaw"]
    ).assign(cik="320193", ticker="AAPL")
    frame.to_csv(tmp_path / "filings.csv", index=False)
    settings = {"path": "filings.csv", "stamp_column": "acceptedRaw"}
    flat = read_filings(tmp_path, entity="ticker", **settings).to_pandas("filing/4")
    listed = read_filings(tmp_path, submissions(SAME)).to_pandas("filing/4")
    for column in ("event_time", "available_at", "sequence", "accession"):
        assert flat[column].to_list() == listed[column].to_list()
    assert flat["entity"].unique().tolist() == ["AAPL"]


def changed(**lists: object) -> dict[str, Any]:
    content = copy.deepcopy(submissions(SAME))
    content["filings"]["recent"] |= lists
    return content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"cik": 1, "facts": {}}, "with `filings.recent`, or an older page of it; got the keys"),
        (
            {"accessionNumber": []},
            "cik of 0.json must have one to ten digits; got None",
        ),
        (
            {"cik": "1", "filings": {"recent": {"accessionNumber": []}}},
            "0.json must hold 'filingDate' of each filing; got accessionNumber",
        ),
        (changed(form=["8-K"]), "every list of 0.json must have 3 items; got 1 in 'form'"),
        (
            changed(filingDate=["2024-02-01", "04.10.2022", "2022-10-04"]),
            "event_time must be a date such as 2024-03-01; got '04.10.2022' in row 1",
        ),
    ],
)  # fmt: skip
def test_a_bad_list_of_filings_is_refused(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_filings(tmp_path, content)


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("edgar_index", {}, "date_only"),
        (
            "edgar_index",
            {"date_only": {"column": "t"}},
            "a mapping with `sessions` or `days`",
        ),
        (
            "edgar_submissions",
            {"stream": "f/{fom}"},
            "a template with fields of form, cik; got {fom}. Did you mean 'form'",
        ),
        (
            "edgar_submissions",
            {"stream": "f/{form"},
            "must close every bracket of its `stream`; got 'f/{form'",
        ),
        (
            "edgar_submissions",
            {"entity": ["a"]},
            r"cik, ticker, or a mapping of CIKs of ten digits \(in quotes\) to names",
        ),
        ("edgar_submissions", {"entity": "name"}, "'cik' or 'ticker'"),
        ("edgar_submissions", {"released": "now"}, "'filing_day' or 'acceptance'"),
        ("edgar_companyfacts", {"concept": "x"}, "has no key 'concept'. Did you mean"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(
    preset: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        KINDS[preset].model_validate({"preset": preset, "path": "f"} | settings)
