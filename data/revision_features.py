"""What publication says beside the values, as a table: one row per point and stream."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int64

from .arrays import EventArrays, event_arrays
from .asof import checked_points
from .events import Boundary, EventLog
from .instants import nanoseconds
from .stream_readings import Readings, stream_readings
from .timeline import timeline_of

_NAT = np.iinfo(np.int64).min
# Numbers that stand for a text: their difference between two prints says nothing.
_OF_A_TEXT = re.compile(r"text_\d+")
_CLOCKS = (
    "event_time",
    "available_at",
    "num_revisions",
    "age",
    "lag",
    "usual_interval",
    "staleness",
)


def revision_features(
    log: EventLog, points: pd.DataFrame, *, boundary: Boundary = "inclusive"
) -> pd.DataFrame:
    """Return what each stream's prints, revisions and clocks say at each point.

    The period is the one that `as_of` uses: the newest `event_time` known. Nothing
    that became available later plays a part.

    Parameters
    ----------
    log : EventLog
    points : DataFrame
        Columns `entity` and `forecast_time` (timezone-aware).
    boundary : {'inclusive', 'strict'}

    Returns
    -------
    DataFrame
        One row per point and stream, in the order of the points, streams sorted:
        entity, forecast_time, stream, event_time, available_at, num_revisions (of
        that period so far), age (forecast_time - available_at), lag (available_at -
        event_time), usual_interval (median of the newest 12 gaps between instants at
        which the stream told anything), staleness (time since it last did, in usual
        intervals), and for each numeric value `<name>_since_first_print` and
        `<name>_since_previous_print` of that period. Numbers that stand for a text
        are left out. Missing where nothing was known, or no such print or gap was.

    Raises
    ------
    ValueError
        For a naive forecast time or a missing column.
    """
    checked = checked_points(points)
    arrays = event_arrays(log)
    names = sorted({name for _, name in arrays.channels if is_compared(name)})
    parts = []
    for entity, asked in checked.groupby("entity").indices.items():
        line = timeline_of(arrays, str(entity))
        times = nanoseconds(checked["forecast_time"].iloc[asked])
        stop = line.stop(times, boundary=boundary)
        start = np.zeros_like(stop)
        for code, stream in enumerate(arrays.streams):
            own = [n for owner, n in arrays.channels if owner == stream and n in names]
            found = stream_readings(
                line, code, own, start=start, stop=stop, times=times
            )
            part = _frame(arrays, found, own)
            parts.append(part.assign(stream=stream, _place=code, _point=asked))
    columns = ["entity", "forecast_time", "stream", *_CLOCKS, *_columns_of(names)]
    if not parts:
        return pd.DataFrame(columns=columns)
    answer = pd.concat(parts, ignore_index=True)
    answer = answer.sort_values(["_point", "_place"], ignore_index=True)
    where = checked.iloc[answer["_point"].to_numpy()].reset_index(drop=True)
    return pd.concat([where, answer], axis=1).reindex(columns=columns)


def is_compared(name: str) -> bool:
    """Whether the difference of such a value between two prints says something."""
    return _OF_A_TEXT.fullmatch(name) is None


def _columns_of(names: Sequence[str]) -> list[str]:
    ends = ("since_first_print", "since_previous_print")
    return [f"{name}_{end}" for name in names for end in ends]


def _frame(
    arrays: EventArrays, found: Readings, columns: Sequence[str]
) -> pd.DataFrame:
    known = found.known
    row = found.row[known]
    has_interval = np.isfinite(found.interval)
    revisions = found.num_revisions.astype(np.int32)
    columns_of = {
        "event_time": _instants(arrays.event_time[row], known),
        "available_at": _instants(arrays.available_at[row], known),
        "num_revisions": pd.arrays.IntegerArray(revisions, ~known),
        "age": _durations(found.age[known], known),
        "lag": _durations(found.lag[known], known),
        "usual_interval": _durations(
            np.rint(found.interval[has_interval]).astype(np.int64), has_interval
        ),
        "staleness": found.staleness,
    }
    for place, name in enumerate(columns):
        first, previous = _columns_of([name])
        columns_of[first] = found.since_first[:, place]
        columns_of[previous] = found.since_previous[:, place]
    return pd.DataFrame(columns_of)


def _instants(
    nanos: Int64[np.ndarray, " j"], known: Bool[np.ndarray, " k"]
) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(_spread(nanos, known).view("datetime64[ns]"), tz="UTC")


def _durations(
    nanos: Int64[np.ndarray, " j"], known: Bool[np.ndarray, " k"]
) -> pd.TimedeltaIndex:
    return pd.TimedeltaIndex(_spread(nanos, known).view("timedelta64[ns]"))


def _spread(
    nanos: Int64[np.ndarray, " j"], known: Bool[np.ndarray, " k"]
) -> Int64[np.ndarray, " k"]:
    """Put readings where something was known; the smallest int64 stands for NaT."""
    spread = np.full(len(known), _NAT, dtype=np.int64)
    spread[known] = nanos
    return spread
