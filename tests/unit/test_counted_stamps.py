"""Stamps that count since 1970, and rows that keep the order of their file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import ValidationError

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log


def declared(**changes: Any) -> TabularSource:
    plain = {
        "path": "f.csv",
        "stream": "s",
        "entity": "A",
        "event_time": {"column": "t", "stamp": "instant", "epoch": "ms"},
        "available_at": {"column": "known", "epoch": "ns"},
        "values": {"v": "v"},
    }
    return TabularSource.model_validate(plain | changes)


def read(folder: Path, content: str, **changes: Any) -> EventLog:
    (folder / "f.csv").write_text(content)
    return event_log([declared(**changes)], base=folder)


ROWS = """t,known,v
1704207600001,1704207600001000002,3
1704207600001,1704207600001000002,1
,1704207600001000002,2
"""


def test_both_clocks_can_count_since_1970(tmp_path: Path) -> None:
    log = read(tmp_path, ROWS, sequence={"order": "file"})
    frame = log.to_pandas("s")
    assert set(frame["event_time"]) == {pd.Timestamp("2024-01-02T15:00:00.001Z")}
    assert set(frame["available_at"]) == {
        pd.Timestamp("2024-01-02T15:00:00.001000002Z")
    }
    assert log.quarantine[["row", "column", "reason"]].to_numpy().tolist() == [
        [2, "event_time", "missing"]
    ]


def test_rows_of_one_instant_keep_the_order_of_the_file(tmp_path: Path) -> None:
    frame = read(tmp_path, ROWS, sequence={"order": "file"}).to_pandas("s")
    assert frame["sequence"].to_list() == [1, 2]
    assert frame["v"].to_list() == [3, 1]
    with pytest.raises(ValueError, match="one event must have one set of values"):
        read(tmp_path, ROWS)


def test_a_bar_may_count_when_it_opens(tmp_path: Path) -> None:
    stamp = {"column": "t", "stamp": "bar_open", "bar": "1min", "epoch": "s"}
    content = "t,v\n1704207600,1\n"
    log = read(tmp_path, content, event_time=stamp, available_at={"lag": "0s"})
    known = log.to_pandas("s")["available_at"].iloc[0]
    assert known == pd.Timestamp("2024-01-02T15:01Z")


def test_parquet_may_count_in_integers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": [1704207600001], "v": [1.0]})
    frame.to_parquet(tmp_path / "f.parquet")
    source = declared(path="f.parquet", available_at={"lag": "0s"})
    log = event_log([source], base=tmp_path)
    found = log.to_pandas("s")["event_time"].iloc[0]
    assert found == pd.Timestamp("2024-01-02T15:00:00.001Z")


def test_a_count_needs_no_zone_and_no_pattern() -> None:
    for other in ({"zone": "America/New_York"}, {"format": "%Y%m%d %H"}):
        stamp = {"column": "t", "stamp": "instant", "epoch": "ms"} | other
        with pytest.raises(
            ValidationError, match="`zone` with `epoch: ms`, which count"
        ):
            declared(event_time=stamp)


def test_a_declaration_without_a_count_is_written_as_before() -> None:
    stamp = {"column": "t", "stamp": "instant"}
    source = declared(event_time=stamp, available_at={"lag": "0s"})
    assert "epoch" not in source.model_dump()["event_time"]


@pytest.mark.parametrize(
    ("cell", "unit", "message"),
    [
        (
            "1704207600",
            "ms",
            r"t must count ms since 1970, but .* It seems to count s\.",
        ),
        ("1704207600001", "s", r"got '1704207600001' in row 0 .* seems to count ms\."),
        (
            "99999999999999",
            "s",
            r"from 1678 to 2261; .*\. Correct the unit, or the row",
        ),
        ("1.5", "s", "t must be a whole number; got '1.5' in row 0"),
    ],
)
def test_a_count_of_another_unit_is_refused(
    tmp_path: Path, cell: str, unit: str, message: str
) -> None:
    stamp = {"column": "t", "stamp": "instant", "epoch": unit}
    content = f"t,v\n{cell},1\n"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content, event_time=stamp, available_at={"lag": "0s"})


def test_daily_counts_of_1970_are_what_they_say(tmp_path: Path) -> None:
    stamp = {"column": "t", "stamp": "instant", "epoch": "s"}
    content = "t,v\n0,1\n86400,2\n"
    log = read(tmp_path, content, event_time=stamp, available_at={"lag": "0s"})
    assert log.to_pandas("s")["event_time"].dt.day.to_list() == [1, 2]
