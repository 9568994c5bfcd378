"""`infoset asof --ragged`: how far each stream reached, and how late it was."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from infoset.pipeline.cli import app
from infoset.pipeline.ragged_edge import lateness, ragged_edge

PRINTS = """series,period,known,value
GDP,2024-01-01T00:00Z,2024-01-30T13:00Z,1.0
GDP,2024-01-01T00:00Z,2024-02-28T13:00Z,1.2
GDP,2024-01-01T00:00Z,2024-03-28T13:00Z,1.1
CPI,2024-01-01T00:00Z,2024-01-12T13:00Z,3.0
CPI,2024-02-01T00:00Z,2024-02-12T13:00Z,3.1
CPI,2024-03-01T00:00Z,2024-03-13T13:00Z,3.2
"""
CALENDAR = """meeting,announced
2024-03-20T18:00Z,2023-06-01T18:00Z
2024-06-12T18:00Z,2023-06-01T18:00Z
"""
CONFIG = """
name: edge
sources:
  - path: prints.csv
    stream: "macro/{series}"
    entity: "*"
    event_time: {column: period, stamp: instant}
    available_at: {column: known}
    values: {value: value}
  - path: calendar.csv
    stream: calendar
    entity: "*"
    scheduled: true
    event_time: {column: meeting, stamp: instant}
    available_at: {column: announced}
    values: {meeting: {column: meeting, kind: text}}
forecast_times: {kind: interval, interval: 1D}
targets: [{entities: ["*"], stream: macro/CPI}]
"""


@pytest.fixture(name="config")
def _config(tmp_path: Path) -> str:
    (tmp_path / "prints.csv").write_text(PRINTS)
    (tmp_path / "calendar.csv").write_text(CALENDAR)
    (tmp_path / "edge.yaml").write_text(CONFIG)
    return str(tmp_path / "edge.yaml")


def by_stream(config: str, at: str, **restricted: str) -> dict[str, dict[str, object]]:
    table = ragged_edge(config, at=at, **restricted)
    rows = table.set_index("stream").to_dict("index")
    return {
        str(name): {str(k): v for k, v in row.items()} for name, row in rows.items()
    }


def test_each_stream_says_its_newest_period_and_how_often_it_was_revised(
    config: str,
) -> None:
    rows = by_stream(config, "2024-03-29T13:00Z")
    assert rows["macro/GDP"] == {
        "entity": "*",
        "newest_period": "2024-01-01T00:00:00Z",
        "available_at": "2024-03-28T13:00:00Z",
        "age_days": "1.0",
        "revisions": 2,
        "usual_interval_days": "29.0",
        "staleness": "on time",
        "ends_earlier": "60.0 d",
    }


def test_the_stream_that_ends_last_is_named_and_the_others_are_behind_it(
    config: str,
) -> None:
    rows = by_stream(config, "2024-03-01")
    assert rows["macro/CPI"]["ends_earlier"] == "reaches furthest"
    assert rows["macro/GDP"]["ends_earlier"] == "31.0 d"


def test_a_calendar_of_coming_events_makes_nobody_late(config: str) -> None:
    rows = by_stream(config, "2024-03-01")
    assert rows["calendar"]["newest_period"] == "2024-06-12T18:00:00Z"
    assert rows["calendar"]["ends_earlier"] == "scheduled"


def test_a_stream_that_fell_silent_is_late_by_its_own_interval(config: str) -> None:
    # CPI came every 30.5 days (median of 31 and 30), last on 13 March.
    row = by_stream(config, "2024-06-22T13:00Z")["macro/CPI"]
    assert row["usual_interval_days"] == "30.5"
    assert row["staleness"] == "2.3 intervals late"


def test_before_the_first_print_nothing_is_known(config: str) -> None:
    row = by_stream(config, "2024-01-02", stream="macro/CPI")["macro/CPI"]
    assert row["newest_period"] == "nothing known"
    assert row["age_days"] == row["staleness"] == ""


def test_after_one_print_there_is_no_interval_yet(config: str) -> None:
    row = by_stream(config, "2024-01-13", stream="macro/CPI")["macro/CPI"]
    assert (row["usual_interval_days"], row["staleness"]) == ("", "no interval yet")


@pytest.mark.parametrize(
    ("staleness", "words"),
    [
        (float("nan"), "no interval yet"),
        (0.0, "on time"),
        (1.04, "on time"),
        (1.06, "0.1 intervals late"),
        (3.3, "2.3 intervals late"),
        (2001.0, "2,000.0 intervals late"),
    ],
)
def test_lateness_counts_what_is_beyond_the_usual_interval(
    staleness: float, words: str
) -> None:
    assert lateness(staleness) == words


def test_the_command_shows_the_table(config: str) -> None:
    shown = CliRunner().invoke(app, ["asof", config, "--at", "2024-03-01", "--ragged"])
    assert shown.exit_code == 0
    assert "Known at 2024-03-01, end of the UTC day" in shown.output
    assert "reaches furthest" in shown.output


def test_periods_and_the_ragged_edge_are_two_questions(config: str) -> None:
    call = ["asof", config, "--at", "2024-03-01", "--ragged", "--periods", "2"]
    with pytest.raises(ValueError, match="--ragged must stand without --periods"):
        CliRunner().invoke(app, call, catch_exceptions=False)
