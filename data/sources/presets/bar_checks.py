"""What must hold of bars: prices in order, and no two at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from jaxtyping import Bool, Float64

from infoset.data.durations import duration_ns
from infoset.data.events import EventLog
from infoset.data.instants import nanoseconds
from infoset.data.sources.cells import Fault, SourceTable, number_cells
from infoset.data.sources.declaration import TextFormat

_Numbers = Float64[np.ndarray, " n"]
# A missing number breaks no rule: comparisons with NaN are false.
_RULES: tuple[
    tuple[str, tuple[str, ...], str, Callable[..., Bool[np.ndarray, " n"]]], ...
]
_RULES = (
    ("high", ("high", "low"), "high below low", np.less),
    ("high", ("high", "open"), "high below open", np.less),
    ("high", ("high", "close"), "high below close", np.less),
    ("low", ("low", "open"), "low above open", np.greater),
    ("low", ("low", "close"), "low above close", np.greater),
    ("volume", ("volume",), "negative volume", lambda volume: volume < 0),
)


def ohlc_faults(
    table: SourceTable, columns: Mapping[str, str], layout: TextFormat
) -> tuple[Fault, ...]:
    """Return the rows whose high, low or volume cannot be.

    Parameters
    ----------
    table : SourceTable
    columns : Mapping[str, str]
        The table's columns of `open`, `high`, `low`, `close` and `volume`, as far as
        they are there.
    layout : TextFormat
        How cells of text write numbers.
    """
    numbers: dict[str, _Numbers] = {
        name: number_cells(table, column, layout, setting=f"values.{name}")
        for name, column in columns.items()
    }
    return tuple(
        Fault(broken(*(numbers[name] for name in names)), columns[at], reason)
        for at, names, reason, broken in _RULES
        if numbers.keys() >= set(names)
    )


def overlap_notices(log: EventLog, streams: tuple[str, ...], bar: str) -> list[str]:
    """Return a sentence for each stream whose bars come closer than their length."""
    said: list[str] = []
    for stream in streams:
        table = log.table(stream)
        frame = pd.DataFrame(
            {
                "entity": pc.dictionary_encode(table["entity"]).to_pandas(),
                "close": nanoseconds(table["event_time"].to_pandas()),
            }
        )
        frame = frame.drop_duplicates().sort_values(["entity", "close"])
        apart = frame["close"].diff()
        same = frame["entity"] == frame["entity"].shift()
        close = frame[same & (apart < duration_ns(bar))]
        if len(close):
            first = close.iloc[0]
            said.append(
                f"{len(close)} bars of stream {stream!r} close less than {bar} after "
                f"the bar before; the first is of {first['entity']}, at "
                f"{pd.Timestamp(first['close'], tz='UTC')}. Is `bar` their length?"
            )
    return said
