from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter

from infoset.data.events import EventLog
from infoset.data.sources import AnySource, Source, event_log
from infoset.data.sources.backfills import backfill_notices, backfills

SOURCE: TypeAdapter[Source] = TypeAdapter(AnySource)
# DGS30 of the Federal Reserve Board (percent, public domain). The 30-year rate was not
# published from 2002-02-19 to 2006-02-08; the file of August 2024 has a value for each
# of these days all the same. The first column is how the file stood before.
YIELDS = """observation_date,DGS30_20060215,DGS30_20240808
2002-02-14,5.42,5.42
2002-02-15,5.37,5.37
2002-02-19,.,5.54
2006-02-07,.,4.64
2006-02-08,.,4.67
2006-02-09,4.51,4.51
2006-02-10,4.55,4.55
2024-08-07,.,4.25
"""
DAILY = {
    "preset": "alfred",
    "path": "f.csv",
    "frequency": "daily",
    "observed_at": "15:30",
    "at": "24:00",
    "zone": "America/New_York",
    "series": ["DGS30"],
}


def quarterly(lags_days: list[float], entity: str = "*") -> pd.DataFrame:
    event = pd.date_range("2000-04-01", periods=len(lags_days), freq="QS", tz="UTC")
    available = event + pd.to_timedelta(lags_days, unit="D")
    value = np.arange(len(lags_days), dtype=np.float64)
    return pd.DataFrame(
        {"entity": entity, "event_time": event, "available_at": available, "v": value}
    )


def logged(frame: pd.DataFrame) -> EventLog:
    return EventLog.from_pandas(frame, stream="s", values=["v"])


def read(folder: Path, content: str, **changes: Any) -> EventLog:
    (folder / "f.csv").write_text(content)
    return event_log([SOURCE.validate_python(DAILY | changes)], base=folder)


def test_values_that_an_earlier_vintage_did_not_have_are_told(tmp_path: Path) -> None:
    log = read(tmp_path, YIELDS)
    (run,) = backfills(log)
    assert (run.stream, run.entity, run.num_periods) == ("macro/DGS30", "*", 3)
    assert log.notices[-1].startswith(
        "Stream macro/DGS30, entity *: 3 periods (2002-02-19 to 2006-02-08) became known "
        "for the first time on 2024-08-09, long after they ended"
    )
    # In the log with vintages nothing saw them in between.
    then = log.until(pd.Timestamp("2024-08-01T00:00Z")).to_pandas("macro/DGS30")
    assert then["event_time"].dt.year.to_list() == [2002, 2002, 2006, 2006]


def test_one_vintage_tells_nothing_and_says_so(tmp_path: Path) -> None:
    alone = "\n".join(
        line.split(",")[0] + "," + line.split(",")[2] for line in YIELDS.splitlines()
    ).replace("DGS30_20240808", "DGS30")
    schedule = {"days": 1, "at": "16:15", "zone": "America/New_York"}
    log = read(tmp_path, alone, published=schedule, at=None)
    assert backfills(log) == []
    (notice,) = log.notices
    assert "nothing tells a value that was revised, or added years later" in notice
    known = read(tmp_path, alone, vintage="2024-08-08")
    assert backfills(known) == []
    assert "8 of 8 values stand in the first vintage" in known.notices[0]


def test_periods_that_are_declared_backfilled_are_told(tmp_path: Path) -> None:
    alone = "DATE,DGS30\n" + "".join(
        f"{line.split(',')[0]},{line.split(',')[2]}\n"
        for line in YIELDS.splitlines()[1:]
    )
    log = read(
        tmp_path,
        alone,
        published={"days": 1, "at": "16:15", "zone": "America/New_York"},
        vintage="2024-08-08",
        backfilled=[{"first": "2002-02-19", "last": "2006-02-08"}],
    )
    assert [run.num_periods for run in backfills(log)] == [3]


def test_prints_that_come_when_they_usually_do_are_no_backfill() -> None:
    for lag in (30.0, 800.0):  # 800 days late, but always, and in order
        assert backfills(logged(quarterly([lag] * 20))) == []


def test_revisions_are_no_backfill() -> None:
    frame = quarterly([30.0] * 20)
    revised = frame.assign(
        available_at=frame["available_at"] + pd.Timedelta(days=3000), v=frame["v"] + 1
    )
    assert backfills(logged(pd.concat([frame, revised]))) == []


def test_a_first_availability_with_all_history_is_no_backfill() -> None:
    frame = quarterly([30.0] * 20)
    begin = pd.Timestamp("2004-01-01", tz="UTC")
    frame.loc[frame["available_at"] < begin, "available_at"] = begin
    assert backfills(logged(frame)) == []


@pytest.mark.parametrize(
    # The period after it ended 92 days later and was published 60 days after that.
    ("lag", "num_periods"),
    [(92 + 60 + 366.0, []), (92 + 60 + 367.0, [1])],
)
def test_a_year_behind_a_later_period_is_the_least_that_counts(
    lag: float, num_periods: list[int]
) -> None:
    lags = [60.0, 60.0, lag, *[60.0] * 20]
    assert [
        run.num_periods for run in backfills(logged(quarterly(lags)))
    ] == num_periods


def test_a_late_print_in_order_counts_by_its_usual_lag() -> None:
    # The newest period, four years late: nothing later was known before it.
    lags = [30.0] * 19 + [1461.0]
    (run,) = backfills(logged(quarterly(lags)))
    assert run.usual_lag == pd.Timedelta(days=30).value
    assert backfills(logged(quarterly([200.0] * 19 + [1461.0]))) == []


def test_runs_are_told_apart_by_entity_and_by_timely_periods() -> None:
    lags = [30.0] * 24
    for place in (2, 3, 7):
        lags[place] = 4000.0
    both = pd.concat([quarterly(lags, "B"), quarterly([30.0] * 24, "A")])
    found = backfills(logged(both))
    assert [(run.entity, run.num_periods) for run in found] == [("B", 2), ("B", 1)]
    first, second = (
        sentence.split("became")[0] for sentence in backfill_notices(logged(both))
    )
    assert first == "Stream s, entity B: 2 periods (2000-10-01 to 2001-01-01) "
    assert second == "Stream s, entity B: 1 period (2002-01-01) "


def test_many_runs_are_summed_up() -> None:
    lags = [30.0] * 60
    for place in range(1, 40, 2):
        lags[place] = 8000.0
    notices = backfill_notices(logged(quarterly(lags)))
    assert len(notices) == 11
    assert notices[-1] == (
        "10 shorter runs of late first prints, of 10 periods in all, are in the log as "
        "well."
    )
