"""Looking into a network's attention: faults are named by place, denominators counted."""

import math
from functools import cache, partial

import numpy as np
import pytest
import torch
from worlds import sample_world

from infoset.data import CausalScale, History
from infoset.data.module import SampleDataset
from infoset.data.sequences import Samples
from infoset.models.attention import NonFiniteError
from infoset.models.attention_checks import (
    DenominatorRecord,
    check_attention,
    watched_denominators,
)
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.settings import LinearAttention, NetworkSize, Training

PAST = np.arange(150)
HISTORIES = {"all": History(), "last": History(last=9)}


@cache
def world(history: str) -> Samples:
    samples = sample_world().samples(HISTORIES[history])
    scale = CausalScale.fit(samples.take(PAST), decay=0.9, prior_weight=2.0)
    return scale.apply(samples)


def fitted(history: str = "last", **linear: object) -> AttentionForecaster:
    forecaster = AttentionForecaster(
        "linear",
        linear=LinearAttention(**linear),  # type: ignore[arg-type] # pydantic checks
        size=NetworkSize(width=8, num_layers=2, num_heads=2),
        training=Training(max_steps=2, check_every=2, batch_size=32),
    )
    samples = world(history)
    forecaster.fit(samples.take(PAST[:100]), samples.take(PAST[100:]))
    return forecaster


@pytest.mark.parametrize("place", ["layer 1", "layer 2", "readout"])
@pytest.mark.parametrize("history", HISTORIES)
def test_a_weight_that_is_not_finite_is_refused_by_layer_head_and_position(
    place: str, history: str
) -> None:
    forecaster = fitted(history)
    network = forecaster.network
    assert network is not None
    layer = {"layer 1": network.blocks[0], "layer 2": network.blocks[1]}.get(
        place, network.readout
    )
    with torch.no_grad():
        layer.heads.key_value.weight[5] = float("nan")  # type: ignore[union-attr,operator] # the keys' second head
    message = rf"^k must be finite in visible rows; got nan \({place}, batch row \d+, head 1, position \d+\)"
    with pytest.raises(NonFiniteError, match=message):
        forecaster.forecast(world(history).take(PAST[-20:]))


def test_a_fault_behind_all_attention_is_told_as_such() -> None:
    forecaster = fitted()
    assert forecaster.network is not None
    with torch.no_grad():
        forecaster.network.norm.weight[0] = float("inf")
    message = r"forecasts must be finite; got others although all attention is finite \(after the readout\)"
    with pytest.raises(NonFiniteError, match=message):
        forecaster.forecast(world("last").take(PAST[-20:]))


def test_training_that_diverges_names_step_and_place() -> None:
    forecaster = AttentionForecaster(
        "linear",
        size=NetworkSize(width=8, num_layers=1, num_heads=2),
        training=Training(learning_rate=1e30, max_steps=6, check_every=1, patience=9),
    )
    samples = world("last")
    message = (
        r"^the validation loss must be finite; got a non-finite one at step [1-6]\. "
        r"Lower training\.learning_rate\. . must be finite in visible rows; got \S+ "
        r"\(layer 1, batch row 0, head 0, position \d\)"
    )
    with pytest.raises(NonFiniteError, match=message):
        forecaster.fit(samples.take(PAST[:100]), samples.take(PAST[100:]))


def test_looking_changes_neither_forecasts_nor_the_network() -> None:
    forecaster, samples = fitted(), world("last").take(PAST[-20:])
    network = forecaster.network
    assert network is not None
    before = forecaster.forecast(samples).quantiles
    names = list(network.state_dict())
    (batch,) = SampleDataset(samples, forecaster.fitted_on().entities).batches(64)
    check_attention(network, partial(network, batch))
    with watched_denominators(network), torch.inference_mode():
        watched = network(batch)
    assert list(network.state_dict()) == names
    np.testing.assert_array_equal(forecaster.forecast(samples).quantiles, before)
    assert torch.equal(watched, network(batch))


@pytest.mark.parametrize("history", HISTORIES)
def test_denominators_are_counted_once_for_each_query_that_can_read(
    history: str,
) -> None:
    forecaster, samples = fitted(history), world(history).take(PAST[40:60])
    record = forecaster.denominators(samples)
    assert record is not None
    num_points, layers, heads = len(samples), 2, 2
    dataset = SampleDataset(samples, forecaster.fitted_on().entities)
    num_events = sum(int(b.mask.sum()) for b in dataset.batches(64))
    assert record.num_rows == heads * (layers * num_events + num_points)
    assert (record.num_zero, record.num_floored) == (0, 0)
    assert 0 < record.smallest < math.inf


def test_the_share_of_floored_rows_follows_the_floor() -> None:
    samples = world("last").take(PAST[40:60])
    none = fitted(denominator_floor=1e-9).denominators(samples)
    every = fitted(denominator_floor=1e9).denominators(samples)
    assert none is not None
    assert every is not None
    assert none.metrics()["floored_share"] == 0.0
    assert every.metrics()["floored_share"] == 1.0


def test_softmax_has_no_denominators_to_record() -> None:
    forecaster = AttentionForecaster(
        "softmax",
        size=NetworkSize(width=8, num_layers=1, num_heads=2),
        training=Training(max_steps=1, check_every=1),
    )
    samples = world("last")
    forecaster.fit(samples.take(PAST[:100]), samples.take(PAST[100:]))
    assert forecaster.denominators(samples) is None


def test_what_is_undefined_is_left_out_of_the_metrics() -> None:
    assert DenominatorRecord().metrics() == {"zero_denominators": 0.0}
    record = DenominatorRecord()
    record.add(torch.tensor([0.0, 0.0]), 0.0)
    assert record.metrics() == {"zero_denominators": 2.0, "floored_share": 0.0}
