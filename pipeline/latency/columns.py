"""`latency.parquet` as it is read: its columns, and its rows of one forecast at a time."""

from __future__ import annotations

import pandas as pd

TIMES = "times_us"  # of single forecasts, a list in each row
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
# What a row is about.
TEXTS = (
    "forecaster",
    "attention",
    "workload",
    "backend",
    "loop",
    "time",
    "form",
)
FACTORS = ("history_length", "threads", "entities", "instances")
# What was measured, in microseconds, forecasts a second, bytes and units of the scale.
RATES = ("rate_hz", "limit_us", "throughput_hz")
INTERVALS = tuple(
    f"{name}_{end}_us"
    for name in PERCENTILES
    if name != "p95"
    for end in ("low", "high")
)
NUMBERS = (
    *RATES,
    "num_forecasts",
    *(f"{name}_us" for name in PERCENTILES),
    "max_us",
    *INTERVALS,
    "state_bytes",
    "reference_error",
)
# How quiet it was, and where.
QUIET = (
    "clock_step_ns",
    "num_switches",
    "waited_percent",
    "stolen_percent",
    "load",
)
NOTES = (
    "synthetic_continuation",
    "cores",
    "contention",
    "machine",
    "versions",
    "p99_9_undefined",
    "undefined",
)
SUMMARY = (*TEXTS, *FACTORS, *NUMBERS, *QUIET, *NOTES)
COLUMNS = (*SUMMARY, TIMES)
# Where several backends were measured: the one that `stream` takes where it can.
_PREFERRED = ("numba", "torch")


def plain_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the closed loop of one stream, on one thread, in one process."""
    alone = (table[["threads", "entities", "instances"]] == 1).all(axis=1)
    return table[alone & (table["loop"] == "closed") & (table["time"] == "service")]


def usual_backend(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row per forecaster, workload and length: that of the usual backend."""
    order = {name: place for place, name in enumerate(_PREFERRED)}
    place = rows["backend"].map(order).fillna(len(order))
    place += 10 * ~(rows["p50_us"] > 0)  # a measured one before any other
    keys = ["forecaster", "workload", "history_length"]
    first = place.sort_values(kind="stable").index
    return rows.loc[first].drop_duplicates(keys).sort_index()
