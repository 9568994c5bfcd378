"""What a run keeps: its latencies, and the tapes to measure them again elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from infoset.models.event_window import StreamEvent
from infoset.pipeline.run_files import write_frame

from .crossover import crossovers
from .tape import Tape

_FIELDS = ("stream", "own", "event_time", "available_at", "revision")


def write_latency(path: Path, table: pd.DataFrame) -> None:
    """Write a table of latencies; its attribute `crossovers` goes with it."""
    table.attrs["crossovers"] = [each.to_json() for each in crossovers(table)]
    write_frame(path, table)


def write_tapes(path: Path, tapes: Sequence[Tape]) -> None:
    """Write tapes: one row per event, the values in columns ``v0``, ``v1`` ..."""
    frames = [_frame(tape) for tape in tapes]
    empty = pd.DataFrame(columns=["entity", *_FIELDS])
    write_frame(path, pd.concat(frames, ignore_index=True) if frames else empty)


def read_tapes(path: Path) -> list[Tape]:
    """Read what `write_tapes` wrote, in the same order.

    Raises
    ------
    ValueError
        If the file is absent or damaged.
    """
    try:
        frame = pd.read_parquet(path)
        groups = frame.groupby("entity", sort=False)
        return [_tape(str(entity), rows) for entity, rows in groups]
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"a run must hold the events that latencies are measured with; got {error} "
            f"({path}). Run the experiment again."
        ) from error


def _frame(tape: Tape) -> pd.DataFrame:
    frame = pd.DataFrame(
        {name: [getattr(e, name) for e in tape.events] for name in _FIELDS}
    )
    frame.insert(0, "entity", tape.entity)
    values = np.array([event.values for event in tape.events])
    for place in range(values.shape[1]):
        frame[f"v{place}"] = values[:, place]
    return frame


def _tape(entity: str, rows: pd.DataFrame) -> Tape:
    width = sum(name.startswith("v") for name in rows.columns)
    values = rows[[f"v{place}" for place in range(width)]].to_numpy(np.float64)
    columns = [rows[name].tolist() for name in _FIELDS]
    events = [StreamEvent(*fields) for fields in zip(*columns, values, strict=True)]
    return Tape(entity, events)
