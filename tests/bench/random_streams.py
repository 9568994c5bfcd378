"""Forecasters with random weights and tapes of events, full of what hurts a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import torch

from infoset.data import History
from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.embedding import ChannelStatistics
from infoset.models.event_window import StreamEvent
from infoset.models.fast import FastStream
from infoset.models.fitted import FittedOn, StreamScale
from infoset.models.settings import FeatureMapName, LinearAttention, NetworkSize
from infoset.models.stream_making import ChosenBackend
from infoset.models.streaming import StateStream, Stream

CarriedStream: TypeAlias = FastStream | StateStream

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
START = 1_704_067_200_000_000_000  # 2024-01-01 UTC
ENTITIES = ("A", "B", "C")
UNITS = (1.5, 0.1, 20.0)  # of the entities' scales
WIDTH = 3  # values of an event
CHANNELS = (("bars", "open"), ("bars", "close"), ("bars", "change"), ("macro", "value"))
GAPS = (0, 1, HOUR, DAY // 7, 9 * DAY)  # 0: several events at one instant


def random_forecaster(
    attention: Attention = "linear",
    feature_map: FeatureMapName = "elu1",
    *,
    size: NetworkSize | None = None,
    num_features: int | None = None,
    floor: float = 0.0,
    history: History | None = None,
    seed: int = 0,
) -> AttentionForecaster:
    """Return a forecaster that was never fitted; all of its weights are random."""
    forecaster = AttentionForecaster(
        attention,
        linear=LinearAttention(
            feature_map=feature_map, num_features=num_features, denominator_floor=floor
        ),
        size=size or NetworkSize(width=16, num_heads=2),
        seed=seed,
    )
    forecaster.about = FittedOn(
        entities=ENTITIES,
        scales=tuple(map(scale_with, UNITS)),
        streams=("bars", "macro"),
        channels=CHANNELS,
        width=WIDTH,
        history=history or History(),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        base = torch.randn(len(ENTITIES), len(forecaster.levels)).sort().values
        network = forecaster._build(_statistics(seed), base=base.numpy())
        with torch.no_grad():
            for weight in network.parameters():
                weight.add_(0.05 * torch.randn_like(weight))
            network.head.adjust.weight.normal_(0, 0.3)
    forecaster.network = network
    return forecaster


def tape(number: int, *, seed: int = 0) -> Iterator[StreamEvent]:
    """Yield events in order of availability.

    Several become available at one instant; some are about long ago, some about the
    future; some are revisions; values are missing, all of them too; some are tails.
    """
    rng = np.random.default_rng(seed)
    instant = START
    for _ in range(number):
        instant += int(rng.choice(GAPS))
        stream = int(rng.integers(2))
        values = rng.normal(size=WIDTH) * np.exp(2 * rng.normal(size=WIDTH))
        values[rng.random(WIDTH) < 0.3] = np.nan
        if stream == 1:
            values[1:] = np.nan
        yield StreamEvent(
            stream=stream,
            own=bool(rng.random() < 0.7),
            event_time=instant - int(rng.integers(-2, 90)) * DAY // 3,
            available_at=instant,
            revision=int(rng.integers(3)),
            values=values,
        )


def carried(
    forecaster: AttentionForecaster,
    entity: str = "A",
    *,
    history: History | None = None,
    backend: ChosenBackend = "auto",
) -> CarriedStream:
    """Return a stream whose state can be read and set."""
    stream = forecaster.stream(entity, history=history, backend=backend)
    assert isinstance(stream, CarriedStream)
    return stream


def difference(one: Stream, other: CarriedStream, at: int) -> float:
    """Return the largest difference of two streams' forecasts, in units of the scale.

    Both are of entity A.
    """
    forecasts = (stream.forecast(at).quantiles for stream in (one, other))
    first, second = forecasts
    return float(np.abs(first - second).max() / scale_of(other))


def scale_of(stream: CarriedStream) -> float:
    """Return the causal scale of a stream of entity A as it is now."""
    state = stream.state
    return scale_with(UNITS[0]).of_sums(state.weight, state.square)


def scale_with(unit: float) -> StreamScale:
    """Return how the scale of an entity is computed."""
    return StreamScale(
        stream=0, place=2, unit=unit, decay=0.94, prior=0.7, prior_weight=3.0
    )


def _statistics(seed: int) -> ChannelStatistics:
    rng = np.random.default_rng(seed)
    return ChannelStatistics(
        channels=CHANNELS,
        streams=("bars", "macro"),
        offset=np.array([0, 3]),
        num_values=np.array([3, 1]),
        mean=rng.normal(size=4).astype(np.float32),
        deviation=rng.uniform(0.5, 2, 4).astype(np.float32),
        used=np.array([True, False, True, True]),
    )
