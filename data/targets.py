"""Targets: what is forecast, over which span, and when its value is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import Field

from .changes import ChangeKind, change_between
from .events import EventLog
from .instants import nanoseconds
from .strict import Strict

TARGET_COLUMNS = ("target_start", "target_end", "resolves_at", "target")
_NAT = np.iinfo(np.int64).min


class Target(Strict):
    """The change of a value from the last period at the forecast time to a later one.

    Attributes
    ----------
    entities : tuple of str
        Who has this target.
    stream, column : str
        The value whose change is forecast.
    kind : {'difference', 'percent', 'log'}
    horizon : int
        Periods ahead, at least 1.
    scale : float
        Multiplies the change (100 turns percent points into basis points).
    unit : str
        For people.
    """

    entities: tuple[str, ...] = Field(min_length=1)
    stream: str
    column: str = "value"
    kind: ChangeKind = "difference"
    horizon: int = Field(default=1, ge=1)
    scale: float = Field(default=1.0, gt=0)
    unit: str = ""


def with_targets(
    log: EventLog, points: pd.DataFrame, targets: Sequence[Target]
) -> pd.DataFrame:
    """Return the points with their targets.

    The target starts at the last period whose `event_time` is not after the forecast
    time (its value need not be published yet) and ends `horizon` periods later. It
    resolves when both ends are published. Its value is the first print of the end
    minus the start as it read at that instant: both from one vintage, so that a new
    base year is no change.

    Returns
    -------
    DataFrame
        entity, forecast_time, target_start, target_end, resolves_at, target, in the
        order of the points; missing where the target never ended.

    Raises
    ------
    ValueError
        If a target names an entity or stream that the log does not hold, or a point's
        entity has no target.
    """
    owner = {entity: target for target in targets for entity in target.entities}
    clocks = {name: np.full(len(points), _NAT) for name in TARGET_COLUMNS[:3]}
    values = np.full(len(points), np.nan)
    times = nanoseconds(points["forecast_time"])
    for name, rows in points.groupby("entity").indices.items():
        if name not in owner:
            raise ValueError(
                f"entity must have a target; got {name!r}, targets are for "
                f"{', '.join(sorted(owner))}."
            )
        found = _targets_of(log, str(name), owner[str(name)], times[rows])
        for column, nanos in clocks.items():
            nanos[rows] = found[column]
        values[rows] = found["target"]
    answer = points[["entity", "forecast_time"]].reset_index(drop=True)
    for column, nanos in clocks.items():
        # The smallest int64 is NaT: a clock without a reading.
        answer[column] = pd.DatetimeIndex(nanos.view("datetime64[ns]"), tz="UTC")
    answer["target"] = values
    return answer


def _targets_of(
    log: EventLog, entity: str, target: Target, times: np.ndarray
) -> dict[str, np.ndarray]:
    table = _prints(log, entity, target)
    prints = table[table["revision"] == 0]
    period = nanoseconds(prints["event_time"])
    available = nanoseconds(prints["available_at"])
    level = prints[target.column].to_numpy(np.float64)
    start = np.searchsorted(period, times, side="right") - 1
    end = start + target.horizon
    defined = (start >= 0) & (end < len(period))
    start, end = np.where(defined, start, 0), np.where(defined, end, 0)
    known = np.maximum(available[start], available[end])
    before = level[start]
    if len(table) > len(prints):
        before = _as_read(table, period[start], known, target.column)
    moved = target.scale * change_between(before, level[end], target.kind)
    return {
        "target_start": np.where(defined, period[start], _NAT),
        "target_end": np.where(defined, period[end], _NAT),
        "resolves_at": np.where(defined, known, _NAT),
        "target": np.where(defined, moved, np.nan),
    }


def _prints(log: EventLog, entity: str, target: Target) -> pd.DataFrame:
    if target.column not in log.values_of(target.stream):
        raise ValueError(
            f"target.column must be a value of stream {target.stream!r} "
            f"({', '.join(log.values_of(target.stream))}); got {target.column!r}."
        )
    frame = log.to_pandas(target.stream)
    mine = frame[frame["entity"] == entity]
    if mine.empty:
        known = ", ".join(sorted(frame["entity"].unique())) or "(none)"
        raise ValueError(
            f"target.entities must have events in stream {target.stream!r} ({known}); "
            f"got {entity!r}."
        )
    return mine.sort_values(["event_time", "revision"])


def _as_read(
    table: pd.DataFrame, period: np.ndarray, known: np.ndarray, column: str
) -> np.ndarray:
    """Return the level of each period as it read at an instant at or after its print."""
    event_time = nanoseconds(table["event_time"])
    available = nanoseconds(table["available_at"])
    level = table[column].to_numpy(np.float64)
    first = np.searchsorted(event_time, period, side="left")
    last = np.searchsorted(event_time, period, side="right")
    row = [
        a + int(np.searchsorted(available[a:b], at, side="right")) - 1
        for a, b, at in zip(first, last, known, strict=True)
    ]
    read: np.ndarray = level[row]
    return read
