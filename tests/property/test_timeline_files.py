"""Timelines on disk against those in memory, and slices of ranges against the oracle."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import START, all_points, event_frames, hours, to_log

from infoset.data import EventLog, History, naive
from infoset.data.arrays import event_arrays
from infoset.data.event_files import EventFiles
from infoset.data.instants import nanoseconds
from infoset.data.slices import information_slices
from infoset.data.timeline import timeline_of
from infoset.data.timeline_files import build_timelines, open_timelines

SETTINGS = settings(max_examples=25, deadline=None, derandomize=True)
HISTORIES = [History(), History(last=1), History(last=3), History(since="month")]
CLOCK = pa.timestamp("ns", tz="UTC")
LAYOUT = pa.schema(
    {
        "entity": pa.string(),
        "event_time": CLOCK,
        "available_at": CLOCK,
        "sequence": pa.int64(),
        "value": pa.float64(),
    }
)
COLUMNS = ("entity", "stream", "event_time", "available_at", "sequence", "revision")


def table_of(frame):
    """Return a frame as an Arrow table; clocks as UTC nanoseconds or naive ones."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            kind = pa.timestamp("ns", tz="UTC")
            columns[name] = pa.array(nanoseconds(column), kind)
        else:
            columns[name] = pa.array(column.tolist(), from_pandas=True)
    return pa.table(columns)


def written(frames, folder, *, seed=0):
    """Write one unsorted Parquet file per stream; return what tells their layout."""
    files = []
    for number, (stream, frame) in enumerate(frames.items()):
        path = Path(folder) / f"{number}.parquet"
        shuffled = frame.sample(frac=1, random_state=seed)
        table = table_of(shuffled).cast(LAYOUT)
        pq.write_table(table, path)
        files.append(EventFiles((path,), ("value",), stream=stream))
    return files


@settings(SETTINGS, max_examples=8)
@given(frames=event_frames(), seed=st.integers(0, 9))
def test_timelines_on_disk_are_those_in_memory(frames, seed):
    expected = event_arrays(to_log(frames))
    with TemporaryDirectory() as folder:
        files = written(frames, folder, seed=seed)
        got = build_timelines(files, Path(folder) / "built")
        assert got.entities == expected.entities
        assert got.channels == tuple(
            channel for channel in expected.channels if channel[0] in got.streams
        )
        names = np.array(expected.streams, dtype=object)[expected.stream]
        built = np.array(got.streams, dtype=object)[np.asarray(got.stream)]
        np.testing.assert_array_equal(built, names)
        for column in ("entity", *COLUMNS[2:]):
            np.testing.assert_array_equal(
                getattr(got, column), getattr(expected, column)
            )
        np.testing.assert_array_equal(got.values, expected.values)
        np.testing.assert_array_equal(got.sums, expected.sums)


@SETTINGS
@given(
    frames=event_frames(),
    boundary=st.sampled_from(["inclusive", "strict"]),
    history=st.sampled_from(HISTORIES),
)
def test_ranges_hold_the_events_of_the_oracle_in_its_order(frames, boundary, history):
    log = to_log(frames)
    arrays = event_arrays(log)
    points = all_points().iloc[::5].reset_index(drop=True)
    slices = information_slices(arrays, points, history=history, boundary=boundary)
    lines = {name: timeline_of(arrays, name) for name in set(points["entity"])}
    for point, (entity, time) in enumerate(points.itertuples(index=False)):
        oracle = naive.information_set(
            log, entity, time, history=history, boundary=boundary
        )
        rows = slices.rows(point)
        assert slices.num_events[point] == len(oracle) == len(rows)
        assert [int(arrays.sequence[row]) for row in rows] == [
            int(str(event["sequence"])) for event in oracle
        ]
        line = lines[entity]
        stop = line.stop(np.array([time.value]), boundary=boundary)
        start = line.start(stop, np.array([time.value]), history)
        assert slices.fingerprints[point] == line.fingerprints(start, stop)[0]


@SETTINGS
@given(frames=event_frames(), hour=st.integers(0, 13))
def test_what_came_later_changes_no_range_and_no_fingerprint(frames, hour):
    log = to_log(frames)
    time = START + pd.Timedelta(hours=hour)
    points = all_points()
    points = points[points["forecast_time"] <= time].reset_index(drop=True)
    history = History(last=4)
    whole = information_slices(event_arrays(log), points, history=history)
    cut = information_slices(event_arrays(log.until(time)), points, history=history)
    np.testing.assert_array_equal(whole.fingerprints, cut.fingerprints)
    np.testing.assert_array_equal(whole.num_events, cut.num_events)


def one_file(folder, **columns):
    """Write a file of two events of A; `columns` replace or add some."""
    plain = {
        "entity": ["A", "A"],
        "stream": ["s", "s"],
        "event_time": hours([0, 1]),
        "available_at": hours([0, 1]),
        "value": [1.0, 2.0],
    }
    frame = {name: pd.Series(values) for name, values in (plain | columns).items()}
    pq.write_table(table_of(pd.DataFrame(frame)), folder / "events.parquet")
    return [EventFiles((folder / "events.parquet",), ("value",))]


def test_text_values_are_part_of_the_digest_on_disk_as_in_memory(tmp_path):
    frame = pd.DataFrame(
        {
            "entity": ["A", "B", "A"],
            "event_time": hours([0, 1, 2]),
            "available_at": hours([0, 1, 3]),
            "word": ["up", None, "down"],
            "value": [1.0, 2.0, np.nan],
        }
    )
    pq.write_table(table_of(frame), tmp_path / "f.parquet")
    files = [EventFiles((tmp_path / "f.parquet",), ("word", "value"), stream="news")]
    got = build_timelines(files, tmp_path / "built")
    log = EventLog.from_pandas(frame, stream="news", values=["word", "value"])
    np.testing.assert_array_equal(got.sums, event_arrays(log).sums)


def test_streams_of_different_columns_lie_side_by_side(tmp_path):
    frames = {
        "a": pd.DataFrame(
            {
                "entity": ["A"],
                "event_time": hours([0]),
                "available_at": hours([0]),
                "x": [1.0],
                "y": [2.0],
            }
        ),
        "b": pd.DataFrame(
            {
                "entity": ["A"],
                "event_time": hours([1]),
                "available_at": hours([1]),
                "z": [3.0],
            }
        ),
    }
    files, log = [], EventLog({})
    for stream, frame in frames.items():
        pq.write_table(table_of(frame), tmp_path / f"{stream}.parquet")
        values = tuple(frame.columns[3:])
        files.append(EventFiles((tmp_path / f"{stream}.parquet",), values, stream))
        log = log.append(EventLog.from_pandas(frame, stream=stream, values=values))
    got, expected = build_timelines(files, tmp_path / "built"), event_arrays(log)
    assert got.channels == expected.channels
    np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(got.sums, expected.sums)


def test_exact_duplicates_and_unusable_rows_are_left_out_and_counted(tmp_path):
    files = one_file(
        tmp_path,
        entity=["A", "A", None, "A"],
        stream=["s"] * 4,
        event_time=hours([0, 0, 1, 2]),
        available_at=hours([0, 0, 1, 2]),
        value=[1.0, 1.0, 2.0, np.inf],
    )
    got = build_timelines(files, tmp_path / "built")
    about = json.loads((tmp_path / "built" / "about.json").read_text())
    assert len(got) == 1
    assert (about["num_duplicates"], about["num_unusable"]) == (1, 2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"event_time": hours([0, 3])},
            "event_time must not be after available_at; got 2024-01-01 03:00:00.*for A "
            "in stream 's'.*declare the stream `scheduled`",
        ),
        (
            {"event_time": hours([0, 0]), "available_at": hours([0, 0])},
            "one event must have one set of values; got two for .entity A.*`sequence`",
        ),
        (
            {"value": [1, 2**53 + 1]},
            "value must fit a float64; got 9007199254740993 in .*events.parquet",
        ),
    ],
)
def test_rows_that_break_a_promise_are_refused_and_nothing_is_left(
    tmp_path, columns, message
):
    with pytest.raises(ValueError, match=message):
        build_timelines(one_file(tmp_path, **columns), tmp_path / "built")
    assert [path.name for path in tmp_path.iterdir()] == ["events.parquet"]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (
            {"event_time": hours([0, 1]).dt.tz_localize(None)},
            TypeError,
            "event_time must hold instants with a zone; got timestamp.*UTC timestamps",
        ),
        (
            {"sequence": [1.0, 2.0]},
            TypeError,
            "sequence must hold integers of 64 bits with a sign; got double",
        ),
    ],
)
def test_columns_of_another_kind_are_refused(tmp_path, columns, error, message):
    with pytest.raises(error, match=message):
        build_timelines(one_file(tmp_path, **columns), tmp_path / "built")


def two_files(folder, first, second, **layout):
    for name, table in (("a", first), ("b", second)):
        pq.write_table(table, folder / f"{name}.parquet")
    paths = (folder / "a.parquet", folder / "b.parquet")
    return [EventFiles(paths, ("value",), stream="s", **layout)]


def plain_table(unit="ns", **columns):
    clock = pa.array([1, 2], pa.timestamp(unit, tz="UTC"))
    plain = {"entity": pa.array(["A", "A"]), "event_time": clock}
    plain |= {"available_at": clock, "value": pa.array([1.0, 2.0])}
    return pa.table(plain | {name: pa.array(v) for name, v in columns.items()})


@pytest.mark.parametrize(
    "second",
    [plain_table("ms"), plain_table(sequence=[1, 2]), plain_table(value=["1", "2"])],
)
def test_files_of_different_columns_are_refused_by_name(tmp_path, second):
    files = two_files(tmp_path, plain_table(), second)
    message = r"files must have the same columns; got .* in .*b.parquet after .*a.parq"
    with pytest.raises(ValueError, match=message):
        build_timelines(files, tmp_path / "built")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"entity": [7, 8]}, "entity must be text; got int64 in .*lose their zeros"),
        ({"value": [True, False]}, "value must hold numbers or text; got bool in"),
        ({"sequence": pa.array([1, 2], pa.uint64())}, "sequence must hold integers"),
    ],
)
def test_what_a_query_would_cast_in_silence_is_refused(tmp_path, columns, message):
    files = two_files(tmp_path, plain_table(**columns), plain_table(**columns))
    with pytest.raises(TypeError, match=message):
        build_timelines(files, tmp_path / "built")


def test_neither_a_folder_s_name_nor_a_pattern_replaces_what_a_file_says(tmp_path):
    folder = tmp_path / "entity=ZZ" / "value=5"
    folder.mkdir(parents=True)
    pq.write_table(plain_table(), folder / "g[1].parquet")
    pq.write_table(plain_table(value=[8.0, 9.0]), folder / "g1.parquet")
    files = [EventFiles((folder / "g[1].parquet",), ("value",), stream="s")]
    got = build_timelines(files, tmp_path / "it's built")
    assert got.entities == ("A",)
    assert got.values.tolist() == [[1.0], [2.0]]


def test_a_declared_stream_stays_and_an_entity_without_usable_rows_does_not(tmp_path):
    pq.write_table(plain_table(entity=["A", "B"]).slice(0, 0), tmp_path / "a.parquet")
    rows = plain_table(entity=["A", "B"], value=[1.0, np.inf])
    pq.write_table(rows, tmp_path / "b.parquet")
    files = [
        EventFiles((tmp_path / f"{name}.parquet",), ("value",), stream=name)
        for name in ("a", "b")
    ]
    got = build_timelines(files, tmp_path / "built")
    assert (got.streams, got.entities) == (("a", "b"), ("A",))


def test_an_instant_that_nanoseconds_cannot_hold_is_refused_in_words(tmp_path):
    far = pa.array([1, 253402214400_000_000], pa.timestamp("us", tz="UTC"))
    table = plain_table("us").set_column(2, "available_at", far)
    pq.write_table(table, tmp_path / "f.parquet")
    files = [EventFiles((tmp_path / "f.parquet",), ("value",), stream="s")]
    message = r"files must hold events that can be ordered; got .* in one of .*f.parq"
    with pytest.raises(ValueError, match=message):
        build_timelines(files, tmp_path / "built")
    assert not (tmp_path / "built").exists()


def test_no_points_have_no_information_sets():
    log = to_log(
        {
            "s": pd.DataFrame(
                {
                    "entity": ["A"],
                    "event_time": hours([0]),
                    "available_at": hours([0]),
                    "value": [1.0],
                }
            )
        }
    )
    slices = information_slices(
        event_arrays(log), all_points().iloc[:0], history=History(last=3)
    )
    assert len(slices) == len(slices.fingerprints) == 0


def test_a_missing_column_is_named(tmp_path):
    one_file(tmp_path)
    files = [EventFiles((tmp_path / "events.parquet",), ("price",))]
    with pytest.raises(ValueError, match=r"column 'price' must be in .*got entity"):
        build_timelines(files, tmp_path / "built")


def test_an_existing_folder_is_not_overwritten(tmp_path):
    build_timelines(one_file(tmp_path), tmp_path / "built")
    with pytest.raises(ValueError, match=r"folder must be new; got .*built"):
        build_timelines(one_file(tmp_path), tmp_path / "built")
    assert len(open_timelines(tmp_path / "built")) == 2


def test_a_folder_that_holds_no_timelines_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a folder of timelines; got .*again"):
        open_timelines(tmp_path)


def test_nanoseconds_and_large_sequences_survive_the_way_to_disk(tmp_path):
    instant = pd.Series([START + pd.Timedelta(1, "ns")] * 2).dt.as_unit("ns")
    files = one_file(
        tmp_path,
        event_time=instant,
        available_at=instant,
        sequence=[2**53 + 1, 2**53 + 3],
    )
    got = build_timelines(files, tmp_path / "built")
    assert got.available_at.tolist() == [START.value + 1] * 2
    assert got.sequence.tolist() == [2**53 + 1, 2**53 + 3]
    assert got.revision.tolist() == [0, 1]
