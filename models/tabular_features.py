"""The information set as one row of numbers, for forecasters that read tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from infoset.data.arrays import EventArrays
from infoset.data.clock_features import query_features
from infoset.data.instants import NS_PER_DAY
from infoset.data.revision_features import is_compared
from infoset.data.sequences import Samples, own_changes
from infoset.data.stream_readings import Readings, stream_readings
from infoset.data.timeline import Timeline

_NUM_LAGS = 5
_FAST, _SLOW = 5, 20
_PUBLICATION = ("revisions", "age of the newest period", "lag", "staleness")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of samples; missing where the information set holds no such event.

    Attributes
    ----------
    values : ndarray of shape (n, f)
    names : tuple of str
    """

    values: Float64[np.ndarray, "n f"]
    names: tuple[str, ...]


def tabular_features(samples: Samples, *, revisions: bool = False) -> FeatureTable:
    """Return what the newest events of each information set say.

    For each entity's own target stream the last five changes, divided by the causal
    scale, and the ratios of recent absolute changes to it; for every other channel
    the value that arrived last and the days since; the clock of the forecast; the
    logarithm of the scale; the entity, one column each. With `revisions` also what
    `data.stream_readings` says of each stream, from the information set alone.
    """
    arrays = samples.arrays
    channels = [
        (stream, column)
        for stream, column in arrays.channels
        if (stream, column) not in arrays.levels
    ]
    own = np.full((len(samples), _NUM_LAGS + 2), np.nan)
    last = np.full((len(samples), len(channels)), np.nan)
    days = np.full((len(samples), len(arrays.streams)), np.nan)
    for name, line in samples.timelines.items():
        rows = np.flatnonzero(samples.entity == name)
        part = samples.take(rows)
        own[rows] = _own_moves(part, line)
        for code, stream in enumerate(arrays.streams):
            newest = _last_arrival(part, line, code)
            days[rows, code] = _age(part, arrays, newest)
            for place, (owner, column) in enumerate(channels):
                if owner == stream:
                    index = arrays.value_index(owner, column)
                    last[rows, place] = _value(arrays, newest, index)
    entity = samples.entity[:, None] == np.array(samples.entities, dtype=object)
    clock = query_features(samples).astype(np.float64)
    scale = np.log(samples.scale)[:, None]
    names = (
        *(f"own change, lag {k + 1}" for k in range(_NUM_LAGS)),
        f"absolute change, last {_FAST}",
        f"absolute change, last {_SLOW}",
        *(f"{stream} {column}" for stream, column in channels),
        *(f"{stream} days since" for stream in arrays.streams),
        *(f"clock {k}" for k in range(clock.shape[1])),
        "log scale",
        *(f"entity {name}" for name in samples.entities),
    )
    columns = [own, last, days, clock, scale, entity.astype(np.float64)]
    if revisions:
        added = _publication(samples, [c for c in channels if is_compared(c[1])])
        columns, names = [*columns, added.values], (*names, *added.names)
    return FeatureTable(np.concatenate(columns, axis=1), names)


def _publication(samples: Samples, channels: list[tuple[str, str]]) -> FeatureTable:
    """Return surprises, revisions, age, lag and staleness of each stream."""
    streams = samples.arrays.streams
    owned = [[c for owner, c in channels if owner == stream] for stream in streams]
    blocks = [
        np.full((len(samples), 2 * len(c) + len(_PUBLICATION)), np.nan) for c in owned
    ]
    for name, line in samples.timelines.items():
        rows = np.flatnonzero(samples.entity == name)
        for code, columns in enumerate(owned):
            found = stream_readings(
                line,
                code,
                columns,
                start=samples.start[rows],
                stop=samples.stop[rows],
                times=samples.forecast_time[rows],
            )
            blocks[code][rows] = _columns_of(found)
    names = tuple(
        f"{stream} {what}"
        for stream, columns in zip(streams, owned, strict=True)
        for what in (
            *(f"{column} since the first print" for column in columns),
            *(f"{column} since the print before" for column in columns),
            *_PUBLICATION,
        )
    )
    return FeatureTable(np.concatenate(blocks, axis=1), names)


def _columns_of(found: Readings) -> Float64[np.ndarray, "n k"]:
    whole = [
        found.num_revisions.astype(np.float64),
        found.age / NS_PER_DAY,
        found.lag / NS_PER_DAY,
    ]
    return np.column_stack(
        [
            found.since_first,
            found.since_previous,
            *(np.where(found.known, number, np.nan) for number in whole),
            found.staleness,
        ]
    )


def _last_arrival(
    samples: Samples, line: Timeline, stream: int
) -> Int64[np.ndarray, " n"]:
    """Return the row of the stream's last arrival in each information set, or -1."""
    places = np.flatnonzero(line.arrays.stream[line.rows] == stream)
    if not len(places):
        return np.full(len(samples), -1, dtype=np.int64)
    before = np.searchsorted(places, samples.stop, side="left") - 1
    place = places[np.maximum(before, 0)]
    inside = (before >= 0) & (place >= samples.start)
    return np.where(inside, line.rows[place], -1)


def _value(
    arrays: EventArrays, rows: Int64[np.ndarray, " n"], index: int
) -> Float64[np.ndarray, " n"]:
    return np.where(rows >= 0, arrays.values[np.maximum(rows, 0), index], np.nan)


def _age(
    samples: Samples, arrays: EventArrays, rows: Int64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    available = arrays.available_at[np.maximum(rows, 0)]
    age = (samples.forecast_time - available) / NS_PER_DAY
    return np.where(rows >= 0, age, np.nan)


def _own_moves(samples: Samples, line: Timeline) -> Float64[np.ndarray, "n k"]:
    """Return the scaled lags and the two ratios of an entity's own changes."""
    moves = own_changes(line, samples.targets[line.entity])
    places = np.flatnonzero(np.isfinite(moves))
    newest = np.searchsorted(places, samples.stop, side="left")
    lag = newest[:, None] - 1 - np.arange(_SLOW)
    place = places[np.maximum(lag, 0)] if len(places) else np.zeros_like(lag)
    inside = (lag >= 0) & (place >= samples.start[:, None])
    scaled = np.where(inside, moves[place], np.nan) / samples.scale[:, None]
    return np.column_stack(
        [
            scaled[:, :_NUM_LAGS],
            _mean_of_known(np.abs(scaled[:, :_FAST])),
            _mean_of_known(np.abs(scaled)),
        ]
    )


def _mean_of_known(values: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, " n"]:
    known = np.isfinite(values)
    count = known.sum(axis=1)
    total = np.where(known, values, 0.0).sum(axis=1)
    mean = np.full(len(values), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean
