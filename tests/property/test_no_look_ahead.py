"""The whole path, from event log to forecast: the future changes nothing."""

from dataclasses import fields, replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import sample_world

from infoset.data import CausalScale, Change, History, prepare_samples, with_change
from infoset.data.module import Batch, SampleDataset
from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.event_window import stream_events
from infoset.models.settings import NetworkSize, Training

pytestmark = pytest.mark.slow
SETTINGS = settings(max_examples=10, deadline=None, derandomize=True)
HISTORIES = {"all": History(), "last": History(last=9), "since": History(since="month")}
KINDS: list[Attention] = ["linear", "softmax"]
LARGEST_CHANGE = 1e-6  # of a forecast in units of the scale: float32 rounding
AGREEMENT = 1e-5  # between streamed and batch forecasts, likewise


@cache
def fitted(kind, history):
    """Return samples, their scale and a forecaster trained long enough to differ."""
    samples = sample_world().samples(HISTORIES[history])
    past = np.arange(150)
    scale = CausalScale.fit(samples.take(past), decay=0.9, prior_weight=2.0)
    samples = scale.apply(samples)
    forecaster = AttentionForecaster(
        kind,
        size=NetworkSize(width=8, num_layers=2, num_heads=2),
        training=Training(max_steps=8, check_every=8, batch_size=32, patience=9),
        seed=1,
    )
    forecaster.fit(samples.take(past[:100]), samples.take(past[100:]))
    with torch.no_grad():  # not the baseline that the head starts with
        forecaster._trained().head.adjust.weight.normal_(0, 0.3, generator=_generator())
    return samples, scale, forecaster


def _generator():
    return torch.Generator().manual_seed(0)


def rebuilt(log, samples, row):
    """Return one sample, made from a log from which the changes are derived anew."""
    stripped = {s: log.table(s).drop_columns(["change"]) for s in ["bars/1d"]}
    raw = replace(log, tables={**log.tables, **stripped}, levels=frozenset())
    changed = with_change(raw, "bars/1d", Change(column="value", kind="difference"))
    targets = list(dict.fromkeys(samples.targets.values()))
    point = samples.without_targets().points.iloc[[row]]
    return prepare_samples(changed, point, targets, history=samples.history)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", KINDS)
@SETTINGS
@given(row=st.integers(0, 235))
def test_deleting_later_events_changes_no_bit_of_input_and_no_forecast(
    kind, history, row
):
    samples, scale, forecaster = fitted(kind, history)
    time = samples.points["forecast_time"].iloc[row]
    cut = scale.apply(rebuilt(sample_world().log.until(time), samples, row))
    whole = samples.take(np.array([row]))
    assert cut.fingerprint.tolist() == whole.fingerprint.tolist()
    assert cut.scale.tobytes() == whole.scale.tobytes()
    one, other = SampleDataset(cut)[[0]], SampleDataset(whole)[[0]]
    for name in {field.name for field in fields(Batch)} - {"target"}:
        assert torch.equal(getattr(one, name), getattr(other, name)), name
    together = forecaster.forecast(samples).quantiles[row]
    alone = forecaster.forecast(cut).quantiles[0]
    assert np.abs(together - alone).max() / samples.scale[row] <= LARGEST_CHANGE


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_streamed_forecasts_are_the_batch_forecasts(kind, history):
    samples, _, forecaster = fitted(kind, history)
    batch = forecaster.forecast(samples).quantiles
    for entity in samples.entities:
        stream, fed = forecaster.stream(entity), 0
        line = samples.timelines[entity]
        for row in np.flatnonzero(samples.entity == entity)[::3]:
            for event in stream_events(line, fed, int(samples.stop[row])):
                stream.update(event)
            fed = int(samples.stop[row])
            streamed = stream.forecast(int(samples.forecast_time[row])).quantiles[0]
            change = np.abs(streamed - batch[row]).max() / samples.scale[row]
            assert change <= AGREEMENT


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_asking_a_stream_changes_nothing(kind, history):
    samples, _, forecaster = fitted(kind, history)
    stream = forecaster.stream("A")
    line = samples.timelines["A"]
    for event in stream_events(line, 0, 40):
        stream.update(event)
    at = int(line.available_at[39])
    first = stream.forecast(at).quantiles
    later = stream.forecast(at + 10**15).quantiles
    np.testing.assert_array_equal(stream.forecast(at).quantiles, first)
    assert not np.array_equal(first, later)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_forks_of_a_stream_go_their_own_ways(kind, history):
    samples, _, forecaster = fitted(kind, history)
    line = samples.timelines["A"]
    events = list(stream_events(line, 0, 45))
    stream = forecaster.stream("A")
    for event in events[:40]:
        stream.update(event)
    at = int(line.available_at[44])
    before = stream.forecast(at).quantiles
    fork = stream.fork()
    for event in events[40:]:
        fork.update(event)
    after = fork.forecast(at).quantiles
    np.testing.assert_array_equal(stream.forecast(at).quantiles, before)
    for event in events[40:]:
        stream.update(event)
    np.testing.assert_array_equal(stream.forecast(at).quantiles, after)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_without_events_forecasts_as_an_empty_information_set(kind, history):
    samples, scale, forecaster = fitted(kind, history)
    early = samples.points.iloc[[0]].copy()
    early["forecast_time"] -= np.timedelta64(1000, "D")
    world = sample_world()
    empty = scale.apply(
        prepare_samples(world.log, early, world.targets, history=samples.history)
    )
    assert empty.num_events.tolist() == [0]
    entity = str(empty.entity[0])
    streamed = forecaster.stream(entity).forecast(int(empty.forecast_time[0]))
    np.testing.assert_allclose(
        streamed.quantiles, forecaster.forecast(empty).quantiles, rtol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_forecaster_forecasts_and_streams_the_same(kind, tmp_path):
    samples, _, forecaster = fitted(kind, "last")
    forecaster.save(tmp_path)
    again = AttentionForecaster.load(tmp_path)
    np.testing.assert_array_equal(
        again.forecast(samples).quantiles, forecaster.forecast(samples).quantiles
    )
    at = int(samples.forecast_time[0])
    np.testing.assert_array_equal(
        again.stream("B").forecast(at).quantiles,
        forecaster.stream("B").forecast(at).quantiles,
    )


def test_an_event_out_of_order_is_refused():
    samples, _, forecaster = fitted("linear", "all")
    stream = forecaster.stream("A")
    newer, older = list(stream_events(samples.timelines["A"], 0, 9))[::-8]
    stream.update(newer)
    with pytest.raises(ValueError, match="events must come in order of availability"):
        stream.update(older)


def test_linear_and_softmax_start_with_the_same_weights_and_differ_by_the_kernel_alone():
    weights = []
    for kind in KINDS:
        samples, _, _ = fitted(kind, "last")
        forecaster = AttentionForecaster(
            kind,
            size=NetworkSize(width=8, num_heads=2),
            training=Training(max_steps=1, check_every=1, learning_rate=1e-12),
            seed=5,
        )
        forecaster.fit(samples.take(np.arange(90)), samples.take(np.arange(90, 120)))
        weights.append(forecaster._trained().state_dict())
    assert weights[0].keys() == weights[1].keys()
    for name, weight in weights[0].items():
        torch.testing.assert_close(weight, weights[1][name], atol=1e-9, rtol=0)
