"""Revision features as columns of the tabular baselines."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter
from worlds import hours, sample_world

from infoset.data import (
    CausalScale,
    EventLog,
    History,
    prepare_samples,
    revision_features,
)
from infoset.models.baselines import BoostedQuantiles, RidgeQuantiles
from infoset.models.settings import NetworkSize, Training
from infoset.models.tabular_features import tabular_features
from infoset.pipeline.forecaster_specs import ForecasterSpec, build_forecaster

DAY = 86400
ADDED = [
    f"{stream} {what}"
    for stream, columns in (("bars/1d", ["change"]), ("macro/CPI", ["value"]))
    for what in (
        *(f"{column} since the first print" for column in columns),
        *(f"{column} since the print before" for column in columns),
        "revisions",
        "age of the newest period",
        "lag",
        "staleness",
    )
]


def scaled(samples):
    train = samples.take(np.arange(len(samples) // 2))
    return CausalScale.fit(train, decay=0.94, prior_weight=2.0).apply(samples)


def test_without_the_flag_the_table_is_what_it_was():
    samples = sample_world().samples(History(last=16))
    plain = tabular_features(samples)
    more = tabular_features(samples, revisions=True)
    assert more.names == (*plain.names, *ADDED)
    np.testing.assert_array_equal(more.values[:, : len(plain.names)], plain.values)


def test_columns_say_what_the_table_of_revision_features_says():
    world = sample_world()
    table = tabular_features(world.samples(History()), revisions=True)
    found = revision_features(world.log, world.points)
    for stream, column in (("bars/1d", "change"), ("macro/CPI", "value")):
        mine = found[found["stream"] == stream]
        expected = {
            f"{column} since the first print": mine[f"{column}_since_first_print"],
            f"{column} since the print before": mine[f"{column}_since_previous_print"],
            "revisions": mine["num_revisions"].astype("Float64").astype("float64"),
            "age of the newest period": mine["age"].dt.total_seconds() / DAY,
            "lag": mine["lag"].dt.total_seconds() / DAY,
            "staleness": mine["staleness"],
        }
        for what, values in expected.items():
            got = table.values[:, table.names.index(f"{stream} {what}")]
            np.testing.assert_allclose(got, values.to_numpy(), rtol=1e-12)


def test_levels_are_not_compared_across_a_change_of_base():
    names = tabular_features(sample_world().samples(History()), revisions=True).names
    assert not [name for name in names if name.startswith("bars/1d value since")]


@pytest.mark.parametrize("history", [History(last=8), History(since="month")])
def test_columns_come_from_the_information_set_alone(history):
    world = sample_world()
    whole = tabular_features(scaled(world.samples(history)), revisions=True).values
    for row in (40, 111, 200):
        time = world.points["forecast_time"].iloc[row]
        cut = prepare_samples(
            world.log.until(time),
            world.points.iloc[[row]],
            world.targets,
            history=history,
        )
        alone = tabular_features(cut, revisions=True)
        first = alone.names.index(ADDED[0])
        np.testing.assert_array_equal(alone.values[0, first:], whole[row, first:])


def test_a_print_before_the_history_is_not_remembered():
    world = sample_world()
    name = "macro/CPI value since the first print"
    long = tabular_features(world.samples(History()), revisions=True)
    short = tabular_features(world.samples(History(last=12)), revisions=True)
    column = long.names.index(name)
    known = np.isfinite(short.values[:, column])
    assert np.isfinite(long.values[known, column]).all()
    assert known.sum() < np.isfinite(long.values[:, column]).sum()


def samples_that_move_after_a_revision():
    """Return samples whose target is larger while the newest period stands revised."""
    world = sample_world(num_days=400)
    prints, rng = np.arange(0, 390, 10), np.random.default_rng(1)
    news = pd.DataFrame(
        {
            "entity": "*",
            "event_time": hours(24 * prints),
            "available_at": hours(24 * prints + 13),
            "value": rng.normal(size=len(prints)),
        }
    )
    revised = news.iloc[::2].assign(
        available_at=news["available_at"].iloc[::2] + pd.Timedelta("5D"),
        value=rng.normal(size=len(prints[::2])),
    )
    log = EventLog.from_pandas(
        pd.concat([news, revised]), stream="macro/GDP", values=["value"]
    )
    log = replace(world.log, tables={**world.log.tables, **log.tables})
    found = revision_features(log, world.points)
    stands = (found["num_revisions"] > 0)[found["stream"] == "macro/GDP"].to_numpy(bool)
    points = world.points.assign(target=world.points["target"] + 6.0 * stands)
    samples = prepare_samples(log, points, world.targets, history=History(last=64))
    return scaled(samples)


@pytest.mark.parametrize("kind", [RidgeQuantiles, BoostedQuantiles])
def test_a_baseline_learns_from_revisions_what_it_cannot_learn_without(kind):
    samples = samples_that_move_after_a_revision()
    train, later = samples.take(np.arange(500)), samples.take(np.arange(500, 780))
    errors = []
    for flag in (False, True):
        forecaster = kind(revision_features=flag)
        forecaster.fit(train, later)
        median = forecaster.forecast(later.without_targets()).quantiles[:, 3]
        errors.append(np.abs(later.target - median).mean())
    assert errors[1] < 0.8 * errors[0]


@pytest.mark.parametrize("kind", ["ridge", "boosting"])
def test_the_setting_is_off_unless_declared_and_not_written_where_it_is_off(kind):
    adapter: TypeAdapter[ForecasterSpec] = TypeAdapter(ForecasterSpec)
    off = adapter.validate_python({"kind": kind})
    on = adapter.validate_python({"kind": kind, "revision_features": True})
    assert "revision_features" not in off.model_dump(mode="json")
    assert on.model_dump(mode="json")["revision_features"] is True
    for spec, flag in ((off, False), (on, True)):
        forecaster = build_forecaster(
            spec, network=NetworkSize(), training=Training(), seed=0
        )
        assert vars(forecaster)["revision_features"] is flag
