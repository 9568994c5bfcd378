"""Events of several entities side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from infoset.models.event_window import StreamEvent

from . import layout


@dataclass(frozen=True, eq=False)
class TickEvents:
    """Events of several entities, one each, column by column; see `StreamEvent`.

    Attributes
    ----------
    stream, event_time, available_at, revision : ndarray of shape (n,)
    own : ndarray of shape (n,)
    values : ndarray of shape (n, w)
    """

    stream: Int64[np.ndarray, " n"]
    own: Bool[np.ndarray, " n"]
    event_time: Int64[np.ndarray, " n"]
    available_at: Int64[np.ndarray, " n"]
    revision: Int64[np.ndarray, " n"]
    values: Float64[np.ndarray, "n w"]

    @classmethod
    def of(cls, events: Sequence[StreamEvent]) -> TickEvents:
        """Put single events side by side."""
        return cls(
            stream=np.array([e.stream for e in events], np.int64),
            own=np.array([e.own for e in events], bool),
            event_time=np.array([e.event_time for e in events], np.int64),
            available_at=np.array([e.available_at for e in events], np.int64),
            revision=np.array([e.revision for e in events], np.int64),
            values=np.stack([e.values for e in events]),
        )

    def require_fitting(self, count: int, *, width: int, num_streams: int) -> None:
        """Refuse columns of other lengths, and streams that the network does not know.

        Raises
        ------
        ValueError
        """
        lengths = {len(column) for column in (*self._columns(), self.values)}
        if lengths != {count} or self.values.shape[1:] != (width,):
            raise ValueError(
                f"events must have {count} rows, one for each entity, and {width} "
                f"values; got columns of {sorted(lengths)} and values of shape "
                f"{self.values.shape}. Lay them out as in the log of the fit."
            )
        known = (self.stream >= 0) & (self.stream < num_streams)
        if not known.all():
            row = int((~known).argmax())
            raise ValueError(
                f"an event's stream must be a code from 0 to {num_streams - 1}; got "
                f"{self.stream[row]} in row {row}. Streams are numbered as in the log "
                "of the fit."
            )

    def numbers(
        self, places: Int64[np.ndarray, " n"], period: int | Int64[np.ndarray, " n"]
    ) -> Int64[np.ndarray, "n k"]:
        """Return the whole numbers of the events, as compiled code reads them.

        Parameters
        ----------
        places : ndarray of shape (n,)
            Rows of the streams in their memory.
        period : int or ndarray of shape (n,)
            Starts of the events' periods.
        """
        numbers = np.zeros((len(places), layout.NUM_EVENT_NUMBERS), np.int64)
        numbers[:, layout.STREAM] = self.stream
        numbers[:, layout.OWN] = self.own
        numbers[:, layout.REVISION] = self.revision
        numbers[:, layout.EVENT_TIME] = self.event_time
        numbers[:, layout.AVAILABLE_AT] = self.available_at
        numbers[:, layout.EVENT_PERIOD] = period
        numbers[:, layout.WHOSE] = places
        return numbers

    def _columns(self) -> tuple[np.ndarray, ...]:
        clocks = self.event_time, self.available_at
        return (self.stream, self.own, *clocks, self.revision)
