from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from infoset.data.session_closes import first_closes, nearest_sessions, session_closes


def nanos(*stamps: str) -> np.ndarray:
    index = pd.DatetimeIndex(stamps).tz_convert("UTC").as_unit("ns")
    return index.to_numpy(dtype="datetime64[ns]").astype(np.int64)


def test_a_half_day_closes_early_and_a_holiday_has_no_close() -> None:
    dates = pd.DatetimeIndex(["2024-11-29", "2024-11-28", None, "2024-11-27"])
    closes = session_closes("XNYS", dates)
    assert closes[[0, 3]].to_list() == [
        pd.Timestamp("2024-11-29T18:00Z"),
        pd.Timestamp("2024-11-27T21:00Z"),
    ]
    assert closes.isna().tolist() == [False, True, True, False]
    assert str(closes.dtype) == "datetime64[ns, UTC]"


def test_no_dates_have_no_closes() -> None:
    assert session_closes("XNYS", pd.DatetimeIndex([])).empty
    assert session_closes("XNYS", pd.DatetimeIndex([pd.NaT])).isna().all()
    assert first_closes("XNYS", np.array([], dtype=np.int64)).empty


def test_a_release_belongs_to_the_first_session_that_closes_from_then_on() -> None:
    # Thanksgiving 2024: closed on the 28th, 13:00 on the 29th.
    released = nanos(
        "2024-11-27T15:59:59-05:00",
        "2024-11-28T10:00:00-05:00",
        "2024-11-29T12:59:59-05:00",
        "2024-11-29T14:30:00-05:00",
    )
    found = first_closes("XNYS", released)
    assert found["session"].dt.strftime("%Y-%m-%d").to_list() == [
        "2024-11-27",
        "2024-11-29",
        "2024-11-29",
        "2024-12-02",
    ]
    assert found["close"].iloc[1] == pd.Timestamp("2024-11-29T18:00Z")


def test_a_release_at_the_close_is_in_time_and_one_just_after_it_is_not() -> None:
    close = nanos("2024-11-29T18:00:00+00:00")
    found = first_closes("XNYS", np.concatenate([close, close + 1]))
    assert found["session"].dt.day.to_list() == [29, 2]


def test_the_nearest_sessions_of_a_holiday_are_around_it() -> None:
    found = nearest_sessions("XNYS", pd.Timestamp("2024-11-28"))
    assert found == ("2024-11-27", "2024-11-29")


def test_a_date_with_a_time_of_day_is_refused() -> None:
    with pytest.raises(ValueError, match="dates must be midnights without a zone; got"):
        session_closes("XNYS", pd.DatetimeIndex(["2024-11-29T10:00"]))


def test_an_instant_that_no_session_follows_is_refused() -> None:
    with pytest.raises(ValueError, match="calendar 'XNYS' covers"):
        first_closes("XNYS", nanos("2199-12-31T00:00Z"))
