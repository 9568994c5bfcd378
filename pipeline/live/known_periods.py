"""What was told of the periods of each series: it numbers revisions, derives changes."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from infoset.data.changes import CHANGE, change_between

from .event_lines import LARGEST_VALUE, FeedEvent
from .feed_instants import text_of

NUM_PERIODS = 1024
_NOTHING = math.nan


class Series:
    """The newest periods of one stream of one entity, and how each read last.

    Attributes
    ----------
    periods, prints : array
        Event times, ascending, and how often each was told.
    levels : array
        The value that a change is taken of.
    forgotten : int or None
        The newest period that is no longer kept.
    """

    __slots__ = ("forgotten", "levels", "periods", "prints")

    def __init__(self) -> None:
        self.periods, self.prints = array("q"), array("q")
        self.levels = array("d")
        self.forgotten: int | None = None

    def place(self, period: int) -> int:
        """Return where a period is, or would be."""
        return bisect_left(self.periods, period)

    def has(self, period: int, place: int) -> bool:
        """Whether a period is kept, which would be at `place`."""
        return place < len(self.periods) and self.periods[place] == period

    def note(self, period: int, prints: int, level: float) -> None:
        """Keep how a period reads now; the oldest one is forgotten for a new one."""
        place = self.place(period)
        if self.has(period, place):
            self.prints[place], self.levels[place] = prints, level
            return
        self.periods.insert(place, period)
        self.prints.insert(place, prints)
        self.levels.insert(place, level)
        if len(self.periods) > NUM_PERIODS:
            self.forgotten = self.periods[0]
            del self.periods[0], self.prints[0], self.levels[0]


class KnownPeriods:
    """The series of a feed.

    A change is taken inside one vintage: between an event's value and the period before
    as it reads when the event comes (see `data.changes`).
    """

    def __init__(self) -> None:
        self._series: dict[tuple[str, str], Series] = {}

    def complete(self, event: FeedEvent) -> tuple[int, np.ndarray]:
        """Return an event's revision and its values, `change` included; remember it.

        Raises
        ------
        ValueError
            If they cannot be known any more, or a change is too large.
        """
        about = event.stream
        key = about.name, event.entity
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series()
        place = series.place(event.event_time)
        has_all = event.revision is not None and event.has_change
        is_old = not place and series.forgotten is not None
        if is_old and not has_all:
            raise ValueError(
                "revision and change must be given for a period older than the newest "
                f"{NUM_PERIODS} of a series; got {text_of(event.event_time)} of "
                f"{event.entity} in stream {about.name!r}. Add both to the line."
            )
        values, level = np.array(event.values), _NOTHING
        if about.change is not None:
            level = event.values[about.columns.index(about.change.column)]
        if not event.has_change:
            before = series.levels[place - 1] if place else _NOTHING
            change = _change(event, before, level)
            values[about.columns.index(CHANGE)] = change
        known = series.prints[place] if series.has(event.event_time, place) else 0
        revision = known if event.revision is None else event.revision
        if not is_old:
            series.note(event.event_time, revision + 1, level)
        return revision, values

    def state(self) -> tuple[list[Any], dict[str, Tensor]]:
        """Return all series as a JSON list and tensors."""
        names = [
            [*key, len(one.periods), one.forgotten] for key, one in self._series.items()
        ]
        every = list(self._series.values())
        return names, {
            "known.periods": _joined([one.periods for one in every], "int64"),
            "known.prints": _joined([one.prints for one in every], "int64"),
            "known.levels": _joined([one.levels for one in every], "float64"),
        }

    @classmethod
    def restored(
        cls, names: Sequence[Any], tensors: Mapping[str, Tensor]
    ) -> KnownPeriods:
        """Return what `state` described."""
        known = cls()
        ends = accumulate((length for _, _, length, _ in names), initial=0)
        periods, prints, levels = (
            tensors[f"known.{name}"].numpy() for name in ("periods", "prints", "levels")
        )
        for (stream, entity, _, forgotten), (start, stop) in zip(
            names, pairwise(ends), strict=True
        ):
            one = known._series[stream, entity] = Series()  # its own
            one.periods.frombytes(periods[start:stop].tobytes())
            one.prints.frombytes(prints[start:stop].tobytes())
            one.levels.frombytes(levels[start:stop].tobytes())
            one.forgotten = forgotten
        return known


def _change(event: FeedEvent, before: float, level: float) -> float:
    rule = event.stream.change
    if rule is None:
        return _NOTHING
    if rule.max_age is not None:
        clocks = np.array([event.event_time]), np.array([event.available_at])
        if not rule.is_known(*clocks)[0]:
            return _NOTHING
    moved = change_between(np.array([before]), np.array([level]), rule.kind)
    change = float(moved[0])
    if abs(change) > LARGEST_VALUE:
        raise ValueError(
            f"a change must be of size {LARGEST_VALUE:g} at most; got {change:g} from "
            f"{before:g} to {level:g} in stream {event.stream.name!r}. Correct the value."
        )
    return change


def _joined(parts: Sequence[array[Any]], kind: str) -> Tensor:
    joined = np.concatenate(
        [np.empty(0, kind), *(np.frombuffer(part, kind) for part in parts if part)]
    )
    return torch.from_numpy(joined)
