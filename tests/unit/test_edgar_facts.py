"""XBRL facts. Those of Apple Inc. are EDGAR's (public domain), from its company facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from edgar_lists import ANNUAL, APPLE, NEXT_OPEN, QUARTER, submissions

from infoset.data.asof import as_of
from infoset.data.events import EventLog
from infoset.data.sources.presets.edgar_facts import EdgarCompanyFacts

EPS = "xbrl/us-gaap/EarningsPerShareDiluted/USD-per-shares"


def eps(
    start: str, end: str, val: float | None, accn: str, filed: str, fy: int
) -> dict[str, Any]:
    form = "10-Q" if accn == Q19[0] else "10-K"
    return {"start": start, "end": end, "val": val, "accn": accn, "fy": fy, "fp": "FY", "form": form, "filed": filed}  # fmt: skip


K19 = ("0000320193-19-000119", "2019-10-31", 2019)
K20 = ("0000320193-20-000096", "2020-10-30", 2020)
K21 = ("0000320193-21-000105", "2021-10-29", 2021)
Q19 = ("0000320193-19-000076", "2019-07-31", 2019)
FACTS = [
    eps("2018-09-30", "2019-06-29", 8.86, *Q19),
    eps("2019-03-31", "2019-06-29", 2.18, *Q19),
    eps("2019-03-31", "2019-06-29", 2.18, *K19),
    eps("2019-03-31", "2019-06-29", 0.55, *K20),
    eps("2018-09-30", "2019-09-28", 11.89, *K19),
    eps("2018-09-30", "2019-09-28", 2.97, *K20),
    eps("2018-09-30", "2019-09-28", 2.97, *K21),
    eps("2019-06-30", "2019-09-28", 3.03, *K19),
    eps("2019-06-30", "2019-09-28", 0.76, *K20),
]


def read(folder: Path, **settings: Any) -> EventLog:
    given = {"preset": "edgar_companyfacts"} | settings
    return EdgarCompanyFacts.model_validate(given).log(base=folder)


def companyfacts(
    facts: list[dict[str, Any]], unit: str = "USD/shares"
) -> dict[str, Any]:
    described = {"label": "EPS", "description": None, "units": {unit: facts}}
    return {
        "cik": 320193,
        "entityName": "Apple Inc.",
        "facts": {"us-gaap": {"EarningsPerShareDiluted": described}},
    }


def read_facts(folder: Path, content: object, **settings: Any) -> EventLog:
    (folder / "facts.json").write_text(json.dumps(content))
    given = {"path": "facts.json", "date_only": NEXT_OPEN} | settings
    return read(folder, **given)


def known_at(
    log: EventLog, stream: str, *times: str, entity: str = APPLE
) -> list[float]:
    points = pd.DataFrame(
        {"entity": entity, "forecast_time": pd.to_datetime(list(times), utc=True)}
    )
    answer = as_of(log, points)
    found: list[float] = answer.loc[answer["stream"] == stream, "value"].to_list()
    return found


def test_restated_earnings_per_share_are_known_as_they_were(tmp_path: Path) -> None:
    # Apple's four-for-one split of August 2020 restated 11.89 as 2.97. By its date
    # alone a filing is known when the next session opens.
    log = read_facts(tmp_path, companyfacts(FACTS))
    times = [
        "2019-11-01T13:29:59Z",
        "2019-11-01T13:30:00Z",
        "2020-11-02T14:29:59Z",
        "2020-11-02T14:30:00Z",
    ]
    year = known_at(log, f"{EPS}/12M", *times)
    assert year[1:] == [11.89, 11.89, 2.97]
    assert pd.isna(year[0])
    # Before its own report the quarter is unknown: the one before it is the newest.
    assert known_at(log, f"{EPS}/3M", *times) == [2.18, 3.03, 3.03, 0.76]


def test_durations_with_one_end_do_not_collide(tmp_path: Path) -> None:
    log = read_facts(tmp_path, companyfacts(FACTS))
    assert log.streams == (f"{EPS}/12M", f"{EPS}/3M", f"{EPS}/9M")
    frame = log.to_pandas(f"{EPS}/12M")
    assert frame["event_time"].unique().tolist() == [pd.Timestamp("2019-09-29T04:00Z")]
    assert frame["revision"].to_list() == [0, 1]
    assert frame["start"].to_list() == ["2018-09-30"] * 2
    assert frame["accession"].to_list() == [K19[0], K20[0]]


def test_repeated_values_are_counted_and_are_no_events(tmp_path: Path) -> None:
    log = read_facts(tmp_path, companyfacts(FACTS))
    assert len(log) == len(FACTS) - 2
    assert log.notices[-1] == (
        "facts.json: 2 facts repeat the value that was known of their period, and are "
        "no events."
    )


def test_a_value_that_comes_back_is_news(tmp_path: Path) -> None:
    back = eps("2018-09-30", "2019-09-28", 11.89, *K21)  # made up
    log = read_facts(tmp_path, companyfacts([*FACTS[4:6], back]))
    assert log.to_pandas(f"{EPS}/12M")["value"].to_list() == [11.89, 2.97, 11.89]


def test_the_order_of_facts_in_the_file_does_not_matter(tmp_path: Path) -> None:
    log = read_facts(tmp_path, companyfacts(FACTS))
    turned = read_facts(tmp_path, companyfacts(FACTS[::-1]))
    for stream in log.streams:
        assert log.table(stream).equals(turned.table(stream))


def read_joined(folder: Path, facts: object, **settings: Any) -> EventLog:
    rows = submissions([*ANNUAL, QUARTER])
    (folder / "filings.json").write_text(json.dumps(rows))
    given = {"submissions": "filings.json", "clock": "new_york"} | settings
    return read_facts(folder, facts, **given)


def test_facts_are_known_when_their_filing_could_be_read(tmp_path: Path) -> None:
    log = read_joined(tmp_path, companyfacts(FACTS))
    nine = log.to_pandas(f"{EPS}/9M")
    assert nine["available_at"].to_list() == [pd.Timestamp("2019-07-31T20:31:53Z")]
    # Accepted at 18:12 the evening before, published at 06:00.
    year = log.to_pandas(f"{EPS}/12M")
    assert year["available_at"].to_list() == [
        pd.Timestamp("2019-10-31T10:00:00Z"),
        pd.Timestamp("2020-10-30T10:00:00Z"),
    ]
    assert log.notices[1] == (
        "facts.json: 8 of 9 facts are known from the acceptance of their filing, 1 by "
        "`date_only`."
    )


def test_facts_of_filings_that_are_not_listed_are_set_aside(tmp_path: Path) -> None:
    log = read_joined(tmp_path, companyfacts(FACTS), date_only=None)
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [6, "accn", "no acceptance in `submissions`, no `date_only`"]
    ]
    assert len(log) + len(log.quarantine) == len(FACTS) - 1
    assert log.notices[1].endswith(
        "8 of 9 facts are known from the acceptance of their filing, 1 are set aside."
    )


def test_a_flat_table_gives_the_same_facts(tmp_path: Path) -> None:
    log = read_facts(tmp_path, companyfacts(FACTS))
    rows = [
        {"ticker": "AAPL", "cik": "320193", "taxonomy": "us-gaap", "unit": "USD/shares"}
        | {"concept": "EarningsPerShareDiluted"}
        | fact
        for fact in FACTS
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "facts.csv.gz", index=False)
    flat = read_facts(tmp_path, {}, path="facts.csv.gz", entity="ticker")
    assert flat.entities == ("AAPL",)
    for stream in log.streams:
        columns = ["event_time", "available_at", "value", "accession", "start"]
        assert (
            flat.table(stream).select(columns).equals(log.table(stream).select(columns))
        )


def test_two_starts_with_one_end_stay_two_facts(tmp_path: Path) -> None:
    # Made up: a later filing states the half-year with another first day.
    first = eps("2009-01-26", "2009-07-26", 0.1, *Q19)
    second = eps("2009-01-24", "2009-07-26", 0.2, *K19)
    log = read_facts(tmp_path, companyfacts([second, first]))
    assert log.streams == (f"{EPS}/184D", f"{EPS}/6M")
    assert log.to_pandas(f"{EPS}/6M")["value"].to_list() == [0.1]


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [
        ("2019-06-30", "2019-09-28", "3M"),  # 13 weeks
        ("2019-06-23", "2019-09-28", "3M"),  # 14 weeks
        ("2018-09-30", "2019-09-28", "12M"),  # 52 weeks
        ("2018-09-23", "2019-09-28", "12M"),  # 53 weeks
        ("2019-01-01", "2019-06-30", "6M"),
        ("2019-06-09", "2019-09-28", "112D"),  # 16 weeks
        ("2019-09-01", "2019-09-30", "1M"),
        ("2019-09-28", "2019-09-28", "1D"),
    ],
)
def test_durations_have_the_names_of_fiscal_periods(
    tmp_path: Path, start: str, end: str, name: str
) -> None:
    log = read_facts(tmp_path, companyfacts([eps(start, end, 1.0, *K19)]))
    assert log.streams == (f"{EPS}/{name}",)


def test_facts_of_an_instant_have_no_duration(tmp_path: Path) -> None:
    fact = eps("", "2019-09-28", 338516000000, *K19)
    del fact["start"]
    content = {"cik": "320193", "facts": {"us-gaap": {"Assets": {"units": {"USD": [fact]}}}}}  # fmt: skip
    log = read_facts(tmp_path, content)
    assert log.streams == ("xbrl/us-gaap/Assets/USD/instant",)
    frame = log.to_pandas(log.streams[0])
    assert frame["value"].to_list() == [338516000000.0]
    assert frame["entity"].to_list() == [APPLE]


def test_impossible_periods_are_set_aside_with_the_reason(tmp_path: Path) -> None:
    # NVIDIA's 10-Q of 2011-05-27 dates its public float at 2011-08-01.
    facts = [
        eps(
            "2011-05-01", "2011-08-01", 1.0, "0001045810-11-000032", "2011-05-27", 2011
        ),
        eps(
            "2011-05-01", "2011-04-01", 1.0, "0001045810-11-000032", "2011-05-27", 2011
        ),
        eps(
            "2011-01-01", "2011-03-31", 1.0, "0001045810-11-000032", "2011-05-27", 2011
        ),
        eps(
            "2010-01-01", "2010-03-31", None, "0001045810-11-000032", "2011-05-27", 2011
        ),
    ]
    log = read_facts(tmp_path, companyfacts(facts))
    assert log.quarantine[["row", "column", "reason"]].sort_values(
        "row"
    ).to_numpy().tolist() == [
        [0, "end", "a period that ends after it was known"],
        [1, "start", "a period that starts after it ends"],
        [3, "val", "no value"],
    ]
    assert len(log) == 1


def test_concepts_are_chosen_by_name(tmp_path: Path) -> None:
    content = companyfacts(FACTS)
    content["facts"]["dei"] = {"EntityPublicFloat": {"units": {"USD": [FACTS[0]]}}}
    log = read_facts(tmp_path, content, concepts=["EntityPublicFloat"])
    assert log.streams == ("xbrl/dei/EntityPublicFloat/USD/9M",)
    message = (
        r"concepts must name concepts of facts\.json; got 'EntityPublicFlot'\. Did you "
        "mean 'EntityPublicFloat'"
    )
    with pytest.raises(ValueError, match=message):
        read_facts(tmp_path, content, concepts=["EntityPublicFlot"])


def test_a_short_template_must_still_tell_facts_apart(tmp_path: Path) -> None:
    log = read_facts(tmp_path, companyfacts(FACTS), stream="eps/{duration}")
    assert log.streams == ("eps/12M", "eps/3M", "eps/9M")
    message = (
        r"stream of facts\.json must tell facts apart; got "
        r"'xbrl/EarningsPerShareDiluted' for us-gaap:EarningsPerShareDiluted in "
        r"USD-per-shares \(2018-09-30 to 2019-06-29\) and for .* \(2019-03-31 to "
        r"2019-06-29\)\. Write more of"
    )
    with pytest.raises(ValueError, match=message):
        read_facts(tmp_path, companyfacts(FACTS), stream="xbrl/{concept}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"facts\.json must be whole JSON; got Expecting property name"),
        ('{"a": NaN}', r"facts\.json must be whole JSON; got NaN, which is no number"),
        ("[]", r"facts\.json must be a JSON object; got list"),
        ('{"filings": {}}', "with `facts`; got the keys filings"),
        ('{"cik": 1, "facts": {"a": {"b": {}}}}', r"another nesting \('units'\)"),
        ('{"cik": "x", "facts": {}}', "cik of facts.json must have one to ten digits"),
        (
            json.dumps(companyfacts([FACTS[0] | {"end": "2019-06-31"}])),
            "event_time must match the format '%Y-%m-%d'; got '2019-06-31' in row 0",
        ),
        (
            json.dumps(companyfacts([FACTS[0] | {"val": "n/a"}])),
            "val must be numeric; got 'n/a' in row 0",
        ),
        (
            json.dumps(companyfacts([FACTS[0] | {"accn": "19-000119"}])),
            "accession must be a number such as 0000320193-20-000096; got '19-000119'",
        ),
        (
            json.dumps(companyfacts([FACTS[0] | {"val": True}])),
            "'val' of facts.json must hold text or numbers",
        ),
    ],
)  # fmt: skip
def test_a_bad_file_of_facts_is_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "facts.json").write_text(content)
    with pytest.raises((ValueError, TypeError), match=message):
        read(tmp_path, path="facts.json", date_only=NEXT_OPEN)


def test_facts_need_a_way_to_be_known() -> None:
    message = "must have `submissions` or `date_only`, which say when a filing could"
    with pytest.raises(ValueError, match=message):
        EdgarCompanyFacts.model_validate({"preset": "edgar_companyfacts", "path": "f"})


def test_facts_list_the_files_of_filings_as_their_own(tmp_path: Path) -> None:
    read_joined(tmp_path, companyfacts(FACTS))
    source = EdgarCompanyFacts.model_validate(
        {
            "preset": "edgar_companyfacts",
            "path": "facts.json",
            "submissions": "filings.json",
        }
    )
    names = [path.name for path in source.files(base=tmp_path)]
    assert names == ["facts.json", "filings.json"]
