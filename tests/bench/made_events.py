"""Made events for the benchmarks of the data floor: dated, revised, in no order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

NUM_ENTITIES, NUM_STREAMS = 2_000, 10
MARKET_STREAM = NUM_STREAMS - 1  # all of its events are market-wide
REVISED = 0.05
_CHUNK = 1_000_000
_SECOND, _DAY = 10**9, 86_400 * 10**9
_START = pd.Timestamp("2010-01-01", tz="UTC").value
_YEARS = 10
ENTITIES = ["*", *(f"E{number:04d}" for number in range(NUM_ENTITIES))]
STREAMS = [f"stream/{number}" for number in range(NUM_STREAMS)]


def write_events(path: Path, num_events: int) -> None:
    """Write unsorted events of ten years, each known up to a day after it was."""
    random = np.random.default_rng(0)
    writer = None
    for start in range(0, num_events, _CHUNK):
        table = _events(random, start, min(_CHUNK, num_events - start))
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _events(random: np.random.Generator, start: int, number: int) -> pa.Table:
    stream = random.integers(0, NUM_STREAMS, number)
    entity = random.integers(1, NUM_ENTITIES + 1, number)
    entity[stream == MARKET_STREAM] = 0
    seconds = random.integers(0, _YEARS * 365 * 86_400, number)
    event_time = _START + seconds * _SECOND
    lag = random.integers(0, 86_400, number) * _SECOND
    # A revision is about the event of another row, one to sixty days later.
    revised = np.flatnonzero(random.random(number) < REVISED)
    original = random.integers(0, number, len(revised))
    for column in (stream, entity, event_time):
        column[revised] = column[original]
    lag[revised] += random.integers(1, 60, len(revised)) * _DAY
    return pa.table(
        {
            "entity": _named(entity, ENTITIES),
            "stream": _named(stream, STREAMS),
            "event_time": _instants(event_time),
            "available_at": _instants(event_time + lag),
            "sequence": pa.array(np.arange(start, start + number)),
            "value": pa.array(random.standard_normal(number)),
        }
    )


def forecast_points(number: int) -> pd.DataFrame:
    """Return points of all entities at evenly spaced instants, oldest first."""
    instants = pd.date_range(
        "2012-01-01", "2019-12-31", periods=number // NUM_ENTITIES, tz="UTC", unit="ns"
    )
    entities = pd.Series(ENTITIES[1:], dtype="str")
    return pd.DataFrame(
        {
            "entity": pd.concat([entities] * len(instants), ignore_index=True),
            "forecast_time": instants.repeat(NUM_ENTITIES),
        }
    )


def _named(codes: np.ndarray, names: list[str]) -> pa.Array:
    indices = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(names)).cast(pa.string())


def _instants(nanos: np.ndarray) -> pa.Array:
    return pa.array(nanos, pa.timestamp("ns", tz="UTC"))
