"""Parquet tapes and the words of a feed: what a log becomes, line by line."""

import json

import pandas as pd
import pytest
from live_feeds import HOUR, START, words

from infoset.data import EventLog, History
from infoset.models.fitted import FittedOn, StreamScale
from infoset.pipeline.config import load_experiment
from infoset.pipeline.live.event_lines import FeedEvent, read_line
from infoset.pipeline.live.tape import Tape, write_tape
from infoset.pipeline.live.vocabulary import Vocabulary


def instants(*offsets):
    return pd.to_datetime([START + offset for offset in offsets], utc=True)


def lines_of(path):
    tape = Tape(path, words())
    return [json.loads(line) for line in iter_lines(tape)]


def iter_lines(tape):
    while batch := tape.read(None):
        yield from batch


def test_a_log_becomes_lines_in_the_order_of_availability(tmp_path):
    bars = pd.DataFrame(
        {
            "entity": ["B", "A"],
            "event_time": instants(2, 1),
            "available_at": instants(HOUR, HOUR),
            "sequence": pd.array([2**62 + 1, None], dtype="Int64"),
            "value": [1.5, 2.5],
            "headline": ["up", "down"],
        }
    )
    macro = pd.DataFrame(
        {
            "entity": "*",
            "event_time": instants(0, 0),
            "available_at": instants(5, HOUR),
            "value": [3.5, 4.5],
        }
    )
    log = EventLog.from_pandas(bars, stream="bars/1d", values=["value", "headline"])
    log = log.append(EventLog.from_pandas(macro, stream="macro/CPI", values=["value"]))
    write_tape(log, tmp_path / "tape")
    told = lines_of(tmp_path / "tape")
    assert [(t["entity"], t["stream"][:4], t["value"]) for t in told] == [
        ("*", "macr", 3.5),
        ("A", "bars", 2.5),
        ("B", "bars", 1.5),
        ("*", "macr", 4.5),
    ]
    assert told[2]["sequence"] == 2**62 + 1
    assert [t["revision"] for t in told] == [0, 0, 0, 1]
    assert "headline" not in told[1]
    for line in iter_lines(Tape(tmp_path / "tape", words())):
        assert isinstance(read_line(line, words()), FeedEvent)


def frame(**changes):
    columns = {
        "entity": pd.Categorical(["A", "A"]),
        "stream": "bars/1d",
        "event_time": instants(0, 1),
        "available_at": instants(HOUR, HOUR + 1),
        "value": [1.0, float("nan")],
        "other": [float("nan"), 1.0],
    }
    return pd.DataFrame(columns | changes)


def test_missing_cells_are_said_only_for_values_of_the_stream(tmp_path):
    frame(event_time=instants(0, 1).as_unit("us")).to_parquet(tmp_path / "tape")
    one, other = lines_of(tmp_path / "tape")
    assert one["value"] == 1.0
    assert "other" not in one
    assert other["value"] is None
    assert other["other"] == 1.0  # refused as a line, by its number
    assert one["event_time"] == START


def test_a_tape_that_is_no_parquet_file_is_refused(tmp_path):
    (tmp_path / "tape").write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"a tape must be a Parquet file; got .*tape"):
        Tape(tmp_path / "tape", words())


def test_a_row_without_an_availability_is_refused(tmp_path):
    frame(available_at=[instants(0)[0], pd.NaT]).to_parquet(tmp_path / "tape")
    with pytest.raises(ValueError, match="available_at must be there in each row"):
        Tape(tmp_path / "tape", words())


def fitted_on():
    scale = StreamScale(
        stream=0, place=0, unit=1.0, decay=0.9, prior=1.0, prior_weight=2.0
    )
    return FittedOn(
        entities=("A", "B"),
        scales=(scale, scale),
        streams=("calendar", "close/1d"),
        channels=(("calendar", "x"), ("close/1d", "change"), ("close/1d", "value")),
        width=2,
        history=History(last=4),
    )


def experiment(*sources):
    given = {
        "name": "x",
        "sources": list(sources),
        "forecast_times": {"kind": "interval", "interval": "1D"},
        "targets": [{"entities": ["A", "B"], "stream": "close/1d", "kind": "log"}],
    }
    return load_experiment(given)[0]


def source(**changes):
    return {
        "path": "x.csv",
        "stream": "close/1d",
        "entity": "A",
        "event_time": {"column": "t", "stamp": "instant"},
        "available_at": {"lag": "0s"},
        "values": {"value": "close"},
    } | changes


def test_the_words_tell_what_is_derived_and_what_may_be_ahead():
    calendar = source(stream="calendar", values={"x": "x"}, scheduled=True)
    known = Vocabulary.of(fitted_on(), experiment(source(), calendar))
    close, ahead = known.streams["close/1d"], known.streams["calendar"]
    assert (close.code, close.columns) == (1, ("change", "value"))
    assert close.change is not None
    assert close.change.kind == "log"
    assert ahead.change is None
    assert (close.is_scheduled, ahead.is_scheduled) == (False, True)
    # A log from Python, or a store, does not say here which of its streams are.
    for sources in ((), ({"preset": "store", "path": "s"},)):
        free = Vocabulary.of(fitted_on(), experiment(*sources))
        assert all(words.is_scheduled for words in free.streams.values())


def test_only_entities_of_the_fit_can_be_chosen():
    assert Vocabulary.of(fitted_on(), experiment(), ["B"]).entities == ("B",)
    with pytest.raises(ValueError, match="entity must be one of A, B; got 'C'"):
        Vocabulary.of(fitted_on(), experiment(), ["C"])
