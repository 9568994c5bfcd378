"""Dates that mean a session's close, and midnights that stand for the day they begin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from infoset.data.events import EventLog
from infoset.data.sources import TabularSource, event_log
from infoset.pipeline.report.clocks import dated_words, source_clocks

XNYS: dict[str, Any] = {"column": "t", "stamp": "session_close", "calendar": "XNYS"}
MIDNIGHT: dict[str, Any] = {
    "column": "t",
    "stamp": "local_midnight",
    "zone": "America/New_York",
}


def read(folder: Path, event_time: dict[str, Any], *cells: str) -> EventLog:
    (folder / "f.csv").write_text(
        "\n".join(["t,v", *(f"{cell},{n}" for n, cell in enumerate(cells))])
    )
    plain: dict[str, Any] = {
        "path": "f.csv",
        "stream": "s",
        "entity": "A",
        "event_time": event_time,
        "available_at": {"lag": "0s"},
        "values": {"v": "v"},
    }
    return event_log([TabularSource.model_validate(plain)], base=folder)


def instants(log: EventLog) -> list[str]:
    frame = log.to_pandas("s").sort_values("v")
    assert (frame["event_time"] == frame["available_at"]).all()
    return [f"{instant:%Y-%m-%dT%H:%M:%SZ}" for instant in frame["available_at"]]


def test_a_daily_close_is_known_at_the_close_of_its_session_also_on_a_half_day(
    tmp_path: Path,
) -> None:
    log = read(tmp_path, XNYS, "2024-11-27", "2024-11-29", "2024-07-01")
    assert instants(log) == [
        "2024-11-27T21:00:00Z",
        "2024-11-29T18:00:00Z",
        "2024-07-01T20:00:00Z",
    ]


def test_a_date_that_is_no_session_is_refused_with_the_nearest_ones(
    tmp_path: Path,
) -> None:
    message = (
        "event_time must be the date of a session of XNYS; got '2024-11-28' in row 1 of f.csv "
        ".column 't'.. The nearest are 2024-11-27 and 2024-11-29"
    )
    with pytest.raises(ValueError, match=message):
        read(tmp_path, XNYS, "2024-11-27", "2024-11-28")


def test_an_empty_date_is_quarantined(tmp_path: Path) -> None:
    log = read(tmp_path, XNYS, "2024-11-27", "")
    assert log.quarantine[["row", "column"]].values.tolist() == [[1, "event_time"]]


def test_a_calendar_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="XNYSE"):
        read(tmp_path, XNYS | {"calendar": "XNYSE"}, "2024-11-27")


def test_no_closing_hour_is_built_in(tmp_path: Path) -> None:
    stamp = {"column": "t", "stamp": "session_close"}
    with pytest.raises(ValueError, match="calendar"):
        read(tmp_path, stamp, "2024-11-27")


def test_a_midnight_stands_for_the_day_it_begins(tmp_path: Path) -> None:
    # Naive, with an offset, and in UTC; on 10 March the clocks go forward.
    log = read(tmp_path, MIDNIGHT, "2024-03-09 00:00", "2024-03-10 00:00")
    assert instants(log) == ["2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"]
    log = read(tmp_path, MIDNIGHT, "2024-03-10T05:00:00Z", "2024-03-11T00:00:00-04:00")
    assert instants(log) == ["2024-03-11T04:00:00Z", "2024-03-12T04:00:00Z"]


def test_a_stamp_that_is_no_local_midnight_is_refused(tmp_path: Path) -> None:
    message = (
        "event_time must be a midnight in America/New_York; got "
        "'2024-03-12T00:00:00Z' in row 0 of f.csv .*the zone of the midnights"
    )
    with pytest.raises(ValueError, match=message):
        read(tmp_path, MIDNIGHT, "2024-03-12T00:00:00Z")


def test_the_report_says_both_stamps_in_words() -> None:
    assert dated_words(XNYS) == "the close of the session in column t (calendar XNYS)"
    assert dated_words(MIDNIGHT) == (
        "the end of the day that begins at the midnight in column t (America/New_York)"
    )


def test_the_report_says_that_a_preset_knows_the_clocks() -> None:
    words = source_clocks({"preset": "alfred", "path": "DGS10.csv", "stream": "s"})
    assert (words.dated, words.available) == ("as the preset alfred says",) * 2
