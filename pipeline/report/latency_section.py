"""What the report says of latency beside its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from infoset.pipeline.latency.columns import plain_rows

from .crossover_words import crossover_sentences
from .inputs import RunContents
from .numbers import count, duration, significant

_ORDER = ["workload", "backend", "forecaster", "history_length"]
_TITLES = {
    "fresh": "Fresh: a whole window",
    "streaming": "Streaming: one more event",
}
_FACTORS = ["threads", "entities", "instances"]
Rows = list[dict[Any, Any]]


def latency_section(contents: RunContents) -> dict[str, object]:
    """Return the tables and sentences of the section.

    Returns
    -------
    dict
        `blocks` and `opened`: (title, rows) by workload; `factors`: rows with several
        threads, streams or processes; `crossovers`, `throughputs` (at `limit_us`) and
        `conditions`: sentences; `with_continuation`: whether a tape was repeated;
        `with_p99_9`, `with_p99_interval`: whether one is defined; `short_of_p99_9`: why
        the one with most forecasts is not.
    """
    table = contents.latency
    alone = plain_rows(table)
    most = alone.sort_values("num_forecasts", ascending=False, kind="stable")
    opened = table[table["loop"] != "closed"]
    limited = opened[opened["limit_us"].notna()]
    several = (table[_FACTORS] != 1).any(axis=1)
    several_backends = table["backend"].nunique() > 1
    return {
        "blocks": _blocks(alone, with_backend=several_backends),
        "opened": _blocks(
            opened[opened["limit_us"].isna()], with_backend=several_backends
        ),
        "factors": table[several].sort_values([*_ORDER, *_FACTORS]).to_dict("records"),
        "crossovers": crossover_sentences(contents.crossovers),
        "throughputs": [
            throughput_sentence(row, with_backend=several_backends)
            for row in limited.sort_values(_ORDER).to_dict("records")
        ],
        "limit_us": float(limited["limit_us"].max()),
        "conditions": condition_sentences(table),
        "with_continuation": bool((table["synthetic_continuation"] > 0).any()),
        "with_p99_9": bool(table["p99_9_us"].notna().any()),
        "with_p99_interval": bool(table["p99_low_us"].notna().any()),
        "short_of_p99_9": next(iter(most["p99_9_undefined"].dropna()), None),
    }


def measured_or_only(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out backends that cannot do what another one of the forecaster does."""
    keys = ["forecaster", "workload", "history_length", "loop", "time"]
    known = (rows["p50_us"] > 0).groupby([rows[key] for key in keys]).transform("any")
    return rows[(rows["p50_us"] > 0) | ~known]


def throughput_sentence(row: Mapping[Any, Any], *, with_backend: bool) -> str:
    """Say the largest rate under the limit, or why there is none."""
    name = (
        f"{row['forecaster']} ({row['backend']})" if with_backend else row["forecaster"]
    )
    about = f"{name}, {row['workload']} at {count(row['history_length'])} events"
    if row["undefined"] is not None:
        return f"{about}: no rate is known: {row['undefined']}."
    return (
        f"{about}: {significant(row['rate_hz'])} requests a second, with p99 of the "
        f"response at {duration(row['p99_us'])}."
    )


def condition_sentences(table: pd.DataFrame) -> list[str]:
    """Say where and how it was measured, and what disturbed it."""
    measured = table[table["p50_us"] > 0]
    found = []
    for machine, versions in _distinct(measured, ["machine", "versions"]):
        found.append(f"Machine: {machine}; {versions}.")
    for threads, cores in _distinct(measured, ["threads", "cores"]):
        number = "1 thread" if threads == 1 else f"{count(threads)} threads"
        # Processes side by side have theirs apart by "|".
        named = str(cores).replace(" | ", " and core ")
        pinned = f"pinned to core {named}" if cores else "not pinned to a core"
        found.append(f"{number} of torch in each process, {pinned}.")
    steps = measured["clock_step_ns"].dropna()
    if len(steps):
        found.append(
            f"The clock steps by {count(steps.max())} ns; garbage collection was off; "
            "forecasts to warm up are not counted."
        )
        found.append(_disturbed(measured[measured["clock_step_ns"].notna()]))
    return found


def _disturbed(measured: pd.DataFrame) -> str:
    """Say which measurements others disturbed."""
    rows = measured[measured["contention"].notna()]
    if rows.empty:
        return (
            f"None of {len(measured)} measurements was disturbed: no forecast in a "
            "hundred was interrupted, and no 1 % of the time was lost to others."
        )
    waited = rows["waited_percent"].max()
    return (
        f"{len(rows)} of {len(measured)} measurements were disturbed by others on the "
        "machine and are marked: the processor was away for up to "
        f"{significant(waited, 2)} % of the time of one. Their upper percentiles say "
        "more about the machine than about the forecaster."
    )


def _distinct(rows: pd.DataFrame, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    known = rows[list(columns)].dropna().drop_duplicates()
    return list(known.itertuples(index=False, name=None))


def _blocks(rows: pd.DataFrame, *, with_backend: bool) -> list[tuple[str, Rows]]:
    order = [*_ORDER, "loop", "time"]
    rising = [name != "time" for name in order]  # service stands before response
    found: list[tuple[str, pd.DataFrame]] = []
    for workload, title in _TITLES.items():
        mine = measured_or_only(rows[rows["workload"] == workload])
        mine = mine.sort_values(order, ascending=rising)
        if not with_backend:
            found.append((title, mine))
            continue
        for backend, part in mine.groupby("backend"):
            found.append((f"{title} ({backend})", part))
        others = mine[mine["backend"].isna()]
        found.append((f"{title} (other forecasters)", others))
    return [(title, part.to_dict("records")) for title, part in found if len(part)]
