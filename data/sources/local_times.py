"""Naive local stamps as instants, also where the clocks change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int64

from .cells import SourceTable


@dataclass(frozen=True, eq=False)
class ClockColumn:
    """A column that holds one of the two clocks.

    Attributes
    ----------
    table : SourceTable
    column : str
    clock : str
        `event_time` or `available_at`.
    """

    table: SourceTable
    column: str
    clock: str

    def require(self, holds: Bool[np.ndarray, " n"], rule: str, remedy: str) -> None:
        """Refuse the first cell for which a rule does not hold.

        Raises
        ------
        ValueError
            ``clock rule; got cell in row of file (column). remedy``
        """
        self.table.require(holds, self.column, f"{self.clock} {rule}", remedy)


def local_instants(
    where: ClockColumn,
    stamps: pd.Series,
    *,
    zone: str,
    series: Int64[np.ndarray, " n"],
) -> pd.Series:
    """Return naive stamps of a zone as instants; nothing is dropped or shifted.

    In the hour that a clock change repeats, the rows of a series must step back once:
    those before the step are the first pass, the others the second. (A stamp that
    occurs twice is such a step only if the series repeats no other stamp.) Without a
    step, or if the series ever goes back in time, the row is refused.

    Parameters
    ----------
    where : ClockColumn
        Where the stamps stand, for messages.
    stamps : Series
        Naive datetimes; missing ones stay missing.
    zone : str
        IANA zone.
    series : ndarray of shape (n,)
        Which series a row belongs to.

    Returns
    -------
    Series
        Instants in `zone`.

    Raises
    ------
    ValueError
        For a stamp that does not exist in the zone, or that may be two instants.
    """
    sure: pd.Series = stamps.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT")
    unsure = np.flatnonzero((sure.isna() & stamps.notna()).to_numpy())
    if not len(unsure):
        return sure
    _require_existing(where, stamps, unsure, zone)
    first_pass, told = _passes(stamps, unsure, series)
    instants: pd.Series = stamps.dt.tz_localize(zone, ambiguous=first_pass)
    told[unsure] &= _in_order(instants, stamps, series)[unsure]
    where.require(
        told,
        f"must name one instant in {zone}",
        "The clocks go back over it, and the order of the rows does not tell which is "
        "meant: give UTC or an offset.",
    )
    return instants


def _require_existing(
    where: ClockColumn, stamps: pd.Series, unsure: Int64[np.ndarray, " k"], zone: str
) -> None:
    first = stamps.iloc[unsure].dt.tz_localize(
        zone, ambiguous=np.ones(len(unsure), dtype=bool), nonexistent="NaT"
    )
    exists = np.ones(len(stamps), dtype=bool)
    exists[unsure] = first.notna().to_numpy()
    where.require(
        exists,
        f"must exist in {zone}",
        "The clocks go forward over it: correct the row, or give UTC or an offset.",
    )


def _passes(
    stamps: pd.Series,
    unsure: Int64[np.ndarray, " k"],
    series: Int64[np.ndarray, " n"],
) -> tuple[Bool[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """Return which rows are in the first pass of a repeated hour, and which are told."""
    first_pass = np.zeros(len(stamps), dtype=bool)
    told = np.ones(len(stamps), dtype=bool)
    clock = stamps.astype("datetime64[ns]").to_numpy().astype(np.int64)
    day = stamps.dt.normalize().to_numpy()
    changes = pd.DataFrame({"series": series[unsure], "day": day[unsure]})
    for positions in changes.groupby(["series", "day"]).indices.values():
        rows = unsure[positions]
        steps = np.diff(clock[rows])
        back = np.flatnonzero(steps < 0)
        if not len(back):
            back = np.flatnonzero(steps == 0)
        if len(back) == 1:
            first_pass[rows[: back[0] + 1]] = True
        else:
            told[rows] = False
    return first_pass, told


def _in_order(
    instants: pd.Series, stamps: pd.Series, series: Int64[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return, for each row, whether its series is in order of time.

    It never goes back; and where the local stamps never do either, so that only a
    repeated stamp told the passes apart, no instant occurs twice.
    """
    known = instants.notna().to_numpy()
    local = stamps[known].groupby(series[known])
    ordered = {
        name: mine.is_monotonic_increasing
        and (mine.is_unique or not local.get_group(name).is_monotonic_increasing)
        for name, mine in instants[known].groupby(series[known])
    }
    return np.array([ordered.get(name, True) for name in series.tolist()], dtype=bool)
