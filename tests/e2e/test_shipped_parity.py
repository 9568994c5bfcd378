"""On the shipped data, a stream forecasts what the batch forecast."""

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pytest
import torch

from infoset.data import EventLog
from infoset.models.attention_forecaster import Attention, AttentionForecaster
from infoset.models.event_window import stream_events
from infoset.models.settings import NetworkSize, Training
from infoset.pipeline.config import load_experiment
from infoset.pipeline.preparation import load_log, prepare
from infoset.pipeline.walk_forward import fold_data

AGREEMENT = 1e-5  # of a quantile in units of the scale; float32 rounding is about 1e-7


def from_september_2016(log: EventLog) -> EventLog:
    """Return the newer events, so that `all` means hundreds and not thousands."""
    start = pd.Timestamp("2016-09-01", tz="UTC")
    for stream in log.streams:
        table = log.table(stream)
        newer = pc.greater_equal(table["available_at"], start)
        log = log.with_table(stream, table.filter(newer))
    return log


@pytest.mark.slow
@pytest.mark.parametrize("history", ["all", {"last": 16}, {"since": "quarter"}])
@pytest.mark.parametrize("kind", ["linear", "softmax"])
def test_streamed_and_batch_forecasts_agree_on_the_shipped_data(
    kind: Attention, history: object
) -> None:
    shipped, base = load_experiment("smoke")
    config = shipped.model_dump(mode="json")
    experiment, _ = load_experiment(config | {"history": history})
    samples = prepare(experiment, from_september_2016(load_log(experiment, base)))
    data = fold_data(
        experiment, samples.samples[str(experiment.history)], samples.folds[0]
    )
    train = data.train.take(np.arange(150))
    forecaster = AttentionForecaster(
        kind,
        size=NetworkSize(width=8, num_layers=2, num_heads=2),
        training=Training(max_steps=2, check_every=2),
    )
    forecaster.fit(train.take(np.arange(100)), train.take(np.arange(100, 150)))
    with torch.no_grad():  # not the baseline that the head starts with
        forecaster._trained().head.adjust.weight.fill_(0.1)
    batch = forecaster.forecast(train).quantiles
    stream, fed = forecaster.stream("DGS10"), 0
    line = train.timelines["DGS10"]
    for row in range(len(train)):
        for event in stream_events(line, fed, int(train.stop[row])):
            stream.update(event)
        fed = int(train.stop[row])
        streamed = stream.forecast(int(train.forecast_time[row])).quantiles[0]
        assert np.abs(streamed - batch[row]).max() / train.scale[row] <= AGREEMENT
