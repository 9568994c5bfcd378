"""What a forecast with the scored history costs, from the measured latencies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from .inputs import RunContents
from .numbers import count
from .speed import Timing, ratio_interval


@dataclass(frozen=True)
class Cost:
    """The median latency of each forecaster as the scored history has it.

    Attributes
    ----------
    workload : str
        ``fresh`` for ``history: last n``, whose window is read anew for every forecast;
        ``streaming`` for `all` and `since`, whose state is carried on.
    history_length : int or None
        Events; None where nothing was measured.
    medians : Mapping[str, float]
        Microseconds.
    notes : Mapping[str, str]
        Where one forecaster's differs from the column: how.
    """

    workload: str
    history_length: int | None
    medians: Mapping[str, float]
    notes: Mapping[str, str]

    @property
    def heading(self) -> str:
        """Name the column: ``fresh forecast, 64 events``."""
        kind = "fresh" if self.workload == "fresh" else "streamed"
        if self.history_length is None:
            return f"{kind} forecast"
        return f"{kind} forecast, {count(self.history_length)} events"


def scored_cost(contents: RunContents) -> Cost:
    """Return what a forecast with the main history costs each forecaster.

    A forecaster without a stream reads its information set anew, whatever the history.
    """
    latency = contents.latency_alone
    latency = latency[latency["p50_us"] > 0]
    workload, length = scored_workload(contents)
    main = latency[latency["workload"] == workload]
    at = main[main["history_length"] == length]
    medians = _medians(at)
    notes = {}
    for name in contents.names:
        other = latency[(latency["forecaster"] == name) & latency["attention"].isna()]
        if name not in medians and len(other):
            row = other.iloc[0]
            medians[name] = float(row["p50_us"])
            notes[name] = f"fresh, {count(row['history_length'])} events"
    return Cost(workload, length, medians, notes)


def scored_workload(contents: RunContents) -> tuple[str, int | None]:
    """Return the workload of the main history, and the length at which to read it.

    With `last n` that is n. With `all` or `since` it is the measured length nearest to
    the median size of the test information sets.
    """
    last = _last(contents)
    if last is not None:
        return "fresh", last
    latency = contents.latency_alone
    known = latency[(latency["workload"] == "streaming") & (latency["p50_us"] > 0)]
    lengths = sorted(set(known["history_length"]))
    sizes = contents.forecasts.get("num_events", pd.Series(dtype="float64"))
    if not lengths:
        return "streaming", None
    if sizes.empty:
        return "streaming", int(lengths[-1])
    size = max(float(sizes.median()), 1.0)
    nearest = min(lengths, key=lambda length: abs(math.log(length / size)))
    return "streaming", int(nearest)


def scored_timing(contents: RunContents, name: str, other: str) -> Timing | None:
    """Return the timing of two forecasters at the main history."""
    workload, length = scored_workload(contents)
    return None if length is None else _timing(contents, workload, length, name, other)


def longest_timing(contents: RunContents, name: str, other: str) -> Timing | None:
    """Return that at the longest history both have, if it is not the main one."""
    workload, scored = scored_workload(contents)
    latency = contents.latency_alone
    mine = latency[(latency["workload"] == workload) & (latency["p50_us"] > 0)]
    lengths = [
        set(mine.loc[mine["forecaster"] == one, "history_length"])
        for one in (name, other)
    ]
    both = lengths[0] & lengths[1]
    if not both or max(both) == scored:
        return None
    return _timing(contents, workload, int(max(both)), name, other)


def _timing(
    contents: RunContents, workload: str, length: int, name: str, other: str
) -> Timing | None:
    latency = contents.latency_alone
    at = latency[
        (latency["workload"] == workload)
        & (latency["history_length"] == length)
        & (latency["p50_us"] > 0)
    ]
    medians = _medians(at)
    if name not in medians or other not in medians:
        return None
    times = {
        str(row["forecaster"]): np.array(row["times_us"], dtype=np.float64)
        for row in at.to_dict("records")
    }
    low, high = ratio_interval(times[name], times[other])
    return Timing(
        length, workload, name, other, medians[name], medians[other], low, high
    )


def _medians(rows: pd.DataFrame) -> dict[str, float]:
    pairs = zip(rows["forecaster"], rows["p50_us"], strict=True)
    return {str(name): float(value) for name, value in pairs}


def _last(contents: RunContents) -> int | None:
    history = contents.config.get("history")
    last = history.get("last") if isinstance(history, Mapping) else None
    return None if last is None else int(last)
