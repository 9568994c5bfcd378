"""Forecast points with their information sets: what every forecaster is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64

from .arrays import EventArrays, event_arrays
from .changes import CHANGE
from .events import Boundary, EventLog
from .instants import instants, nanoseconds
from .scaling import EwmaSums
from .targets import TARGET_COLUMNS, Target
from .timeline import History, Timeline, timeline_of


@dataclass(frozen=True, eq=False)
class CausalScale:
    """The EWMA volatility of each entity's target, from its information set alone.

    Attributes
    ----------
    decay : float
        Weight of one change relative to the next.
    prior_weight : float
        The prior counts as that many newest changes.
    prior : Mapping[str, float]
        Mean squared change over the training span, per entity with a training row.
    """

    decay: float
    prior_weight: float
    prior: Mapping[str, float]

    @classmethod
    def fit(cls, train: Samples, *, decay: float, prior_weight: float) -> CausalScale:
        """Take the prior from the changes visible at the last training forecast time.

        Raises
        ------
        ValueError
            If an entity had no change, or only zero ones, in the training span.
        """
        prior = {}
        for name, line in train.timelines.items():
            mine = train.entity == name
            if not mine.any():
                continue  # nothing was learned about it, so nothing is said
            last = int(train.stop[mine].max())
            moves = own_changes(line, train.targets[name])[:last]
            seen = moves[np.isfinite(moves)]
            prior[name] = float(np.mean(seen**2)) if len(seen) else 0.0
            if prior[name] <= 0:
                raise ValueError(
                    "every entity must have a non-zero change in the training span; "
                    f"got none for {name!r} ({len(seen)} changes seen). Lengthen "
                    "folds.train_size or start the first test later."
                )
        return cls(decay, prior_weight, prior)

    def apply(self, samples: Samples) -> Samples:
        """Return the samples with `scale` filled in (one value per point, positive)."""
        scale = np.ones(len(samples))
        for name, rows in samples.points.groupby("entity").indices.items():
            if name not in self.prior:
                raise ValueError(
                    "every entity must have a training row; got none for "
                    f"{name!r}. Leave its points out of this fold."
                )
            line = samples.timelines[str(name)]
            moves = own_changes(line, samples.targets[str(name)])
            sums = EwmaSums.along(moves, np.isfinite(moves), decay=self.decay)
            scale[rows] = np.sqrt(
                sums.variance(
                    samples.start[rows],
                    samples.stop[rows],
                    prior=self.prior[str(name)],
                    prior_weight=self.prior_weight,
                )
            )
        return replace(samples, scale=scale, causal_scale=self)


@dataclass(frozen=True, eq=False)
class Samples:
    """Points, their information sets and, unless withheld, their targets.

    Attributes
    ----------
    points : DataFrame
        entity, forecast_time, target_start, target_end, resolves_at, target.
    timelines : Mapping[str, Timeline]
        Per entity; an information set is the slice [start, stop) of one of them.
    start, stop : ndarray of shape (n,)
    fingerprint : ndarray of shape (n,)
        32 hexadecimal digits each; equal = the same information.
    scale : ndarray of shape (n,)
        Volatility of the target as known at the forecast time, in the target's unit;
        ones before a `CausalScale` was applied.
    targets : Mapping[str, Target]
        Per entity.
    history : History
    causal_scale : CausalScale, optional
        What `scale` was computed with.
    """

    points: pd.DataFrame
    timelines: Mapping[str, Timeline]
    start: Int64[np.ndarray, " n"]
    stop: Int64[np.ndarray, " n"]
    fingerprint: np.ndarray
    scale: Float64[np.ndarray, " n"]
    targets: Mapping[str, Target]
    history: History
    causal_scale: CausalScale | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def entity(self) -> np.ndarray:
        """Entity of each point."""
        return self.points["entity"].to_numpy(dtype=object)

    @property
    def forecast_time(self) -> Int64[np.ndarray, " n"]:
        """UTC nanoseconds."""
        return nanoseconds(self.points["forecast_time"])

    @property
    def target(self) -> Float64[np.ndarray, " n"]:
        """Targets in their unit; NaN where undefined or withheld."""
        return self.points["target"].to_numpy(np.float64)

    @property
    def scaled_target(self) -> Float64[np.ndarray, " n"]:
        """Target divided by the scale known at the forecast time."""
        scaled: np.ndarray = self.target / self.scale
        return scaled

    @property
    def num_events(self) -> Int64[np.ndarray, " n"]:
        """Size of each information set."""
        count: np.ndarray = self.stop - self.start
        return count

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities with a target, sorted; the same whatever the points."""
        return tuple(sorted(self.targets))

    @property
    def arrays(self) -> EventArrays:
        """Return the events that all timelines point into."""
        return next(iter(self.timelines.values())).arrays

    def take(self, rows: Int64[np.ndarray, " k"]) -> Samples:
        """Return the samples at the given positions, in that order."""
        return replace(
            self,
            points=self.points.iloc[rows].reset_index(drop=True),
            start=self.start[rows],
            stop=self.stop[rows],
            fingerprint=self.fingerprint[rows],
            scale=self.scale[rows],
        )

    def without_targets(self) -> Samples:
        """Return the same points with everything about the target withheld."""
        blind = self.points.copy()
        for column in TARGET_COLUMNS:
            blind[column] = np.nan if column == "target" else pd.NaT
        return replace(self, points=blind)

    def information_set(self, row: int) -> pd.DataFrame:
        """Return the events that one forecast may use, oldest availability first.

        Returns
        -------
        DataFrame
            stream, event_time, available_at, revision and one column per value name.
        """
        line = self.timelines[self.points["entity"].iloc[row]]
        picked = line.rows[self.start[row] : self.stop[row]]
        arrays = line.arrays
        stream = arrays.stream[picked].astype(np.int64)
        frame = pd.DataFrame(
            {
                "stream": np.array(arrays.streams, dtype=object)[stream],
                "event_time": instants(arrays.event_time[picked]),
                "available_at": instants(arrays.available_at[picked]),
                "revision": arrays.revision[picked],
            }
        )
        for name in sorted({column for _, column in arrays.channels}):
            frame[name] = _named_values(arrays, picked, name)
        return frame


def prepare_samples(
    log: EventLog,
    points: pd.DataFrame,
    targets: Sequence[Target],
    *,
    history: History,
    boundary: Boundary = "inclusive",
) -> Samples:
    """Cut the information set of every point.

    Parameters
    ----------
    log : EventLog
    points : DataFrame
        As `targets.with_targets` returns them.
    targets : sequence of Target
    history : History
    boundary : {'inclusive', 'strict'}

    Returns
    -------
    Samples
        In the order of the points; an empty information set stays.

    Raises
    ------
    ValueError
        If there is no point.
    """
    if points.empty:
        raise ValueError(
            "points must hold at least one forecast time; got none. Check "
            "forecast_times and targets."
        )
    arrays = event_arrays(log)
    owner = {entity: target for target in targets for entity in target.entities}
    lines = {n: timeline_of(arrays, n) for n in sorted(set(points["entity"]))}
    start = np.zeros(len(points), dtype=np.int64)
    stop = np.zeros(len(points), dtype=np.int64)
    fingerprint = np.full(len(points), "", dtype=np.dtype("U32"))
    times = nanoseconds(points["forecast_time"])
    for name, rows in points.groupby("entity").indices.items():
        line = lines[str(name)]
        stop[rows] = line.stop(times[rows], boundary=boundary)
        start[rows] = line.start(stop[rows], times[rows], history)
        fingerprint[rows] = line.fingerprints(start[rows], stop[rows])
    return Samples(
        points=points.reset_index(drop=True),
        timelines=lines,
        start=start,
        stop=stop,
        fingerprint=fingerprint,
        scale=np.ones(len(points)),
        targets=owner,
        history=history,
    )


def own_change_channel(arrays: EventArrays, target: Target) -> tuple[int, int]:
    """Return (stream code, value index) of the change that scales a target."""
    return (
        arrays.stream_code(target.stream),
        arrays.value_index(target.stream, CHANGE),
    )


def own_changes(line: Timeline, target: Target) -> Float64[np.ndarray, " n"]:
    """Return the entity's own first-print changes along a timeline; NaN elsewhere.

    In the target's unit.
    """
    arrays = line.arrays
    stream, place = own_change_channel(arrays, target)
    own = (
        (arrays.stream[line.rows] == stream)
        & (arrays.revision[line.rows] == 0)
        & (arrays.entity[line.rows] == arrays.entity_code(line.entity))
    )
    moves = target.scale * arrays.values[line.rows, place]
    return np.where(own, moves, np.nan)


def _named_values(
    arrays: EventArrays, rows: Int64[np.ndarray, " k"], name: str
) -> Float64[np.ndarray, " k"]:
    answer = np.full(len(rows), np.nan)
    for stream, column in arrays.channels:
        if column == name:
            mine = arrays.stream[rows] == arrays.stream_code(stream)
            place = arrays.value_index(stream, column)
            answer[mine] = arrays.values[rows[mine], place]
    return answer
