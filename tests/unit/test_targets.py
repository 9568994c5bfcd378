"""Targets: their spans, their values, and when they are known."""

import numpy as np
import pandas as pd
import pytest

from infoset.data import EventLog, Target, with_targets


def closes():
    """Four daily closes, published the next day at noon; the second is revised later."""
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"])
    close = days.tz_localize("UTC") + pd.Timedelta("21h")
    frame = pd.DataFrame(
        {
            "entity": "A",
            "event_time": close,
            "available_at": close + pd.Timedelta("15h"),
            "value": [100.0, 110.0, 99.0, 99.0],
        }
    )
    revised = frame.iloc[[1]].assign(
        available_at=pd.Timestamp("2024-01-09", tz="UTC"), value=500.0
    )
    return EventLog.from_pandas(
        pd.concat([frame, revised]), stream="bars/1d", values=["value"]
    )


def points(*times, entity="A"):
    return pd.DataFrame(
        {"entity": entity, "forecast_time": pd.to_datetime(list(times), utc=True)}
    )


def target(**options):
    return Target(entities=("A",), stream="bars/1d", **options)


def test_a_target_runs_from_the_last_close_to_the_next_one():
    answer = with_targets(closes(), points("2024-01-02T22:00Z"), [target()])
    assert answer["target_start"].tolist() == [pd.Timestamp("2024-01-02T21:00Z")]
    assert answer["target_end"].tolist() == [pd.Timestamp("2024-01-03T21:00Z")]
    assert answer["resolves_at"].tolist() == [pd.Timestamp("2024-01-04T12:00Z")]


def test_a_target_is_a_change_of_first_prints():
    answer = with_targets(closes(), points("2024-01-02T22:00Z"), [target()])
    assert answer["target"].tolist() == [-11.0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("difference", -11.0), ("percent", -10.0), ("log", np.log(0.9))],
)
def test_the_kinds_of_change(kind, expected):
    answer = with_targets(closes(), points("2024-01-02T22:00Z"), [target(kind=kind)])
    assert answer["target"].tolist() == [pytest.approx(expected)]


def test_scale_and_horizon():
    given = target(scale=100, horizon=2)
    answer = with_targets(closes(), points("2024-01-01T22:00Z"), [given])
    assert answer["target"].tolist() == [-100.0]
    assert answer["target_end"].tolist() == [pd.Timestamp("2024-01-03T21:00Z")]


def test_a_target_before_the_first_or_after_the_last_value_is_missing():
    times = points("2024-01-01T00:00Z", "2024-01-04T22:00Z")
    answer = with_targets(closes(), times, [target()])
    missing = ["target_start", "target_end", "resolves_at", "target"]
    assert answer[missing].isna().all().all()


def test_the_forecast_time_of_a_close_itself_starts_at_that_close():
    answer = with_targets(closes(), points("2024-01-02T21:00Z"), [target()])
    assert answer["target_start"].tolist() == [pd.Timestamp("2024-01-02T21:00Z")]


def test_an_entity_without_a_target_is_refused():
    with pytest.raises(ValueError, match="entity must have a target; got 'B'"):
        with_targets(closes(), points("2024-01-02T22:00Z", entity="B"), [target()])


def test_a_target_of_an_entity_without_events_is_refused():
    other = Target(entities=("B",), stream="bars/1d")
    with pytest.raises(
        ValueError, match=r"must have events in stream 'bars/1d' \(A\); got 'B'"
    ):
        with_targets(closes(), points("2024-01-02T22:00Z", entity="B"), [other])


def test_a_target_of_an_unknown_column_is_refused():
    with pytest.raises(ValueError, match=r"target.column .* \(value\); got 'price'"):
        with_targets(closes(), points("2024-01-02T22:00Z"), [target(column="price")])
