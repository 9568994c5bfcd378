"""`at: session_open` and `at: session_close` of a source's availability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from infoset.data.calendars import session_zone
from infoset.data.sources import TabularSource, event_log

NEW_YORK = "America/New_York"


def declared(**availability: Any) -> TabularSource:
    return TabularSource.model_validate(
        {
            "path": "f.csv",
            "stream": "s",
            "entity": "*",
            "event_time": {
                "column": "t",
                "stamp": "date",
                "at": "12:00",
                "zone": NEW_YORK,
            },
            "available_at": {"sessions": 1, "calendar": "XNYS", **availability},
            "values": {"v": "v"},
        }
    )


def known(folder: Path, *days: str, **availability: Any) -> list[str]:
    rows = [f"{day},{number}" for number, day in enumerate(days)]
    (folder / "f.csv").write_text("\n".join(["t,v", *rows]))
    frame = event_log([declared(**availability)], base=folder).to_pandas("s")
    return [f"{at:%Y-%m-%dT%H:%MZ}" for at in frame.sort_values("v")["available_at"]]


@pytest.mark.parametrize(
    ("rule", "day", "expected"),
    [
        # Thanksgiving is 2024-11-28; the 29th closes at 13:00.
        ({"at": "session_open"}, "2024-11-27", "2024-11-29T14:30Z"),
        ({"at": "session_close"}, "2024-11-27", "2024-11-29T18:00Z"),
        ({"at": "session_close", "sessions": 2}, "2024-11-27", "2024-12-02T21:00Z"),
        ({"at": "session_open"}, "2024-06-28", "2024-07-01T13:30Z"),
        # London is four hours ahead between the two changes of the clocks.
        ({"at": "session_open", "calendar": "XLON"}, "2024-03-14", "2024-03-15T08:00Z"),
    ],
)
def test_a_sessions_own_bounds_come_from_its_calendar(
    tmp_path: Path, rule: dict[str, Any], day: str, expected: str
) -> None:
    assert known(tmp_path, day, **rule) == [expected]


def test_the_calendars_zone_tells_the_local_date(tmp_path: Path) -> None:
    # Noon of the 2nd in New York is the 3rd in Tokyo: the session after it is the 4th.
    found = known(tmp_path, "2024-07-02", calendar="XTKS", at="session_open")
    assert found == ["2024-07-04T00:00Z"]
    assert session_zone("XTKS") == "Asia/Tokyo"
    assert session_zone("us_federal") == NEW_YORK


def test_rows_of_one_file_find_their_own_sessions(tmp_path: Path) -> None:
    days = ["2024-12-31", "2024-07-03", "2024-12-30", "2024-11-29"]
    assert known(tmp_path, *days, at="session_open") == [
        "2025-01-02T14:30Z",
        "2024-07-05T13:30Z",
        "2024-12-31T14:30Z",
        "2024-12-02T14:30Z",
    ]


def test_a_row_without_a_date_has_no_session(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t,v\n,1\n")
    log = event_log([declared(at="session_open")], base=tmp_path)
    assert log.quarantine["column"].to_list() == ["event_time"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {"at": "session_open", "zone": NEW_YORK},
            "must not have a `zone` with `at: session_open`, as the calendar has its own",
        ),
        ({"at": "16:00"}, "must have a `zone` for its `at`; got '16:00' alone"),
        (
            {"at": "sesion_open"},
            "must be session_open, session_close or quoted text such as '15:30'; got "
            "'sesion_open'",
        ),
        ({"at": 930}, "must be quoted text such as '15:30'; got 930"),
    ],
)
def test_a_bound_and_a_time_of_day_are_not_mixed(
    rule: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        declared(**rule)


def test_an_unknown_calendar_has_no_zone() -> None:
    with pytest.raises(ValueError, match="must be us_federal, us_federal_board or a"):
        session_zone("XNYZ")


def test_opens_are_those_of_the_calendar_in_both_halves_of_the_year(
    tmp_path: Path,
) -> None:
    found = known(tmp_path, "2024-01-02", "2024-07-01", at="session_open")
    local = [pd.Timestamp(at).tz_convert(NEW_YORK) for at in found]
    assert [f"{at:%H:%M}" for at in local] == ["09:30", "09:30"]
