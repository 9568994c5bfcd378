"""Live forecasts: one event in, the state updated, a forecast at any moment."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from infoset.data.clock_features import clock_features
from infoset.data.instants import NS_PER_DAY
from infoset.data.module import Batch
from infoset.data.timeline import History, period_starts

from .event_window import EventWindow, StreamEvent, event_as_tensors
from .fitted import StreamScale
from .forecasts import Forecasts
from .network import Network, NetworkState
from .stream_order import require_not_before, require_order
from .stream_snapshot import StreamOrigin, StreamSnapshot

Backend = Literal["torch", "numba"]


@runtime_checkable
class Stream(Protocol):
    """One entity's live forecaster."""

    @property
    def backend(self) -> Backend:
        """What computes: torch, or machine code made from its weights by numba."""

    def update(self, event: StreamEvent) -> None:
        """Take in one event; events come in order of availability."""

    def forecast(self, at: int) -> Forecasts:
        """Forecast at an instant (UTC nanoseconds); nothing changes by asking."""

    def fork(self) -> Stream:
        """Return a stream that goes its own way from the same state."""

    def snapshot(self) -> StreamSnapshot:
        """Return all that the stream remembers; `AttentionForecaster.restore` reads it."""

    @property
    def state_bytes(self) -> int:
        """Memory that the stream's state takes."""


class WindowStream:
    """A stream of `history: last n`: the window is encoded anew for each forecast.

    The encoder must see exactly the slice, and an event that has left it has touched
    the states of all later ones: nothing can be reused.
    """

    backend: Backend = "torch"

    def __init__(
        self,
        network: Network,
        levels: tuple[float, ...],
        *,
        entity: int,
        scale: StreamScale,
        width: int,
        last: int,
        origin: StreamOrigin,
    ) -> None:
        self._network = network.eval()
        self._origin = origin
        self._levels = levels
        self._entity = entity
        self._scale = scale
        self.window = EventWindow(width, last)

    def update(self, event: StreamEvent) -> None:
        """Take in one event; the oldest leaves a full window."""
        if len(self.window):
            require_order(event.available_at, self.window.newest)
        self.window.add(event)

    def forecast(self, at: int) -> Forecasts:
        """Encode the window and read it."""
        scale = self._scale.of_changes(
            self.window.own_changes(self._scale.stream, self._scale.place)
        )
        count, newest = len(self.window), self.window.newest
        if count:
            require_not_before(at, newest)
        point = _point_tensors(at, newest, count, scale=scale, entity=self._entity)
        with torch.inference_mode():
            batch = Batch(
                **self.window.tensors(),
                **point,
                stop=torch.tensor([[count]]),
                target=torch.full((1, 1), float("nan")),
                point=torch.zeros((1, 1), dtype=torch.int64),
            )
            scaled = self._network(batch)
        return _in_unit(scaled, scale, self._levels)

    def fork(self) -> WindowStream:
        """Return a stream that goes its own way from the same window."""
        twin = copy(self)
        twin.window = self.window.fork()
        return twin

    def snapshot(self) -> StreamSnapshot:
        """Return the events of the window."""
        return StreamSnapshot.of(self._origin, "window", self.window.state_dict())

    @property
    def state_bytes(self) -> int:
        """Memory of the events in the window."""
        return self.window.num_bytes


@dataclass(frozen=True)
class StreamState:
    """All that a stream with a carried state remembers; a value, never changed in place.

    Attributes
    ----------
    network : NetworkState
        Linear sums in float64: in float32 they drift after a million events.
    count : int
        Events in the state.
    newest : int
        Availability of the newest event (UTC nanoseconds), also if it was forgotten;
        0 before any.
    period : int
        Start of the period whose events the state holds (`since`).
    weight, square : float
        Sums of the causal scale, see `StreamScale.of_sums`.
    """

    network: NetworkState
    count: int = 0
    newest: int = 0
    period: int = np.iinfo(np.int64).min
    weight: float = 0.0
    square: float = 0.0

    @property
    def num_bytes(self) -> int:
        """Memory of the network's state and of the numbers beside it."""
        return self.network.num_bytes + 5 * 8

    def snapshot(self, origin: StreamOrigin) -> StreamSnapshot:
        """Return the state as what can be kept in a file."""
        return StreamSnapshot.of(
            origin,
            "state",
            self.network.state_dict(),
            layers=self.network.kinds,
            count=self.count,
            newest=self.newest,
            period=self.period,
            weight=self.weight,
            square=self.square,
        )

    @classmethod
    def restored(cls, snapshot: StreamSnapshot) -> StreamState:
        """Return the state that `snapshot` described."""
        about = snapshot.header
        return cls(
            NetworkState.from_state_dict(about["layers"], snapshot.tensors),
            count=about["count"],
            newest=about["newest"],
            period=about["period"],
            weight=about["weight"],
            square=about["square"],
        )


class StateStream:
    """A stream of `history: all` or `since`: the state is carried from event to event.

    With linear attention its size and the cost of an event do not depend on how many
    came before; softmax keeps the keys and values of all of them.
    """

    backend: Backend = "torch"

    def __init__(
        self,
        network: Network,
        levels: tuple[float, ...],
        *,
        entity: int,
        scale: StreamScale,
        width: int,
        history: History,
        origin: StreamOrigin,
    ) -> None:
        self._network = network.eval()
        self._origin = origin
        self._levels = levels
        self._entity = entity
        self._scale = scale
        self._history = history
        self._width = width
        self.state = self._empty = StreamState(self._network_of_nothing())

    def update(self, event: StreamEvent) -> None:
        """Put one event into the state."""
        state = self.state
        if state.newest:
            require_order(event.available_at, state.newest)
        period = self._period_of(event.available_at)
        if period > state.period:
            state = replace(self._empty, period=period, newest=state.newest)
        elapsed = (event.available_at - state.newest) / NS_PER_DAY
        tensors = event_as_tensors(event, elapsed if state.count else 0.0)
        with torch.inference_mode():
            network = self._network.update(_events_only(tensors), state.network)
        weight, square = self._scale.with_event(event, state.weight, state.square)
        self.state = StreamState(
            network=network,
            count=state.count + 1,
            newest=event.available_at,
            period=period,
            weight=weight,
            square=square,
        )

    def forecast(self, at: int) -> Forecasts:
        """Read the state."""
        state = self.state
        if state.newest:
            require_not_before(at, state.newest)
        if self._period_of(at) > state.period:
            state = replace(self._empty, newest=state.newest)
        scale = self._scale.of_sums(state.weight, state.square)
        point = _point_tensors(
            *(at, state.newest, state.count), scale=scale, entity=self._entity
        )
        with torch.inference_mode():
            scaled = self._network.forecast(
                state.network, clock=point["clock"], entity=point["entity"]
            )
        return _in_unit(scaled, scale, self._levels)

    def fork(self) -> StateStream:
        """Return a stream that goes its own way; the state is a value."""
        return copy(self)

    def snapshot(self) -> StreamSnapshot:
        """Return the state."""
        return self.state.snapshot(self._origin)

    @property
    def state_bytes(self) -> int:
        """Memory of the state."""
        return self.state.num_bytes

    def _period_of(self, at: int) -> int:
        if self._history.since is None:
            return self.state.period
        start = period_starts(np.array([at], np.int64), self._history)
        return int(start[0])

    def _network_of_nothing(self) -> NetworkState:
        nothing = EventWindow(self._width, 1).tensors()
        with torch.inference_mode():
            return self._network.update(_events_only(nothing), None).with_wide_sums()


def _point_tensors(
    at: int, newest: int, count: int, *, scale: float, entity: int
) -> dict[str, Tensor]:
    clock = clock_features(
        np.array([at], np.int64), np.array([newest], np.int64), np.array([count])
    )
    return {
        "clock": torch.from_numpy(clock)[None],
        "scale": torch.tensor([[scale]], dtype=torch.float32),
        "entity": torch.tensor([[entity]]),
    }


def _events_only(tensors: dict[str, Tensor]) -> Batch:
    nothing = torch.zeros((1, 0))
    none = torch.zeros((1, 0), dtype=torch.int64)
    return Batch(
        **tensors,
        stop=none,
        entity=none,
        clock=torch.zeros((1, 0, 0)),
        scale=nothing,
        target=nothing,
        point=none,
    )


def _in_unit(scaled: Tensor, scale: float, levels: tuple[float, ...]) -> Forecasts:
    quantiles = scaled[0].to(torch.float64).numpy() * scale
    return Forecasts(quantiles, levels)
