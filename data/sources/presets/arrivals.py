"""Messages with two stamps: the exchange's, and that of the recorder they reached."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int64

from infoset.data.durations import Duration, duration_ns
from infoset.data.sources.cells import Fault, SourceTable
from infoset.data.sources.epochs import utc_instants
from infoset.data.strict import Strict

_SHOWN = 5
_AVAILABLE = "arrival and lag"


class ArrivalClock(Strict):
    """Which of the two stamps is the event, and what happens where they disagree.

    Attributes
    ----------
    event_clock : str
        `exchange`: the event is when the exchange says. `arrival`: when it reached the
        recorder, as its availability.
    skewed : str
        What happens to rows that arrived before they happened, because the clocks of
        exchange and recorder differ: `refuse` the file, or `quarantine` the rows.
        (With `event_clock: arrival` there is none.)
    lag : str
        How long after its arrival at the recorder a message is known.
    """

    event_clock: Literal["exchange", "arrival"] = "exchange"
    skewed: Literal["refuse", "quarantine"] = "refuse"
    lag: Duration = "0s"

    def clocked(
        self, table: SourceTable, happened: str, arrived: str
    ) -> tuple[SourceTable, str, str]:
        """Return a table with both clocks, and the columns in which they are.

        Parameters
        ----------
        table : SourceTable
        happened, arrived : str
            Columns of UTC timestamps; missing ones stay missing.

        Returns
        -------
        table : SourceTable
        event_column, available_column : str

        Raises
        ------
        ValueError
            If a row arrived before it happened, and such rows are refused.
        """
        arrival, given = _nanoseconds(table, arrived)
        available = utc_instants(arrival + duration_ns(self.lag), given)
        clocked = table.with_columns({_AVAILABLE: available})
        if self.event_clock == "arrival":
            return clocked, arrived, _AVAILABLE
        event, known = _nanoseconds(table, happened)
        early = known & given & (event > arrival)
        if not early.any():
            return clocked, happened, _AVAILABLE
        if self.skewed == "refuse":
            rows = np.flatnonzero(early)
            raise ValueError(_skew(table, happened, arrived, rows, event - arrival))
        fault = Fault(early, happened, f"after {arrived}")
        return clocked.with_faults((fault,)), happened, _AVAILABLE


def _nanoseconds(
    table: SourceTable, column: str
) -> tuple[Int64[np.ndarray, " n"], np.ndarray]:
    """Return a clock, 0 where it is missing, and where it is given."""
    counts = table.cells(column).cast(pa.int64())
    return pc.fill_null(counts, 0).to_numpy(), counts.is_valid().to_numpy()


def _skew(
    table: SourceTable,
    happened: str,
    arrived: str,
    rows: Int64[np.ndarray, " k"],
    skew: Int64[np.ndarray, " n"],
) -> str:
    first = int(rows[0])
    stamps = [table.cells(column)[first].as_py() for column in (happened, arrived)]
    listed = ", ".join(str(row) for row in table.rows[rows[:_SHOWN]])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    largest = pd.Timedelta(int(skew[rows].max()), unit="ns")
    return (
        f"{happened} must not be after {arrived}; got {stamps[0]} > {stamps[1]} in rows "
        f"{listed}{more} of {table.name} (by up to {largest}). The clocks of exchange "
        "and recorder differ: declare `skewed: quarantine` to set such rows aside, or "
        "`event_clock: arrival` to date every event by its arrival."
    )
