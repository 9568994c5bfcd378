from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter

from infoset.data.events import EventLog
from infoset.data.sources import AnySource, event_log

MESSAGE = "XYZ_2012-06-21_34200000_57600000_message_2.csv"
BOOK = MESSAGE.replace("message", "orderbook")
MESSAGES = """34633.714716667,1,11885113,21,2238100,1
34633.714716667,4,11885113,21,2238100,1
34800.5,5,0,7,2238201,-1
36023,7,0,0,-1,-1
36323,7,0,0,0,-1
36723,7,0,0,1,-1
"""
LEVELS = "2239500,100,2238100,21,9999999999,0,-9999999999,0\n"
TRADES = """exchange,symbol,timestamp,local_timestamp,id,side,price,amount
bitmex,XBTUSD,1583020803145000,1583020803307160,a,sell,8531.5,2152
bitmex,XBTUSD,1583020803145000,1583020803307160,a,sell,8531.5,2152
bitmex,XBTUSD,1583020803307161,1583020803307160,b,buy,8532,1
"""
COMMON = "exchange,symbol,timestamp,local_timestamp"
STAMPS = "deribit,BTC,1585699200245000,1585699200355684"


def read(
    folder: Path, name: str, content: str, preset: str, **settings: Any
) -> EventLog:
    (folder / name).write_text(content)
    declared = {"preset": preset, "path": name} | settings
    source = TypeAdapter(AnySource).validate_python(declared)
    log = event_log([source], base=folder)
    num_rows = content.count("\n") - (preset != "lobster")
    assert len(log) + len(log.quarantine) + log.num_duplicates == num_rows
    return log


def lobster(
    folder: Path, messages: str = MESSAGES, book: str = LEVELS * 6, **settings: Any
) -> EventLog:
    (folder / BOOK).write_text(book)
    return read(folder, MESSAGE, messages, "lobster", **settings)


def frame_of(log: EventLog) -> pd.DataFrame:
    (stream,) = log.streams
    return log.to_pandas(stream)


def test_seconds_of_lobster_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    frame = frame_of(lobster(tmp_path))
    # int(34633.714716667 * 1e9) is a nanosecond less.
    assert frame["event_time"].iloc[0] == pd.Timestamp("2012-06-21T13:37:13.714716667Z")
    assert frame["event_time"].iloc[2] == pd.Timestamp("2012-06-21T13:40:00.5Z")
    assert frame["sequence"].to_list() == [1, 2, 3, 4, 5, 6]
    assert frame["entity"].unique().tolist() == ["XYZ"]


def test_messages_of_lobster_carry_dollars_and_the_book(tmp_path: Path) -> None:
    row = frame_of(lobster(tmp_path)).iloc[2]
    assert row[["type", "size", "price", "direction", "order_id"]].to_list() == [
        5,
        7,
        223.8201,
        -1,
        "0",
    ]
    assert row[["ask_price_1", "bid_price_1", "bid_size_1"]].to_list() == [
        223.95,
        223.81,
        21,
    ]
    names = ["ask_price_2", "ask_size_2", "bid_price_2", "bid_size_2"]
    assert row[names].isna().all()


def test_the_code_of_a_halt_is_no_price(tmp_path: Path) -> None:
    frame = frame_of(lobster(tmp_path)).iloc[3:]
    assert frame["halt"].to_list() == [-1, 0, 1]
    assert frame[["price", "size", "direction"]].isna().all(axis=None)
    assert frame_of(lobster(tmp_path))["halt"].isna().sum() == 3


def test_a_crossed_book_is_noticed(tmp_path: Path) -> None:
    crossed = LEVELS.replace("2238100", "2239500")
    assert lobster(tmp_path).notices == ()
    (notice,) = lobster(tmp_path, book=LEVELS * 5 + crossed).notices
    assert notice.startswith("The book of stream 'lobster' is locked or crossed")
    assert notice.endswith("after 1 of 6 events.")


def test_messages_of_lobster_can_be_read_alone(tmp_path: Path) -> None:
    settings = {"ticker": "ABC", "day": "2024-01-02", "orderbook": False}
    log = read(tmp_path, "x_message_1.csv", MESSAGES, "lobster", **settings)
    frame = frame_of(log)
    assert log.entities == ("ABC",)
    assert frame["event_time"].iloc[3] == pd.Timestamp("2024-01-02T15:00:23Z")
    assert "ask_price_1" not in frame.columns
    assert log.notices == ()


def test_both_files_of_lobster_count_as_read(tmp_path: Path) -> None:
    lobster(tmp_path)
    source = {"preset": "lobster", "path": "*_message_*.csv"}
    found = TypeAdapter(AnySource).validate_python(source).files(base=tmp_path)
    assert [path.name for path in found] == [MESSAGE, BOOK]


@pytest.mark.parametrize(
    ("messages", "book", "message"),
    [
        (
            MESSAGES,
            LEVELS * 5,
            f"{BOOK} must have a row for each of the 6 messages of {MESSAGE}; got 5",
        ),
        (MESSAGES, "1,2,3\n" * 6, "must have four columns for each level .* got 3"),
        (
            MESSAGES,
            LEVELS.replace("-9999999999,0", "-9999999999,5") * 6,
            "bid_size_2 must be 0 where no order has a price; got '5' in row 0",
        ),
        (f"time,a,b,c,d,e\n{MESSAGES}", LEVELS * 7, "type must be a whole number; got"),
        (
            MESSAGES.replace(",5,0,7", ",8,0,7"),
            LEVELS * 6,
            "type must be 1 to 7; got '8'",
        ),
        (MESSAGES.replace("0,-1,-1", "0,5,-1"), LEVELS * 6, "price must be -1, 0 or 1"),
        (
            MESSAGES.replace("34800.5", "34200.0174596171"),
            LEVELS * 6,
            r"time must be seconds after midnight, with at most 9 decimals; got '34200\.",
        ),
        (
            MESSAGES.replace("36723", "86400"),
            LEVELS * 6,
            "time must lie inside the day",
        ),
        (
            MESSAGES.replace("34800.5,", ""),
            LEVELS * 6,
            "must have 6 cells; got 5 in row 2",
        ),
    ],
)
def test_files_that_lobster_did_not_write_are_refused(
    tmp_path: Path, messages: str, book: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        lobster(tmp_path, messages, book)


def test_lobster_needs_its_names(tmp_path: Path) -> None:
    for name, said in (
        ("x.csv", r"path must match message files of LOBSTER, such as .*; got x\.csv"),
        (
            "x_message_1.csv",
            r"must stand beside x_message_1\.csv; got no x_orderbook_1",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            read(tmp_path, name, MESSAGES, "lobster", ticker="A", day="2024-01-02")
    with pytest.raises(ValueError, match="ticker and day must stand in the name"):
        read(tmp_path, "x_message_1.csv", MESSAGES, "lobster", orderbook=False)


def test_a_message_of_tardis_is_known_when_it_arrived(tmp_path: Path) -> None:
    log = read(tmp_path, "t.csv", TRADES, "tardis", skewed="quarantine", lag="1ms")
    frame = frame_of(log)
    assert log.streams == ("tardis/trades/bitmex",)
    assert frame["sequence"].to_list() == [1, 2]  # alike, and yet two trades
    row = frame.iloc[0]
    assert row["event_time"] == pd.Timestamp("2020-03-01T00:00:03.145Z")
    assert row["available_at"] == pd.Timestamp("2020-03-01T00:00:03.308160Z")
    assert row[["side", "price", "amount", "trade_id"]].to_list() == [
        "sell",
        8531.5,
        2152,
        "a",
    ]
    assert log.quarantine.to_numpy().tolist() == [
        ["tardis/trades/bitmex", 2, "timestamp", "after local_timestamp", "t.csv"]
    ]


def test_skewed_clocks_are_refused_or_arrival_is_the_only_clock(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"timestamp must not be after local_timestamp; got .* in rows 2 of t\.csv "
        r"\(by up to 0 days 00:00:00\.000001\)\. .* `skewed: quarantine` .* or `event_c",
    ):
        read(tmp_path, "t.csv", TRADES, "tardis")
    frame = frame_of(read(tmp_path, "t.csv", TRADES, "tardis", event_clock="arrival"))
    assert len(frame) == 3
    assert frame["event_time"].to_list() == frame["available_at"].to_list()


@pytest.mark.parametrize(
    ("name", "header", "cells", "stream", "values"),
    [
        (
            "t.csv",
            "ask_amount,ask_price,bid_price,bid_amount",
            "5494,8629.3,8629.2,806",
            "tardis/quotes/deribit",
            {"ask_price": 8629.3, "bid_amount": 806},
        ),
        (
            "deribit_book_ticker_2020.csv",
            "ask_amount,ask_price,bid_price,bid_amount",
            "5494,8629.3,8629.2,806",
            "tardis/book_ticker/deribit",
            {"bid_price": 8629.2},
        ),
        (
            "t.csv",
            "is_snapshot,side,price,amount",
            "true,ask,6421.5,18640",
            "tardis/incremental_book_L2/deribit",
            {"is_snapshot": 1, "side": "ask", "amount": 18640},
        ),
        (
            "t.csv",
            "asks[0].price,asks[0].amount,bids[0].price,bids[0].amount",
            "11657.08,1.714,11657.07,",
            "tardis/book_snapshot_1/deribit",
            {"ask_price_1": 11657.08, "ask_amount_1": 1.714, "bid_price_1": 11657.07},
        ),
        (
            "t.csv",
            "funding_timestamp,funding_rate,predicted_funding_rate,open_interest,"
            "last_price,index_price,mark_price",
            ",0.0001,,5,10,11,12",
            "tardis/derivative_ticker/deribit",
            {"funding_rate": 0.0001, "mark_price": 12},
        ),
    ],
)
def test_the_header_of_tardis_says_the_type_of_data(
    tmp_path: Path,
    name: str,
    header: str,
    cells: str,
    stream: str,
    values: dict[str, float | str],
) -> None:
    content = f"{COMMON},{header}\n{STAMPS},{cells}\n"
    log = read(tmp_path, name, content, "tardis")
    assert log.streams == (stream,)
    assert frame_of(log)[list(values)].iloc[0].to_list() == list(values.values())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{COMMON},strike\n{STAMPS},1\n", "must have the header of a type of data of"),
        (TRADES.replace("symbol", "sym"), "column 'symbol' must be in t.csv"),
        (
            TRADES.replace("000,", ",").replace("307160", "307"),
            "timestamp must count us",
        ),
    ],
)
def test_files_that_tardis_did_not_write_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "t.csv", content, "tardis")
