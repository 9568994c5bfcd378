"""The clocks of filings. Stamps are EDGAR's (public domain) unless a comment says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from edgar_lists import ANNUAL, NEXT_OPEN, Row, submissions

from infoset.data.events import EventLog
from infoset.data.sources.presets.edgar_clock import (
    CLOSES,
    NEW_YORK,
    OPENS,
    StampEvidence,
    evidence,
    in_hours,
    is_date_only,
    new_york_times,
)
from infoset.data.sources.presets.edgar_submissions import EdgarSubmissions

TESLA = "0001318605"
# accession, form, filing date, stamp in the list of 2022-11-30, stamp in that of 2026.
TESLAS = [
    ("0000899243-22-035394", "4", "2022-11-08", "2022-11-08T20:18:10", "2022-11-09T01:18:10"),
    ("0001790565-22-000014", "4", "2022-10-31", "2022-10-31T19:06:06", "2022-10-31T23:06:06"),
    ("0000950170-22-019867", "10-Q", "2022-10-24", "2022-10-24T06:08:50", "2022-10-24T10:08:50"),
    ("0001564590-22-034639", "8-K", "2022-10-19", "2022-10-19T17:15:46", "2022-10-19T21:15:46"),
    ("0001771340-22-000011", "3", "2022-10-05", "2022-10-05T20:15:08", "2022-10-06T00:15:08"),
    ("0001564590-22-033053", "8-K", "2022-10-03", "2022-10-03T06:05:40", "2022-10-03T10:05:40"),
    ("0001771340-22-000010", "4", "2022-09-12", "2022-09-12T21:44:02", "2022-09-13T01:44:02"),
    ("0001564590-22-000009", "8-K", "2022-01-03", "2022-01-03T06:06:42", "2022-01-03T11:06:42"),
]  # fmt: skip
OLD = [(*one[:3], f"{one[3]}.000Z") for one in TESLAS]
NEW = [(*one[:3], f"{one[4]}.000Z") for one in TESLAS]
EFFECT = ("9999999995-19-001077", "EFFECT", "2019-05-10", "2019-05-13T00:15:27.000Z")


def tesla(rows: list[Row], cik: str = TESLA) -> dict[str, Any]:
    return submissions(rows, cik)


def read(folder: Path, *lists: object, **changes: Any) -> EventLog:
    for number, content in enumerate(lists):
        (folder / f"{number}.json").write_text(json.dumps(content))
    given = {"preset": "edgar_submissions", "path": "*.json"} | changes
    return EdgarSubmissions.model_validate(given).log(base=folder)


def accepted(log: EventLog) -> dict[str, str]:
    return clocks(log, "event_time")


def clocks(log: EventLog, clock: str) -> dict[str, str]:
    frames = pd.concat([log.to_pandas(stream) for stream in log.streams])
    stamps = [f"{at:%Y-%m-%dT%H:%M:%S.000Z}" for at in frames[clock]]
    return dict(zip(frames["accession"], stamps, strict=True))


TRUE = {accession: stamp for accession, _, _, stamp in NEW}


@pytest.mark.parametrize(("rows", "said"), [(OLD, "New York time"), (NEW, "UTC")])
def test_stamps_are_read_so_that_they_lie_in_edgars_hours(
    tmp_path: Path, rows: list[Row], said: str
) -> None:
    log = read(tmp_path, tesla(rows))
    assert accepted(log) == TRUE
    assert (
        f"0.json: acceptance stamps of filer {TESLA} are {said} (found)"
        in (log.notices[0])
    )


def test_the_notice_counts_the_stamps_under_each_reading(tmp_path: Path) -> None:
    (notice,) = read(tmp_path, tesla(OLD)).notices
    # The three at 06:0x are 02:0x or 01:0x if they were UTC.
    assert notice.endswith(
        "of 8 stamps 5 read as UTC and 8 read as New York time lie in EDGAR's hours "
        "(06:00 to 22:00 New York)."
    )


def test_two_lists_of_one_filer_agree_although_their_stamps_do_not(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, tesla(OLD), tesla(NEW))
    assert (len(log), log.num_duplicates) == (len(TESLAS), len(TESLAS))
    assert accepted(log) == TRUE


def test_postings_of_the_staff_tell_nothing_of_the_clock(tmp_path: Path) -> None:
    # Read as UTC the posting of 00:15 New York would lie in the hours of the day before.
    postings = [EFFECT, *((f"9999999995-19-00107{n}", *EFFECT[1:]) for n in range(5))]
    log = read(tmp_path, tesla([*OLD, *postings]))
    assert "are New York time (found): of 8 stamps" in log.notices[0]
    assert log.to_pandas("filing/EFFECT")["event_time"].iloc[0] == pd.Timestamp(
        "2019-05-13T04:15:27Z"
    )


def test_a_stray_stamp_is_listed_and_not_shifted(tmp_path: Path) -> None:
    # Apple's list is New York time; EDGAR accepted this form 4 after its hours.
    late = ("0000320193-22-000095", "4", "2022-10-04", "2022-10-04T22:02:25.000Z")
    log = read(tmp_path, tesla([*OLD, late]), clock="new_york")
    assert accepted(log)[late[0]] == "2022-10-05T02:02:25.000Z"
    assert log.notices[1] == (
        "0.json: 1 stamps outside of EDGAR's hours (06:00 to 22:00 New York), used as "
        "read: 0000320193-22-000095 (4) 2022-10-04T22:02:25.000Z"
    )


def test_a_stamp_inside_the_hours_under_both_readings_is_read_as_its_list(
    tmp_path: Path,
) -> None:
    # NVIDIA's results of 2026-02-25 came at 16:31 New York, not at 11:31: the list is
    # UTC, and this stamp alone is not. Nothing in the list can tell.
    nvidia = ("0001045810-26-000019", "8-K", "2026-02-25", "2026-02-25T16:31:25.000Z")
    log = read(tmp_path, tesla([*NEW, nvidia]))
    assert accepted(log)[nvidia[0]] == nvidia[3]


BOTH = [(f"0000000001-24-00000{n}", "8-K", "2024-03-05", f"2024-03-05T1{n}:00:00.000Z") for n in range(1, 8)]  # fmt: skip
NEITHER = [*OLD, *((f"1{one[0][1:]}", *one[1:]) for one in NEW)]


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        (BOTH, "of 7 stamps 7 read as UTC and 7 read as New York time lie in"),
        (NEITHER, "of 16 stamps 13 read as UTC and 12 read as New York time lie in"),
        # One stray stamp is not enough to tell.
        ([*BOTH, OLD[5]], "of 8 stamps 7 read as UTC and 8 read as New York time"),
    ],
)
def test_an_undecided_clock_is_refused_with_the_counts(
    tmp_path: Path, rows: list[Row], counts: str
) -> None:
    message = (
        f"clock of filer {TESLA} must follow from its acceptance stamps in 0.json; got "
        f"no single reading: {counts}"
    )
    with pytest.raises(ValueError, match=message) as refused:
        read(tmp_path, tesla(rows))
    assert f"or {{'{TESLA}': utc}} for this filer alone." in str(refused.value)


@pytest.mark.parametrize(
    ("clock", "first"),
    [
        ("utc", "2024-03-05T11:00:00.000Z"),
        ("new_york", "2024-03-05T16:00:00.000Z"),
        ({TESLA: "new_york"}, "2024-03-05T16:00:00.000Z"),
    ],
)
def test_a_declared_clock_is_obeyed_and_said(
    tmp_path: Path, clock: object, first: str
) -> None:
    log = read(tmp_path, tesla(BOTH), clock=clock)
    assert accepted(log)[BOTH[0][0]] == first
    assert "(declared): of 7 stamps" in log.notices[0]


def test_a_mapping_leaves_other_filers_to_be_detected(tmp_path: Path) -> None:
    other = tesla(BOTH, cik="1")
    log = read(tmp_path, tesla(OLD), other, clock={"0000000001": "utc"})
    assert [("(found)" in said, "(declared)" in said) for said in log.notices] == [
        (True, False),
        (False, True),
    ]


def test_local_hours_that_are_told_twice_or_never_lie_outside_of_edgars() -> None:
    # Every day of 60 years, at the first and the last instant of EDGAR's hours.
    days = pd.Series(pd.date_range("1993-01-01", "2052-12-31"))
    for bound in (OPENS, CLOSES):
        local = (days + bound).dt.tz_localize(NEW_YORK)  # would raise
        back = local.dt.tz_convert("UTC").dt.tz_localize(None)
        assert in_hours(back, "utc").all()
        assert in_hours(days + bound, "new_york").all()


def test_the_hours_include_their_bounds_and_nothing_beyond() -> None:
    times = ["05:59:59", "06:00:00", "22:00:00", "22:00:01"]
    stamps = pd.Series(pd.to_datetime([f"2024-01-02 {time}" for time in times]))
    assert in_hours(stamps, "new_york").tolist() == [False, True, True, False]
    utc = stamps + pd.Timedelta("5h")
    assert in_hours(utc, "utc").tolist() == [False, True, True, False]
    assert new_york_times(utc, "utc").tolist() == stamps.tolist()


def test_evidence_needs_a_fit_and_three_misfits() -> None:
    assert StampEvidence(1000, 1000, 300).reading == "utc"
    assert StampEvidence(1000, 929, 998).reading == "new_york"
    assert StampEvidence(1000, 990, 989).reading == "utc"
    assert StampEvidence(1000, 989, 989).reading is None
    assert StampEvidence(8, 8, 5).reading == "utc"
    assert StampEvidence(8, 8, 6).reading is None
    assert StampEvidence(0, 0, 0).reading is None
    nothing = pd.Series([pd.NaT, pd.NaT], dtype="datetime64[ns]")
    assert evidence(nothing) == StampEvidence(0, 0, 0)


def test_midnight_under_either_reading_is_a_date_alone() -> None:
    stamps = ["2001-02-13T00:00:00", "2001-02-13T05:00:00", "2001-07-13T04:00:00"]
    dated = is_date_only(pd.Series(pd.to_datetime([*stamps, "2001-07-13T05:00:00"])))
    assert dated.tolist() == [True, True, True, False]


# Filings of CARBO Ceramics with a date alone, as all before May 2002 have.
DATED = [
    ("0000315066-00-001176", "SC 13G", "2000-09-11", "2000-09-11T00:00:00.000Z"),
    ("0000315066-01-000275", "SC 13G/A", "2001-02-13", "2001-02-13T00:00:00.000Z"),
]


def test_filings_with_a_date_alone_are_set_aside_with_the_reason(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, tesla([*DATED, *OLD]))
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [0, "acceptanceDateTime", "a date without a time"],
        [1, "acceptanceDateTime", "a date without a time"],
    ]
    assert log.notices[-1] == "0.json: 2 filings with a date alone: set aside."


def test_a_declared_rule_says_when_a_date_alone_is_known(tmp_path: Path) -> None:
    log = read(tmp_path, tesla(DATED), date_only=NEXT_OPEN)
    assert accepted(log) == {
        DATED[0][0]: "2000-09-12T04:00:00.000Z",
        DATED[1][0]: "2001-02-14T05:00:00.000Z",
    }
    assert clocks(log, "available_at") == {
        DATED[0][0]: "2000-09-12T13:30:00.000Z",
        DATED[1][0]: "2001-02-14T14:30:00.000Z",
    }
    assert log.notices == (
        "0.json: 2 filings with a date alone: known by `date_only`.",
    )


@pytest.mark.parametrize(
    "rule",
    [
        {"days": 0, "at": "22:00", "zone": NEW_YORK},
        {"sessions": 1, "calendar": "24/7", "at": "session_open"},
        # Opens at 17:00 Chicago of the day before.
        {"sessions": 1, "calendar": "CMES", "at": "session_open"},
    ],
)
def test_a_rule_that_knows_a_filing_before_its_day_is_over_is_refused(
    tmp_path: Path, rule: dict[str, Any]
) -> None:
    message = (
        "date_only must lie after the end of a filing's day in New York; got "
        "'2000-09-11' in row 0 of 0.json"
    )
    with pytest.raises(ValueError, match=message):
        read(tmp_path, tesla(DATED), date_only=rule)


# Apple's annual report of 2019, accepted after 17:30 and dated the next day; its list
# is New York time.
REPORT = ANNUAL[0]


@pytest.mark.parametrize(
    ("released", "known", "said"),
    [
        ("filing_day", "2019-10-31T10:00:00.000Z", "known from 06:00 New York of that"),
        ("acceptance", "2019-10-30T22:12:36.000Z", "known at acceptance, as declared"),
    ],
)
def test_a_filing_dated_on_the_next_day_is_known_when_edgar_publishes_it(
    tmp_path: Path, released: str, known: str, said: str
) -> None:
    log = read(tmp_path, tesla([*OLD, REPORT]), released=released)
    assert accepted(log)[REPORT[0]] == "2019-10-30T22:12:36.000Z"
    available = clocks(log, "available_at")
    assert available.pop(REPORT[0]) == known
    assert available == TRUE  # ownership forms keep their day until 22:00
    assert log.notices[-1].startswith("0.json: 1 filings dated on a later day")
    assert said in log.notices[-1]


def test_letters_that_are_published_later_are_never_used(tmp_path: Path) -> None:
    # The daily index of 2020-03-18 lists this letter, dated five weeks before.
    letter = (
        "0000704051-20-000016",
        "CORRESP",
        "2020-02-11",
        "2020-02-11T16:00:00.000Z",
    )
    log = read(tmp_path, tesla([*OLD, letter]))
    assert "filing/CORRESP" not in log.streams
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [8, "form", "published later than its stamp, on a day unknown"]
    ]
    assert "1 filings of forms CORRESP set aside" in log.notices[-1]


def test_the_sum_of_rows_is_kept(tmp_path: Path) -> None:
    letter = (
        "0000704051-20-000016",
        "CORRESP",
        "2020-02-11",
        "2020-02-11T16:00:00.000Z",
    )
    rows = [*OLD, letter, *DATED, OLD[0]]
    log = read(tmp_path, tesla(rows))
    assert len(log) + len(log.quarantine) + log.num_duplicates == len(rows)
    assert (len(log.quarantine), log.num_duplicates) == (3, 1)


@pytest.mark.parametrize(
    ("stamp", "message"),
    [
        (
            "2024-03-05T11:00:00-05:00",
            "acceptance must be a stamp such as 2020-10-30T18:01:14.000Z; got "
            "'2024-03-05T11:00:00-05:00' in row 8 of 0.json",
        ),
        (
            "2024-02-30T11:00:00.000Z",
            "event_time must be an instant such as 2024-03-01T16:00:00Z; got "
            "'2024-02-30T11:00:00.000' in row 8 of 0.json",
        ),
    ],
)
def test_a_bad_stamp_is_refused_by_its_row(
    tmp_path: Path, stamp: str, message: str
) -> None:
    rows = [*OLD, ("0000000001-24-000001", "8-K", "2024-03-05", stamp)]
    with pytest.raises(ValueError, match=message):
        read(tmp_path, tesla(rows))


def test_clock_settings_are_checked() -> None:
    for clock, message in [
        ("ET", "'detect', 'utc' or 'new_york'"),
        (["utc"], "detect, utc, new_york, or a mapping of CIKs of ten digits"),
        ({"320193": "utc"}, r"String should match pattern '\^\[0-9\]\{10\}\$'"),
    ]:
        with pytest.raises(ValueError, match=message):
            EdgarSubmissions.model_validate(
                {"preset": "edgar_submissions", "path": "f", "clock": clock}
            )


def test_missing_stamps_are_quarantined(tmp_path: Path) -> None:
    rows = [*OLD, ("0000000001-24-000001", "8-K", "2024-03-05", "")]
    log = read(tmp_path, tesla(rows))
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [8, "event_time", "missing"]
    ]
    assert np.isin(list(TRUE), list(accepted(log))).all()
