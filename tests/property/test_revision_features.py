"""Revision features against the oracle of obvious loops, and against the future."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import START, all_points, event_frames, hours, to_log

from infoset.data import EventLog, as_of, naive, revision_features, timeline
from infoset.data.arrays import event_arrays
from infoset.data.instants import nanoseconds
from infoset.data.stream_readings import NUM_GAPS, stream_readings

SETTINGS = settings(max_examples=30, deadline=None, derandomize=True)
BOUNDARIES = st.sampled_from(["inclusive", "strict"])
POINT = pd.DataFrame({"entity": ["A"], "forecast_time": [START]})


def assert_same(fast, slow):
    """Compare tables that may write what is missing differently."""
    slow = slow.reindex(columns=fast.columns)
    for name in fast.columns:
        one, other = fast[name], slow[name]
        assert one.isna().tolist() == other.isna().tolist(), name
        first, second = one.dropna().tolist(), other.dropna().tolist()
        if name == "staleness":
            np.testing.assert_allclose(first, second, rtol=1e-12)
        else:
            assert first == second, name


@SETTINGS
@given(frames=event_frames(), boundary=BOUNDARIES)
def test_revision_features_equal_the_double_loop(frames, boundary):
    log = to_log(frames)
    points = all_points().iloc[::5]
    assert_same(
        revision_features(log, points, boundary=boundary),
        naive.revision_features(log, points, boundary=boundary),
    )


@SETTINGS
@given(frames=event_frames(), boundary=BOUNDARIES)
def test_the_period_is_the_one_that_as_of_answers(frames, boundary):
    log, points = to_log(frames), all_points().iloc[::3]
    features = revision_features(log, points, boundary=boundary)
    answer = as_of(log, points, boundary=boundary)
    for name, other in [
        ("entity", "entity"),
        ("forecast_time", "forecast_time"),
        ("stream", "stream"),
        ("event_time", "event_time"),
        ("available_at", "available_at"),
        ("num_revisions", "revision"),
        ("age", "age"),
    ]:
        assert_same(features[[name]], answer[[other]].set_axis([name], axis=1))


@SETTINGS
@given(frames=event_frames(), hour=st.integers(0, 13), boundary=BOUNDARIES)
def test_rows_that_came_later_never_matter(frames, hour, boundary):
    log = to_log(frames)
    time = START + pd.Timedelta(hours=hour)
    points = all_points()
    points = points[points["forecast_time"] <= time]
    pd.testing.assert_frame_equal(
        revision_features(log, points, boundary=boundary),
        revision_features(log.until(time), points, boundary=boundary),
    )


@SETTINGS
@given(frames=event_frames(), seed=st.integers(0, 9))
def test_the_order_of_the_given_rows_never_matters(frames, seed):
    shuffled = {
        stream: frame.sample(frac=1, random_state=seed)
        for stream, frame in frames.items()
    }
    points = all_points().iloc[::4]
    pd.testing.assert_frame_equal(
        revision_features(to_log(frames), points),
        revision_features(to_log(shuffled), points),
    )


@SETTINGS
@given(frames=event_frames(), length=st.integers(1, 9), step=st.integers(1, 4))
def test_a_slice_reads_as_if_nothing_else_had_ever_been(frames, length, step):
    log = to_log(frames)
    arrays = event_arrays(log)
    if "A" not in arrays.entities:
        return
    line = timeline(arrays, "A")
    stop = np.arange(0, len(line) + 1, step)
    start = np.maximum(stop - length, 0)
    times = np.full(len(stop), nanoseconds(hours([14]))[0])
    for code in range(len(arrays.streams)):
        found = stream_readings(
            line, code, ["value"], start=start, stop=stop, times=times
        )
        for k in range(len(stop)):
            rows = line.rows[start[k] : stop[k]]
            assert_read_alone(arrays, rows[arrays.stream[rows] == code], found, k)


def assert_read_alone(arrays, rows, found, k):
    """Compare one slice with what a person would read off its events."""
    if not len(rows):
        assert found.row[k] == -1
        assert np.isnan(found.staleness[k])
        return
    newest = max(range(len(rows)), key=lambda i: (arrays.event_time[rows[i]], i))
    best = rows[newest]
    assert found.row[k] == best
    key = arrays.entity[best], arrays.event_time[best]
    prints = [r for r in rows if (arrays.entity[r], arrays.event_time[r]) == key]
    value = arrays.values[:, 0]
    had_first = arrays.revision[prints[0]] == 0
    expected = value[best] - value[prints[0]] if had_first else np.nan
    np.testing.assert_equal(found.since_first[k, 0], expected)
    expected = value[best] - value[prints[-2]] if len(prints) > 1 else np.nan
    np.testing.assert_equal(found.since_previous[k, 0], expected)
    gaps = np.diff(np.unique(arrays.available_at[rows]))[-NUM_GAPS:]
    expected = np.median(gaps) if len(gaps) else np.nan
    np.testing.assert_equal(found.interval[k], expected)


def payrolls():
    """January: -17, revised to -22 with February's -63, revised again to -76."""
    frame = pd.DataFrame(
        {
            "entity": "*",
            "event_time": pd.to_datetime(
                ["2008-02-01", "2008-02-01", "2008-03-01", "2008-02-01"], utc=True
            ),
            "available_at": pd.to_datetime(
                [
                    "2008-02-01T13:30Z",
                    "2008-03-07T13:30Z",
                    "2008-03-07T13:30Z",
                    "2008-04-04T12:30Z",
                ]
            ),
            "change": [-17.0, -22.0, -63.0, -76.0],
        }
    )
    return EventLog.from_pandas(frame, stream="macro/PAYEMS", values=["change"])


@pytest.mark.parametrize(
    ("at", "period", "age", "staleness"),
    [
        ("2008-02-02T13:30Z", "2008-02-01", "1D", None),  # no gap has been seen yet
        ("2008-03-07T13:29Z", "2008-02-01", "34D 23:59:00", None),
        ("2008-03-07T13:30Z", "2008-03-01", "0D", 0.0),
        # Two gaps, of 35 days and of 27 days 23 hours: their median is the interval.
        ("2008-04-11T12:30Z", "2008-03-01", "34D 23:00:00", 7 / 31.47916666666667),
    ],
)
def test_payrolls_of_early_2008_read_as_they_were_published(at, period, age, staleness):
    point = pd.DataFrame({"entity": ["DGS10"], "forecast_time": [pd.Timestamp(at)]})
    row = revision_features(payrolls(), point).iloc[0]
    assert row["event_time"] == pd.Timestamp(period, tz="UTC")
    assert (row["num_revisions"], row["change_since_first_print"]) == (0, 0.0)
    assert pd.isna(row["change_since_previous_print"])
    assert row["age"] == pd.Timedelta(age)
    if staleness is None:
        assert np.isnan(row["staleness"])
    else:
        assert row["staleness"] == pytest.approx(staleness, rel=1e-12)


def test_a_revised_period_says_by_how_much_and_how_often():
    frame = payrolls().to_pandas("macro/PAYEMS")
    frame = frame[frame["event_time"] < pd.Timestamp("2008-03-01", tz="UTC")]
    log = EventLog.from_pandas(frame, stream="macro/PAYEMS", values=["change"])
    times = pd.to_datetime(["2008-03-07T13:30Z", "2008-04-04T12:30Z"])
    points = pd.DataFrame({"entity": "DGS10", "forecast_time": times})
    rows = revision_features(log, points)
    assert rows["num_revisions"].tolist() == [1, 2]
    assert rows["change_since_first_print"].tolist() == [-5.0, -59.0]
    assert rows["change_since_previous_print"].tolist() == [-5.0, -54.0]
    assert rows["age"].tolist() == [pd.Timedelta(0)] * 2
    assert rows["lag"].iloc[0] == pd.Timedelta("35D 13:30:00")


def test_numbers_that_stand_for_a_text_have_no_surprise():
    frame = pd.DataFrame(
        {
            "entity": ["A"],
            "event_time": [START],
            "available_at": [START],
            "text_00": [0.5],
            "num_words": [3.0],
        }
    )
    log = EventLog.from_pandas(frame, stream="news", values=["text_00", "num_words"])
    features = revision_features(log, POINT)
    assert [n for n in features.columns if "since" in n] == [
        "num_words_since_first_print",
        "num_words_since_previous_print",
    ]


def test_without_a_point_or_an_event_the_columns_are_the_same():
    log = payrolls()
    empty = revision_features(log, POINT.iloc[:0])
    assert len(empty) == 0
    before = revision_features(
        log, POINT.assign(forecast_time=START - pd.Timedelta("50D"))
    )
    assert list(empty.columns) == list(before.columns)
    unknown = POINT.assign(forecast_time=pd.Timestamp("2000-01-01", tz="UTC"))
    row = revision_features(log, unknown).iloc[0]
    assert row.drop(["entity", "forecast_time", "stream"]).isna().all()


def test_a_naive_forecast_time_is_refused():
    naive_point = POINT.assign(forecast_time=pd.Timestamp("2024-01-01"))
    with pytest.raises(ValueError, match="forecast_time must be timezone-aware"):
        revision_features(payrolls(), naive_point)
