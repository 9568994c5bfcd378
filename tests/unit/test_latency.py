"""What a forecast takes: every forecaster, the scored history, turn by turn."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from worlds import sample_world

from infoset.data import CausalScale, History
from infoset.data.sequences import Samples
from infoset.models import LEVELS, Forecasts
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.baselines import BoostedQuantiles, EwmaQuantiles, RidgeQuantiles
from infoset.models.settings import NetworkSize, Training
from infoset.pipeline.config import LatencyOptions
from infoset.pipeline.latency.columns import COLUMNS
from infoset.pipeline.latency.suite import measure_latency
from infoset.pipeline.single_forecasts import (
    information_set_alone,
    measure_single_forecasts,
)

OPTIONS = LatencyOptions(history_lengths=(4, 12), num_forecasts=12, num_warm_up=2)


def scaled(last: int = 8) -> tuple[Samples, Samples, Samples]:
    """Return training, validation and test samples with a scale."""
    samples = sample_world().samples(History(last=last))
    samples = samples.take(np.flatnonzero(np.isfinite(samples.target)))
    cuts = np.split(np.arange(len(samples)), [120, 160])
    scale = CausalScale.fit(samples.take(cuts[0]), decay=0.94, prior_weight=2.0)
    train, validation, test = (scale.apply(samples.take(rows)) for rows in cuts)
    return train, validation, test.without_targets()


@pytest.fixture(scope="module")
def networks() -> dict[str, AttentionForecaster]:
    train, validation, _ = scaled()
    found = {}
    for attention in ("linear", "softmax"):
        network = AttentionForecaster(
            attention,
            size=NetworkSize(width=8, num_layers=1, num_heads=2),
            training=Training(max_steps=1),
        )
        network.fit(train, validation)
        found[attention] = network
    return found


@pytest.mark.slow
def test_the_scored_length_is_timed_beside_the_configured_ones(networks) -> None:
    _, _, test = scaled(last=8)
    table = measure_latency(networks, test, OPTIONS)
    assert tuple(table.columns) == COLUMNS
    closed = table[table["loop"] == "closed"]
    assert sorted(set(closed["history_length"])) == [4, 8, 12]
    assert set(closed["workload"]) == {"fresh", "streaming"}
    assert len(closed) == 2 * 2 * 3
    opened = table[table["loop"] == "poisson"]
    assert set(opened["history_length"]) == {8}
    assert set(opened["time"]) == {"service", "response"}
    assert len(opened) == 2 * 2 * 2
    assert (table["num_forecasts"] == 12).all()
    for row in table.to_dict("records"):
        assert len(row["times_us"]) == 12
        assert row["p50_us"] == np.median(row["times_us"])
        assert row["undefined"] is None


@pytest.mark.slow
def test_a_window_longer_than_all_the_past_is_not_timed_and_says_why(networks) -> None:
    _, _, test = scaled()
    options = OPTIONS.model_copy(update={"history_lengths": (4, 100_000)})
    table = measure_latency(networks, test, options)
    num = max(len(line) for line in test.timelines.values())
    far = table[table["history_length"] == 100_000]
    assert set(far["undefined"]) == {f"the longest timeline holds {num} events"}
    assert far["p50_us"].isna().all()
    assert (far["num_forecasts"] == 0).all()
    assert table.loc[table["history_length"] == 4, "p50_us"].notna().all()


@pytest.mark.slow
def test_a_short_tape_is_read_again_until_there_are_enough_times(
    networks, monkeypatch
) -> None:
    monkeypatch.setattr("infoset.pipeline.latency.tape.LONGEST", 10)
    _, _, test = scaled()
    options = OPTIONS.model_copy(update={"history_lengths": (9,)})
    table = measure_latency(networks, test, options)
    assert (table["num_forecasts"] == 12).all()
    marked = table.set_index(["workload", "history_length"])["synthetic_continuation"]
    assert marked["fresh", 9].all()
    assert not marked["streaming", 9].any()


def test_without_a_network_nothing_is_timed_but_the_columns_are_there() -> None:
    _, _, test = scaled()
    table = measure_latency({}, test, OPTIONS)
    assert table.empty
    assert tuple(table.columns) == COLUMNS


def test_an_information_set_alone_gives_the_forecast_it_gives_among_all_others() -> (
    None
):
    train, validation, test = scaled()
    causal = test.causal_scale
    assert causal is not None
    for forecaster in (
        EwmaQuantiles(),
        RidgeQuantiles(),
        BoostedQuantiles(max_trees=3),
    ):
        forecaster.fit(train, validation)
        together = forecaster.forecast(test).quantiles
        for row in (0, 7, len(test) - 1):
            alone = information_set_alone(test, row)
            [line] = alone.timelines.values()
            assert len(line) == len(line.rows) == 8
            pd.testing.assert_frame_equal(
                alone.information_set(0), test.information_set(row)
            )
            found = forecaster.forecast(causal.apply(alone)).quantiles[0]
            np.testing.assert_allclose(found, together[row], rtol=1e-9)


def test_a_forecaster_without_a_stream_is_timed_at_the_main_history() -> None:
    train, validation, test = scaled()
    forecaster = EwmaQuantiles()
    forecaster.fit(train, validation)
    [row] = measure_single_forecasts({"ewma": forecaster}, test, OPTIONS).to_dict(
        "records"
    )
    assert (row["forecaster"], row["workload"], row["history_length"]) == (
        "ewma",
        "fresh",
        8,
    )
    assert row["num_forecasts"] == len(row["times_us"]) == 12
    assert row["p50_us"] > 0
    assert pd.isna(row["attention"])
    assert pd.isna(row["state_bytes"])


class OneAtATime:
    """Counts its samples and takes its time."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.sizes: list[int] = []

    def fit(self, train: Samples, validation: Samples) -> None:
        """Learn nothing."""

    def forecast(self, samples: Samples) -> Forecasts:
        self.sizes.append(len(samples))
        time.sleep(self.seconds)
        return Forecasts(np.tile(np.arange(len(LEVELS), dtype=float), (1, 1)))


def test_each_timed_forecast_is_of_one_information_set() -> None:
    _, _, test = scaled()
    forecaster = OneAtATime()
    measure_single_forecasts({"mine": forecaster}, test, OPTIONS)
    assert forecaster.sizes == [1] * 14


def test_a_slow_forecaster_is_timed_ten_times_and_no_longer(monkeypatch) -> None:
    monkeypatch.setattr("infoset.pipeline.single_forecasts._LONGEST_SECONDS", 0.05)
    _, _, test = scaled()
    slow = OneAtATime(seconds=0.02)
    options = OPTIONS.model_copy(update={"num_forecasts": 200, "num_warm_up": 20})
    [row] = measure_single_forecasts({"mine": slow}, test, options).to_dict("records")
    assert row["num_forecasts"] == len(slow.sizes) == 10
    assert row["p50_us"] >= 20_000


def test_an_empty_information_set_alone_is_empty() -> None:
    _, _, test = scaled()
    nothing = replace(test, start=test.stop)
    alone = information_set_alone(nothing, 3)
    assert alone.num_events.tolist() == [0]
    assert alone.information_set(0).empty
