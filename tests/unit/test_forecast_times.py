"""The rules that say when forecasts are made."""

import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from infoset.data import EventLog, forecast_points
from infoset.data.forecast_times import ForecastTimes

RULES = TypeAdapter(ForecastTimes)


def log_of(*available):
    times = pd.to_datetime(list(available), utc=True)
    frame = pd.DataFrame(
        {"entity": "A", "event_time": times, "available_at": times, "value": 1.0}
    )
    return EventLog.from_pandas(frame, stream="bars/1d", values=["value"])


def times(rule, log, entities=("A",)):
    points = forecast_points(RULES.validate_python(rule), log, entities)
    return [t.isoformat() for t in points["forecast_time"]]


def test_session_closes_follow_half_days_and_holidays():
    log = log_of("2024-11-27T00:00Z", "2024-12-02T23:00Z")
    rule = {"kind": "session_close", "calendar": "XNYS", "offset": "30min"}
    assert times(rule, log) == [
        "2024-11-27T21:30:00+00:00",
        "2024-11-29T18:30:00+00:00",  # the day after Thanksgiving closes at 13:00
        "2024-12-02T21:30:00+00:00",
    ]


def test_fixed_intervals_start_at_midnight_of_the_first_event():
    log = log_of("2024-01-01T05:00Z", "2024-01-01T20:00Z")
    rule = {"kind": "interval", "interval": "8h"}
    assert times(rule, log) == [
        "2024-01-01T00:00:00+00:00",
        "2024-01-01T08:00:00+00:00",
        "2024-01-01T16:00:00+00:00",
    ]


def test_after_events_makes_one_forecast_for_each_distinct_instant():
    log = log_of("2024-01-01T05:00Z", "2024-01-03T20:00Z")
    rule = {"kind": "after_events", "stream": "bars/1d", "offset": "1min"}
    assert times(rule, log, ("A", "B")) == [
        "2024-01-01T05:01:00+00:00",
        "2024-01-01T05:01:00+00:00",
        "2024-01-03T20:01:00+00:00",
        "2024-01-03T20:01:00+00:00",
    ]


def test_an_explicit_table_is_restricted_to_the_entities(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text(
        "entity,forecast_time\nA,2024-01-02T09:00:00Z\nB,2024-01-02T09:00:00Z\n"
    )
    rule = {"kind": "table", "path": str(path)}
    assert times(rule, log_of("2024-01-01")) == ["2024-01-02T09:00:00+00:00"]


def test_a_table_of_naive_times_is_refused(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("entity,forecast_time\nA,2024-01-02T09:00:00\n")
    rule = {"kind": "table", "path": str(path)}
    with pytest.raises(ValueError, match="forecast_time must be timezone-aware"):
        times(rule, log_of("2024-01-01"))


def test_a_missing_table_is_refused(tmp_path):
    rule = {"kind": "table", "path": str(tmp_path / "none.csv")}
    with pytest.raises(
        ValueError, match=r"forecast_times.path must be a readable file"
    ):
        times(rule, log_of("2024-01-01"))


def test_an_empty_log_has_no_span():
    empty = log_of("2024-01-01").until(pd.Timestamp("2023-01-01", tz="UTC"))
    with pytest.raises(ValueError, match=r"the event log must hold an event; got none"):
        times({"kind": "interval", "interval": "1h"}, empty)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            {"kind": "interval", "interval": "soon"},
            "must be a whole number and one of .* got 'soon'",
        ),
        ({"kind": "interval", "intervall": "1h"}, "Did you mean 'interval'"),
        ({"kind": "hourly"}, "does not match any of the expected tags"),
    ],
)
def test_a_wrong_rule_is_refused(rule, message):
    with pytest.raises(ValidationError, match=message):
        RULES.validate_python(rule)
