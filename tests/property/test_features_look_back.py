"""No feature reads ahead: at t, what became available until t gives the same bits.

Read from files twice: whole, and without every row that was not yet available at t.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infoset.data import (
    CausalScale,
    Change,
    EventLog,
    History,
    Samples,
    Target,
    as_of,
    prepare_samples,
    revision_features,
    vintage,
    with_change,
    with_targets,
)
from infoset.data.clock_features import query_features
from infoset.data.module import Batch, SampleDataset
from infoset.data.sequences import own_changes
from infoset.data.sources import TabularSource, event_log
from infoset.models.tabular_features import tabular_features

pytestmark = pytest.mark.slow
SETTINGS = settings(max_examples=8, deadline=None, derandomize=True)
START = pd.Timestamp("2024-01-25", tz="UTC")  # a month's end lies within
NUM_DAYS = 16
TARGETS = (Target(entities=("A", "B"), stream="bars/1d"),)
HISTORIES = (History(), History(last=4), History(since="month"))
WORDS = ("rates up", "rates down", "no change", "")
KNOWN: dict[str, Any] = {
    "event_time": {"column": "at", "stamp": "instant"},
    "available_at": {"column": "known"},
    "sequence": "seq",
}
SOURCES = (
    {
        "path": "bars.csv",
        "stream": "bars/1d",
        "entity": {"column": "asset"},
        "values": {"value": "value"},
    },
    {
        "path": "news.csv",
        "stream": "news",
        "entity": "*",
        "values": {"value": "value"},
        "text": {"column": "text", "hashing": {"num_features": 3}},
    },
)


@dataclass(frozen=True, eq=False)
class Seen:
    """What a feature is computed from."""

    log: EventLog
    samples: tuple[Samples, ...]  # one per history
    scale: CausalScale
    points: pd.DataFrame

    @property
    def scaled(self) -> tuple[Samples, ...]:
        return tuple(self.scale.apply(samples) for samples in self.samples)


@functools.cache
def tables(seed: int) -> dict[str, pd.DataFrame]:
    """Draw daily bars with gaps, late ones and corrections, and market-wide news."""
    rng = np.random.default_rng(seed)
    day = np.tile(np.arange(NUM_DAYS), 2)
    bars = pd.DataFrame({"asset": np.repeat(["A", "B"], NUM_DAYS), "hour": 24 * day})
    bars["delay"] = np.where(day < 3, 1, rng.choice([0, 1, 30, 80], len(day)))
    bars["value"] = 100 + rng.normal(size=len(day)).cumsum().round(3)
    bars.loc[rng.random(len(day)) < 0.2 * (day > 2), "value"] = np.nan
    corrected = bars.sample(8, random_state=seed).dropna()
    corrected = corrected.assign(value=corrected["value"] + 1)
    corrected["delay"] += rng.choice([0, 5, 49], len(corrected))
    news = pd.DataFrame({"hour": 24 * rng.integers(0, NUM_DAYS, 12), "asset": "*"})
    news["delay"] = rng.integers(0, 90, len(news))
    news["value"] = rng.normal(size=len(news)).round(3)
    news["text"] = rng.choice(WORDS, len(news))
    news.loc[0, ["hour", "delay"]] = 0
    found = {"bars.csv": pd.concat([bars, corrected]), "news.csv": news}
    return {name: stamped(frame, rng) for name, frame in found.items()}


def stamped(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    at = START + pd.to_timedelta(frame["hour"], unit="h")
    frame["at"], frame["known"] = at, at + pd.to_timedelta(frame["delay"], unit="h")
    frame["seq"] = np.arange(len(frame))
    return frame.iloc[rng.permutation(len(frame))]


def log_of(found: dict[str, pd.DataFrame], until: pd.Timestamp) -> EventLog:
    """Write what was available at an instant into files, and read these."""
    with TemporaryDirectory() as folder:
        for name, frame in found.items():
            frame[frame["known"] <= until].to_csv(
                Path(folder, name), index=False, date_format="%Y-%m-%dT%H:%M:%SZ"
            )
        sources = [TabularSource.model_validate(KNOWN | source) for source in SOURCES]
        return event_log(sources, base=Path(folder))


@functools.cache
def seen(seed: int, hours: int) -> tuple[Seen, Seen]:
    """Return all that ever became available, and all that was until some hour.

    Both with the points until then, and a scale fitted on those of the first week.
    """
    whole, time = log_of(tables(seed), pd.Timestamp.max.tz_localize("UTC")), at(hours)
    steps = pd.to_timedelta(np.arange(1, 2 * NUM_DAYS) * 12, unit="h")
    index = pd.MultiIndex.from_product([START + steps, ["A", "B"]])
    asked = index.to_frame(index=False, name=["forecast_time", "entity"])
    points = with_targets(whole, asked, TARGETS)
    early = points[points["forecast_time"] <= at(7 * 24)]
    scale = CausalScale.fit(
        prepare_samples(changed(whole), early, TARGETS, history=History()),
        decay=0.9,
        prior_weight=2.0,
    )
    then = points[points["forecast_time"] <= time].reset_index(drop=True)
    logs = (whole, log_of(tables(seed), time))
    return tuple(  # type: ignore[return-value]
        Seen(
            log,
            tuple(
                prepare_samples(changed(log), then, TARGETS, history=history)
                for history in HISTORIES
            ),
            scale,
            then,
        )
        for log in logs
    )


def at(hours: int) -> pd.Timestamp:
    return START + pd.Timedelta(hours=hours)


def changed(log: EventLog, kind: Any = "difference", **options: Any) -> EventLog:
    change = Change(column="value", kind=kind, **options)
    return with_change(log, "bars/1d", change)


Bits = list[bytes]


def bits(*parts: np.ndarray | pd.DataFrame) -> Bits:
    """Return arrays and frames as bytes."""
    return [
        part.to_csv(index=False).encode()
        if isinstance(part, pd.DataFrame)
        else repr(part.tolist()).encode() + part.tobytes()
        for part in parts
    ]


def changes_so_far(found: Seen) -> Bits:
    time = found.points["forecast_time"].max()
    kinds = [changed(found.log, kind) for kind in ("difference", "percent", "log")]
    kinds.append(changed(found.log, max_age="2d"))
    return bits(*(log.until(time).to_pandas("bars/1d") for log in kinds))


def vintages(found: Seen) -> Bits:
    return bits(
        *(
            vintage(found.log, stream, entity=entity, forecast_time=time)
            for stream in found.log.streams
            for entity in ("A", "B")
            for time in found.points["forecast_time"].unique()[-3:]
        )
    )


def along_timelines(found: Seen) -> Bits:
    parts: list[np.ndarray | pd.DataFrame] = []
    for samples in found.samples:
        parts += [samples.start, samples.stop, samples.num_events, samples.fingerprint]
        for name, line in samples.timelines.items():
            last = samples.stop[samples.entity == name].max()
            parts.append(own_changes(line, samples.targets[name])[:last])
        parts += [samples.information_set(row) for row in range(len(samples))]
    return bits(*parts)


def tensors(found: Seen) -> Bits:
    names = {field.name for field in fields(Batch)} - {"target"}
    parts = []
    for samples in found.scaled:
        for row in range(max(len(samples) - 6, 0), len(samples)):
            batch = SampleDataset(samples.take(np.array([row])))[[0]]
            parts += [getattr(batch, name).numpy() for name in sorted(names)]
    return bits(*parts)


FEATURES: dict[str, Callable[[Seen], Bits]] = {
    "as of": lambda found: bits(as_of(found.log, found.points)),
    "as of, strictly": lambda found: bits(
        as_of(found.log, found.points, boundary="strict")
    ),
    "vintages": vintages,
    "prints and revisions": lambda found: bits(
        revision_features(found.log, found.points)
    ),
    "changes": changes_so_far,
    "information sets": along_timelines,
    "scale": lambda found: bits(*(samples.scale for samples in found.scaled)),
    "clock": lambda found: bits(*map(query_features, found.samples)),
    "tabular": lambda found: bits(
        *(
            tabular_features(samples, revisions=revisions).values
            for samples in found.scaled
            for revisions in (False, True)
        )
    ),
    "tensors": tensors,
}
INSTANTS = st.tuples(st.integers(0, 5), st.integers(2, 2 * NUM_DAYS - 2))


@pytest.mark.parametrize("name", FEATURES)
@SETTINGS
@given(drawn=INSTANTS)
def test_a_feature_reads_nothing_that_became_available_later(
    name: str, drawn: tuple[int, int]
) -> None:
    whole, cut = seen(drawn[0], 12 * drawn[1])
    assert FEATURES[name](whole) == FEATURES[name](cut)


@SETTINGS
@given(drawn=INSTANTS.filter(lambda drawn: drawn[1] >= 14))
def test_a_scale_fitted_on_the_first_week_reads_nothing_of_later_weeks(
    drawn: tuple[int, int],
) -> None:
    for found in seen(drawn[0], 12 * drawn[1]):
        samples = found.samples[0]
        early = np.flatnonzero(samples.points["forecast_time"] <= at(7 * 24))
        fitted = CausalScale.fit(samples.take(early), decay=0.9, prior_weight=2.0)
        assert fitted.prior == found.scale.prior


def daily(found: Seen) -> pd.DataFrame:
    """Return the values of A by day, those that were not known missing."""
    days = pd.date_range(START, found.points["forecast_time"].max(), freq="D")
    frame = found.log.to_pandas("bars/1d")
    mine = frame[frame["entity"] == "A"].drop_duplicates("event_time", keep="last")
    return mine.set_index("event_time")[["value"]].reindex(days.as_unit("ns"))


PLANTED: dict[str, Callable[[Seen], Bits]] = {
    "filled backwards": lambda found: bits(daily(found).bfill()),
    "interpolated": lambda found: bits(daily(found).interpolate()),
    "centred mean": lambda found: bits(
        daily(found).rolling(3, center=True, min_periods=1).mean()
    ),
    "restated values": lambda found: bits(daily(found)),
    "scaled by all": lambda found: bits(
        daily(found).iloc[:2] / found.log.to_pandas("bars/1d")["value"].std()
    ),
    "scale without a training span": lambda found: bits(
        replace(found, scale=refitted(found)).scaled[0].scale
    ),
}


def refitted(found: Seen) -> CausalScale:
    """Fit on all events of the log, whenever they became available."""
    samples = found.samples[0]
    lines = samples.timelines
    ends = np.array([len(lines[str(entity)]) for entity in samples.entity])
    return CausalScale.fit(replace(samples, stop=ends), decay=0.9, prior_weight=2.0)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_feature_that_reads_ahead_is_caught(name: str) -> None:
    caught = [
        PLANTED[name](whole) != PLANTED[name](cut)
        for whole, cut in (seen(seed, 12 * 9) for seed in range(6))
    ]
    assert any(caught)
