from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pydantic import TypeAdapter

from infoset.data import as_of
from infoset.data.events import EventLog
from infoset.data.sources import AnySource, Source, event_log

NEW_YORK = "America/New_York"
SOURCE: TypeAdapter[Source] = TypeAdapter(AnySource)
# PAYEMS of BLS (thousands of persons, public domain) as ALFRED has it: payrolls first
# fell by 17,000 in January 2008, and by 22,000 as revised a month later.
PAYROLLS = """observation_date,PAYEMS_20080201,PAYEMS_20080307
2007-11-01,138037,138037
2007-12-01,138119,138078
2008-01-01,138102,138056
2008-02-01,.,137993
"""
MONTHLY = {
    "preset": "alfred",
    "path": "f.csv",
    "frequency": "monthly",
    "at": "08:30",
    "zone": NEW_YORK,
}
DAILY = MONTHLY | {"frequency": "daily", "observed_at": "15:30"}
# DGS10 of the Federal Reserve Board, percent, public domain; 2 September was Labor Day.
YIELDS = "DATE,DGS10\n2024-08-29,3.87\n2024-08-30,3.91\n2024-09-02,.\n2024-09-03,3.84\n"
NEXT_DAY = {
    "sessions": 1,
    "calendar": "us_federal_board",
    "at": "16:15",
    "zone": NEW_YORK,
}


def read(folder: Path, content: str | bytes, **changes: Any) -> EventLog:
    source = SOURCE.validate_python(MONTHLY | changes)
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / source.name).write_bytes(raw)
    return event_log([source], base=folder)


def rows(log: EventLog, stream: str = "macro/PAYEMS") -> list[tuple[str, str, float]]:
    frame = log.to_pandas(stream)
    return [
        (f"{event:%Y-%m-%dT%H:%M}", f"{known:%Y-%m-%dT%H:%M}", value)
        for event, known, value in zip(
            frame["event_time"], frame["available_at"], frame["value"], strict=True
        )
    ]


def answer(observations: list[dict[str, str]], **changes: Any) -> bytes:
    given = {"output_type": 1, "count": len(observations), "offset": 0}
    return json.dumps(given | changes | {"observations": observations}).encode()


def listed(start: str, end: str, date: str, value: str) -> dict[str, str]:
    return {"realtime_start": start, "realtime_end": end, "date": date, "value": value}


def test_payrolls_read_as_they_did_on_the_day(tmp_path: Path) -> None:
    log = read(tmp_path, PAYROLLS)
    january = "2008-02-01T05:00"
    assert [row for row in rows(log) if row[0] == january] == [
        (january, "2008-02-01T13:30", 138102.0),
        (january, "2008-03-07T13:30", 138056.0),
    ]
    for time, december, newest in (
        ("2008-02-01T13:30Z", 138119.0, 138102.0),
        ("2008-03-07T13:29:59.999999999Z", 138119.0, 138102.0),
        ("2008-03-07T13:30Z", 138078.0, 137993.0),
    ):
        known = log.until(pd.Timestamp(time)).to_pandas("macro/PAYEMS")
        of_december = known[known["event_time"] == pd.Timestamp("2008-01-01T05:00Z")]
        assert of_december["value"].iloc[-1] == december
        point = pd.DataFrame({"entity": ["*"], "forecast_time": [pd.Timestamp(time)]})
        assert as_of(log, point)["value"].to_list() == [newest]


def test_a_value_that_stays_is_no_revision(tmp_path: Path) -> None:
    log = read(tmp_path, PAYROLLS)
    assert len(log) == 6  # 3 of the first vintage, 2 revised, 1 new; November stays
    assert log.to_pandas("macro/PAYEMS")["revision"].to_list() == [0, 0, 0, 1, 1, 0]


def test_values_of_the_first_vintage_are_counted_as_older(tmp_path: Path) -> None:
    (notice,) = read(tmp_path, PAYROLLS).notices
    assert notice.startswith(
        "f.csv: 3 of 6 values stand in the first vintage of their series "
        "(PAYEMS 2008-02-01)"
    )


def test_a_value_that_vanishes_is_no_event_but_counted(tmp_path: Path) -> None:
    log = read(tmp_path, PAYROLLS.replace("138037,138037", "138037,#N/A"))
    assert len(log) == 6
    assert log.notices[1] == (
        "f.csv: values that a later vintage does not have any more: 1 (PAYEMS 1). What "
        "was last known stays."
    )


def test_parts_of_a_download_are_one_history(tmp_path: Path) -> None:
    table = [line.split(",") for line in PAYROLLS.splitlines()]
    for place in (2, 1):  # in the wrong order, as a pattern may find them
        lines = [f"{row[0]}\t{row[place]}\n" for row in table]
        (tmp_path / f"part{3 - place}.tsv").write_text("".join(lines))
    source = SOURCE.validate_python(MONTHLY | {"path": "part*.tsv"})
    log = event_log([source], base=tmp_path)
    assert rows(log) == rows(read(tmp_path, PAYROLLS))
    assert log.num_duplicates == 0


def test_several_series_of_a_file_are_streams_or_entities(tmp_path: Path) -> None:
    content = PAYROLLS.replace("PAYEMS_20080307", "UNRATE_20080307")
    packed = gzip.compress(content.encode())
    log = read(tmp_path, packed, path="f.csv.gz")
    assert log.streams == ("macro/PAYEMS", "macro/UNRATE")
    both = {"stream": "macro", "entity": {"column": "series"}}
    assert read(tmp_path, content, **both).entities == ("PAYEMS", "UNRATE")
    one = read(tmp_path, content, series=["UNRATE"], stream="u")
    assert one.to_pandas("u")["value"].to_list() == [138037, 138078, 138056, 137993]
    since = read(tmp_path, content, series=["UNRATE"], since="2008-01-01", stream="u")
    assert since.to_pandas("u")["value"].to_list() == [138056, 137993]


@pytest.mark.parametrize(
    ("frequency", "dates", "end"),
    [
        ("weekly", ("2008-01-05", "2008-01-12", "2008-01-19"), "2008-01-20T05:00"),
        ("quarterly", ("2007-07-01", "2007-10-01", "2008-01-01"), "2008-04-01T04:00"),
        ("semiannual", ("2007-01-01", "2007-07-01", "2008-01-01"), "2008-07-01T04:00"),
        ("annual", ("2005-01-01", "2006-01-01", "2007-01-01"), "2008-01-01T05:00"),
    ],
)
def test_a_date_stands_for_its_period(
    tmp_path: Path, frequency: str, dates: tuple[str, ...], end: str
) -> None:
    content = "DATE,X_20080801\n" + "".join(f"{date},1\n" for date in dates)
    log = read(tmp_path, content, frequency=frequency)
    assert rows(log, "macro/X")[-1][:2] == (end, "2008-08-01T12:30")


def test_the_end_of_the_day_is_a_time_of_release(tmp_path: Path) -> None:
    log = read(tmp_path, PAYROLLS, at="24:00")
    assert {known for _, known, _ in rows(log)} == {
        "2008-02-02T05:00",
        "2008-03-08T05:00",
    }


def test_a_plain_download_is_known_on_its_declared_day(tmp_path: Path) -> None:
    log = read(tmp_path, YIELDS, **DAILY | {"vintage": "2024-09-04"})
    assert rows(log, "macro/DGS10") == [
        (f"2024-{day}T19:30", "2024-09-04T12:30", value)
        for day, value in (("08-29", 3.87), ("08-30", 3.91), ("09-03", 3.84))
    ]
    assert "3 of 3 values stand in the first vintage" in log.notices[0]


def test_a_plain_download_can_follow_a_schedule_of_publication(tmp_path: Path) -> None:
    daily = {key: value for key, value in DAILY.items() if key != "at"}
    source = SOURCE.validate_python(daily | {"published": NEXT_DAY})
    (tmp_path / "f.csv").write_text(YIELDS)
    log = event_log([source], base=tmp_path)
    assert [known for _, known, _ in rows(log, "macro/DGS10")] == [
        "2024-08-30T20:15",
        "2024-09-03T20:15",
        "2024-09-04T20:15",
    ]
    assert log.notices[0].startswith("f.csv: there are no vintages, so nothing tells")
    assert "never revised" in str(source.model_dump()["assumptions"])


def test_values_known_to_be_added_later_are_known_from_the_download(
    tmp_path: Path,
) -> None:
    span = {"first": "2024-08-30", "last": "2024-09-01"}
    later = {"vintage": "2024-09-05", "published": NEXT_DAY, "backfilled": [span]}
    log = read(tmp_path, YIELDS, **DAILY | later)
    assert [known for _, known, _ in sorted(rows(log, "macro/DGS10"))] == [
        "2024-08-30T20:15",
        "2024-09-05T12:30",
        "2024-09-04T20:15",
    ]


def test_real_time_periods_of_the_api_are_read(tmp_path: Path) -> None:
    observations = [
        listed("2008-02-01", "2008-03-06", "2007-12-01", "138119"),
        listed("2008-03-07", "9999-12-31", "2007-12-01", "138078"),
        listed("2008-02-01", "9999-12-31", "2008-01-01", "138102"),
        listed("2008-02-01", "9999-12-31", "2008-02-01", "."),
    ]
    api = {"path": "f.json", "series": ["PAYEMS"]}
    log = read(tmp_path, answer(observations), **api)
    assert rows(log) == [
        ("2008-01-01T05:00", "2008-02-01T13:30", 138119.0),
        ("2008-02-01T05:00", "2008-02-01T13:30", 138102.0),
        ("2008-01-01T05:00", "2008-03-07T13:30", 138078.0),
    ]
    assert log.values_of("macro/PAYEMS") == ("value",)  # no end of a real-time period
    assert len(log.notices) == 1
    # A query that begins anew repeats a value that stays; it is no revision.
    again = [listed("2008-03-10", "9999-12-31", "2008-01-01", "138102")]
    assert rows(read(tmp_path, answer(observations + again), **api)) == rows(log)


def test_a_period_that_the_api_ends_without_another_value_is_counted(
    tmp_path: Path,
) -> None:
    observations = [
        listed("2008-02-01", "2008-03-06", "2007-12-01", "138119"),
        listed("2008-02-01", "9999-12-31", "2008-01-01", "138102"),
    ]
    log = read(tmp_path, answer(observations), path="f.json", series=["PAYEMS"])
    assert len(log) == 2
    assert "values that a later vintage does not have any more: 1" in log.notices[1]


@pytest.mark.parametrize("output_type", [2, 3])
def test_wide_answers_of_the_api_equal_the_download(
    tmp_path: Path, output_type: int
) -> None:
    wide = [
        {
            "date": "2007-11-01",
            "PAYEMS_20080201": "138037",
            "PAYEMS_20080307": "138037",
        },
        {
            "date": "2007-12-01",
            "PAYEMS_20080201": "138119",
            "PAYEMS_20080307": "138078",
        },
        {
            "date": "2008-01-01",
            "PAYEMS_20080201": "138102",
            "PAYEMS_20080307": "138056",
        },
        {"date": "2008-02-01", "PAYEMS_20080201": ".", "PAYEMS_20080307": "137993"},
    ]
    if output_type == 3:  # new and revised observations alone
        del wide[0]["PAYEMS_20080307"], wide[3]["PAYEMS_20080201"]
    log = read(tmp_path, answer(wide, output_type=output_type), path="f.json")
    assert rows(log) == rows(read(tmp_path, PAYROLLS))
    assert len(log.notices) == 1  # nothing vanished


def test_pages_of_the_api_are_read_together(tmp_path: Path) -> None:
    pages = [
        listed("2008-02-01", "9999-12-31", date, "1")
        for date in ("2007-12-01", "2008-01-01")
    ]
    for offset, page in enumerate(pages):
        path = tmp_path / f"page{offset}.json"
        path.write_bytes(answer([page], count=2, offset=offset))
    api = MONTHLY | {"series": ["PAYEMS"]}
    source = SOURCE.validate_python(api | {"path": "page?.json"})
    assert len(event_log([source], base=tmp_path)) == 2
    alone = SOURCE.validate_python(api | {"path": "page0.json"})
    with pytest.raises(
        ValueError, match=r"page0\.json must come with all its obs.*1 of 2"
    ):
        event_log([alone], base=tmp_path)
