from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log

NEW_YORK = "America/New_York"
FOLD = ["00:30", "01:00", "01:30", "01:00", "01:30", "02:00"]
LOCAL: dict[str, Any] = {
    "entity": "*",
    "event_time": {"column": "t", "stamp": "instant", "zone": NEW_YORK},
}


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": {"column": "id"},
        "event_time": {"column": "t", "stamp": "instant"},
        "available_at": {"lag": "0s"},
        "values": {"v": "v"},
    }
    return TabularSource.model_validate(plain | changes)


def read(folder: Path, content: str | bytes, **changes: Any) -> EventLog:
    declaration = declared(**changes)
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / declaration.name).write_bytes(raw)
    return event_log([declaration], base=folder)


def rows(*cells: str) -> str:
    return "\n".join(["t,v", *(f"{cell},{n}" for n, cell in enumerate(cells))])


def utc(log: EventLog, clock: str = "event_time") -> list[str]:
    frame = log.to_pandas("s").sort_values("v")
    return [f"{instant:%Y-%m-%dT%H:%M:%SZ}" for instant in frame[clock]]


@pytest.mark.parametrize(
    ("stamp", "cell", "expected"),
    [
        ({"stamp": "instant"}, "2024-07-01 16:00:00.5-04:00", "2024-07-01T20:00:00Z"),
        (
            {"stamp": "instant", "zone": NEW_YORK, "format": "%d/%m/%Y %H:%M"},
            "1/7/2024 16:00",
            "2024-07-01T20:00:00Z",
        ),
        (
            {"stamp": "instant", "format": "%Y%m%d %H%M%S %z"},
            "20240701 160000 -0400",
            "2024-07-01T20:00:00Z",
        ),
        (
            {"stamp": "date", "at": "15:30", "zone": NEW_YORK},
            "2024-01-02",
            "2024-01-02T20:30:00Z",
        ),
        (
            {"stamp": "date", "at": "15:30:01", "zone": NEW_YORK, "format": "%m/%d/%y"},
            "07/01/24",
            "2024-07-01T19:30:01Z",
        ),
        ({"stamp": "period_end", "zone": NEW_YORK}, "2008-01", "2008-02-01T05:00:00Z"),
        ({"stamp": "period_end", "zone": NEW_YORK}, "2007-12", "2008-01-01T05:00:00Z"),
        ({"stamp": "period_end", "zone": NEW_YORK}, "2008-Q1", "2008-04-01T04:00:00Z"),
        ({"stamp": "period_end", "zone": NEW_YORK}, "2008-Q4", "2009-01-01T05:00:00Z"),
        # Paraguay skipped midnight on 2017-10-01: the month ended as 01:00 began.
        (
            {"stamp": "period_end", "zone": "America/Asuncion"},
            "2017-09",
            "2017-10-01T04:00:00Z",
        ),
        (
            {"stamp": "bar_open", "bar": "1h"},
            "2024-05-06T09:00:00Z",
            "2024-05-06T10:00:00Z",
        ),
        ({"stamp": "bar_close"}, "2024-05-06T09:00:00Z", "2024-05-06T09:00:00Z"),
    ],
)
def test_stamps_become_instants(
    tmp_path: Path, stamp: dict[str, str], cell: str, expected: str
) -> None:
    log = read(tmp_path, rows(cell), entity="*", event_time=stamp | {"column": "t"})
    assert utc(log) == [expected]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"lag": "90min"}, "2024-11-27T22:30:00Z"),
        # Thanksgiving is the 28th; the 29th is a half day, which `at` overrules.
        (
            {"sessions": 1, "calendar": "XNYS", "at": "16:15", "zone": NEW_YORK},
            "2024-11-29T21:15:00Z",
        ),
        (
            {"sessions": 2, "calendar": "us_federal", "at": "08:30", "zone": NEW_YORK},
            "2024-12-02T13:30:00Z",
        ),
        ({"days": 7, "at": "17:00", "zone": NEW_YORK}, "2024-12-04T22:00:00Z"),
        ({"column": "known"}, "2024-12-01T09:00:00Z"),
        (
            {"column": "day", "at": "08:30", "zone": NEW_YORK, "format": "%d.%m.%Y"},
            "2024-12-03T13:30:00Z",
        ),
    ],
)
def test_availability_follows_its_rule(
    tmp_path: Path, rule: dict[str, Any], expected: str
) -> None:
    content = "t,v,known,day\n2024-11-27,1,2024-12-01T10:00:00+01:00,03.12.2024\n"
    stamp = {"column": "t", "stamp": "date", "at": "16:00", "zone": NEW_YORK}
    log = read(tmp_path, content, entity="*", event_time=stamp, available_at=rule)
    assert utc(log, "available_at") == [expected]


def test_local_date_is_that_of_the_rules_zone(tmp_path: Path) -> None:
    # 20:00 New York is the next day in UTC; the session after the 2nd is the 3rd.
    rule = {"sessions": 1, "calendar": "XNYS", "at": "16:00", "zone": NEW_YORK}
    log = read(tmp_path, rows("2024-01-03T01:00:00Z"), entity="*", available_at=rule)
    assert utc(log, "available_at") == ["2024-01-03T21:00:00Z"]


def test_bars_stamped_at_their_open_are_known_at_their_close(tmp_path: Path) -> None:
    stamps = [f"2024-05-06T{hour:02d}:00:00Z" for hour in (9, 10, 11)]
    stamp = {"column": "t", "stamp": "bar_open", "bar": "1h"}
    log = read(tmp_path, rows(*stamps), entity="*", event_time=stamp)
    closes = [f"2024-05-06T{hour}:00:00Z" for hour in (10, 11, 12)]
    assert utc(log) == utc(log, "available_at") == closes


def test_repeated_hour_is_told_apart_by_the_order_of_rows(tmp_path: Path) -> None:
    log = read(tmp_path, rows(*(f"2024-11-03 {t}:00" for t in FOLD)), **LOCAL)
    assert [stamp[11:16] for stamp in utc(log)] == [
        "04:30",
        "05:00",
        "05:30",
        "06:00",
        "06:30",
        "07:00",
    ]


def test_repeated_hour_is_told_apart_per_entity(tmp_path: Path) -> None:
    content = "id,t,v\n" + "".join(
        f"{name},2024-11-03 {t},{n}\n"
        for n, t in enumerate(["00:00", "01:00", "01:00", "02:00"])
        for name in "AB"
    )
    stamp = {"column": "t", "stamp": "instant", "zone": NEW_YORK}
    frame = read(tmp_path, content, event_time=stamp).to_pandas("s")
    for _, mine in frame.groupby("entity"):
        assert mine["event_time"].dt.hour.to_list() == [4, 5, 6, 7]


@given(
    minutes=st.lists(st.integers(0, 5 * 60), min_size=1, max_size=12, unique=True),
    backwards=st.booleans(),
)
def test_a_local_stamp_is_never_taken_for_another_instant(
    tmp_path_factory: pytest.TempPathFactory,
    minutes: list[int],
    backwards: bool,  # noqa: FBT001
) -> None:
    # Five hours around the change of 2024-11-03, in order of time or against it. Hours
    # 1 and 2 have the same local stamps; rows of these alone, the newest first, look
    # like rows in order.
    outside = any(minute < 60 or minute >= 180 for minute in minutes)
    start = pd.Timestamp("2024-11-03T04:00Z")
    truth = [start + pd.Timedelta(minutes=m) for m in sorted(minutes)]
    if backwards:
        truth.reverse()
    local = [time.tz_convert(NEW_YORK).strftime("%Y-%m-%d %H:%M") for time in truth]
    folder = tmp_path_factory.mktemp("fold")
    try:
        log = read(folder, rows(*local), **LOCAL)
    except ValueError as error:
        assert "must name one instant" in str(error)  # noqa: PT017
        return
    if outside or not backwards:
        assert utc(log) == [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in truth]
