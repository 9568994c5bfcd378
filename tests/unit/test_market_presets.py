from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from infoset.data.events import EventLog
from infoset.data.sources import AnySource, event_log

KLINE = "BTCUSDT-1m-2024-01.csv"
KLINES = """1704067200000,10,12,9,11,5,1704067259999,55,3,2,22,0
1704067260000,11,13,10,12,6,1704067319999,66,4,3,33,0
"""
KLINES_2025 = """1735689600000000,10,12,9,11,5,1735689659999999,55,3,2,22,0
"""
TRADES = "BTCUSDT-aggTrades-2024-01-02.csv"
AGG_TRADES = """26129,0.01633102,4.7,27781,27783,1704067200123,True,True
26130,0.01633102,4.7,-1,-1,1704067200123,False,True
"""
TICKS = """20240102 030405006,1.306600,1.306770,0
20240702 030405006,1.306600,1.306500,0
20240702 030405006,1.306600,1.306700,0
"""
M1 = """20120201 000000;1.306600;1.306600;1.306560;1.306560;0
20120201 000100;1.306570;1.306570;1.306470;1.306560;0
"""


def read(
    folder: Path, name: str, content: str | bytes, preset: str, **settings: Any
) -> EventLog:
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(raw)
    declared = {"preset": preset, "path": name} | settings
    source = TypeAdapter(AnySource).validate_python(declared)
    return event_log([source], base=folder)


def klines(folder: Path, content: str, name: str = KLINE, **settings: Any) -> EventLog:
    return read(folder, name, content, "binance", **{"data": "klines"} | settings)


def frame_of(log: EventLog) -> pd.DataFrame:
    (stream,) = log.streams
    return log.to_pandas(stream)


def test_a_kline_is_known_just_after_the_last_instant_in_it(tmp_path: Path) -> None:
    log = klines(tmp_path, KLINES)
    frame = frame_of(log)
    assert log.streams == ("binance/klines/1m",)
    assert log.entities == ("BTCUSDT",)
    assert frame["available_at"].to_list() == list(
        pd.DatetimeIndex(["2024-01-01T00:01Z", "2024-01-01T00:02Z"])
    )
    assert frame["event_time"].to_list() == frame["available_at"].to_list()
    assert frame[["close", "num_trades", "taker_quote_volume"]].to_numpy().tolist() == [
        [11, 3, 22],
        [12, 4, 33],
    ]
    assert log.notices == ()


def test_klines_from_2025_on_count_microseconds(tmp_path: Path) -> None:
    frame = frame_of(klines(tmp_path, KLINES_2025, lag="1s"))
    assert frame["event_time"].iloc[0] == pd.Timestamp("2025-01-01T00:01Z")
    assert frame["available_at"].iloc[0] == pd.Timestamp("2025-01-01T00:01:01Z")


def test_klines_may_have_a_header(tmp_path: Path) -> None:
    headers = [
        "open_time,open,high,low,close,volume,close_time,quote_volume,count,"
        "taker_buy_volume,taker_buy_quote_volume,ignore",
        "Open time,Open,High,Low,Close,Volume,Close time,Quote asset volume,"
        "Number of trades,Taker buy base asset volume,Taker buy quote asset volume,"
        "Ignore",
    ]
    plain = klines(tmp_path, KLINES)
    for header in headers:
        log = klines(tmp_path, f"{header}\n{KLINES}")
        assert log.table(log.streams[0]).equals(plain.table(log.streams[0]))


def test_klines_that_cannot_be_are_set_aside(tmp_path: Path) -> None:
    wrong = KLINES.replace("12,9,11", "8,9,11")
    backwards = "1704067320000,1,1,1,1,1,1704067319999,1,1,1,1,0\n"
    quarantine = klines(tmp_path, wrong + backwards).quarantine
    assert quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [2, "close_time", "before its open"],
        [0, "high", "high below low"],
    ]


def test_klines_closer_than_the_interval_in_their_name_are_noticed(
    tmp_path: Path,
) -> None:
    (notice,) = klines(tmp_path, KLINES, KLINE.replace("1m", "5m")).notices
    assert notice.startswith(
        "1 bars of stream 'binance/klines/5m' close less than 5min"
    )


def test_archives_and_packed_files_are_read_as_they_come(tmp_path: Path) -> None:
    plain = klines(tmp_path, KLINES)
    with zipfile.ZipFile(tmp_path / "BTCUSDT-1m-2024-01.zip", "w") as archive:
        archive.writestr("folder/", "")
        archive.writestr("report.txt", "fine")
        archive.writestr(KLINE, KLINES)
    packed = {
        "BTCUSDT-1m-2024-01.zip": (tmp_path / "BTCUSDT-1m-2024-01.zip").read_bytes(),
        f"{KLINE}.gz": gzip.compress(KLINES.encode()),
        f"{KLINE}.zst": pa.compress(KLINES.encode(), codec="zstd", asbytes=True),
    }
    for name, raw in packed.items():
        log = read(tmp_path, name, raw, "binance", data="klines")
        assert log.table(log.streams[0]).equals(plain.table(log.streams[0]))
        with pytest.raises(ValueError, match=f"{name} must be a whole .* file; got"):
            read(tmp_path, name, raw[:-5], "binance", data="klines")


def test_an_archive_of_several_tables_is_refused(tmp_path: Path) -> None:
    name = "BTCUSDT-1m-2024-01.zip"
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("a.csv", KLINES)
        archive.writestr("b.csv", KLINES)
    raw = (tmp_path / name).read_bytes()
    with pytest.raises(ValueError, match=r"must hold one \.csv file; got a\.csv, b\.c"):
        read(tmp_path, name, raw, "binance", data="klines")


def test_files_of_several_months_give_one_stream(tmp_path: Path) -> None:
    for year, content in (("2024", KLINES), ("2025", KLINES_2025)):
        (tmp_path / f"BTCUSDT-1m-{year}-01.csv").write_text(content)
    (tmp_path / "ETHUSDT-1m-2024-01.csv").write_text(KLINES)
    source = {"preset": "binance", "data": "klines", "path": "*USDT-1m-*.csv"}
    log = event_log([TypeAdapter(AnySource).validate_python(source)], base=tmp_path)
    frame = frame_of(log)
    assert frame["entity"].to_list() == ["BTCUSDT"] * 3 + ["ETHUSDT"] * 2


def test_aggregated_trades_keep_the_order_of_their_ids(tmp_path: Path) -> None:
    log = read(tmp_path, TRADES, AGG_TRADES, "binance", data="aggTrades")
    frame = frame_of(log)
    assert frame["sequence"].to_list() == [26129, 26130]
    assert set(frame["event_time"]) == {pd.Timestamp("2024-01-01T00:00:00.123Z")}
    assert frame["buyer_is_maker"].to_list() == [1, 0]
    assert frame["num_trades"].iloc[0] == 3
    assert pd.isna(frame["num_trades"].iloc[1])  # ids of -1 say nothing


def test_trades_of_futures_lack_the_best_match(tmp_path: Path) -> None:
    content = (
        "id,price,qty,quote_qty,time,is_buyer_maker\n7,4,12,48,1704067200001,true\n"
    )
    log = read(tmp_path, "T.csv", content, "binance", data="trades", symbol="BTCUSDT")
    assert frame_of(log)[["sequence", "price", "buyer_is_maker"]].iloc[0].to_list() == [
        7,
        4,
        1,
    ]


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (
            KLINES + KLINES_2025,
            {},
            r"open_time must count one unit in a file, that of its first row; got "
            r"'1735689600000000' in row 2 .* Split the file where the unit changes",
        ),
        (
            KLINES.replace("1704067200000", "1704067200"),
            {},
            r"open_time must count milliseconds or microseconds .* got '1704067200' in",
        ),
        (KLINES, {"data": "aggTrades"}, "must have the 8 columns .* got 12 cells"),
        (
            "t,open,high,low,close,volume,close_time,a,b,c,d,e\n" + KLINES,
            {},
            "column 1 of .* must be open_time; got a header with 't'",
        ),
        (KLINES, {"name": "k.csv"}, r"symbol must stand in .* Declare `symbol`"),
        (
            AGG_TRADES.replace("True,True", "yes,True"),
            {"name": TRADES, "data": "aggTrades"},
            "buyer_is_maker must be true or false; got 'yes' in row 0",
        ),
    ],
)
def test_files_that_binance_did_not_write_are_refused(
    tmp_path: Path, content: str, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        klines(tmp_path, content, **settings)


def test_klines_of_two_intervals_are_two_sources(tmp_path: Path) -> None:
    for interval in ("1m", "1h"):
        (tmp_path / f"BTCUSDT-{interval}-2024-01.csv").write_text(KLINES)
    source = {"preset": "binance", "data": "klines", "path": "*.csv"}
    with pytest.raises(ValueError, match=r"files of one interval, .* got 1h, 1m"):
        event_log([TypeAdapter(AnySource).validate_python(source)], base=tmp_path)


def test_histdata_is_five_hours_behind_utc_the_whole_year(tmp_path: Path) -> None:
    log = read(tmp_path, "DAT_ASCII_EURUSD_T_2024.csv", TICKS, "histdata")
    frame = frame_of(log)
    assert log.streams == ("histdata/ticks",)
    assert log.entities == ("EURUSD",)
    assert frame["event_time"].to_list() == list(
        pd.DatetimeIndex(
            ["2024-01-02T08:04:05.006Z"] + ["2024-07-02T08:04:05.006Z"] * 2
        )
    )
    assert frame["sequence"].to_list() == [1, 2, 3]
    assert log.notices == (
        "The ask is below the bid in 1 of 3 ticks of stream 'histdata/ticks'.",
    )


def test_a_bar_of_histdata_is_known_a_minute_after_its_stamp(tmp_path: Path) -> None:
    wrong = "20120201 000100;1.306570;1.306570;1.306570;1.306560;0\n"
    log = read(tmp_path, "b.csv", M1 + wrong, "histdata", symbol="EURUSD", lag="1s")
    frame = frame_of(log)
    assert frame["event_time"].iloc[0] == pd.Timestamp("2012-02-01T05:01Z")
    assert frame["available_at"].iloc[0] == pd.Timestamp("2012-02-01T05:01:01Z")
    assert frame.columns.to_list()[5:] == ["open", "high", "low", "close"]
    assert log.quarantine["reason"].to_list() == ["low above close"]
    assert log.notices == ()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "m.csv",
            "2012.02.01,00:00,1.3,1.3,1.3,1.3,0\n",
            "must be an ASCII file of HistData: ticks .* got '2012",
        ),
        ("m.csv", TICKS, "symbol must stand in the name of the file"),
        (
            "DAT_ASCII_EURUSD_T_202401.csv",
            TICKS.replace("20240702 030405006", "2024-07-02 03:04:05"),
            "time must be digits such as 20200101 170000065; got '2024-07-02 03",
        ),
        (
            "DAT_ASCII_EURUSD_M1_202401.csv",
            M1.replace("000100", "006100"),
            "event_time must match the format",
        ),
    ],
)
def test_files_that_histdata_did_not_write_are_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, name, content, "histdata")
