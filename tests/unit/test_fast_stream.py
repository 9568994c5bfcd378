"""Compiled streams forecast what those of torch do, and refuse what they refuse.

AGREEMENT is in units of the causal scale, as everywhere: both sides compute layers in
float32, in another order.
"""

import gc
import weakref
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from random_streams import (
    DAY,
    HOUR,
    START,
    carried,
    difference,
    random_forecaster,
    tape,
)

from infoset.data import History
from infoset.data.errors import LookAheadError
from infoset.models.attention import LinearState, SoftmaxState
from infoset.models.attention.feature_maps import Elu1
from infoset.models.fast import FastStream, packed_weights
from infoset.models.fast.compiled import _may_keep_code, sources_digest
from infoset.models.kernels import LinearKernel
from infoset.models.settings import NetworkSize
from infoset.models.streaming import StateStream, StreamState

pytestmark = pytest.mark.slow
AGREEMENT = 1e-5
HISTORIES = {
    "month": History(since="month"),
    "session": History(since="session", calendar="XNYS"),
}
WIDE = NetworkSize(width=24, num_layers=1, num_heads=2, forgetting=False)
# One layer or two, heads whose width is a multiple of a block or not, forgetting or not.
FORECASTERS = {
    "elu1": random_forecaster,
    "elu1, a floor": lambda: random_forecaster(floor=3.0, size=WIDE),
    "relu": lambda: random_forecaster(feature_map="relu", size=WIDE),
    "squared_relu": lambda: random_forecaster(feature_map="squared_relu"),
    "favor": lambda: random_forecaster(feature_map="favor"),
    "favor, R = 5": lambda: random_forecaster(
        feature_map="favor", num_features=5, size=WIDE, floor=0.1
    ),
    "hedgehog": lambda: random_forecaster(feature_map="hedgehog", size=WIDE),
    "hedgehog, K = 4": lambda: random_forecaster(
        feature_map="hedgehog", size=NetworkSize(width=8, num_heads=2)
    ),
    "softmax": lambda: random_forecaster("softmax"),
    "softmax, K = 4": lambda: random_forecaster(
        "softmax", size=NetworkSize(width=8, num_heads=2, forgetting=False)
    ),
}
every_forecaster = pytest.mark.parametrize("name", FORECASTERS)
either_attention = pytest.mark.parametrize("name", ["favor", "softmax"])


def both(name, history=None, entity="A"):
    """Return a compiled stream and one of torch."""
    forecaster = FORECASTERS[name]()
    fast, torch_ = (
        carried(forecaster, entity, history=history, backend=backend)
        for backend in ("numba", "torch")
    )
    assert (fast.backend, torch_.backend) == ("numba", "torch")
    return fast, torch_


def state_of(forecaster):
    return carried(forecaster).state


def fed(stream, events):
    for event in events:
        stream.update(event)
    return stream


def assert_same_on_a_tape(fast, torch_, events):
    """Feed both streams, and ask them at once, later, and when the next event comes."""
    assert difference(torch_, fast, START - DAY) <= AGREEMENT  # nothing known yet
    for row, (event, later) in enumerate(pairwise(events)):
        fast.update(event)
        torch_.update(event)
        if row % 5 == 0:
            wait = (later.available_at - event.available_at) * (row % 3) // 2
            assert difference(torch_, fast, event.available_at + wait) <= AGREEMENT
    assert difference(torch_, fast, events[-1].available_at + 400 * DAY) <= AGREEMENT
    assert fast.state.count == torch_.state.count
    assert fast.state_bytes == torch_.state_bytes == fast.state.num_bytes


@every_forecaster
def test_a_compiled_stream_forecasts_what_torch_does(name):
    fast, torch_ = both(name)
    assert_same_on_a_tape(fast, torch_, list(tape(40, seed=3)))


@every_forecaster
def test_a_compiled_stream_forecasts_what_a_batch_does(name):
    """A stream of a window encodes all of its events at once, as a batch does."""
    forecaster = FORECASTERS[name]()
    fast, whole = carried(forecaster), forecaster.stream("A", history=History(last=64))
    for row, event in enumerate(tape(60, seed=5)):
        fast.update(event)
        whole.update(event)
        if row % 20 == 19:
            at = event.available_at + row * HOUR
            assert difference(whole, fast, at) <= AGREEMENT


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("name", ["elu1", "favor", "softmax"])
def test_a_compiled_stream_forgets_what_its_period_does_not_hold(name, history):
    fast, torch_ = both(name, HISTORIES[history])
    events = list(tape(50, seed=4))
    assert_same_on_a_tape(fast, torch_, events)
    assert fast.state.count < len(events) - 1


def test_a_cache_grows_past_its_room():
    fast, torch_ = both("softmax")
    events = list(tape(601))
    fed(fast, events[:600])
    torch_.state = fast.state  # takes in 600 events much slower
    fed(fast, events[600:])
    fed(torch_, events[600:])
    assert difference(torch_, fast, events[-1].available_at) <= AGREEMENT
    assert fast.state.network.readout.keys.shape[2] == 601


@every_forecaster
def test_states_go_from_one_backend_to_the_other_in_the_middle_of_a_tape(name):
    fast, torch_ = both(name)
    events = list(tape(24, seed=1))
    fed(fast, events[:12])
    fed(torch_, events[:12])
    fast.state, torch_.state = torch_.state, fast.state
    fed(fast, events[12:])
    fed(torch_, events[12:])
    untouched, _ = both(name)
    fed(untouched, events)
    at = events[-1].available_at
    assert difference(untouched, fast, at) <= AGREEMENT
    assert difference(untouched, torch_, at) <= AGREEMENT


@either_attention
def test_a_snapshot_of_one_backend_is_restored_in_the_other(name):
    fast, torch_ = both(name, HISTORIES["month"])
    events = list(tape(40, seed=1))
    fed(fast, events[:25])
    fed(torch_, events[:25])
    forecaster = FORECASTERS[name]()
    for stream in (fast, torch_):
        restored = forecaster.restore(stream.snapshot())
        assert restored.backend == "numba"
        fed(stream, events[25:])
        fed(restored, events[25:])
        assert difference(restored, stream, events[-1].available_at) <= AGREEMENT


@either_attention
def test_a_state_is_a_value_that_later_events_do_not_touch(name):
    fast, _ = both(name)
    events = list(tape(30))
    fed(fast, events[:20])
    state = fast.state
    at = events[20].available_at
    before = fast.forecast(at).quantiles
    fed(fast, events[20:])
    fast.state = state
    np.testing.assert_array_equal(fast.forecast(at).quantiles, before)
    assert state.count == 20


@either_attention
def test_forks_of_a_compiled_stream_go_their_own_ways(name):
    fast, _ = both(name)
    events = list(tape(50))
    fed(fast, events[:40])
    fork, at = fast.fork(), events[-1].available_at
    before = fast.forecast(at).quantiles
    fed(fork, events[40:])
    np.testing.assert_array_equal(fast.forecast(at).quantiles, before)
    after = fork.forecast(at).quantiles
    assert not np.array_equal(after, before)
    fed(fast, events[40:])
    np.testing.assert_array_equal(fast.forecast(at).quantiles, after)


@either_attention
def test_asking_a_compiled_stream_changes_nothing(name):
    fast, _ = both(name)
    events = list(tape(30))
    fed(fast, events)
    at = events[-1].available_at
    first = fast.forecast(at).quantiles
    later = fast.forecast(at + 30 * DAY).quantiles
    np.testing.assert_array_equal(fast.forecast(at).quantiles, first)
    assert not np.array_equal(first, later)


def test_the_maximum_of_favor_is_that_of_torch():
    fast, torch_ = both("favor")
    events = list(tape(30))
    fed(fast, events)
    fed(torch_, events)
    mine, theirs = (stream.state.network.readout for stream in (fast, torch_))
    torch.testing.assert_close(mine.m, theirs.m, rtol=1e-5, atol=1e-5)
    assert isinstance(mine, LinearState)
    assert mine.S.dtype == torch.float64


def test_before_any_event_the_maximum_is_that_of_torch():
    fast, torch_ = both("favor")
    assert torch.equal(fast.state.network.readout.m, torch_.state.network.readout.m)
    assert torch.isneginf(fast.state.network.readout.m).all()


@either_attention
@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_what_goes_back_in_time_is_refused_alike(name, backend):
    stream = FORECASTERS[name]().stream("A", backend=backend)
    newest, older = START + DAY, START
    event = replace(next(tape(1)), available_at=newest)
    stream.update(event)
    before = stream.forecast(newest).quantiles
    with pytest.raises(
        ValueError,
        match=f"in order of availability; got available_at {older} ns after {newest} ns",
    ):
        stream.update(replace(event, available_at=older))
    with pytest.raises(
        LookAheadError, match=f"got {older} ns with an event of {newest}"
    ):
        stream.forecast(older)
    np.testing.assert_array_equal(stream.forecast(newest).quantiles, before)


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_a_forecast_that_is_not_finite_is_refused_alike(backend):
    forecaster = FORECASTERS["elu1"]()
    with torch.no_grad():
        forecaster._trained().embedding.stream.weight[0, 0] = torch.nan
    stream = forecaster.stream("A", backend=backend)
    event = replace(next(tape(1)), stream=0)
    stream.update(event)
    with pytest.raises(ValueError, match=r"quantiles must be finite; got .*nan"):
        stream.forecast(event.available_at)


def test_an_event_of_another_width_is_refused():
    stream, _ = both("elu1")
    with pytest.raises(ValueError, match=r"an event must have 3 values, .*; got 1\."):
        stream.update(replace(next(tape(1)), values=np.zeros(1)))


@pytest.mark.parametrize("code", [-1, 2])
def test_an_event_of_an_unknown_stream_is_refused(code):
    stream, _ = both("elu1")
    with pytest.raises(ValueError, match=f"a code from 0 to 1; got {code}"):
        stream.update(replace(next(tape(1)), stream=code))


def test_values_that_are_read_only_or_lie_apart_are_taken():
    events = list(tape(20))
    apart = [replace(e, values=np.repeat(e.values, 2)[::2]) for e in events]
    for event in apart:
        event.values.setflags(write=False)
    fast, again = both("elu1")[0], both("elu1")[0]
    fed(fast, events)
    fed(again, apart)
    at = events[-1].available_at
    np.testing.assert_array_equal(
        fast.forecast(at).quantiles, again.forecast(at).quantiles
    )


def test_a_state_of_another_kind_is_refused():
    fast, _ = both("elu1")
    other, _ = both("softmax")
    with pytest.raises(TypeError, match="must be a LinearState; got SoftmaxState"):
        fast.state = other.state
    with pytest.raises(TypeError, match="must be a SoftmaxState; got LinearState"):
        other.state = fast.state
    assert isinstance(other.state.network.readout, SoftmaxState)


def test_a_state_of_another_shape_is_refused():
    fast, _ = both("elu1")
    deeper = random_forecaster(size=NetworkSize(width=16, num_layers=3, num_heads=2))
    with pytest.raises(ValueError, match="a state must have 3 layers; got 4"):
        fast.state = state_of(deeper)
    wider = random_forecaster(size=NetworkSize(width=24, num_heads=2))
    with pytest.raises(ValueError, match=r"got a part of shape \(2, 12, 12\) for"):
        fast.state = state_of(wider)


def test_streams_of_one_network_share_its_weights_as_long_as_they_stay():
    forecaster = FORECASTERS["elu1"]()
    network = forecaster._trained()
    first = packed_weights(network)
    assert packed_weights(network) is first
    old, event = forecaster.stream("A"), next(tape(1))
    old.update(event)
    before = old.forecast(event.available_at).quantiles
    with torch.no_grad():
        network.head.adjust.bias.add_(0.5)
    np.testing.assert_array_equal(old.forecast(event.available_at).quantiles, before)
    new = fed(forecaster.stream("A"), [event])
    torch_ = fed(carried(forecaster, backend="torch"), [event])
    assert packed_weights(network) is not first
    assert difference(new, torch_, event.available_at) <= AGREEMENT
    assert difference(old, torch_, event.available_at) > AGREEMENT


def test_a_compiled_stream_does_not_keep_its_network_alive():
    forecaster = FORECASTERS["elu1"]()
    network = weakref.ref(forecaster._trained())
    stream = forecaster.stream("A")
    del forecaster
    gc.collect()
    assert network() is None
    assert stream.forecast(START).quantiles.shape == (1, 7)


class Doubled(Elu1):
    """A user's own map."""

    def __call__(self, x, /):
        return 2 * super().__call__(x)


def with_own_map(forecaster):
    network = forecaster._trained()
    network.readout.kernel = LinearKernel(Doubled())
    return forecaster


UNSERVED = {
    "the kernel": lambda: with_own_map(FORECASTERS["elu1"]()),
    "the kernel LinearKernel": lambda: random_forecaster(feature_map="identity"),
    "width 12": lambda: random_forecaster(size=NetworkSize(width=12, num_heads=2)),
}


@pytest.mark.parametrize("what", UNSERVED)
def test_what_numba_does_not_know_is_left_to_torch(what):
    forecaster = UNSERVED[what]()
    stream = forecaster.stream("A")
    assert isinstance(stream, StateStream)
    assert stream.backend == "torch"
    with pytest.raises(ValueError, match=f"backend numba must have .*; got .*{what}"):
        forecaster.stream("A", backend="numba")


def test_a_window_is_left_to_torch():
    forecaster = FORECASTERS["elu1"]()
    assert forecaster.stream("A", history=History(last=5)).backend == "torch"
    with pytest.raises(ValueError, match=r"got history last 5\. Use backend auto"):
        forecaster.stream("A", history=History(last=5), backend="numba")


def test_numba_is_what_auto_takes_where_it_can():
    forecaster = FORECASTERS["elu1"]()
    assert isinstance(forecaster.stream("A"), FastStream)
    assert isinstance(forecaster.stream("A", backend="torch"), StateStream)


def test_each_entity_has_its_own_scale_and_weights():
    for entity in ("B", "C"):
        fast, torch_ = both("elu1", entity=entity)
        events = list(tape(20))
        fed(fast, events)
        fed(torch_, events)
        at = events[-1].available_at
        np.testing.assert_allclose(
            fast.forecast(at).quantiles, torch_.forecast(at).quantiles, rtol=2e-5
        )


def test_code_is_kept_only_where_the_folder_can_be_written(monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)
    assert not _may_keep_code()


def test_kept_code_belongs_to_the_sources_as_they_are(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr("infoset.models.fast.compiled._FOLDER", tmp_path)
    sources_digest.cache_clear()
    try:
        first = sources_digest()
        sources_digest.cache_clear()
        (tmp_path / "a.py").write_text("x = 2")
        assert sources_digest() != first
    finally:
        sources_digest.cache_clear()


def test_a_state_of_a_stream_counts_and_dates_what_it_holds():
    fast, torch_ = both("elu1", HISTORIES["month"])
    events = list(tape(50))
    fed(fast, events)
    fed(torch_, events)
    mine, theirs = fast.state, torch_.state
    assert isinstance(mine, StreamState)
    for name in ("count", "newest", "period"):
        assert getattr(mine, name) == getattr(theirs, name)
    assert mine.weight == pytest.approx(theirs.weight, rel=1e-12)
    assert mine.square == pytest.approx(theirs.square, rel=1e-12)


@pytest.mark.parametrize("name", ["elu1", "softmax"])
def test_a_silence_of_more_years_than_64_bits_hold_is_a_long_one(name):
    """A mistaken year must not leave a state that is not a number."""
    fast, torch_ = both(name)
    first, second, *_ = tape(3)
    old = replace(first, event_time=START - 324 * 365 * DAY)
    old = replace(old, available_at=old.event_time + HOUR)
    for stream in (fast, torch_):
        fed(stream, [old, second])
    at = second.available_at + HOUR
    assert np.isfinite(fast.forecast(at).quantiles).all()
    assert difference(torch_, fast, at) <= AGREEMENT
