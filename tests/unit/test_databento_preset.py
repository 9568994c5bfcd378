from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter

from infoset.data.events import EventLog
from infoset.data.sources import AnySource, event_log

_TRADES = "action,side,depth,price,size,flags,ts_in_delta,sequence,symbol"
TRADES = f"""ts_recv,ts_event,rtype,publisher_id,instrument_id,{_TRADES}
1704207600000000100,1704207600000000001,0,1,77,T,A,0,5411750000001,2,0,165,12,ESH4
1704207600000000100,1704207600000000001,0,1,77,T,A,0,-5000000,2,8,165,12,ESH4
1704207600000000200,18446744073709551615,0,1,77,T,A,0,1,2,0,165,12,ESH4
"""
PRETTY = f"""ts_recv,ts_event,rtype,publisher_id,instrument_id,{_TRADES}
2024-01-02T15:00:00.000000100Z,2024-01-02T15:00:00.000000001Z,0,1,77,T,A,0,5411.750000001,2,0,165,12,ESH4
2024-01-02T15:00:00.000000100Z,2024-01-02T15:00:00.000000001Z,0,1,77,T,A,0,-0.005000000,2,8,165,12,ESH4
2024-01-02T15:00:00.000000200Z,,0,1,77,T,A,0,0.000000001,2,0,165,12,ESH4
"""
BARS = """ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol
2024-01-02T14:30:00.000000000Z,33,1,77,1.000000000,2.000000000,0.500000000,1.500000000,10,ESH4
2024-01-02T14:31:00.000000000Z,33,1,77,1.000000000,0.900000000,0.500000000,,10,ESH4
"""
BBO = """ts_recv,ts_event,rtype,publisher_id,instrument_id,side,price,size,flags,bid_px_00,ask_px_00,bid_sz_00,ask_sz_00,bid_ct_00,ask_ct_00,symbol
1704207601000000000,1704207590000000000,195,1,77,A,9223372036854775807,0,0,5411750000000,5412000000000,3,4,1,1,ESH4
"""


def read(folder: Path, content: str, name: str = "f.csv", **settings: Any) -> EventLog:
    (folder / name).write_text(content)
    declared = {"preset": "databento", "path": name} | settings
    source = TypeAdapter(AnySource).validate_python(declared)
    return event_log([source], base=folder)


def frame_of(log: EventLog) -> pd.DataFrame:
    (stream,) = log.streams
    return log.to_pandas(stream)


def test_a_record_is_known_when_it_was_received(tmp_path: Path) -> None:
    log = read(tmp_path, TRADES)
    frame = frame_of(log)
    assert log.streams == ("databento/trades",)
    event, known = pd.DatetimeIndex(
        ["2024-01-02T15:00:00.000000001Z", "2024-01-02T15:00:00.000000100Z"]
    )
    assert frame["event_time"].to_list() == [event] * 2
    assert frame["available_at"].to_list() == [known] * 2
    assert frame["sequence"].to_list() == [1, 2]  # the venue's own is 12 for both
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [2, "event_time", "missing"]
    ]
    assert log.notices == (
        "1 of 2 events of stream 'databento/trades' have a time of arrival (ts_recv) that "
        "Databento flags as inaccurate.",
    )


def test_fixed_point_prices_are_the_nearest_floats(tmp_path: Path) -> None:
    assert frame_of(read(tmp_path, TRADES))["price"].to_list() == [
        5411.750000001,
        -0.005,
    ]


def test_pretty_files_give_the_same_log(tmp_path: Path) -> None:
    plain, pretty = read(tmp_path, TRADES), read(tmp_path, PRETTY)
    assert pretty.table("databento/trades").equals(plain.table("databento/trades"))


def test_ids_and_sides_are_text(tmp_path: Path) -> None:
    row = frame_of(read(tmp_path, TRADES)).iloc[0]
    assert row[["instrument_id", "publisher_id", "side", "action"]].to_list() == [
        "77",
        "1",
        "A",
        "T",
    ]


def test_an_undefined_price_is_missing(tmp_path: Path) -> None:
    row = frame_of(read(tmp_path, BBO)).iloc[0]
    assert pd.isna(row["price"])
    assert row[["bid_px_00", "ask_px_00", "ask_sz_00"]].to_list() == [5411.75, 5412, 4]


def test_a_sampled_quote_is_of_the_end_of_its_interval(tmp_path: Path) -> None:
    log = read(tmp_path, BBO)
    row = frame_of(log).iloc[0]
    assert log.streams == ("databento/bbo-1s",)
    end = pd.Timestamp("2024-01-02T15:00:01Z")
    assert row[["event_time", "available_at"]].to_list() == [end, end]


def test_the_stamp_of_a_bar_is_its_open(tmp_path: Path) -> None:
    log = read(tmp_path, BARS, lag="2s")
    row = frame_of(log).iloc[0]
    assert log.streams == ("databento/ohlcv-1m",)
    assert row["event_time"] == pd.Timestamp("2024-01-02T14:31Z")
    assert row["available_at"] == pd.Timestamp("2024-01-02T14:31:02Z")
    assert row[["high", "volume"]].to_list() == [2, 10]
    assert log.quarantine["reason"].to_list() == ["high below open"]


def test_a_bar_of_unsaid_length_takes_the_declared_one(tmp_path: Path) -> None:
    content = BARS.replace(",33,", ",36,")
    log = read(tmp_path, content, bar="1d", stream="eod")
    assert frame_of(log)["event_time"].iloc[0] == pd.Timestamp("2024-01-03T14:30Z")
    with pytest.raises(
        ValueError, match="length of a bar of ohlcv-eod; got None for f"
    ):
        read(tmp_path, content)
    with pytest.raises(ValueError, match=r"of ohlcv-1m \(1min\); got '1h' for f\.csv"):
        read(tmp_path, BARS, bar="1h")


def test_bars_of_two_venues_do_not_hide_each_other(tmp_path: Path) -> None:
    other = BARS.splitlines()[1].replace(",33,1,", ",33,2,").replace("1.5", "1.6")
    content = f"{BARS}{other}\n"
    with pytest.raises(ValueError, match=r"must be of one publisher; got .* 1, 2 in f"):
        read(tmp_path, content)
    chosen = read(tmp_path, content, where={"publisher_id": ["2"]})
    assert frame_of(chosen)["close"].to_list() == [1.6]
    both = read(tmp_path, content, stream="{schema}/{publisher_id}")
    assert both.streams == ("ohlcv-1m/1", "ohlcv-1m/2")


def test_best_quotes_at_trades_are_told_by_the_files_name(tmp_path: Path) -> None:
    content = TRADES.replace(",0,1,77", ",1,1,77")
    assert read(tmp_path, content).streams == ("databento/mbp-1",)
    named = read(tmp_path, content, name="glbx-20240102.tbbo.csv")
    assert named.streams == ("databento/tbbo",)


def test_entities_can_be_the_ids_of_instruments(tmp_path: Path) -> None:
    content = TRADES.replace(",symbol", "").replace(",ESH4", "")
    with pytest.raises(ValueError, match=r"column .symbol. must be in .*map_symbols"):
        read(tmp_path, content)
    log = read(tmp_path, content, entity={"column": "instrument_id"})
    assert log.entities == ("77",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            TRADES.replace("000000001,0,", "000000101,0,"),
            r"ts_event must not be after ts_recv; got .* in rows 0, 1 of f\.csv",
        ),
        (
            TRADES.replace(",0,1,77", ",19,1,77"),
            "rtype must be that of trades, .* '19'",
        ),
        (
            TRADES.replace("01,0,1,77", "01,10,1,77", 1),
            "rtype must be one in a file, that of its first row .10.; got '0' in row 1",
        ),
        (
            TRADES.replace("5411750000001", "5411.75"),
            "price must be in whole units of 1e-9, .* got '5411.75' in row 0",
        ),
        (TRADES.replace("ts_recv", "t"), "column 'ts_recv' must be in f.csv"),
        (
            TRADES.replace("1704207600000000001", "never"),
            "event_time must be an instant",
        ),
    ],
)
def test_files_that_databento_did_not_write_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content)
