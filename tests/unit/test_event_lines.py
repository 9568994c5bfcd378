"""Lines of a feed: what they may say, and how the others are refused."""

import json
import math

import pytest
from live_feeds import HOUR, START, line, request, words

from infoset.data import Change
from infoset.data.arrays import NO_SEQUENCE
from infoset.pipeline.live.event_lines import LONGEST_LINE, FeedEvent, read_line
from infoset.pipeline.live.feed_instants import nanoseconds_of, text_of
from infoset.pipeline.live.known_periods import NUM_PERIODS, KnownPeriods


def read_event(one, vocabulary):
    event = read_line(one, vocabulary)
    assert isinstance(event, FeedEvent)
    return event


def test_an_event_is_read_as_the_log_would_hold_it():
    event = read_event(line(sequence=2**62 + 1, revision=3, change=None), words())
    assert event.entity == "A"
    assert event.stream.name == "bars/1d"
    assert (event.event_time, event.available_at) == (START, START + HOUR)
    assert (event.sequence, event.revision) == (2**62 + 1, 3)
    assert math.isnan(event.values[0])
    assert event.values[1] == 100.0
    assert not event.has_change


def test_what_a_line_leaves_out_is_counted_or_derived_later():
    event = read_event(line(), words())
    assert event.sequence == NO_SEQUENCE
    assert event.revision is None


def test_null_is_a_missing_value_and_a_given_change_is_taken_as_it_is():
    said = json.loads(line())
    event = read_event(json.dumps(said | {"change": None}).encode(), words())
    assert event.has_change
    assert math.isnan(event.values[0])


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00Z", 0),
        ("2024-01-01T00:00:00+00:00", START),
        ("2023-12-31 19:00-0500", START),
        ("2024-01-01T00:00:00.000000001Z", START + 1),
        ("2024-01-01T00:00:00.25Z", START + 250_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
    ],
)
def test_instants_are_exact_to_the_nanosecond(text, nanos):
    assert nanoseconds_of(text, "at") == nanos
    assert nanoseconds_of(text_of(nanos), "at") == nanos


REFUSED = [
    (b"{", r"one JSON object in UTF-8; got '\{' \(.*Write one event"),
    (b"\xff", r"one JSON object in UTF-8; got '.' \(.*decode"),
    (b"[" * 100_000, r"one JSON object in UTF-8; got '\[+\.\.\.'"),
    (b"[1]", r"must be one JSON object; got '\[1\]'"),
    (b'{"a": 1, "a": 2}', "a name stands in it twice"),
    (line(value=0).replace(b"0}", b"NaN}"), "NaN is no JSON"),
    (line(value=0).replace(b"0}", b"1e-400}"), "float64 cannot hold 1e-400"),
    (b"x" * (LONGEST_LINE + 1), r"at most 1048576 bytes; got more"),
    (
        line(available_at=None, avalable_at=0),
        r"must have available_at; .*Did you mean 'av",
    ),
    (
        line(stream="bars/1h"),
        r"stream must be one of bars/1d, macro/CPI; got 'bars/1h'",
    ),
    (line(entity="C"), r"entity must be one of A, B; got 'C'.*fit a model with it"),
    (line(entity=7), "entity must be text; got 7"),
    (
        line(event_time="2024-01-01T00:00:00"),
        "event_time must be timezone-aware; got '2024",
    ),
    (line(event_time="2024-02-30T00:00Z"), "event_time must be an instant such as"),
    (line(event_time="2024-01-01T00:00:60Z"), "event_time must be an instant such as"),
    (line(event_time=1.5), "event_time must be an instant such as .* got 1.5"),
    (line(event_time=True), "event_time must be an instant such as .* got True"),
    (line(event_time=1_704_067_200), "got 1704067200, which seems to count seconds"),
    (line(event_time=1_704_067_200_000), "which seems to count milliseconds"),
    (line(event_time=1_704_067_200_000_000), "which seems to count microseconds"),
    (line(event_time=2**63), "event_time must lie in the years 1678 to 2261"),
    (
        line(event_time=START + 2 * HOUR),
        r"must not be after available_at; got .*T02:00:00Z >",
    ),
    (
        line(sequence=1.0),
        "sequence must be a whole number from -9223372036854775808 .* got 1.0",
    ),
    (
        line(sequence=2**63),
        "sequence must be a whole number .* to 9223372036854775807, or",
    ),
    (line(revision=-1), "revision must be a whole number from 0 to 2147483647"),
    (line(revision=2**31), "revision must be a whole number from 0 to 2147483647"),
    (line(value="100"), "value must be a number .* got '100'"),
    (line(value=True), "value must be a number .* got True"),
    (line(value=2**53 + 1), "value must be a number .* got 9007199254740993"),
    (line(value=1e31), r"value must be a number of size 1e\+30 at most"),
    (
        line(valeu=1, value=None),
        r"values change, value \(change may be left out\); got valeu, no value\. Did you mean",
    ),
    (line(value=None), r"got no value\. Write null for a missing value"),
    (line(value=0, change=0).replace(b": 0", b": null"), "an event must have a value"),
    (request("A", START)[:-1] + b', "x": 1}', r'a request must be \{"forecast"'),
    (b'{"forecast": {"entity": "A"}}', r'a request must be \{"forecast"'),
    (request("C", START), "entity must be one of A, B; got 'C'"),
    (request("*", START), r"entity must be one of A, B; got '\*'"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_a_malformed_line_is_refused_with_what_to_do(given, message):
    with pytest.raises(ValueError, match=message):
        read_line(given, words())


def test_a_blank_line_says_nothing():
    assert read_line(b" \r", words()) is None


def complete(known, **changes):
    revision, values = known.complete(read_event(line(**changes), words()))
    return revision, values.tolist()


def test_changes_are_taken_within_one_vintage_and_prints_are_counted():
    known = KnownPeriods()
    day = 24 * HOUR
    first, second = {"event_time": START}, {"event_time": START + day}
    late = {"available_at": START + 9 * day}
    assert complete(known, **first, value=100)[0] == 0
    assert complete(known, **second, **late, value=103) == (0, [3.0, 103.0])
    # A new base: the first period is revised, and then the second against it.
    assert complete(known, **first, **late, value=50)[0] == 1
    assert complete(known, **second, **late, value=52) == (1, [2.0, 52.0])


def test_known_periods_come_back_from_a_snapshot():
    known = KnownPeriods()
    complete(known, value=100)
    complete(known, value=100, entity="B")
    again = KnownPeriods.restored(*known.state())
    for one in (known, again):
        changed = complete(one, event_time=START + 1, value=101, entity="B")
        assert changed == (0, [1.0, 101.0])
        assert complete(one, value=99)[0] == 1


def test_what_needs_a_forgotten_period_is_refused_and_memory_has_an_end():
    known = KnownPeriods()
    for place in range(NUM_PERIODS + 5):
        complete(known, event_time=START + place)
    [[*_, kept, forgotten]], _ = known.state()
    assert (kept, forgotten) == (NUM_PERIODS, START + 4)
    with pytest.raises(
        ValueError, match=r"older than the newest 1024 of a series; got"
    ):
        complete(known, event_time=START + 3)
    assert complete(known, event_time=START + 3, revision=2, change=1) == (2, [1, 100])


def test_a_change_that_float32_cannot_hold_is_refused_and_not_remembered():
    known = KnownPeriods()
    percent = Change(column="value", kind="percent")
    event = read_event(line(value=1e-30), words())
    event = event._replace(
        stream=event.stream.__class__(
            "s", 0, ("change", "value"), percent, is_scheduled=False
        )
    )
    known.complete(event)
    huge = event._replace(event_time=START + 1, values=(math.nan, 1e30))
    with pytest.raises(ValueError, match=r"a change must be of size 1e\+30 at most"):
        known.complete(huge)
    revision, _ = known.complete(huge._replace(values=(math.nan, 1e-30)))
    assert revision == 0
