"""Who belongs to a universe, and when: half-open spells, each known from an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int64

from .events import Boundary
from .instants import nanoseconds

ALWAYS = np.iinfo(np.int64).min
OPEN = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Spells:
    """Times of membership: [start, end), ordered by (entity, start), none overlapping.

    Attributes
    ----------
    entity : ndarray of shape (n,)
    start, end : ndarray of shape (n,)
        UTC nanoseconds; `OPEN` where a spell has no end.
    known : ndarray of shape (n,)
        When the spell could be known; `ALWAYS` where nobody said.
    """

    entity: np.ndarray
    start: Int64[np.ndarray, " n"]
    end: Int64[np.ndarray, " n"]
    known: Int64[np.ndarray, " n"]

    def among(
        self, points: pd.DataFrame, *, boundary: Boundary
    ) -> tuple[Bool[np.ndarray, " p"], Bool[np.ndarray, " p"]]:
        """Return which points are of a member, and which of a member known to be one.

        Parameters
        ----------
        points : DataFrame
            Columns `entity` and `forecast_time`.
        boundary : {'inclusive', 'strict'}
            Whether a spell that becomes known at the forecast time itself is known. A
            spell's own start belongs to it and its end does not, whatever the boundary.
        """
        member = np.zeros(len(points), dtype=bool)
        known = np.zeros(len(points), dtype=bool)
        times = nanoseconds(points["forecast_time"])
        names = self.entity.astype("U")
        for name, asked in points.groupby("entity").indices.items():
            first = int(np.searchsorted(names, str(name), side="left"))
            last = int(np.searchsorted(names, str(name), side="right"))
            time = times[asked]
            place = first + np.searchsorted(self.start[first:last], time, "right") - 1
            begun, spell = place >= first, np.maximum(place, 0)
            inside = begun & (time < self.end[spell]) if last > first else begun
            member[asked] = inside
            told = self.known[spell] if last > first else np.full(len(time), OPEN)
            seen = told <= time if boundary == "inclusive" else told < time
            known[asked] = inside & seen
        return member, known

    def num_left(self, by: pd.Timestamp) -> int:
        """Return how many entities had been members and were none at an instant."""
        ended: pd.Series = pd.Series(self.end).groupby(self.entity).max() <= by.value
        return int(ended.sum())

    @property
    def entities(self) -> tuple[str, ...]:
        """Everybody who ever belonged, sorted."""
        return tuple(sorted(set(self.entity.tolist())))


@dataclass(frozen=True, eq=False)
class Membership:
    """Points restricted to a universe, and what that left out.

    Attributes
    ----------
    points : DataFrame
        Those of members that were known to be such.
    num_outside : int
        Points of entities that did not belong.
    num_unknown : int
        Points of members whose membership was not known yet.
    num_left : int
        Entities that left before the last forecast time.
    """

    points: pd.DataFrame
    num_outside: int
    num_unknown: int
    num_left: int


def restrict(spells: Spells, points: pd.DataFrame, *, boundary: Boundary) -> Membership:
    """Keep the points (entity, t) with start <= t < end for a spell known at t.

    Raises
    ------
    ValueError
        If no point is left.
    """
    member, known = spells.among(points, boundary=boundary)
    if not known.any():
        raise ValueError(
            f"universe must hold a member at a forecast time; got none at {len(points)} "
            f"points ({int(member.sum())} of members not yet known). Check its clocks "
            "and `forecast_times`."
        )
    return Membership(
        points=points[known].reset_index(drop=True),
        num_outside=int((~member).sum()),
        num_unknown=int((member & ~known).sum()),
        num_left=spells.num_left(points["forecast_time"].max()),
    )


def overlapping(spells: Spells, rows: Sequence[int]) -> tuple[int, int] | None:
    """Return the rows of two overlapping spells of one entity, if there are any."""
    same = spells.entity[1:] == spells.entity[:-1]
    early = np.flatnonzero(same & (spells.start[1:] < spells.end[:-1]))
    return None if not len(early) else (rows[early[0]], rows[early[0] + 1])
