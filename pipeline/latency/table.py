"""Rows of measurements as the table that is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from infoset.pipeline.provenance import library_versions, machine

from .columns import COLUMNS, FACTORS, NUMBERS, QUIET
from .contention import Contention
from .percentiles import summary
from .quiet import Quiet

Row = dict[str, object]

# What holds where nothing else is said: one forecast at a time.
_PLAIN: dict[str, object] = {
    "loop": "closed",
    "time": "service",
    "threads": 1,
    "entities": 1,
    "instances": 1,
    "num_forecasts": 0,
    "synthetic_continuation": False,
}
_LIBRARIES = ("infoset", "numpy", "numba", "torch")
_TEXTS = ("undefined", "p99_9_undefined", "contention")


def latency_table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return rows as a table with all columns; what a row leaves out is plain or absent."""
    table = pd.DataFrame([_PLAIN | dict(row) for row in rows], columns=list(COLUMNS))
    for column in _TEXTS:
        table[column] = table[column].astype(object).where(table[column].notna(), None)
    kinds: dict[str, str] = dict.fromkeys((*NUMBERS, *QUIET), "float64")
    kinds |= dict.fromkeys(("num_forecasts", *FACTORS), "int64")
    return table.astype(kinds | {"synthetic_continuation": "bool"})


def times_row(times: np.ndarray, seen: Contention, num: int, quiet: Quiet) -> Row:
    """Return what the table says of times, and of how quiet it was meanwhile.

    `num` forecasts were made meanwhile, those of others included.
    """
    row = summary(times) | seen.columns(num)
    row |= {"clock_step_ns": quiet.clock_step_ns, "cores": quiet.cores}
    coarse = quiet.too_coarse(float(np.median(times)))
    return row | ({"undefined": coarse} if coarse else {})


def measured_on() -> dict[str, object]:
    """Return the processor with its cores, and the versions, as the table holds them."""
    versions = library_versions(_LIBRARIES)
    texts = [f"{name} {number}" for name, number in versions.items()]
    return {"machine": machine(), "versions": ", ".join(texts)}
