"""Instants as UTC nanoseconds since 1970, and back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int64

NS_PER_DAY = 86_400_000_000_000


def nanoseconds(instants: pd.Series | pd.DatetimeIndex) -> Int64[np.ndarray, " n"]:
    """Return UTC instants as nanoseconds since 1970, whatever their unit."""
    index = pd.DatetimeIndex(instants).as_unit("ns")
    return index.to_numpy(dtype="datetime64[ns]").astype(np.int64)


def nanoseconds_of(clock: pa.ChunkedArray) -> Int64[np.ndarray, " n"]:
    """Return an Arrow column of nanoseconds without missing cells as numbers."""
    nanos: np.ndarray = clock.cast(pa.int64()).to_numpy()
    return nanos


def instants(nanos: Int64[np.ndarray, " n"]) -> pd.DatetimeIndex:
    """Return nanoseconds since 1970 as UTC instants."""
    return pd.DatetimeIndex(nanos.astype("datetime64[ns]")).tz_localize("UTC")
