from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log
from infoset.data.sources.text import hashed_texts

NEW_YORK = "America/New_York"
PLAIN = """id,t,v
007,2024-01-02T10:00:00Z,1.5
NA,2024-01-02T10:00:00Z,2
"""
EUROPEAN = """\ufeffdatum;asset;kurs;umsatz
2024-01-02;007;1.234,50;12.000
2024-01-02;NA;0,75;950
2024-01-02;TRUE;-2,40;1
"""
EUROPEAN_COLUMNS: dict[str, Any] = {
    "entity": {"column": "asset"},
    "event_time": {
        "column": "datum",
        "stamp": "date",
        "at": "17:30",
        "zone": "Europe/Berlin",
    },
    "values": {"price": "kurs", "volume": "umsatz"},
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


def utc(log: EventLog, clock: str = "event_time") -> list[str]:
    frame = log.to_pandas("s").sort_values("v")
    return [f"{instant:%Y-%m-%dT%H:%M:%SZ}" for instant in frame[clock]]


def test_ids_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    frame = read(tmp_path, PLAIN + "TRUE,2024-01-02T10:00:00Z,3\n").to_pandas("s")
    assert frame["entity"].to_list() == ["007", "NA", "TRUE"]
    assert frame["v"].to_list() == [1.5, 2.0, 3.0]


def test_spreadsheet_file_is_read_as_declared(tmp_path: Path) -> None:
    layout = {"delimiter": ";", "decimal": ",", "thousands": "."}
    frame = read(tmp_path, EUROPEAN, **EUROPEAN_COLUMNS, format=layout).to_pandas("s")
    assert frame["entity"].to_list() == ["007", "NA", "TRUE"]
    assert frame["price"].to_list() == [1234.5, 0.75, -2.4]
    assert frame["volume"].to_list() == [12000.0, 950.0, 1.0]
    assert set(frame["event_time"]) == {pd.Timestamp("2024-01-02T16:30Z")}


def test_other_encodings_are_read_as_declared(tmp_path: Path) -> None:
    content = EUROPEAN.removeprefix("\ufeff").replace("umsatz", "umsatz_stück")
    columns = EUROPEAN_COLUMNS | {"values": {"price": "kurs", "volume": "umsatz_stück"}}
    for encoding in ("cp1252", "utf-16"):
        layout = {
            "delimiter": ";",
            "decimal": ",",
            "thousands": ".",
            "encoding": encoding,
        }
        log = read(tmp_path, content.encode(encoding), **columns, format=layout)
        assert log.to_pandas("s")["volume"].to_list() == [12000.0, 950.0, 1.0]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("1.5", 1.5), (".5", 0.5), ("+2", 2.0), ("-1e-3", -0.001), ("1.", 1.0)],
)
def test_plain_numbers_are_read_exactly(
    tmp_path: Path, cell: str, number: float
) -> None:
    log = read(tmp_path, PLAIN.replace("1.5", cell))
    assert log.to_pandas("s")["v"].iloc[0] == number


def test_long_sequences_stay_exact(tmp_path: Path) -> None:
    # Above 2**53 a float would fold the two into one.
    content = "id,t,v,n\n" + "".join(
        f"A,2024-01-02T10:00:00Z,{n},{2**53 + n}\n" for n in (1, 0)
    )
    frame = read(tmp_path, content, sequence="n").to_pandas("s")
    assert frame["sequence"].to_list() == [2**53, 2**53 + 1]


def test_rows_are_counted_from_zero_without_blank_lines(tmp_path: Path) -> None:
    content = "\nid,t,v\n\n007,2024-01-02T10:00:00Z,1\n\nNA,2024-01-02T10:00:00Z,x\n"
    with pytest.raises(ValueError, match=r"got 'x' in row 1 of f\.csv"):
        read(tmp_path, content)


def test_quoted_line_breaks_stay_inside_a_cell(tmp_path: Path) -> None:
    content = PLAIN.replace("1.5", '"first\nsecond, ""third"""')
    log = read(tmp_path, content, values={"v": {"column": "v", "kind": "text"}})
    assert log.to_pandas("s")["v"].to_list() == ['first\nsecond, "third"', "2"]


def test_parquet_and_gzip_give_the_same_log_as_text(tmp_path: Path) -> None:
    text = read(tmp_path, PLAIN)
    packed = read(tmp_path, gzip.compress(PLAIN.encode()), path="f.csv.gz")
    frame = pd.DataFrame(
        {
            "id": pd.array(["007", "NA"], dtype="str"),
            "t": pd.to_datetime(["2024-01-02 11:00"] * 2).tz_localize("Europe/Berlin"),
            "v": [1.5, 2.0],
        }
    )
    frame.to_parquet(tmp_path / "f.parquet")
    parquet = event_log([declared(path="f.parquet")], base=tmp_path)
    naive = frame.assign(t=frame["t"].dt.tz_localize(None))
    naive.to_parquet(tmp_path / "f.parquet")
    zone = {"column": "t", "stamp": "instant", "zone": "Europe/Berlin"}
    localised = event_log([declared(path="f.parquet", event_time=zone)], base=tmp_path)
    for other in (packed, parquet, localised):
        assert other.table("s").equals(text.table("s"))


def test_parquet_dates_are_dates(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["A"], "t": [date(2024, 1, 2)], "v": [1]})
    frame.to_parquet(tmp_path / "f.parquet")
    stamp = {"column": "t", "stamp": "date", "at": "16:00", "zone": NEW_YORK}
    log = event_log([declared(path="f.parquet", event_time=stamp)], base=tmp_path)
    assert utc(log) == ["2024-01-02T21:00:00Z"]


def test_rows_without_a_value_are_listed_by_their_row_in_the_file(
    tmp_path: Path,
) -> None:
    content = PLAIN + "NA,2024-01-03T10:00:00Z,\n007,2024-01-03T10:00:00Z,\n"
    log = read(tmp_path, content, where={"id": ["007"]}, stream="x/{id}")
    assert log.streams == ("x/007",)
    assert log.quarantine.to_dict("records") == [
        {
            "stream": "x/007",
            "row": 3,
            "column": "v",
            "reason": "no value",
            "source": "f.csv",
        }
    ]


def test_rows_without_availability_are_never_used(tmp_path: Path) -> None:
    content = (
        "seq,id,t,known,v\n"
        "1,AAA,2024-01-02T21:00:00Z,2024-01-02T21:05:00Z,1.0\n"
        "2,AAA,2024-01-03T21:00:00Z,,2.0\n"
        "3,AAA,2024-01-04T21:00:00Z,2024-01-04T21:05:00Z,3.0\n"
    )
    log = read(tmp_path, content, available_at={"column": "known"}, sequence="seq")
    assert log.to_pandas("s")["sequence"].to_list() == [1, 3]
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [1, "available_at", "missing"]
    ]


def test_rows_in_are_rows_in_the_log_or_accounted_for(tmp_path: Path) -> None:
    content = PLAIN + "007,2024-01-02T10:00:00Z,1.5\n,2024-01-02T10:00:00Z,1\nA,,1\n"
    log = read(tmp_path, content)
    assert (len(log), log.num_duplicates) == (2, 1)
    assert log.quarantine["row"].to_list() == [3, 4]
    assert log.quarantine["column"].to_list() == ["entity", "event_time"]


def test_a_template_gives_one_stream_per_cell(tmp_path: Path) -> None:
    source = {"path": "f.csv", "stream": "macro/{id}", "entity": "*"}
    log = read(tmp_path, PLAIN, **source)
    assert log.streams == ("macro/007", "macro/NA")
    assert declared(**source).streams(log) == ("macro/007", "macro/NA")
    chosen = source | {"where": {"id": ["NA"]}}
    assert declared(**chosen).streams(log) == ("macro/NA",)
    assert declared(stream="macro/NA").streams(log) == ("macro/NA",)
    assert declared(stream="macro").streams(log) == ()


def test_two_sources_can_give_one_stream(tmp_path: Path) -> None:
    wide = "t,a,b\n2024-01-02T10:00:00Z,1,2\n2024-01-03T10:00:00Z,3,\n"
    (tmp_path / "f.csv").write_text(wide)
    sources = [declared(entity=name, values={"v": name}) for name in ("a", "b")]
    log = event_log(sources, base=tmp_path)
    assert log.to_pandas("s")["v"].to_list() == [1.0, 3.0, 2.0]
    assert log.quarantine["row"].to_list() == [1]
    assert sum(len(one.log(base=tmp_path)) for one in sources) == len(log)


def test_no_sources_give_an_empty_log(tmp_path: Path) -> None:
    log = event_log([], base=tmp_path)
    assert (log.streams, len(log)) == ((), 0)
    assert list(log.quarantine) == ["stream", "row", "column", "reason", "source"]


def test_sources_of_one_stream_must_agree(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("t,v,w\n2024-01-02T10:00:00Z,1,2\n")
    change = {"column": "v", "kind": "difference"}
    one = declared(entity="a", change=change)
    with pytest.raises(ValueError, match="change of stream 's' must be the same"):
        event_log([one, declared(entity="b")], base=tmp_path)
    with pytest.raises(ValueError, match="scheduled of stream 's' must be the same"):
        event_log(
            [one, declared(entity="b", change=change, scheduled=True)], base=tmp_path
        )
    clash = declared(entity="a", change=change, values={"v": "w"})
    with pytest.raises(ValueError, match=r"f\.csv: one event must have one set of"):
        event_log([one, clash], base=tmp_path)


def test_a_change_does_not_spread_to_another_sources_stream(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(PLAIN)
    spreading = declared(
        stream="x/{id}",
        change={"column": "v", "kind": "log"},
        where={"t": ["2024-01-02T10:00:00Z"]},
    )
    other = declared(stream="x/other", entity="*", where={"id": ["NA"]})
    with pytest.raises(ValueError, match="change of stream 'x/other' must be the same"):
        event_log([spreading, other], base=tmp_path)


def test_hash_of_a_text_depends_on_that_text_alone() -> None:
    alone = hashed_texts(["Rates were raised."], 16)
    among = hashed_texts(["the future", None, "Rates were raised."], 16)
    assert alone.iloc[0].to_list() == among.iloc[2].to_list()
    assert list(alone) == [f"text_{n:02d}" for n in range(16)] + ["num_words"]
    assert alone["num_words"].to_list() == [3.0]
    assert among.iloc[1].isna().all()
    # Unit length by definition; the tolerance is a few roundings of a sum of 16.
    assert np.linalg.norm(alone.iloc[0, :16]) == pytest.approx(1, rel=1e-14)


def test_texts_become_numbers_and_are_kept_only_if_asked(tmp_path: Path) -> None:
    content = 'id,t,v\nA,2024-01-02T10:00:00Z,"Up, up"\nB,2024-01-02T10:00:00Z,\n'
    text = {"column": "v", "hashing": {"num_features": 4}}
    log = read(tmp_path, content, values={}, text=text)
    assert log.values_of("s") == (*(f"text_{n:02d}" for n in range(4)), "num_words")
    assert log.quarantine["reason"].to_list() == ["no value"]
    frame = log.to_pandas("s")
    # One distinct word: one bucket of size 1, whatever its sign.
    assert frame.iloc[0, 5:9].abs().sort_values().to_list() == [0, 0, 0, 1]
    kept = read(tmp_path, content, values={}, text=text | {"keep_text": True})
    assert kept.to_pandas("s")["text"].to_list() == ["Up, up"]
