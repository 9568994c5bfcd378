"""Snapshots of streams: what comes back, and what is refused."""

import json
from dataclasses import fields

import numpy as np
import pytest
import torch
from live_feeds import damaged, fitted

from infoset.data import History
from infoset.models.event_window import stream_events
from infoset.models.stream_snapshot import StreamSnapshot, read_snapshot, write_snapshot
from infoset.models.streaming import StateStream, StreamState

HISTORIES = {"all": History(), "last": History(last=9), "since": History(since="month")}


def stream_of(kind, history, *, num_events, backend="auto"):
    samples, forecaster = fitted(kind, HISTORIES[history])
    stream = forecaster.stream("A", backend=backend)
    events = list(stream_events(samples.timelines["A"], 0, 60))
    for event in events[:num_events]:
        stream.update(event)
    return forecaster, stream, events


@pytest.mark.parametrize("backend", ["torch", "auto"])
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_a_restored_stream_goes_on_with_the_same_bytes(
    kind, history, backend, tmp_path
):
    forecaster, stream, events = stream_of(
        kind, history, num_events=40, backend=backend
    )
    stream.snapshot().save(tmp_path / "a.safetensors")
    snapshot = StreamSnapshot.load(tmp_path / "a.safetensors")
    restored = forecaster.restore(snapshot, backend=backend)
    assert restored.backend == stream.backend
    for event in events[40:]:
        for one in (stream, restored):
            one.update(event)
        quantiles = [
            one.forecast(event.available_at).quantiles for one in (stream, restored)
        ]
        np.testing.assert_array_equal(*quantiles)
    assert restored.state_bytes == stream.state_bytes


@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_a_snapshot_of_one_backend_is_restored_by_the_other(kind):
    for one, other in (("torch", "numba"), ("numba", "torch")):
        forecaster, stream, events = stream_of(
            kind, "since", num_events=40, backend=one
        )
        restored = forecaster.restore(stream.snapshot(), backend=other)
        assert (stream.backend, restored.backend) == (one, other)
        for event in events[40:]:
            stream.update(event)
            restored.update(event)
        quantiles = [
            x.forecast(events[-1].available_at).quantiles for x in (stream, restored)
        ]
        spread = np.ptp(quantiles[0])
        assert np.abs(quantiles[0] - quantiles[1]).max() <= 1e-5 * spread


@pytest.mark.parametrize("history", HISTORIES)
def test_a_stream_without_events_can_be_kept(history, tmp_path):
    forecaster, stream, events = stream_of("linear", history, num_events=0)
    stream.snapshot().save(tmp_path / "a")
    restored = forecaster.restore(StreamSnapshot.load(tmp_path / "a"))
    at = events[0].available_at
    np.testing.assert_array_equal(
        restored.forecast(at).quantiles, stream.forecast(at).quantiles
    )


def test_a_snapshot_is_a_value_that_later_events_leave_alone():
    forecaster, stream, events = stream_of("linear", "last", num_events=40)
    at = events[-1].available_at
    before, snapshot = stream.forecast(at).quantiles, stream.snapshot()
    for event in events[40:]:
        stream.update(event)
    assert not np.array_equal(stream.forecast(at).quantiles, before)
    np.testing.assert_array_equal(
        forecaster.restore(snapshot).forecast(at).quantiles, before
    )


def test_every_number_of_a_state_comes_back():
    _, stream, _ = stream_of("linear", "since", num_events=40, backend="torch")
    assert isinstance(stream, StateStream)
    again = StreamState.restored(stream.snapshot())
    for field in fields(StreamState):
        if field.name != "network":
            assert getattr(again, field.name) == getattr(stream.state, field.name)
    one, other = again.network.state_dict(), stream.state.network.state_dict()
    assert list(one) == list(other)
    for name, tensor in one.items():
        assert tensor.dtype == other[name].dtype
        assert torch.equal(tensor, other[name])


def test_the_header_is_json_in_the_file_s_metadata(tmp_path):
    forecaster, stream, _ = stream_of("linear", "all", num_events=40)
    stream.snapshot().save(tmp_path / "a")
    header, _ = read_snapshot(tmp_path / "a")
    assert header["format"] == 1
    assert header["model"] == forecaster.model_digest()
    assert (header["kind"], header["entity"], header["count"]) == ("state", "A", 40)
    assert json.dumps(header["history"]) == History().model_dump_json().replace(
        ":", ": "
    ).replace(",", ", ")


def test_another_model_s_snapshot_is_refused():
    _, stream, _ = stream_of("linear", "all", num_events=3)
    for kind, seed in (("linear", 2), ("softmax", 1)):
        _, other = fitted(kind, HISTORIES["all"], seed=seed)
        with pytest.raises(
            ValueError, match=r"restored by the model that made it; got one of model"
        ):
            other.restore(stream.snapshot())


def test_one_changed_weight_makes_another_model():
    _, forecaster = fitted("linear", HISTORIES["all"], seed=3)
    before = forecaster.model_digest()
    assert forecaster.model_digest() == before
    with torch.no_grad():
        forecaster._trained().norm.weight[0] += 1e-7
    assert forecaster.model_digest() != before


def test_a_model_is_the_same_after_it_was_saved_and_loaded(tmp_path):
    _, forecaster = fitted("linear", HISTORIES["all"])
    forecaster.save(tmp_path)
    assert type(forecaster).load(tmp_path).model_digest() == forecaster.model_digest()


def test_an_unknown_format_is_refused(tmp_path):
    _, stream, _ = stream_of("linear", "all", num_events=3)
    snapshot = stream.snapshot()
    write_snapshot(tmp_path / "a", {**snapshot.header, "format": 2}, snapshot.tensors)
    with pytest.raises(
        ValueError, match=r"must be of format 1; got 2 in .*a\. Restore it"
    ):
        StreamSnapshot.load(tmp_path / "a")


def test_a_snapshot_of_something_else_is_refused(tmp_path):
    write_snapshot(tmp_path / "a", {"format": 1, "kind": "session"}, {})
    with pytest.raises(ValueError, match="that of one stream; got kind 'session' in"):
        StreamSnapshot.load(tmp_path / "a")


def test_a_file_that_is_no_snapshot_is_refused(tmp_path):
    for content in (b"", b"text", b"\x02\0\0\0\0\0\0\0{}", b"\x02\0\0\0\0\0\0\0[]"):
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(
            ValueError, match="must be a snapshot; got a file without a"
        ):
            StreamSnapshot.load(tmp_path / "a")


def test_every_damaged_byte_is_noticed(tmp_path):
    """Every third in turn, in the header and in the numbers, and a file cut short."""
    _, stream, _ = stream_of("linear", "last", num_events=5)
    path = tmp_path / "a"
    stream.snapshot().save(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        damaged(path, place)
        with pytest.raises(ValueError, match=r"snapshot"):
            StreamSnapshot.load(path)
        path.write_bytes(whole)
    for length in (8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"snapshot"):
            StreamSnapshot.load(path)
    path.write_bytes(whole)
    StreamSnapshot.load(path)


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    _, stream, events = stream_of("linear", "all", num_events=3)
    path = tmp_path / "a"
    stream.snapshot().save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    stream.update(events[3])
    with pytest.raises(OSError, match="No space left"):
        stream.snapshot().save(path)
    assert path.read_bytes() == before
