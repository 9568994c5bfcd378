from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from infoset.data.asof import as_of
from infoset.data.events import EventLog
from infoset.data.sources import AnySource, event_log
from infoset.data.sources.presets.bars import BarsSource

NEW_YORK = "America/New_York"
HOURS = """ts_open,open,close
2024-05-06T09:00:00Z,98.0,99.0
2024-05-06T10:00:00Z,99.0,101.0
2024-05-06T11:00:00Z,101.0,105.0
"""
DAYS = "date,close\n2024-11-27,10\n2024-11-29,11\n2024-12-02,12\n"
OHLCV = ("open", "high", "low", "close", "volume")


def bars(**changes: Any) -> BarsSource:
    plain = {
        "preset": "bars",
        "path": "f.csv",
        "entity": "ES",
        "stamped": "open",
        "bar": "1h",
        "columns": {"time": "ts_open", "close": "close"},
    }
    settings = {name: v for name, v in (plain | changes).items() if v is not None}
    source = TypeAdapter(AnySource).validate_python(settings)
    assert isinstance(source, BarsSource)
    return source


def read(folder: Path, content: str, **changes: Any) -> EventLog:
    (folder / "f.csv").write_text(content)
    return event_log([bars(**changes)], base=folder)


def daily(**changes: Any) -> dict[str, Any]:
    plain = {"stamped": "session", "bar": None, "calendar": "XNYS"}
    return plain | {"columns": {"time": "date", "close": "close"}} | changes


def known_at(log: EventLog, stream: str) -> list[str]:
    known = log.to_pandas(stream)["available_at"]
    return [f"{instant:%Y-%m-%dT%H:%M:%SZ}" for instant in known]


def test_a_bar_stamped_at_its_open_is_invisible_until_it_closes(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, HOURS)
    decisions = pd.DataFrame(
        {
            "entity": "ES",
            "forecast_time": pd.DatetimeIndex(
                [
                    "2024-05-06T10:00:00Z",
                    "2024-05-06T10:45:00Z",
                    "2024-05-06T11:00:00Z",
                    "2024-05-06T11:59:59Z",
                    "2024-05-06T12:00:00Z",
                ]
            ),
        }
    )
    assert as_of(log, decisions)["close"].to_list() == [99, 99, 101, 101, 105]


def test_a_bar_stamped_at_its_close_is_known_at_its_stamp(tmp_path: Path) -> None:
    log = read(tmp_path, HOURS, stamped="close", lag="5s")
    frame = log.to_pandas("bars/1h")
    assert frame["event_time"].iloc[0] == pd.Timestamp("2024-05-06T09:00Z")
    assert frame["available_at"].iloc[0] == pd.Timestamp("2024-05-06T09:00:05Z")


def test_a_daily_bar_is_known_when_its_session_closes(tmp_path: Path) -> None:
    log = read(tmp_path, DAYS, **daily())
    assert known_at(log, "bars/1d") == [
        "2024-11-27T21:00:00Z",
        "2024-11-29T18:00:00Z",  # a half day
        "2024-12-02T21:00:00Z",
    ]
    frame = log.to_pandas("bars/1d")
    assert frame["event_time"].to_list() == frame["available_at"].to_list()


@pytest.mark.parametrize(
    ("stamp", "settings"),
    [
        ("2024-11-29 00:00:00-05:00", {}),
        ("2024-11-29T00:00:00Z", {}),
        ("2024-11-29T05:00:00Z", {"zone": NEW_YORK}),
        ("2024-11-29", {"zone": NEW_YORK}),
        ("29.11.2024", {"time_format": "%d.%m.%Y"}),
        ("1732856400000", {"epoch": "ms", "zone": NEW_YORK}),
        ("1732838400", {"epoch": "s", "zone": "UTC"}),
    ],
)
def test_a_session_is_told_by_its_date_or_its_midnight(
    tmp_path: Path, stamp: str, settings: dict[str, str]
) -> None:
    log = read(tmp_path, f"date,close\n{stamp},11\n", **daily(**settings))
    assert known_at(log, "bars/1d") == ["2024-11-29T18:00:00Z"]


def test_parquet_holds_dates_or_midnights_of_sessions(tmp_path: Path) -> None:
    day = pd.DatetimeIndex(["2024-11-29"])
    for dates in (day, day.tz_localize(NEW_YORK), pd.Series(day).dt.date):
        pd.DataFrame({"date": dates, "close": [11.0]}).to_parquet(
            tmp_path / "f.parquet"
        )
        source = bars(**daily(path="f.parquet"))
        log = event_log([source], base=tmp_path)
        assert known_at(log, "bars/1d") == ["2024-11-29T18:00:00Z"]


@pytest.mark.parametrize(
    ("unit", "count"),
    [("s", 10**0), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)],
)
def test_whole_number_stamps_are_exact_in_every_unit(
    tmp_path: Path, unit: str, count: int
) -> None:
    content = f"ts_open,close\n{1714986000 * count + (unit == 'ns')},99\n"
    log = read(tmp_path, content, epoch=unit)
    closes = pd.Timestamp("2024-05-06T10:00Z").value + (unit == "ns")
    assert log.to_pandas("bars/1h")["event_time"].iloc[0].value == closes


def test_naive_stamps_take_the_declared_zone_also_where_the_clock_goes_back(
    tmp_path: Path,
) -> None:
    # Two entities, interleaved: each goes through 01:00 twice on 3 November 2024.
    stamps = ["00:00", "01:00", "01:00", "02:00"]
    content = "ts_open,id,close\n" + "".join(
        f"2024-11-03 {stamp},{entity},{place}\n"
        for place, stamp in enumerate(stamps)
        for entity in ("A", "B")
    )
    log = read(tmp_path, content, zone=NEW_YORK, entity={"column": "id"})
    frame = log.to_pandas("bars/1h")
    hours = frame.loc[frame["entity"] == "B", "event_time"].dt.hour.to_list()
    assert hours == [5, 6, 7, 8]


def test_bars_whose_prices_cannot_be_are_set_aside(tmp_path: Path) -> None:
    rows = [
        "09:00,10,12,9,11,5",  # sound
        "10:00,10,9,9.5,9,5",
        "11:00,10,9.5,9,9,5",
        "12:00,10,11,9,12,5",
        "13:00,10,12,10.5,11,5",
        "14:00,10,12,9.5,9,5",
        "15:00,10,12,9,11,-1",
        "16:00,10,,,11,0",  # what is missing breaks no rule
    ]
    content = f"ts_open,{','.join(OHLCV)}\n" + "".join(
        f"2024-05-06T{row}\n".replace(",", ":00Z,", 1) for row in rows
    )
    columns = {"time": "ts_open"} | {name: name for name in OHLCV}
    log = read(tmp_path, content, columns=columns)
    assert len(log) == 2
    assert log.quarantine.to_numpy().tolist() == [
        ["bars/1h", 1, "high", "high below low", "f.csv"],
        ["bars/1h", 2, "high", "high below open", "f.csv"],
        ["bars/1h", 3, "high", "high below close", "f.csv"],
        ["bars/1h", 4, "low", "low above open", "f.csv"],
        ["bars/1h", 5, "low", "low above close", "f.csv"],
        ["bars/1h", 6, "volume", "negative volume", "f.csv"],
    ]


def test_a_file_of_nothing_but_faults_gives_no_event(tmp_path: Path) -> None:
    content = "ts_open,high,low,close\n2024-05-06T09:00:00Z,1,2,1.5\n"
    columns = {"time": "ts_open", "high": "high", "low": "low", "close": "close"}
    log = read(tmp_path, content, columns=columns)
    assert (len(log), len(log.quarantine)) == (0, 1)


def test_bars_that_overlap_are_noticed(tmp_path: Path) -> None:
    assert read(tmp_path, HOURS).notices == ()
    (notice,) = read(tmp_path, HOURS, bar="2h").notices
    assert notice == (
        "2 bars of stream 'bars/2h' close less than 2h after the bar before; the first "
        "is of ES, at 2024-05-06 12:00:00+00:00. Is `bar` their length?"
    )


def test_other_entities_do_not_make_bars_overlap(tmp_path: Path) -> None:
    content = "ts_open,id,close\n2024-05-06T09:00:00Z,A,1\n2024-05-06T09:30:00Z,B,1\n"
    assert read(tmp_path, content, entity={"column": "id"}).notices == ()


def test_a_files_name_can_hold_its_entity(tmp_path: Path) -> None:
    for name in ("AAPL", "MSFT"):
        (tmp_path / f"{name}_1h.csv").write_text(HOURS)
    source = bars(path="*_1h.csv", entity={"file": "*_1h.csv"})
    log = event_log([source], base=tmp_path)
    assert log.entities == ("AAPL", "MSFT")
    assert len(log) == 6
    (tmp_path / "f.csv").write_text(HOURS)
    with pytest.raises(ValueError, match=r"entity\.file must match .*; got .* for f\."):
        event_log([bars(entity={"file": "*_1h.csv"})], base=tmp_path)


def test_more_columns_and_units_are_kept(tmp_path: Path) -> None:
    content = HOURS.replace(",open,", ",vw,")
    log = read(tmp_path, content, values={"vwap": "vw"}, unit="USD", stream="x")
    assert log.values_of("x") == ("close", "vwap")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"stamped": None},
            "must say by `stamped` whether .* a full bar of the future",
        ),
        (
            {"bar": None},
            r"length of a `bar`, such as 1min; got none with `stamped: open",
        ),
        ({"stamped": "close", "bar": None}, "must have the length of a `bar`"),
        ({"calendar": "XNYS"}, "`calendar` for `stamped: session` only; got 'XNYS'"),
        (daily(calendar=None), "half days early, and no hour is built in"),
        (daily(calendar="NYSE_"), r"calendar must be .*; got 'NYSE_'\. Did you mean"),
        (daily(bar="1d"), "must not have `bar` for bars stamped by session"),
        (daily(epoch="ms"), "must have the `zone` in which session stamps are midn"),
        (daily(time_format="%Y%m%d%z"), "must have the `zone` in which session"),
        ({"epoch": "s", "time_format": "%Y%m%d"}, "must have `time_format` or `epoch`"),
        (
            {"epoch": "s", "zone": NEW_YORK},
            "must not have a `zone` for stamps that cou",
        ),
        ({"bar": "1d", "zone": NEW_YORK}, "local days have 23 to 25 hours; got"),
        ({"values": {"close": "c"}}, "must not name in `values` what `columns` has"),
        ({"entity": {"col": "id"}}, r"text .* or \{file: '"),
        ({"time_format": "yyyy"}, "must hold strptime directives"),
        ({"stamped": "close", "time_format": "%Y%m%d"}, "time_format must hold a time"),
    ],
)
def test_settings_that_leave_a_clock_open_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        bars(**changes)


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (
            DAYS.replace("11-29", "11-28"),
            daily(),
            r"date must be the date of a session of XNYS; got '2024-11-28' in row 1 of "
            r"f\.csv \(column 'date'\)\. The nearest are 2024-11-27 and 2024-11-29",
        ),
        (
            DAYS.replace("2024", "1784"),
            daily(),
            r"date of f\.csv: calendar 'XNYS' covers 1",
        ),
        (
            DAYS,
            daily(calendar="XNYS", zone=NEW_YORK, time_format="%Y-%d-%m"),
            "date must match the format '%Y-%d-%m'; .* or `time_format`",
        ),
        (
            "date,close\n2024-11-29T10:00:00Z,1\n",
            daily(zone=NEW_YORK),
            "date must be a midnight in America/New_York, as it stands for a date",
        ),
        (HOURS.replace("Z", ""), {}, "must be timezone-aware; .* Declare `zone`"),
        (HOURS, {"epoch": "s"}, "ts_open must be a whole number; got '2024-05-06T09"),
        (
            "ts_open,close\n1714986000000,1\n",
            {"epoch": "s"},
            r"must count s since 1970, from 1678 to 2261; .* It seems to count ms\.",
        ),
        (
            "ts_open,close\n1714986000,1\n",
            {"epoch": "ms"},
            r"must count ms since 1970, but all of them lie before .* to count s\.",
        ),
    ],
)
def test_bars_without_a_sure_clock_are_refused(
    tmp_path: Path, content: str, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content, **changes)


def test_an_unknown_preset_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        ValidationError, match=r"one of .*bars.*; got .bar.\. Did you mean"
    ):
        TypeAdapter(AnySource).validate_python({"preset": "bar", "path": "f.csv"})
