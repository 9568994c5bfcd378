"""Stamps that are whole numbers since 1970: exact, and in the unit that they are in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Int64

from .cells import SourceTable, whole_cells
from .clock_settings import EpochUnit

UTC_NS = pa.timestamp("ns", tz="UTC")
_NANOSECONDS: dict[EpochUnit, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FIRST, _LAST = -9_214_560_000, 9_214_646_400  # 1678-01-01 and 2262-01-01, in seconds
_EARLY = 50 * 86_400  # a file that ends by then counts in another unit
# From 1980 to 2100, in seconds: where the stamps of a file usually lie.
_USUAL = range(315_532_800, 4_102_444_800)


def epoch_instants(table: SourceTable, column: str, unit: EpochUnit) -> pa.Array:
    """Return whole numbers since 1970 as UTC instants; missing where a cell is empty.

    Parameters
    ----------
    table : SourceTable
    column : str
        Text or integers.
    unit : str
        What the numbers count.

    Returns
    -------
    Array
        Timestamps in UTC, in nanoseconds.

    Raises
    ------
    ValueError
        For a cell that is not a whole number, an instant that nanoseconds cannot hold,
        or stamps that plainly count another unit.
    TypeError
        For a column of another kind.
    """
    whole = whole_cells(table, column, setting=column)
    given = whole.notna().to_numpy()
    counts = whole.fillna(0).to_numpy(dtype=np.int64)
    a_second = 10**9 // _NANOSECONDS[unit]
    rule = f"{column} must count {unit} since 1970"
    inside = (counts >= _FIRST * a_second) & (counts < _LAST * a_second)
    remedy = f"{_seems(counts[~inside])}Correct the unit, or the row."
    table.require(inside | ~given, column, f"{rule}, from 1678 to 2261", remedy)
    early = given & (counts < _EARLY * a_second)
    seems = _seems(counts[early])
    if seems and (early == given).all():
        rule = f"{rule}, but all of them lie before 20 February 1970"
        table.require(~given, column, rule, f"{seems}Correct the unit.")
    later = given & ~early & (counts < _USUAL.start * a_second)
    if seems and not later.any():  # a long history would go on in the years after
        rule = f"{rule}, but some lie before 20 February 1970, and none until 1980"
        table.require(~early, column, rule, f"{seems}Correct the unit, or the row.")
    return utc_instants(counts * _NANOSECONDS[unit], given)


def _seems(counts: Int64[np.ndarray, " k"]) -> str:
    for unit, length in _NANOSECONDS.items():
        if len(counts) and int(counts[0]) * length // 10**9 in _USUAL:
            return f"It seems to count {unit}. "
    return ""


def utc_instants(
    nanos: Int64[np.ndarray, " n"], given: Bool[np.ndarray, " n"]
) -> pa.Array:
    """Return nanoseconds since 1970 as timestamps in UTC, missing where not given."""
    return pa.array(nanos, pa.int64(), mask=~given).cast(UTC_NS)
