from __future__ import annotations

import re
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from infoset.data.asof import vintage
from infoset.data.events import EventLog
from infoset.data.samples import sample_path, samples
from infoset.data.sources import TabularSource, event_log

NEW_YORK = "America/New_York"
MACRO: dict[str, Any] = {
    "sample": "macro_releases.csv.gz",
    "stream": "macro/{series}",
    "entity": "*",
    "event_time": {"column": "ref_period", "stamp": "period_end", "zone": NEW_YORK},
    "available_at": {"column": "available_at"},
    "values": {"value": "value"},
}
DAILY: dict[str, Any] = {
    "sample": "daily_market.csv.gz",
    "event_time": {"column": "date", "stamp": "date", "at": "15:30", "zone": NEW_YORK},
}
YIELD: dict[str, Any] = DAILY | {
    "stream": "yield/1d",
    "available_at": {
        "sessions": 1,
        "calendar": "us_federal_board",
        "at": "16:15",
        "zone": NEW_YORK,
    },
}
OIL: dict[str, Any] = DAILY | {
    "stream": "spot/1d",
    "entity": "WTI",
    "available_at": {"days": 7, "at": "17:00", "zone": NEW_YORK},
    "values": {"value": "DCOILWTICO"},
}
NEWS: dict[str, Any] = {
    "sample": "fomc_statements.csv.gz",
    "stream": "news/fomc",
    "entity": "*",
    "event_time": {"column": "available_at", "stamp": "instant"},
    "available_at": {"column": "available_at"},
    "values": {"words": "num_words"},
}


def log_of(*declarations: dict[str, Any]) -> EventLog:
    sources = [TabularSource.model_validate(given) for given in declarations]
    return event_log(sources, base=Path())


@pytest.fixture(scope="module")
def macro() -> EventLog:
    return log_of(MACRO)


@pytest.fixture(scope="module")
def market() -> EventLog:
    yields = [
        YIELD | {"entity": name, "values": {"value": name}}
        for name in ("DGS10", "DGS20")
    ]
    return log_of(*yields, OIL)


def test_digests_in_the_notes_are_those_of_the_files() -> None:
    notes = files("infoset.data.samples").joinpath("SOURCES.md").read_text("utf-8")
    noted = dict(re.findall(r"^\| `(\S+)` \| [\d,]+ \| `(\w{64})` \|$", notes, re.M))
    found = {
        name: sha256(sample_path(name).read_bytes()).hexdigest() for name in samples()
    }
    assert found == noted
    assert set(found) == {
        "daily_market.csv.gz",
        "fomc_statements.csv.gz",
        "macro_releases.csv.gz",
    }


def test_unknown_sample_is_refused_with_the_shipped_names() -> None:
    with pytest.raises(
        ValueError, match=r"sample must be one of daily_market\.csv\.gz"
    ):
        sample_path("macro.csv.gz")


def test_every_row_is_in_the_log_or_accounted_for(
    macro: EventLog, market: EventLog
) -> None:
    # Row counts of the files: data/samples/SOURCES.md; 604 days have no oil price.
    assert (len(macro), len(macro.quarantine), macro.num_duplicates) == (9316, 0, 0)
    assert len(market.table("yield/1d")) == 2 * 5336
    assert len(market.table("spot/1d")) == 5336 - 604
    assert market.quarantine.groupby(
        ["source", "stream", "reason"]
    ).size().to_dict() == {("daily_market.csv.gz", "spot/1d", "no value"): 604}
    news = log_of(NEWS)
    assert (len(news), len(news.quarantine), news.num_duplicates) == (159, 0, 0)


# Philadelphia Fed real-time data set, vintages of February and March 2008, thousands;
# levels are integers, so equality is exact.
@pytest.mark.parametrize(
    ("known_at", "december", "january"),
    [
        ("2008-02-01T23:00Z", 138119.0, 138102.0),
        ("2008-03-07T23:00Z", 138078.0, 138056.0),
    ],
)
def test_payrolls_read_as_they_were_published(
    macro: EventLog, known_at: str, december: float, january: float
) -> None:
    read = vintage(
        macro, "macro/PAYEMS", entity="*", forecast_time=pd.Timestamp(known_at)
    ).set_index("event_time")["value"]
    assert read[pd.Timestamp("2008-01-01T05:00Z")] == december
    assert read[pd.Timestamp("2008-02-01T05:00Z")] == january


def test_payrolls_are_unknown_a_nanosecond_before_their_release(
    macro: EventLog,
) -> None:
    release = pd.Timestamp("2008-02-01T13:30Z")
    before = vintage(
        macro,
        "macro/PAYEMS",
        entity="*",
        forecast_time=release - pd.Timedelta(1, unit="ns"),
    )
    assert before["event_time"].max() == pd.Timestamp("2008-01-01T05:00Z")


def test_revisions_count_as_the_file_does(macro: EventLog) -> None:
    file = pd.read_csv(sample_path("macro_releases.csv.gz"))
    for series, rows in file.groupby("series"):
        ours = macro.to_pandas(f"macro/{series}")
        ours = ours.sort_values(["event_time", "available_at"])
        theirs = rows.sort_values(["ref_period", "available_at"])
        assert ours["revision"].to_list() == theirs["revision"].to_list()
        assert ours["value"].to_list() == theirs["value"].to_list()


def test_no_release_precedes_the_end_of_its_period(macro: EventLog) -> None:
    for stream in macro.streams:
        frame = macro.to_pandas(stream)
        assert (frame["available_at"] > frame["event_time"]).all()


def test_yields_are_known_when_h15_appears(market: EventLog) -> None:
    frame = market.to_pandas("yield/1d")
    ten_years = frame[frame["entity"] == "DGS10"].set_index("event_time")
    known = ten_years["available_at"].dt.tz_convert(NEW_YORK)
    # Quotes of 15:30 New York; the Board rested on Friday 2010-12-31.
    thursday = pd.Timestamp("2010-12-30T20:30Z")
    friday = pd.Timestamp("2010-12-31T20:30Z")
    for quoted in (thursday, friday):
        assert known[quoted] == pd.Timestamp("2011-01-03T16:15", tz=NEW_YORK)
    assert (known.dt.strftime("%H:%M") == "16:15").all()
    quoted_on = pd.DatetimeIndex(known.index).tz_convert(NEW_YORK).normalize()
    assert (known.dt.normalize() > quoted_on).all()


def test_oil_is_known_a_week_later(market: EventLog) -> None:
    frame = market.to_pandas("spot/1d")
    event = frame["event_time"].dt.tz_convert(NEW_YORK)
    known = frame["available_at"].dt.tz_convert(NEW_YORK)
    assert set(event.dt.strftime("%H:%M")) == {"15:30"}
    assert set(known.dt.strftime("%H:%M")) == {"17:00"}
    days = (
        known.dt.tz_localize(None).dt.normalize()
        - event.dt.tz_localize(None).dt.normalize()
    )
    assert set(days) == {pd.Timedelta(days=7)}
