"""What an experiment tracker is told of a latency table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from .columns import plain_rows
from .crossover import crossovers

_TOLD = ("p50_us", "p99_us", "p99_9_us", "reference_error")
Curves = dict[str, list[tuple[int, float]]]


def latency_curves(table: pd.DataFrame) -> Curves:
    """Return named series whose step is the history length.

    One forecast at a time: ``latency.<forecaster>.<workload>.<backend>.p50_us``; open
    loops: ``latency.<forecaster>.<workload>.<backend>.<arrivals>.response_p99_us``; and
    ``throughput_hz`` where a limit was searched for. Only what was measured is there.
    """
    found: Curves = {}
    for row in plain_rows(table).to_dict("records"):
        for name in _TOLD:
            _add(found, row, name, row[name])
    for row in table[table["loop"] != "closed"].to_dict("records"):
        if pd.notna(row["limit_us"]):
            _add(found, row, "throughput_hz", row["throughput_hz"])
        else:
            kind = f"{row['loop']}.{row['time']}_p99_us"
            _add(found, row, kind, row["p99_us"])
    return found


def crossover_metrics(table: pd.DataFrame) -> dict[str, float]:
    """Return the defined crossover lengths, by workload and backend."""
    return {
        f"latency.{each.forecaster}.{each.workload}.{each.backend}.cheaper_than_"
        f"{each.other}_from": each.length
        for each in crossovers(table)
        if each.undefined is None
    }


def _add(found: Curves, row: Mapping[Any, Any], name: str, value: float) -> None:
    if not math.isfinite(value):
        return
    parts = [row["forecaster"], row["workload"], row["backend"] or "own", name]
    curve = found.setdefault(".".join(["latency", *map(str, parts)]), [])
    curve.append((int(row["history_length"]), float(value)))
