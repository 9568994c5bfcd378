"""Samples: slices, scales, and what is withheld."""

import numpy as np
import pandas as pd
import pytest
from worlds import sample_world

from infoset.data import CausalScale, History, prepare_samples
from infoset.data.module import SampleDataset

HISTORIES = [History(), History(last=7), History(since="month")]


def scaled(world, history=HISTORIES[1]):
    samples = world.samples(history)
    half = np.arange(len(samples) // 2)
    fitted = CausalScale.fit(samples.take(half), decay=0.9, prior_weight=2.0)
    return fitted.apply(samples)


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_the_scale_is_what_a_loop_over_the_information_set_finds(history):
    world = sample_world()
    samples = world.samples(history)
    fitted = CausalScale.fit(samples, decay=0.9, prior_weight=2.0)
    got = fitted.apply(samples).scale
    for row in range(0, len(samples), 5):
        seen = samples.information_set(row)
        own = seen[(seen["stream"] == "bars/1d") & (seen["revision"] == 0)]
        moves = own["change"].dropna().to_numpy()
        weights = 0.9 ** np.arange(len(moves))[::-1]
        prior = fitted.prior[samples.points["entity"].iloc[row]]
        total = 2.0 * prior + float(weights @ moves**2)
        assert got[row] == pytest.approx(np.sqrt(total / (2.0 + weights.sum())))


def test_an_empty_information_set_has_the_training_scale():
    world = sample_world()
    early = world.points.assign(forecast_time=pd.Timestamp("2000-01-01", tz="UTC"))
    samples = prepare_samples(
        world.log, early.iloc[:2], world.targets, history=History()
    )
    fitted = CausalScale.fit(world.samples(History()), decay=0.9, prior_weight=2.0)
    expected = [np.sqrt(fitted.prior[e]) for e in samples.entity]
    np.testing.assert_allclose(fitted.apply(samples).scale, expected)
    assert samples.num_events.tolist() == [0, 0]


def test_nothing_about_the_target_reaches_a_forecaster():
    blind = scaled(sample_world()).without_targets()
    columns = ["target_start", "target_end", "resolves_at", "target"]
    assert blind.points[columns].isna().all().all()
    assert np.isnan(SampleDataset(blind)[[0, 1]].target.numpy()).all()


@pytest.mark.parametrize("history", HISTORIES, ids=str)
def test_a_batch_holds_each_point_once_with_the_events_it_may_see(history):
    samples = scaled(sample_world(), history)
    dataset = SampleDataset(samples)
    seen = []
    for batch in dataset.batches(16):
        for row in range(len(batch.mask)):
            for place in np.flatnonzero(batch.point[row].numpy() >= 0):
                point = int(batch.point[row, place])
                seen.append(point)
                stop = int(batch.stop[row, place])
                assert stop == samples.num_events[point]
                values = batch.values[row, :stop].numpy()
                events = samples.information_set(point)
                assert len(values) == len(events)
                assert bool(batch.mask[row, :stop].all())
                revisions = batch.revision[row, :stop].numpy()
                np.testing.assert_array_equal(revisions, events["revision"])
    assert sorted(seen) == list(range(len(samples)))


def test_the_first_event_of_a_slice_has_no_event_before_it():
    samples = scaled(sample_world(), History(last=3))
    batch = SampleDataset(samples)[list(range(len(samples)))]
    assert float(batch.elapsed_days[:, 0].abs().max()) == 0.0


def test_a_scale_needs_a_change_in_the_training_span():
    samples = sample_world(volatility=0.0).samples(History())
    with pytest.raises(
        ValueError, match=r"must have a non-zero change .* got none for"
    ):
        CausalScale.fit(samples, decay=0.9, prior_weight=1.0)
