"""Latencies as texts, rounded as in the report: for a terminal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from infoset.pipeline.latency.columns import plain_rows

from .inputs import RunContents
from .latency_section import latency_section, measured_or_only
from .numbers import count, duration, memory, significant

_ORDER = ["workload", "history_length", "forecaster", "backend"]


def latency_cells(contents: RunContents) -> tuple[pd.DataFrame, list[str]]:
    """Return one row of texts per attention forecaster and length, and sentences.

    The sentences tell crossovers, throughput and conditions.
    """
    alone = plain_rows(contents.latency)
    alone = measured_or_only(alone[alone["attention"].notna()]).sort_values(_ORDER)
    opened = contents.latency[contents.latency["loop"] == "poisson"]
    opened = opened[(opened["time"] == "response") & opened["limit_us"].isna()]
    responses = {_key(row): row["p99_us"] for row in opened.to_dict("records")}
    rows = [
        {
            "workload": row["workload"],
            "events": count(row["history_length"]),
            "forecaster": row["forecaster"],
            "backend": row["backend"],
            "p50": duration(row["p50_us"]),
            "p99": duration(row["p99_us"], ""),
            "p99.9": duration(row["p99_9_us"], ""),
            "p99 response": duration(responses.get(_key(row), float("nan")), ""),
            "state": memory(row["state_bytes"], ""),
            "error": significant(row["reference_error"], 2, ""),
            "forecasts": count(row["num_forecasts"]),
            "notes": "disturbed" if row["contention"] else row["undefined"] or "",
        }
        for row in alone.to_dict("records")
    ]
    section: dict[str, Any] = latency_section(contents)
    told = ("crossovers", "throughputs", "conditions")
    return pd.DataFrame(rows), [text for name in told for text in section[name]]


def _key(row: dict[Any, Any]) -> tuple[object, ...]:
    return tuple(row[name] for name in _ORDER)
