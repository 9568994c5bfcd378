"""Events as a feed brings them, and the window that a stream keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from infoset.data.module import event_tensors
from infoset.data.timeline import Timeline

_COLUMNS = ("stream", "own", "revision", "clocks", "values")


@dataclass(frozen=True, eq=False)
class StreamEvent:
    """One event as a stream takes it in.

    Attributes
    ----------
    stream : int
        Code of the stream in the event log.
    own : bool
        Whether it is about the stream's entity, not the whole market.
    event_time, available_at : int
        UTC nanoseconds.
    revision : int
    values : ndarray of shape (w,)
        In the order of the stream's channels; NaN where missing.
    """

    stream: int
    own: bool
    event_time: int
    available_at: int
    revision: int
    values: Float64[np.ndarray, " w"]


def stream_events(line: Timeline, start: int, stop: int) -> Iterator[StreamEvent]:
    """Yield the events of a slice of a timeline, as a feed would bring them."""
    arrays = line.arrays
    entity = arrays.entity_code(line.entity)
    for row in line.rows[start:stop].tolist():
        yield StreamEvent(
            stream=int(arrays.stream[row]),
            own=bool(arrays.entity[row] == entity),
            event_time=int(arrays.event_time[row]),
            available_at=int(arrays.available_at[row]),
            revision=int(arrays.revision[row]),
            values=arrays.values[row],
        )


def event_as_tensors(event: StreamEvent, elapsed_days: float) -> dict[str, Tensor]:
    """Return one event as the event part of a `Batch` with one row.

    Parameters
    ----------
    event : StreamEvent
    elapsed_days : float
        Since the event before it; 0 for the first.
    """
    tensors = event_tensors(
        values=event.values[None, None],
        stream=np.array([[event.stream]]),
        revision=np.array([[event.revision]]),
        event_time=np.array([[event.event_time]]),
        available_at=np.array([[event.available_at]]),
        mask=np.ones((1, 1), dtype=bool),
    )
    tensors["elapsed_days"] = torch.tensor([[elapsed_days]], dtype=torch.float32)
    return tensors


class EventWindow:
    """The newest events in arrays, at most `size` of them (or all, without a size)."""

    def __init__(self, width: int, size: int | None) -> None:
        self.size = size
        self._width = width
        self._start = self._stop = 0
        self._allocate(2 * (size or 512))

    def add(self, event: StreamEvent) -> None:
        """Take in one event; the oldest leaves a full window."""
        if self._stop == len(self._stream):
            self._make_room()
        self._stream[self._stop] = event.stream
        self._own[self._stop] = event.own
        self._revision[self._stop] = event.revision
        self._clocks[self._stop] = event.event_time, event.available_at
        self._values[self._stop] = event.values
        self._stop += 1
        if self.size is not None:
            self._start = max(self._start, self._stop - self.size)

    def fork(self) -> EventWindow:
        """Return a copy that goes its own way."""
        return deepcopy(self)

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def newest(self) -> int:
        """Availability of the newest event; 0 when there is none."""
        return int(self._clocks[self._stop - 1, 1]) if len(self) else 0

    def tensors(self) -> dict[str, Tensor]:
        """Return the events as the event part of a `Batch` with one row."""
        part = slice(self._start, self._stop)
        return event_tensors(
            values=self._values[None, part],
            stream=self._stream[None, part],
            revision=self._revision[None, part],
            event_time=self._clocks[None, part, 0],
            available_at=self._clocks[None, part, 1],
            mask=np.ones((1, len(self)), dtype=bool),
        )

    def own_changes(self, stream: int, place: int) -> Float64[np.ndarray, " m"]:
        """Return the first-print values of the entity in one place, oldest first."""
        part = slice(self._start, self._stop)
        used = (
            (self._stream[part] == stream)
            & self._own[part]
            & (self._revision[part] == 0)
        )
        moves: np.ndarray = self._values[part, place][used]
        known: np.ndarray = moves[np.isfinite(moves)]
        return known

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of the columns of the events held."""
        part = slice(self._start, self._stop)
        columns = zip(_COLUMNS, self._columns(), strict=True)
        return {name: torch.from_numpy(x[part].copy()) for name, x in columns}

    def load_state_dict(self, tensors: Mapping[str, Tensor]) -> None:
        """Hold the events that `state_dict` described, and no other."""
        count = len(tensors[_COLUMNS[0]])
        self._allocate(max(2 * (self.size or 0), 2 * count, 1))
        for name, column in zip(_COLUMNS, self._columns(), strict=True):
            column[:count] = tensors[name].numpy()
        self._start, self._stop = 0, count

    @property
    def num_bytes(self) -> int:
        """Memory of the events held."""
        row = 8 * (self._width + 4) + 1
        return len(self) * row

    def _allocate(self, capacity: int) -> None:
        self._stream = np.zeros(capacity, dtype=np.int64)
        self._own = np.zeros(capacity, dtype=bool)
        self._revision = np.zeros(capacity, dtype=np.int64)
        self._clocks = np.zeros((capacity, 2), dtype=np.int64)
        self._values = np.zeros((capacity, self._width))

    def _make_room(self) -> None:
        part = slice(self._start, self._stop)
        old = self._columns()
        count = len(self)
        self._allocate(2 * count)
        for column, before in zip(self._columns(), old, strict=True):
            column[:count] = before[part]
        self._start, self._stop = 0, count

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self._stream, self._own, self._revision, self._clocks, self._values
