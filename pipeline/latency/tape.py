"""A stretch of real events to be fed to streams, and its continuation where it ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Int64

from infoset.data.sequences import Samples
from infoset.models.event_window import StreamEvent, stream_events

# The longest history that is measured, and some events more to go on from there.
LONGEST = 65_536 + 4_096
MOST_ENTITIES = 8
_END = pd.Timestamp("2200-01-01", tz="UTC").value  # int64 nanoseconds end in 2262


@dataclass(frozen=True, eq=False)
class Tape:
    """The newest events of one entity and of the market, in order of availability.

    Attributes
    ----------
    entity : str
    events : sequence of StreamEvent
    """

    entity: str
    events: Sequence[StreamEvent]

    def __len__(self) -> int:
        return len(self.events)

    def at(self, place: int) -> StreamEvent:
        """Return an event; behind the last one the tape starts again, later.

        The continuation is synthetic: the same events with clocks moved on, so that
        gaps and lags are those of the tape.
        """
        lap, within = divmod(place, len(self.events))
        event = self.events[within]
        if not lap:
            return event
        moved = lap * self._lap_ns
        return replace(
            event,
            event_time=event.event_time + moved,
            available_at=event.available_at + moved,
        )

    def why_too_short(self, num_events: int) -> str | None:
        """Say why the tape cannot be continued to so many events; None if it can."""
        if not self.events:
            return "there is no event to measure with"
        laps = (num_events - 1) // len(self.events)
        end = self.events[-1].available_at + laps * self._lap_ns
        if laps == 0 or end < _END:
            return None
        return (
            f"{len(self.events)} events, repeated to {num_events}, would pass the year "
            "2200"
        )

    @cached_property
    def arrivals(self) -> Int64[np.ndarray, " n"]:
        """Availability of the events: UTC nanoseconds, ascending."""
        return np.array([event.available_at for event in self.events], dtype=np.int64)

    @property
    def _lap_ns(self) -> int:
        """Return what one repetition takes: the span of the tape and one mean gap."""
        span = self.events[-1].available_at - self.events[0].available_at
        return span + span // max(1, len(self.events) - 1) + 1


def longest_tapes(
    samples: Samples, known: Collection[str], *, most: int = MOST_ENTITIES
) -> list[Tape]:
    """Take the newest events of the entities with the longest timelines.

    Parameters
    ----------
    samples : Samples
    known : collection of str
        Entities that every forecaster was fitted for; others have no tape.
    most : int
        How many tapes, at most.

    Returns
    -------
    list of Tape
        The longest first; at equal lengths by name.
    """
    names = sorted(
        (name for name in samples.entities if name in known),
        key=lambda name: (-len(samples.timelines[name]), name),
    )
    tapes = []
    for name in names[:most]:
        line = samples.timelines[name]
        start = max(0, len(line) - LONGEST)
        tapes.append(Tape(name, list(stream_events(line, start, len(line)))))
    return tapes
