from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from infoset.data.calendars import next_sessions, session_opens_before, sessions


def days(calendar: str, start: str, end: str) -> list[str]:
    found = sessions(calendar, start, end)["session"]
    return [f"{day:%Y-%m-%d}" for day in found]


def nanos(*stamps: str) -> np.ndarray:
    index = pd.DatetimeIndex(stamps).tz_convert("UTC").as_unit("ns")
    return index.to_numpy(dtype="datetime64[ns]").astype(np.int64)


def test_half_day_closes_early_and_a_holiday_has_no_session() -> None:
    # New York Stock Exchange, Thanksgiving 2024: closed on the 28th, 13:00 on the 29th.
    found = sessions("XNYS", "2024-11-27", "2024-12-02")
    assert found["session"].dt.day.to_list() == [27, 29, 2]
    assert found["open"].to_list() == list(
        pd.DatetimeIndex(
            ["2024-11-27T14:30Z", "2024-11-29T14:30Z", "2024-12-02T14:30Z"]
        )
    )
    assert found["close"].to_list() == list(
        pd.DatetimeIndex(
            ["2024-11-27T21:00Z", "2024-11-29T18:00Z", "2024-12-02T21:00Z"]
        )
    )
    assert str(found["close"].dtype) == "datetime64[ns, UTC]"


def test_first_close_after_a_release_knows_half_days_and_holidays() -> None:
    released = nanos(
        "2024-11-27T15:59:59-05:00",
        "2024-11-28T10:00:00-05:00",
        "2024-11-29T12:59:59-05:00",
        "2024-11-29T14:30:00-05:00",
    )
    found = sessions("XNYS", "2024-11-25", "2024-12-06")
    closes = found["close"].astype("int64").to_numpy()
    first = found["session"].iloc[np.searchsorted(closes, released)]
    assert first.dt.day.to_list() == [27, 29, 29, 2]


def test_instants_select_the_sessions_open_between_them() -> None:
    start = pd.Timestamp("2024-11-27T15:00Z")
    end = pd.Timestamp("2024-11-29T14:30Z")
    assert sessions("XNYS", start, end)["session"].dt.day.to_list() == [27, 29]
    just_before = end - pd.Timedelta(1, unit="ns")
    assert sessions("XNYS", start, just_before)["session"].dt.day.to_list() == [27]


def test_a_returned_frame_can_be_changed_without_harm() -> None:
    first = sessions("XNYS", "2024-11-27", "2024-12-02")
    first["close"] = pd.NaT
    assert sessions("XNYS", "2024-11-27", "2024-12-02")["close"].notna().all()


# Federal Reserve Board, table K.8 "Holidays Observed by the Federal Reserve System",
# editions 2020-2024 and 2026-2030: the Banks do not move a Saturday holiday, the Board
# closes on the Friday, and all close on the Monday after a Sunday holiday.
SATURDAY_HOLIDAYS = [
    "2000-11-10",
    "2004-12-31",
    "2006-11-10",
    "2010-12-31",
    "2017-11-10",
    "2020-07-03",
    "2021-12-24",
    "2021-12-31",
    "2023-11-10",
    "2026-07-03",
]


@pytest.mark.parametrize("friday", SATURDAY_HOLIDAYS)
def test_friday_before_a_saturday_holiday_is_worked_by_the_banks_only(
    friday: str,
) -> None:
    assert days("us_federal", friday, friday) == [friday]
    assert days("us_federal_board", friday, friday) == []


@pytest.mark.parametrize("monday", ["2021-07-05", "2022-12-26", "2023-01-02"])
@pytest.mark.parametrize("calendar", ["us_federal", "us_federal_board"])
def test_sunday_holiday_moves_to_monday(calendar: str, monday: str) -> None:
    assert days(calendar, monday, monday) == []


def test_juneteenth_is_kept_by_the_board_from_2021_and_by_the_banks_from_2022() -> None:
    # 19 June 2021 was a Saturday. Board press release of 17 June 2021: offices closed
    # on Friday the 18th, payment services as usual.
    assert days("us_federal", "2021-06-17", "2021-06-21") == [
        "2021-06-17",
        "2021-06-18",
        "2021-06-21",
    ]
    assert days("us_federal_board", "2021-06-17", "2021-06-21") == [
        "2021-06-17",
        "2021-06-21",
    ]
    assert days("us_federal", "2020-06-19", "2020-06-19") == ["2020-06-19"]
    assert days("us_federal", "2022-06-17", "2022-06-21") == [
        "2022-06-17",
        "2022-06-21",
    ]


def test_board_rests_where_it_said_that_h15_would_not_appear() -> None:
    # H.15 notices of 18 December 2008 and 12 January 2009 (Inauguration Day).
    assert days("us_federal_board", "2008-12-24", "2008-12-29") == [
        "2008-12-24",
        "2008-12-29",
    ]
    assert days("us_federal_board", "2009-01-16", "2009-01-21") == [
        "2009-01-16",
        "2009-01-21",
    ]
    assert days("us_federal_board", "2012-10-26", "2012-10-31") == [
        "2012-10-26",
        "2012-10-31",
    ]


def test_banks_lose_a_holiday_that_falls_on_a_saturday() -> None:
    workdays = pd.bdate_range("2022-01-01", "2022-12-31").strftime("%Y-%m-%d")
    closed = sorted(set(workdays) - set(days("us_federal", "2022-01-01", "2022-12-31")))
    # Of the eleven holidays of 2022, New Year's Day was a Saturday.
    assert closed == [
        "2022-01-17",
        "2022-02-21",
        "2022-05-30",
        "2022-06-20",
        "2022-07-04",
        "2022-09-05",
        "2022-10-10",
        "2022-11-11",
        "2022-11-24",
        "2022-12-26",
    ]


def test_next_session_is_strictly_later_and_keeps_missing_dates() -> None:
    asked = pd.DatetimeIndex(
        ["2010-12-30", "2010-12-31", None, "2011-01-01", "2011-01-03"]
    )
    banks = ["2010-12-31", "2011-01-03", None, "2011-01-03", "2011-01-04"]
    board = ["2011-01-03", "2011-01-03", None, "2011-01-03", "2011-01-04"]
    for calendar, expected in (("us_federal", banks), ("us_federal_board", board)):
        found = next_sessions(calendar, asked, 1)
        assert found.equals(pd.DatetimeIndex(expected).as_unit("ns"))


@pytest.mark.parametrize("n", [1, 2, 5, 250])
def test_next_sessions_count_one_by_one(n: int) -> None:
    all_days = sessions("XNYS", "2019-12-01", "2021-12-31")["session"]
    asked = pd.DatetimeIndex(pd.date_range("2020-01-01", "2020-02-10"))
    expected = [all_days[all_days > day].iloc[n - 1] for day in asked]
    assert next_sessions("XNYS", asked, n).to_list() == expected


def test_next_sessions_of_nothing_is_nothing() -> None:
    assert len(next_sessions("XNYS", pd.DatetimeIndex([]), 1)) == 0
    assert next_sessions("XNYS", pd.DatetimeIndex([pd.NaT]), 1).isna().all()


def test_latest_open_is_the_open_itself_at_the_open() -> None:
    asked = nanos("2024-11-29T14:30:00Z", "2024-11-29T14:29:59.999999999Z")
    expected = nanos("2024-11-29T14:30Z", "2024-11-27T14:30Z")
    assert session_opens_before("XNYS", asked).tolist() == expected.tolist()
    assert session_opens_before("XNYS", asked[:0]).tolist() == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("NYES", "Did you mean XNYS, NYSE"),
        ("us_fedral", "Did you mean us_federal"),
        ("xnys", "Did you mean XNYS"),
        ("", "Did you mean XNYS, XLON or 24/7"),
    ],
)
def test_unknown_calendar_is_refused_with_similar_names(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"got {name!r}. {hint}")):
        sessions(name, "2024-01-01", "2024-01-31")


def test_dates_outside_of_a_calendar_are_refused() -> None:
    with pytest.raises(ValueError, match="'us_federal' covers 1978-01-01 to"):
        sessions("us_federal", "1970-01-01", "1970-02-01")
    with pytest.raises(ValueError, match="'XBOM' covers 1997-01-01 to 20"):
        sessions("XBOM", "1996-12-01", "1997-02-01")
    last = pd.DatetimeIndex(["2199-12-31"])
    with pytest.raises(ValueError, match="must cover 40 sessions after 2199-12-31"):
        next_sessions("us_federal", last, 40)
    with pytest.raises(ValueError, match="must have a session before 1978-01-01"):
        session_opens_before("us_federal", nanos("1978-01-01T00:00Z"))


def test_bounds_that_are_neither_dates_nor_instants_are_refused() -> None:
    with pytest.raises(ValueError, match="start must be a date, or an instant with a"):
        sessions("XNYS", "2024-01-02 10:00", "2024-01-03")
    with pytest.raises(ValueError, match="must be both dates or both instants"):
        sessions("XNYS", "2024-01-02", pd.Timestamp("2024-01-03T00:00Z"))
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        next_sessions("XNYS", pd.DatetimeIndex(["2024-01-02"]), 0)
    with pytest.raises(ValueError, match="dates must be midnights without a zone"):
        next_sessions("XNYS", pd.DatetimeIndex(["2024-01-02T10:00"]), 1)
