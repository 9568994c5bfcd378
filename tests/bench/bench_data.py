"""The data floor against DuckDB and polars, side by side in one run.

`make bench-data`: 10 million events of 2,000 entities in 10 streams, 5 % revisions, in
no order in one Parquet file; 1 million forecast points. The forms are timed in turn, so
that a machine that slows down slows each; medians and their ratios count. Exits with 1
if a bar is missed. Run it on an idle machine.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
from made_events import MARKET_STREAM, STREAMS, forecast_points, write_events
from rich.console import Console
from rich.table import Table

from infoset.data import (
    EventArrays,
    EventFiles,
    EventLog,
    History,
    as_of,
    build_timelines,
    information_slices,
    known_at_points,
    naive,
)

NUM_EVENTS, NUM_POINTS = 10_000_000, 1_000_000
THREADS = 2
REPEATS = 5
LAST = 256
SAMPLE = 2_000
# What a good SQL user writes: the market's candidates by position, not by a join of all.
_WINDOW = """
WITH market AS (
    SELECT *, row_number() OVER (ORDER BY available_at, stream, event_time, sequence)
        AS place FROM events WHERE entity = '*'),
visible AS (
    SELECT point, place FROM points ASOF JOIN market ON forecast_time >= available_at),
candidates AS (
    SELECT point, available_at, stream, event_time, sequence, value
    FROM points JOIN events USING (entity) WHERE available_at <= forecast_time
    UNION ALL
    SELECT point, available_at, stream, event_time, sequence, value FROM
        (SELECT point, unnest(range(place - {last} + 1, place + 1)) AS place FROM visible)
        JOIN market USING (place)),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY point ORDER BY available_at DESC,
        stream DESC, event_time DESC, sequence DESC) AS newest FROM candidates)
SELECT point, count(*), sum(hash(sequence, value)) FROM ranked WHERE newest <= {last}
GROUP BY point"""
ORDER = "entity, available_at, stream, event_time, sequence"


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    results = Table(title=f"{NUM_EVENTS:,} events, {NUM_POINTS:,} points, medians")
    for name in ("what", "infoset s", "peer", "peer s", "ratio", "bar"):
        results.add_column(name)
    folder = Path(tempfile.mkdtemp())
    try:
        missed = _compare(folder, results)
    finally:
        shutil.rmtree(folder)
    Console(width=110).print(results)
    return int(missed > 0)


def _compare(folder: Path, results: Table) -> int:
    file = folder / "events.parquet"
    write_events(file, NUM_EVENTS)
    points = forecast_points(NUM_POINTS)
    arrays, missed = _timelines(folder, file, results)
    missed += _slices(arrays, file, points, results)
    missed += _as_of(file, points, results)
    return missed


def _timelines(folder: Path, file: Path, results: Table) -> tuple[EventArrays, int]:
    files = [EventFiles((file,), ("value",))]

    def ours() -> EventArrays:
        shutil.rmtree(folder / "timelines", ignore_errors=True)
        return build_timelines(files, folder / "timelines", memory_limit="4GB")

    def bare() -> int:
        connection = _connected()
        query = f"SELECT * FROM '{file}' ORDER BY {ORDER}"  # noqa: S608
        return int(connection.sql(query).to_arrow_table().num_rows)

    seconds, peer = _in_turn(ours, bare)
    row = ("ordered timelines with fingerprints, on disk", "DuckDB ORDER BY into Arrow")
    return ours(), _judge(results, row, seconds, peer, bar=2.0)


def _slices(
    arrays: EventArrays, file: Path, points: pd.DataFrame, results: Table
) -> int:
    history = History(last=LAST)

    def ours() -> np.ndarray:
        return information_slices(arrays, points, history=history).fingerprint_words

    sample = points.sample(SAMPLE, random_state=0)
    connection = _connected()
    connection.execute(f"CREATE TABLE events AS SELECT * FROM '{file}'")  # noqa: S608
    connection.register("points", sample.reset_index(names="point"))
    window = _WINDOW.format(last=LAST)
    seconds, _ = _in_turn(ours, lambda: None)
    before = time.perf_counter()
    connection.sql(window).fetchall()
    peer = (time.perf_counter() - before) * NUM_POINTS / SAMPLE
    row = (
        f"slices of the last {LAST} events with fingerprints",
        f"DuckDB window query, {SAMPLE:,} points scaled up",
    )
    results.add_row(
        row[0],
        f"{seconds:.2f}",
        row[1],
        f"{peer:,.0f}",
        f"{seconds / peer:.5f}",
        f"1 s {'PASS' if seconds < 1 else 'FAIL'}",
    )
    return int(seconds >= 1)


def _as_of(file: Path, points: pd.DataFrame, results: Table) -> int:
    log = EventLog({})
    frames: dict[str, pl.DataFrame] = {}
    for stream in STREAMS:
        frame = pq.read_table(file, filters=[("stream", "=", stream)]).to_pandas()
        log = log.append(EventLog.from_pandas(frame, stream=stream, values=["value"]))
        ordered = frame.sort_values(["available_at", "sequence"])
        frames[stream] = pl.from_pandas(
            ordered[["entity", "available_at", "event_time", "value"]]
        )
    asked = pl.from_pandas(points)

    def joined(frames: dict[str, pl.DataFrame]) -> list[pl.DataFrame]:
        answers = []
        for place, stream in enumerate(STREAMS):
            market = place == MARKET_STREAM
            answers.append(
                asked.join_asof(
                    frames[stream].drop("entity") if market else frames[stream],
                    left_on="forecast_time",
                    right_on="available_at",
                    by=None if market else "entity",
                    check_sortedness=False,
                    coalesce=False,
                )
            )
        return answers

    def sorted_and_joined() -> list[pl.DataFrame]:
        return joined({name: frames[name].sort("available_at") for name in frames})

    seconds, peer = _in_turn(
        lambda: known_at_points(log, points), lambda: joined(frames)
    )
    _check(log, points)
    row = (
        f"as_of of {len(STREAMS)} streams, revisions respected",
        "polars join_asof, sorted before, blind to revisions",
    )
    missed = _judge(results, row, seconds, peer, bar=1.0)
    # A log that was not asked before prepares its streams first.
    seconds, peer = _in_turn(
        lambda: known_at_points(replace(log), points), sorted_and_joined
    )
    row = ("the same of a new log, whose streams are prepared", "polars sort and join")
    _judge(results, row, seconds, peer, bar=None)
    return missed


def _check(log: EventLog, points: pd.DataFrame) -> None:
    """Refuse to print a time for wrong answers."""
    few = log.until(pd.Timestamp("2012-02-01", tz="UTC"))
    kept = {
        stream: few.table(stream).filter(
            np.isin(few.table(stream)["entity"].to_numpy(), ["*", "E0000", "E0001"])
        )
        for stream in few.streams
    }
    few = EventLog(kept)
    sample = points[points["entity"].isin(["E0000", "E0001"])].head(6)
    fast, slow = as_of(log, sample), naive.as_of(few, sample)
    columns = ["entity", "stream", "event_time", "available_at", "value"]
    pd.testing.assert_frame_equal(fast[columns], slow[columns], check_dtype=False)


def _connected() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": THREADS})
    connection.execute("SET enable_progress_bar = false")
    return connection


def _in_turn(
    ours: Callable[[], object], theirs: Callable[[], object]
) -> tuple[float, float]:
    """Return the median seconds of both, run in turn, after a run that warms up."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS + 1):
        for form, taken in zip((ours, theirs), times, strict=True):
            before = time.perf_counter()
            form()
            taken.append(time.perf_counter() - before)
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def _judge(
    results: Table,
    row: tuple[str, str],
    seconds: float,
    peer: float,
    *,
    bar: float | None,
) -> int:
    ratio = seconds / peer
    missed = bar is not None and ratio > bar
    verdict = "" if bar is None else f"{bar} x {'FAIL' if missed else 'PASS'}"
    cells = (row[0], f"{seconds:.2f}", row[1], f"{peer:.2f}", f"{ratio:.2f}")
    results.add_row(*cells, verdict)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
