"""What may enter an event log, and what is refused with which words."""

import numpy as np
import pandas as pd
import pytest

from infoset.data import EventLog, event_arrays


def frame(**columns):
    """Two good events of one entity; columns may be replaced."""
    times = pd.Series(pd.to_datetime(["2024-01-01T10:00Z", "2024-01-02T10:00Z"]))
    good = {
        "entity": ["A", "A"],
        "event_time": times,
        "available_at": times + pd.Timedelta("1h"),
        "value": [1.0, 2.0],
    }
    return pd.DataFrame(good | columns)


def log_of(given, **options):
    return EventLog.from_pandas(given, stream="s", values=["value"], **options)


def test_units_of_the_clock_never_change_an_instant():
    coarse = frame()
    coarse["available_at"] = coarse["available_at"].astype("datetime64[ms, UTC]")
    np.testing.assert_array_equal(
        event_arrays(log_of(coarse)).available_at,
        event_arrays(log_of(frame())).available_at,
    )


def test_a_naive_clock_is_read_in_its_declared_zone():
    naive = frame(
        event_time=pd.to_datetime(["2024-01-02 09:30", "2024-07-02 09:30"]),
        available_at=pd.to_datetime(["2024-01-02 16:00", "2024-07-02 16:00"]),
    )
    log = log_of(naive, zone="America/New_York")
    hours = log.to_pandas("s")["available_at"].dt.hour.tolist()
    assert hours == [21, 20]


def test_rows_that_cannot_be_used_are_listed_and_never_used():
    given = pd.concat([frame()] * 3, ignore_index=True)
    given["event_time"] += pd.to_timedelta(np.arange(6), unit="min")
    given.loc[0, "available_at"] = pd.NaT
    given.loc[1, "event_time"] = pd.NaT
    given.loc[2, "value"] = np.inf
    given.loc[3, "value"] = np.nan
    given.loc[4, "entity"] = None
    log = log_of(given)
    assert len(log) == 1
    listed = log.quarantine[["row", "column", "reason"]].to_numpy().tolist()
    assert sorted(listed) == [
        [0, "available_at", "missing"],
        [1, "event_time", "missing"],
        [2, "value", "infinite"],
        [3, "value", "no value"],
        [4, "entity", "missing"],
    ]


def test_exact_duplicates_are_dropped_and_counted():
    log = log_of(pd.concat([frame(), frame()]))
    assert (len(log), log.num_duplicates) == (2, 2)


def test_appending_the_same_events_again_changes_nothing_but_the_count():
    once = log_of(frame())
    twice = once.append(log_of(frame()))
    pd.testing.assert_frame_equal(once.to_pandas("s"), twice.to_pandas("s"))
    assert twice.num_duplicates == 2


def test_sequences_above_two_to_the_53_survive_a_missing_one_and_an_append():
    big = 2**53 + 1
    given = frame(sequence=pd.array([big, pd.NA], dtype="Int64"))
    log = log_of(given).append(log_of(frame(entity=["B", "B"])))
    assert log.to_pandas("s")["sequence"].dropna().tolist() == [big]
    assert big in event_arrays(log).sequence


def test_a_late_arrival_gets_its_place_among_the_revisions():
    first = log_of(frame(event_time=[pd.Timestamp("2024-01-01", tz="UTC")] * 2))
    assert first.to_pandas("s")["revision"].tolist() == [0, 1]
    late = frame(
        event_time=[pd.Timestamp("2024-01-01", tz="UTC")] * 2,
        available_at=pd.to_datetime(["2024-01-01T12:00Z", "2024-01-05T10:00Z"]),
        value=[5.0, 6.0],
    )
    table = first.append(log_of(late)).to_pandas("s")
    assert table["value"].tolist() == [1.0, 5.0, 2.0, 6.0]
    assert table["revision"].tolist() == [0, 1, 2, 3]


def test_a_scheduled_stream_may_know_its_events_before_they_happen():
    ahead = frame(available_at=pd.to_datetime(["2023-12-01T00:00Z"] * 2))
    assert len(log_of(ahead, scheduled=True)) == 2


def test_text_values_are_kept_and_are_part_of_the_fingerprint():
    def digests(word):
        log = EventLog.from_pandas(
            frame(word=[word, "b"]), stream="s", values=["value", "word"]
        )
        return event_arrays(log).digests.tolist()

    assert digests("a") == digests("a")
    assert digests("a")[0] != digests("c")[0]
    assert digests("a")[1] == digests("c")[1]


REFUSED = {
    "a naive clock": (
        frame(available_at=pd.to_datetime(["2024-01-01 11:00", "2024-01-02 11:00"])),
        ValueError,
        r"available_at must be timezone-aware; got 2024-01-01 11:00:00 in row 0 of s. "
        r"Declare `zone`",
    ),
    "a clock of text": (
        frame(event_time=["2024-01-01", "2024-01-02"]),
        TypeError,
        r"event_time must hold datetimes; got str of s. Parse the column",
    ),
    "a missing column": (
        frame().drop(columns="available_at"),
        ValueError,
        r"column 'available_at' must be in the frame of stream 's'; got entity, ",
    ),
    "an entity that is a number": (
        frame(entity=[7, 8]),
        TypeError,
        r"entity must be text; got 7 in row 0 of stream 's'",
    ),
    "a sequence of floats": (
        frame(sequence=[1.0, 2.0]),
        TypeError,
        r"sequence must hold integers; got float64 in stream 's'",
    ),
    "an event after its availability": (
        frame(available_at=pd.to_datetime(["2024-01-01T09:00Z", "2024-01-03T00:00Z"])),
        ValueError,
        r"event_time must not be after available_at; got 2024-01-01 10:00:00\+00:00 > "
        r"2024-01-01 09:00:00\+00:00 in rows 0 of stream 's'",
    ),
    "two values for one key": (
        pd.concat([frame(), frame(value=[1.0, 3.0])]),
        ValueError,
        r"one event must have one set of values; got two for \(entity A, .*"
        r"Declare a `sequence`",
    ),
    "values of no kind": (
        frame(value=[True, False]),
        TypeError,
        r"value must hold numbers or text; got bool in stream 's'",
    ),
    "an integer that a float cannot hold": (
        frame(value=[2**53 + 1, 1]),
        ValueError,
        r"value must fit a float64; got 9007199254740993 in row 0",
    ),
    "an instant beyond nanoseconds": (
        frame(
            available_at=pd.Series(
                np.array(["2024-01-01T11", "9999-12-31"], "datetime64[s]")
            ).dt.tz_localize("UTC")
        ),
        ValueError,
        r"available_at must lie between 1677 and 2262",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_by_name(name):
    given, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        log_of(given)


@pytest.mark.parametrize(
    ("stamp", "row"), [("2024-11-03 01:30", 0), ("2024-03-10 02:30", 0)]
)
def test_an_ambiguous_or_nonexistent_local_time_is_refused_by_row(stamp, row):
    given = frame(event_time=pd.to_datetime([stamp, "2024-11-05 10:00"]))
    with pytest.raises(ValueError, match=rf"got {stamp}:00 in row {row} of s"):
        log_of(given, zone="America/New_York")


def test_an_unknown_stream_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="stream must be one of s; got 'bars'"):
        log_of(frame()).table("bars")


def test_other_value_columns_need_a_stream_of_their_own():
    other = EventLog.from_pandas(
        frame().rename(columns={"value": "price"}), stream="s", values=["price"]
    )
    with pytest.raises(ValueError, match="stream 's' must keep its value columns"):
        log_of(frame()).append(other)
