"""Failures that users of other software reported, and what is right instead.

The inputs are small and our own; the right answers were worked out by hand and by plain
NumPy. All comparisons are exact. Each case names a report of the failure.
"""

from __future__ import annotations

import datetime as dt
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter, ValidationError

from infoset.data import EventLog, as_of, event_arrays, timeline, vintage
from infoset.data.calendars import sessions
from infoset.data.instants import nanoseconds
from infoset.data.sources import AnySource, TabularSource, event_log

NEW_YORK = "America/New_York"
UNITS = ["s", "ms", "us", "ns"]


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": {"column": "asset"},
        "event_time": {"column": "event_time", "stamp": "instant"},
        "available_at": {"column": "available_at"},
        "values": {"value": "value"},
    }
    return TabularSource.model_validate(plain | changes)


def read(folder: Path, content: str | bytes | pa.Table, **changes: Any) -> EventLog:
    source = declared(**changes)
    path = folder / source.name
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return event_log([source], base=folder)


def points(*stamps: str, entity: str = "AAA") -> pd.DataFrame:
    times = pd.to_datetime(list(stamps), utc=True, format="ISO8601").as_unit("ns")
    return pd.DataFrame({"entity": entity, "forecast_time": times})


def listed(column: pd.Series) -> list[Any]:
    return [None if pd.isna(value) else value for value in column.tolist()]


def packed(frame: pd.DataFrame) -> bytes:
    """Return a frame as bytes: equal only if every number and instant is the same."""
    return frame.to_csv(index=False).encode()


# Clocks of another unit and zone: the New York clocks go forward on 10 March 2024.
# https://github.com/pandas-dev/pandas/issues/15800


def local_events(unit: str) -> pa.Table:
    stamps = [dt.datetime(2024, 3, 8, 9, 31), dt.datetime(2024, 3, 11, 9, 31)]
    clock = pa.array(stamps, pa.timestamp(unit))
    return pa.table({"asset": ["AAA", "AAA"], "at": clock, "value": [1.0, 2.0]})


def local(zone: str | None, clock: str = "event_time") -> dict[str, Any]:
    zones = {"event_time": NEW_YORK, "available_at": NEW_YORK} | {clock: zone}
    return {
        "path": "f.parquet",
        "event_time": {
            "column": "at",
            "stamp": "instant",
            "zone": zones["event_time"],
        },
        "available_at": {"column": "at", "zone": zones["available_at"]},
    }


AROUND_THE_CHANGE = points(
    "2024-03-08T14:30Z",
    "2024-03-08T14:31Z",
    "2024-03-11T13:30:59.999Z",
    "2024-03-11T13:31Z",
)


@pytest.mark.parametrize("asked", UNITS)
@pytest.mark.parametrize("unit", UNITS)
def test_p01_units_and_zones_of_clocks_never_change_what_is_known(
    tmp_path: Path, unit: str, asked: Any
) -> None:
    log = read(tmp_path, local_events(unit), **local(NEW_YORK))
    times = AROUND_THE_CHANGE["forecast_time"]
    if asked == "s":  # a millisecond before the minute is not a whole second
        times = times.dt.floor("s")
    there = pd.DataFrame({"entity": "AAA", "forecast_time": times.dt.as_unit(asked)})
    assert listed(as_of(log, there)["value"]) == [None, 1, 1, 2]
    strictly = as_of(log, there, boundary="strict")
    assert listed(strictly["value"]) == [None, None, 1, 1]
    elsewhere = there.assign(forecast_time=times.dt.tz_convert("Asia/Kolkata"))
    assert listed(as_of(log, elsewhere)["value"]) == [None, 1, 1, 2]


@pytest.mark.parametrize("clock", ["event_time", "available_at"])
def test_p01_a_clock_without_zone_is_refused_until_one_is_declared(
    tmp_path: Path, clock: str
) -> None:
    message = (
        rf"{clock} must be timezone-aware; got .*2024, 3, 8, 9, 31.* in row 0 of "
        rf"f\.parquet \(column 'at'\)\. Declare `{clock}\.zone` for this source"
    )
    with pytest.raises(ValueError, match=message):
        read(tmp_path, local_events("ms"), **local(None, clock))


def test_p01_local_stamps_taken_for_utc_would_have_leaked_twice(tmp_path: Path) -> None:
    # The fault that the case is about: these data would show it.
    utc = local("UTC") | {"available_at": {"column": "at", "zone": "UTC"}}
    log = read(tmp_path, local_events("ms"), **utc)
    assert listed(as_of(log, AROUND_THE_CHANGE)["value"]) == [1, 1, 2, 2]


# A value that arrived late. https://github.com/feast-dev/feast/issues/6615

LATE = """seq,asset,event_time,available_at,value
1,AAA,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,10.0
2,AAA,2024-01-03T21:00:00Z,2024-01-08T12:00:00Z,11.0
3,AAA,2024-01-04T21:00:00Z,2024-01-04T21:05:00Z,12.0
4,BBB,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,50.0
5,BBB,2024-01-10T21:00:00Z,2024-01-09T09:00:00Z,51.0
"""


def test_p02_a_late_arrival_is_neither_known_early_nor_taken_for_news(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, LATE, sequence="seq", scheduled=True)
    ours = points("2024-01-03T22:00Z", "2024-01-05T22:00Z", "2024-01-09T22:00Z")
    theirs = points("2024-01-09T22:00Z", entity="BBB")
    answer = as_of(log, pd.concat([ours, theirs]))
    assert listed(answer["value"]) == [10, 12, 12, 51]
    late = vintage(log, "s", entity="AAA", forecast_time=pd.Timestamp("2024-01-08T12Z"))
    assert late["value"].tolist() == [10, 11, 12]


def test_p02_an_event_known_before_it_happens_is_listed_and_never_repaired(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        ValueError,
        match=r"event_time must not be after available_at; got 2024-01-10 21:00.* > "
        r"2024-01-09 09:00.* in rows 4 of f\.csv .*declare `scheduled: true`",
    ):
        read(tmp_path, LATE, sequence="seq")
    table = read(tmp_path, LATE, sequence="seq", scheduled=True).to_pandas("s")
    ahead = table[table["event_time"] > table["available_at"]]
    assert ahead["sequence"].tolist() == [5]
    assert ahead["available_at"].tolist() == [pd.Timestamp("2024-01-09T09:00Z")]


# A restatement of an older period. https://github.com/dgunning/edgartools/issues/697

QUARTERS = """seq,asset,period_end,available_at,value
1,AAA,2024-03-31,2024-05-01T12:00:00Z,100.0
2,AAA,2024-06-30,2024-08-01T12:00:00Z,120.0
3,AAA,2024-03-31,2024-08-20T12:00:00Z,90.0
"""
PERIODS = {
    "column": "period_end",
    "stamp": "date",
    "at": "00:00",
    "zone": "UTC",
}


@pytest.mark.parametrize(
    ("asked", "latest", "previous", "growth"),
    [
        ("2024-05-15T00:00Z", 100, [], []),
        ("2024-08-10T00:00Z", 120, [100], [0.2]),
        ("2024-08-25T00:00Z", 120, [90], [1 / 3]),
    ],
)
def test_p03_a_restatement_changes_an_older_period_and_not_which_is_the_latest(
    tmp_path: Path,
    asked: str,
    latest: float,
    previous: list[float],
    growth: list[float],
) -> None:
    log = read(tmp_path, QUARTERS, sequence="seq", event_time=PERIODS)
    assert listed(as_of(log, points(asked))["value"]) == [latest]
    read_then = vintage(log, "s", entity="AAA", forecast_time=pd.Timestamp(asked))
    assert read_then["value"].tolist() == [*previous, latest]
    assert read_then["value"].pct_change().dropna().tolist() == pytest.approx(growth)


def test_p03_the_same_question_after_the_restatement_has_byte_identical_answers(
    tmp_path: Path,
) -> None:
    def answers(content: str) -> list[bytes]:
        log = read(tmp_path, content, sequence="seq", event_time=PERIODS)
        line = timeline(event_arrays(log), "AAA")
        stop = line.stop(np.array([asked.value]))
        fingerprint = line.fingerprints(np.zeros(1, np.int64), stop)
        then = vintage(log, "s", entity="AAA", forecast_time=asked)
        answer = as_of(log, points(str(asked)))
        return [packed(answer), packed(then), fingerprint.tobytes()]

    asked = pd.Timestamp("2024-08-10T00:00Z").as_unit("ns")
    before = QUARTERS[: QUARTERS.index("3,AAA")]
    assert answers(before) == answers(QUARTERS)


# Rows in any order, and ties. https://github.com/pola-rs/polars/issues/18014


@pytest.mark.slow
def test_p04_any_order_of_the_rows_gives_the_same_bytes_and_a_tie_its_last_sequence(
    tmp_path: Path,
) -> None:
    days = [6, 1, 8, 8, 3, 1]
    table = pa.table(
        {
            "seq": [3, 1, 5, 4, 2, 6],
            "asset": ["AAA"] * 5 + ["BBB"],
            "at": [dt.datetime(2024, 2, day, 15, tzinfo=dt.UTC) for day in days],
            "value": [3.0, 1.0, 5.5, 5.0, 2.0, 60.0],
        }
    )
    settings = {
        "path": "f.parquet",
        "sequence": "seq",
        "event_time": {"column": "at", "stamp": "instant"},
        "available_at": {"column": "at"},
    }
    ours = points(*(f"2024-02-0{day}T00:00Z" for day in (2, 5, 7, 9)))
    asked = pd.concat([ours, points("2024-02-09T00:00Z", entity="BBB")])
    found = set()
    for order in itertools.permutations(range(5)):
        log = read(tmp_path, table.take([*order[:3], 5, *order[3:]]), **settings)
        answer = as_of(log, asked)
        assert listed(answer["value"]) == [1, 2, 3, 5.5, 60]
        arrays = event_arrays(log)
        found.add((packed(answer), arrays.digests.tobytes(), arrays.sequence.tobytes()))
    assert len(found) == 1


# 64-bit ids. https://github.com/pandas-dev/pandas/issues/48709

LONG_IDS = [9007199254740993, 9007199254740995, 9007199254740997]


@pytest.mark.parametrize("path", ["f.csv", "f.parquet"])
def test_p05_ids_above_two_to_the_53_stay_exact_where_a_point_finds_nothing(
    tmp_path: Path, path: str
) -> None:
    stamps = [f"2024-02-0{day} 00:00:00+00:00" for day in (1, 2, 3)]
    table = pa.table({"seq": LONG_IDS, "at": stamps, "value": [1.0, 2.0, 3.0]})
    content = "seq,at,value\n" + "".join(
        f"{seq},{at},{value}\n"
        for seq, at, value in zip(LONG_IDS, stamps, (1.0, 2.0, 3.0), strict=True)
    )
    log = read(
        tmp_path,
        content if path == "f.csv" else table,
        path=path,
        entity="*",
        sequence="seq",
        event_time={"column": "at", "stamp": "instant"},
        available_at={"column": "at"},
    )
    asked = points(*(f"2024-0{day}T12:00Z" for day in ("1-31", "2-01", "2-02", "2-03")))
    answer = as_of(log, asked)
    # The answer does not hold sequences; its keys lead to them.
    key = ["event_time", "available_at", "revision"]
    rows = answer.merge(log.to_pandas("s")[[*key, "sequence"]], how="left", on=key)
    assert str(rows["sequence"].dtype) == "Int64"
    assert listed(rows["sequence"]) == [None, *LONG_IDS]
    assert str(answer["revision"].dtype) == "Int32"
    assert event_arrays(log).sequence.tolist() == LONG_IDS


def test_p05_a_tie_of_ids_that_a_float_folds_into_one_is_decided(
    tmp_path: Path,
) -> None:
    content = "seq,at,value\n" + "".join(
        f"{2**53 + one},2024-02-01T00:00:00Z,{value}\n"
        for one, value in ((1, 7), (0, 8))
    )
    log = read(
        tmp_path,
        content,
        entity="*",
        sequence="seq",
        event_time={"column": "at", "stamp": "instant"},
        available_at={"column": "at"},
    )
    assert listed(as_of(log, points("2024-02-02T00:00Z"))["value"]) == [7]


# Bars stamped at their open. https://github.com/freqtrade/freqtrade/issues/12507

BARS = """ts_open,open,close
2024-05-06T09:00:00Z,98.0,99.0
2024-05-06T10:00:00Z,99.0,101.0
2024-05-06T11:00:00Z,101.0,105.0
"""


@pytest.mark.parametrize(
    ("stamp", "lag", "closes"),
    [
        ({"stamp": "bar_open", "bar": "1h"}, "0s", [99, 99, 101, 101, 105]),
        ({"stamp": "bar_open", "bar": "1h"}, "1min", [None, 99, 99, 101, 101]),
        ({"stamp": "bar_open", "bar": "30min"}, "30min", [99, 99, 101, 101, 105]),
        # The fault: taken for the close, the stamp shows a bar that has just begun.
        ({"stamp": "bar_close"}, "0s", [101, 101, 105, 105, 105]),
    ],
)
def test_p06_a_bar_stamped_at_its_open_is_known_when_it_closes(
    tmp_path: Path, stamp: dict[str, str], lag: str, closes: list[float | None]
) -> None:
    log = read(
        tmp_path,
        BARS,
        entity="*",
        event_time={"column": "ts_open"} | stamp,
        available_at={"lag": lag},
        values={"open": "open", "close": "close"},
    )
    opens = {99.0: 98.0, 101.0: 99.0, 105.0: 101.0}
    stamps = ["10:00", "10:45", "11:00", "11:59:59", "12:00"]
    asked = points(*(f"2024-05-06T{stamp}Z" for stamp in stamps))
    answer = as_of(log, asked)
    assert listed(answer["close"]) == closes
    assert listed(answer["open"]) == [opens.get(close or 0) for close in closes]


def test_p06_no_instant_before_its_close_knows_a_bar(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        BARS.replace("Z", ""),
        entity="*",
        event_time={
            "column": "ts_open",
            "stamp": "bar_open",
            "bar": "1h",
            "zone": NEW_YORK,
        },
        available_at={"lag": "0s"},
        values={"close": "close"},
    )
    closes = pd.to_datetime([f"2024-05-06T{hour}:00Z" for hour in (14, 15, 16)])
    just_before = closes.as_unit("ns") - pd.Timedelta(1, unit="ns")
    for asked, known in ((just_before, [None, 99, 101]), (closes, [99, 101, 105])):
        table = pd.DataFrame({"entity": "AAA", "forecast_time": asked})
        assert listed(as_of(log, table)["close"]) == known


# A half day and a holiday. https://github.com/rsheftel/pandas_market_calendars/issues/390


def test_p07_a_release_belongs_to_the_first_close_after_it_on_half_days_and_holidays(
    tmp_path: Path,
) -> None:
    filings = (
        "seq,accepted,value\n"
        "1,2024-11-27 15:59:59,1\n"
        "2,2024-11-28 10:00:00,2\n"  # Thanksgiving: no session
        "3,2024-11-29 12:59:59,3\n"  # a half day, closed at 13:00
        "4,2024-11-29 14:30:00,4\n"
    )
    log = read(
        tmp_path,
        filings,
        entity="*",
        sequence="seq",
        event_time={"column": "accepted", "stamp": "instant", "zone": NEW_YORK},
        available_at={"lag": "0s"},
    )
    found = sessions("XNYS", "2024-11-27", "2024-12-02")
    assert found["close"].dt.strftime("%dT%H:%M").tolist() == [
        "27T21:00",
        "29T18:00",
        "02T21:00",
    ]
    known = timeline(event_arrays(log), "*").stop(nanoseconds(found["close"]))
    assert known.tolist() == [1, 3, 4]
    asked = found.rename(columns={"close": "forecast_time"}).assign(entity="AAA")
    assert listed(as_of(log, asked)["value"]) == [1, 3, 4]


def daily_bars(**changes: Any) -> Any:
    plain = {
        "preset": "bars",
        "path": "f.csv",
        "stream": "bars/1d",
        "entity": "AAA",
        "columns": {"time": "date", "close": "close"},
        "stamped": "session",
        "calendar": "XNYS",
    }
    return TypeAdapter(AnySource).validate_python(plain | changes)


def test_p07_a_daily_bar_is_known_when_its_short_session_closes(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("date,close\n2024-11-27,1\n2024-11-29,2\n")
    log = event_log([daily_bars()], base=tmp_path)
    asked = points("2024-11-29T17:59:59.999999999Z", "2024-11-29T18:00Z")
    assert listed(as_of(log, asked)["close"]) == [1, 2]


def test_p07_daily_bars_without_a_calendar_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"must have a `calendar` .* no hour is"):
        daily_bars(calendar=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"event_time": {"column": "day", "stamp": "date", "zone": NEW_YORK}},
            r"event_time\.date\.at\n\s+Field required",
        ),
        (
            {"available_at": {"sessions": 1, "at": "16:15", "zone": NEW_YORK}},
            r"available_at\.sessions\.calendar\n\s+Field required",
        ),
        (
            {
                "available_at": {
                    "sessions": 1,
                    "calendar": "NYSE2",
                    "at": "16:15",
                    "zone": NEW_YORK,
                }
            },
            r"must be us_federal, .* or a name of exchange_calendars; got 'NYSE2'",
        ),
    ],
)
def test_p07_no_closing_hour_is_built_in(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        declared(**changes)


# Clock changes in local stamps. https://github.com/pandas-dev/pandas/issues/47398

TWICE = ["00:30:00", "01:00:00", "01:30:00", "01:00:00", "01:30:00", "02:00:00"]
ONE_BY_ONE = ["04:30", "05:00", "05:30", "06:00", "06:30", "07:00"]
LOCAL: dict[str, Any] = {
    "entity": "*",
    "event_time": {"column": "local", "stamp": "instant", "zone": NEW_YORK},
    "available_at": {"lag": "0s"},
}


def repeated_hour(*, offsets: bool) -> pd.DataFrame:
    offset = ["-04:00"] * 3 + ["-05:00"] * 3 if offsets else [""] * 6
    local = [f"2024-11-03 {at}{zone}" for at, zone in zip(TWICE, offset, strict=True)]
    return pd.DataFrame({"local": local, "value": range(10, 16)})


def known_from(log: EventLog) -> list[str]:
    frame = log.to_pandas("s").sort_values("value")
    return [f"{instant:%H:%M}" for instant in frame["available_at"]]


@pytest.mark.parametrize("offsets", [False, True])
def test_p08_a_repeated_hour_keeps_all_its_rows_apart(
    tmp_path: Path,
    offsets: bool,  # noqa: FBT001
) -> None:
    frame = repeated_hour(offsets=offsets)
    log = read(tmp_path, frame.to_csv(index=False), **LOCAL)
    assert known_from(log) == ONE_BY_ONE
    assert (len(log), log.num_duplicates, len(log.quarantine)) == (6, 0, 0)
    stamps = pd.to_datetime(frame["local"].str[:19])
    naive = pa.table({"local": pa.array(stamps), "value": frame["value"]})
    assert known_from(read(tmp_path, naive, path="f.parquet", **LOCAL)) == ONE_BY_ONE


def test_p08_with_offsets_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    frame = repeated_hour(offsets=True)
    backwards = frame.iloc[::-1].to_csv(index=False)
    assert known_from(read(tmp_path, backwards, **LOCAL)) == ONE_BY_ONE
    stamp = LOCAL["event_time"] | {"format": "%Y-%m-%d %H:%M:%S%z"}
    other = read(tmp_path, backwards, **LOCAL | {"event_time": stamp})
    assert known_from(other) == ONE_BY_ONE


@pytest.mark.parametrize(
    ("stamps", "message"),
    [
        (
            ["2024-11-03 00:30:00", "2024-11-03 01:30:00", "2024-11-03 02:00:00"],
            r"must name one instant in America/New_York; got '2024-11-03 01:30:00' in "
            r"row 1 of f\.csv \(column 'local'\).*give UTC or an offset",
        ),
        (
            ["2024-03-10 01:30:00", "2024-03-10 02:30:00", "2024-03-10 03:00:00"],
            r"must exist in America/New_York; got '2024-03-10 02:30:00' in row 1 of "
            r"f\.csv \(column 'local'\).*correct the row",
        ),
    ],
)
@pytest.mark.parametrize("clock", ["event_time", "available_at"])
def test_p08_a_stamp_of_two_instants_or_of_none_is_refused_by_row(
    tmp_path: Path, stamps: list[str], message: str, clock: str
) -> None:
    content = "utc,local,value\n" + "".join(
        f"2024-01-01T00:00:00Z,{stamp},{row}\n" for row, stamp in enumerate(stamps)
    )
    known = {
        "event_time": {"column": "utc", "stamp": "instant"},
        "available_at": {"column": "local", "zone": NEW_YORK},
    }
    changes = LOCAL if clock == "event_time" else LOCAL | known
    with pytest.raises(ValueError, match=f"{clock} {message}"):
        read(tmp_path, content, **changes)


# Files that a European spreadsheet wrote. https://github.com/pandas-dev/pandas/issues/13497

SPREADSHEET = (
    "datum;asset;kurs;{volume}\r\n"
    "2024-01-02;007;1.234,50;12.000\r\n"
    "2024-01-02;NA;0,75;950\r\n"
    "2024-01-02;TRUE;-2,40;1\r\n"
)
GERMAN = {"delimiter": ";", "decimal": ",", "thousands": "."}


def spreadsheet(encoding: str) -> tuple[bytes, dict[str, Any]]:
    volume = "umsatz" if encoding == "utf-8-sig" else "umsatz_stück"
    columns: dict[str, Any] = {
        "event_time": {
            "column": "datum",
            "stamp": "date",
            "at": "17:30",
            "zone": "Europe/Berlin",
        },
        "available_at": {"lag": "0s"},
        "values": {"price": "kurs", "volume": volume},
    }
    return SPREADSHEET.format(volume=volume).encode(encoding), columns


@pytest.mark.parametrize(
    ("encoding", "layout"),
    [("utf-8-sig", GERMAN), ("cp1252", GERMAN | {"encoding": "cp1252"})],
)
def test_p09_a_spreadsheet_file_is_read_as_declared_and_ids_stay_text(
    tmp_path: Path, encoding: str, layout: dict[str, str]
) -> None:
    content, columns = spreadsheet(encoding)
    frame = read(tmp_path, content, **columns, format=layout).to_pandas("s")
    assert frame[["entity", "price", "volume"]].to_numpy().tolist() == [
        ["007", 1234.5, 12000.0],
        ["NA", 0.75, 950.0],
        ["TRUE", -2.4, 1.0],
    ]


@pytest.mark.parametrize(
    ("encoding", "layout", "message"),
    [
        (
            "utf-8-sig",
            {},
            r"column 'asset' must be in f\.csv; got datum;asset.*`format\.delimiter`",
        ),
        (
            "utf-8-sig",
            {"delimiter": ";"},
            r"values\.price must be numeric; got '1\.234,50' in row 0 of f\.csv "
            r"\(column 'kurs'\).*declare `format\.decimal` and `format\.thousands`",
        ),
        (
            "utf-8-sig",
            {"delimiter": ";", "decimal": ","},
            r"values\.price must be numeric; got '1\.234,50' in row 0 of f\.csv",
        ),
        (
            "cp1252",
            GERMAN,
            r"f\.csv must be utf-8 text; got byte 0xfc in line 1\. Declare "
            r"`format\.encoding`, for example cp1252",
        ),
    ],
)
def test_p09_a_spreadsheet_file_is_refused_until_its_format_is_declared(
    tmp_path: Path, encoding: str, layout: dict[str, str], message: str
) -> None:
    content, columns = spreadsheet(encoding)
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content, **columns, format=layout)


# A missing availability. https://github.com/pandas-dev/pandas/issues/59137

UNDATED = """seq,asset,event_time,available_at,value
1,AAA,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,1.0
2,AAA,2024-01-03T21:00:00Z,,2.0
3,AAA,2024-01-04T21:00:00Z,2024-01-04T21:05:00Z,3.0
"""


def test_p10_a_row_without_availability_is_never_used_and_is_listed(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, UNDATED, sequence="seq")
    asked = points("2024-01-03T22:00Z", "2024-01-06T00:00Z")
    assert listed(as_of(log, asked)["value"]) == [1, 3]
    assert log.to_pandas("s")["sequence"].tolist() == [1, 3]
    listing = log.quarantine[["row", "column", "reason"]].to_numpy().tolist()
    assert listing == [[1, "available_at", "missing"]]
    # Which sequence that is, the row of the file says.
    given = pd.read_csv(tmp_path / "f.csv")
    assert given["seq"].iloc[log.quarantine["row"]].tolist() == [2]


def test_p10_filled_with_the_event_time_it_would_have_leaked(tmp_path: Path) -> None:
    filled = UNDATED.replace("21:00:00Z,,", "21:00:00Z,2024-01-03T21:00:00Z,")
    log = read(tmp_path, filled, sequence="seq")
    assert listed(as_of(log, points("2024-01-03T22:00Z"))["value"]) == [2]


# Gaps that are filled. https://github.com/AI4Finance-Foundation/FinRL/issues/189

PRICES = ["", "", "10.0", "11.0", "", "13.0", "", "14.0"]


def test_l04_gaps_are_filled_forwards_only_and_the_first_ones_stay_missing(
    tmp_path: Path,
) -> None:
    content = "date,px\n" + "".join(
        f"2024-01-0{day},{price}\n" for day, price in enumerate(PRICES, start=1)
    )
    log = read(
        tmp_path,
        content,
        entity="*",
        event_time={"column": "date", "stamp": "date", "at": "16:00", "zone": "UTC"},
        available_at={"lag": "0s"},
        values={"px": "px"},
    )
    asked = points(*(f"2024-01-0{day}T16:00Z" for day in range(1, 9)))
    filled = listed(as_of(log, asked)["px"])
    assert filled == [None, None, 10, 11, 11, 13, 13, 14]
    means = [trailing_mean(log, time) for time in asked["forecast_time"]]
    assert listed(pd.Series(means)) == [None, None, 10, 10.5, 10.5, 12, 13, 13.5]
    assert log.quarantine["row"].tolist() == [0, 1, 4, 6]
    # Nothing of this looks ahead: a log that ends there says the same.
    for row, time in enumerate(asked["forecast_time"]):
        cut = log.until(time)
        assert listed(as_of(cut, asked.iloc[[row]])["px"]) == [filled[row]]
        assert packed(pd.DataFrame({"m": [trailing_mean(cut, time)]})) == packed(
            pd.DataFrame({"m": [means[row]]})
        )


def trailing_mean(log: EventLog, time: pd.Timestamp) -> float:
    """Return the mean of what is known of the last three days."""
    known = vintage(log, "s", entity="AAA", forecast_time=time)
    return float(
        known.loc[known["event_time"] > time - pd.Timedelta("3D"), "px"].mean()
    )
