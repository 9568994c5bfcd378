"""The fast point-in-time code against the oracle of obvious loops."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import START, all_points, event_frames, to_log

from infoset.data import History, as_of, naive, timeline, vintage
from infoset.data.arrays import event_arrays
from infoset.data.instants import nanoseconds

SETTINGS = settings(max_examples=25, deadline=None, derandomize=True)
HISTORIES = [History(), History(last=3), History(since="month")]


def comparable(frame):
    """Bring the rows into one form: what is missing is None, whatever the engine wrote."""
    columns = ["entity", "forecast_time", "stream", "event_time", "available_at"]
    columns += ["revision", "age", "value"]
    full = frame.reindex(columns=columns).astype(object)
    return full.where(full.notna(), None).to_numpy().tolist()


@SETTINGS
@given(frames=event_frames(), boundary=st.sampled_from(["inclusive", "strict"]))
def test_as_of_equals_the_double_loop(frames, boundary):
    log = to_log(frames)
    points = all_points().iloc[::5]
    fast = as_of(log, points, boundary=boundary)
    slow = naive.as_of(log, points, boundary=boundary)
    assert comparable(fast) == comparable(slow)


@SETTINGS
@given(
    frames=event_frames(),
    boundary=st.sampled_from(["inclusive", "strict"]),
    history=st.sampled_from(HISTORIES),
)
def test_slices_hold_the_events_of_the_oracle_in_its_order(frames, boundary, history):
    log = to_log(frames)
    arrays = event_arrays(log)
    points = all_points().iloc[::7]
    for entity in sorted(set(points["entity"]) & set(arrays.entities)):
        line = timeline(arrays, entity)
        times = nanoseconds(points["forecast_time"])
        stop = line.stop(times, boundary=boundary)
        start = line.start(stop, times, history)
        for time, first, last in zip(points["forecast_time"], start, stop, strict=True):
            expected = naive.information_set(
                log, entity, time, history=history, boundary=boundary
            )
            rows = line.rows[first:last]
            got = [
                (arrays.streams[arrays.stream[row]], int(arrays.sequence[row]))
                for row in rows
            ]
            assert got == [(e["stream"], int(str(e["sequence"]))) for e in expected]


@SETTINGS
@given(frames=event_frames(), seed=st.integers(0, 9))
def test_the_order_of_the_given_rows_never_matters(frames, seed):
    log = to_log(frames)
    shuffled = {
        stream: frame.sample(frac=1, random_state=seed)
        for stream, frame in frames.items()
    }
    again = to_log(shuffled)
    points = all_points()
    pd.testing.assert_frame_equal(as_of(log, points), as_of(again, points))
    assert_same_arrays(event_arrays(log), event_arrays(again))


@SETTINGS
@given(frames=event_frames(), hour=st.integers(0, 13))
def test_deleting_what_came_later_changes_no_answer_and_no_fingerprint(frames, hour):
    log = to_log(frames)
    time = START + pd.Timedelta(hours=hour)
    cut = log.until(time)
    points = all_points()
    points = points[points["forecast_time"] <= time]
    pd.testing.assert_frame_equal(as_of(log, points), as_of(cut, points))
    assert fingerprints(log, time) == fingerprints(cut, time)


@SETTINGS
@given(frames=event_frames(), hour=st.integers(0, 13))
def test_an_appended_late_arrival_leaves_every_earlier_slice_alone(frames, hour):
    log = to_log(frames)
    time = START + pd.Timedelta(hours=hour)
    late = log.until(time).append(log)
    assert fingerprints(log, time) == fingerprints(late, time)
    assert len(late) == len(log)


@SETTINGS
@given(frames=event_frames())
def test_slice_fingerprints_are_sums_of_event_digests(frames):
    arrays = event_arrays(to_log(frames))
    if not set(arrays.entities) & {"A"}:
        return
    line = timeline(arrays, "A")
    digests = [
        (int(high) << 64) + int(low) for high, low in arrays.digests[line.rows].tolist()
    ]
    for start in range(0, len(line) + 1, 3):
        for stop in range(start, len(line) + 1, 2):
            [got] = line.fingerprints(np.array([start]), np.array([stop]))
            assert int(got, 16) == sum(digests[start:stop]) % 2**128


@SETTINGS
@given(frames=event_frames())
def test_revisions_count_the_prints_of_a_period_by_availability(frames):
    for stream, frame in frames.items():
        table = to_log({stream: frame}).to_pandas(stream)
        for _, prints in table.groupby(["entity", "event_time"]):
            assert prints["revision"].tolist() == list(range(len(prints)))
            assert prints["available_at"].is_monotonic_increasing


def fingerprints(log, time):
    """Return the fingerprint of all that A and B know at an instant."""
    arrays = event_arrays(log)
    found = {}
    for entity in ("A", "B"):
        if entity in arrays.entities:
            line = timeline(arrays, entity)
            stop = line.stop(np.array([time.value]))
            if stop[0]:
                found[entity] = line.fingerprints(np.zeros(1, np.int64), stop).tolist()
    return found


def assert_same_arrays(first, second):
    for name in ("stream", "event_time", "available_at", "sequence", "revision"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.digests, second.digests)


@pytest.mark.parametrize("boundary", ["inclusive", "strict"])
def test_the_boundary_decides_about_an_event_of_the_very_instant(boundary):
    frame = pd.DataFrame(
        {
            "entity": ["A"],
            "event_time": [START],
            "available_at": [START],
            "value": [1.0],
        }
    )
    log = to_log({"bars/1d": frame})
    answer = as_of(
        log,
        pd.DataFrame({"entity": ["A"], "forecast_time": [START]}),
        boundary=boundary,
    )
    assert answer["value"].notna().tolist() == [boundary == "inclusive"]


def test_a_vintage_breaks_ties_as_the_as_of_query_does():
    frame = pd.DataFrame(
        {
            "entity": ["$A", "$A", "*", "B", "B"],
            "event_time": [START] * 5,
            "available_at": [START] * 5,
            "sequence": pd.array([3, 3, 3, None, 5], dtype="Int64"),
            "value": [7.0, 7.0, 9.0, 1.0, 2.0],
        }
    )
    log = to_log({"bars/1d": frame})
    for entity, expected in (("$A", 7.0), ("B", 2.0)):
        points = pd.DataFrame({"entity": [entity], "forecast_time": [START]})
        read = vintage(log, "bars/1d", entity=entity, forecast_time=START)
        assert as_of(log, points)["value"].tolist() == [expected]
        assert read["value"].tolist() == [expected]
