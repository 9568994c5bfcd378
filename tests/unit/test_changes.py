"""Changes are taken inside one vintage, and stay what they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import START, event_frames, to_log

from infoset.data import Change, EventLog, with_change


def payrolls():
    """January 2008 payrolls (thousands), first printed and revised.

    ALFRED and Philadelphia Fed vintages: 138102 and, for December, 138119 as known on
    2008-02-01; 138056 and 138078 as known on 2008-03-07.
    """
    rows = [
        ("2008-01-01", "2008-01-04T13:30Z", 138200.0),
        ("2008-01-01", "2008-02-01T13:30Z", 138119.0),
        ("2008-02-01", "2008-02-01T13:30Z", 138102.0),
        ("2008-01-01", "2008-03-07T13:30Z", 138078.0),
        ("2008-02-01", "2008-03-07T13:30Z", 138056.0),
    ]
    frame = pd.DataFrame(rows, columns=["event_time", "available_at", "value"])
    for clock in ("event_time", "available_at"):
        frame[clock] = pd.to_datetime(frame[clock], utc=True)
    return frame.assign(entity="*")


def log_of(frame):
    return EventLog.from_pandas(frame, stream="macro/PAYEMS", values=["value"])


def changes(log, kind="difference"):
    changed = with_change(log, "macro/PAYEMS", Change(column="value", kind=kind))
    return changed.to_pandas("macro/PAYEMS")["change"].to_numpy()


def test_a_revised_level_changes_against_the_level_revised_at_the_same_instant():
    got = changes(log_of(payrolls().sample(frac=1, random_state=1)))
    np.testing.assert_array_equal(got, [np.nan, np.nan, -17.0, np.nan, -22.0])


def test_percent_and_log_changes_of_levels_that_are_not_positive_are_missing():
    frame = payrolls().iloc[[0, 2, 4]].assign(value=[100.0, 110.0, -5.0])
    assert changes(log_of(frame), "percent")[1] == pytest.approx(10.0)
    assert changes(log_of(frame), "log")[1] == pytest.approx(np.log(1.1))
    assert np.isnan(changes(log_of(frame), "percent")[2])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(frames=event_frames(), hour=st.integers(0, 13))
def test_a_change_never_depends_on_what_came_later(frames, hour):
    log = to_log(frames)
    time = START + pd.Timedelta(hours=hour)
    for stream in log.streams:
        whole = with_change(log, stream, Change(column="value", kind="difference"))
        cut = with_change(
            log.until(time), stream, Change(column="value", kind="difference")
        )
        pd.testing.assert_frame_equal(
            whole.until(time).to_pandas(stream), cut.to_pandas(stream)
        )


@settings(max_examples=25, deadline=None, derandomize=True)
@given(frames=event_frames())
def test_a_change_equals_the_one_found_by_looking_at_every_event(frames):
    log = to_log(frames)
    for stream in log.streams:
        whole = with_change(log, stream, Change(column="value", kind="difference"))
        table = whole.to_pandas(stream)
        for place, event in table.iterrows():
            known = table.iloc[:place]
            known = known[
                (known["entity"] == event["entity"])
                & (known["event_time"] < event["event_time"])
            ]
            if known.empty:
                assert np.isnan(event["change"])
                continue
            newest = known[known["event_time"] == known["event_time"].max()]
            expected = event["value"] - newest["value"].iloc[-1]
            assert event["change"] == pytest.approx(expected)


def test_a_change_of_a_period_older_than_the_file_revises_is_missing():
    rule = Change(column="value", kind="difference", max_age="30d")
    changed = with_change(log_of(payrolls()), "macro/PAYEMS", rule)
    got = changed.to_pandas("macro/PAYEMS")["change"].to_numpy()
    np.testing.assert_array_equal(got, [np.nan, np.nan, -17.0, np.nan, np.nan])


def test_a_level_with_a_change_is_marked_as_one():
    log = with_change(
        log_of(payrolls()), "macro/PAYEMS", Change(column="value", kind="difference")
    )
    assert log.levels == {("macro/PAYEMS", "value")}


def test_a_change_of_a_column_that_is_not_there_is_refused():
    with pytest.raises(
        ValueError, match=r"change.column must be a numeric value of stream .* 'price'"
    ):
        with_change(
            log_of(payrolls()),
            "macro/PAYEMS",
            Change(column="price", kind="difference"),
        )


def test_a_second_change_is_refused():
    once = with_change(
        log_of(payrolls()), "macro/PAYEMS", Change(column="value", kind="log")
    )
    with pytest.raises(ValueError, match="must not have a value named 'change'"):
        with_change(once, "macro/PAYEMS", Change(column="value", kind="log"))
