"""A stream with a carried state in machine code: `StateStream`, many times faster."""

from __future__ import annotations

from copy import copy
from functools import partial
from struct import Struct
from typing import NoReturn

import numpy as np

from infoset.data.timeline import History
from infoset.models.event_window import StreamEvent
from infoset.models.fitted import StreamScale
from infoset.models.forecasts import Forecasts
from infoset.models.stream_order import require_not_before, require_order
from infoset.models.stream_snapshot import StreamOrigin, StreamSnapshot
from infoset.models.streaming import Backend, StreamState

from . import layout
from .memories import memory_of
from .packed_weights import PackedWeights
from .periods import NO_PERIOD, Periods
from .single import EVENT_START
from .states import number_bytes, put_numbers, set_up, state_of

# An event's numbers as they lie among the whole numbers of a memory; of `own`, any
# byte that is not zero means true.
_NUMBERS = Struct("@q?7x5q")
_NUMBERS_START = EVENT_START * np.dtype(np.int64).itemsize


class FastStream:
    """A stream of `history: all` or `since`, made from a network's weights.

    It forecasts what `StateStream` does, up to rounding, and takes and gives the same
    states. The weights are those at the time when it was made. Only one thread at a
    time may use it.

    Parameters
    ----------
    packed : PackedWeights
    levels : tuple of float
    entity : int
        Its number in the network.
    scale : StreamScale
    width : int
        Values of an event.
    history : History
        `all` or `since`.
    origin : StreamOrigin
    """

    backend: Backend = "numba"

    def __init__(
        self,
        packed: PackedWeights,
        levels: tuple[float, ...],
        *,
        entity: int,
        scale: StreamScale,
        width: int,
        history: History,
        origin: StreamOrigin,
    ) -> None:
        self._levels = levels
        self._shape = 1, len(levels)
        self._width = width
        self._history = history
        self._origin = origin
        self._num_streams = int(packed.sizes[layout.NUM_STREAMS])
        self._memory = memory_of(packed, width)
        set_up(self._memory.reals, self._memory.whole, entity=entity, scale=scale)
        self._bind()

    def update(self, event: StreamEvent) -> None:
        """Put one event into the state."""
        values, available_at = event.values, event.available_at
        if len(values) != self._width:
            self._refuse_values(len(values))
        self._values[:] = values
        periods = self._periods
        self._put_numbers(
            event.stream,
            event.own,
            event.revision,
            event.event_time,
            available_at,
            periods.start(available_at) if periods else NO_PERIOD,
            0,
        )
        code = self._update()
        if code:
            self._retry_or_refuse(event, code)

    def forecast(self, at: int) -> Forecasts:
        """Read the state."""
        quantiles = np.empty(self._shape)
        periods = self._periods
        code = self._forecast(
            at, periods.start(at) if periods else NO_PERIOD, quantiles
        )
        if code:
            require_not_before(at, int(self._memory.whole[layout.NEWEST]))
            return Forecasts(quantiles, self._levels)  # which says what is wrong
        # They were checked already, where that costs nothing.
        forecasts = object.__new__(Forecasts)
        fields = forecasts.__dict__
        fields["quantiles"], fields["levels"] = quantiles, self._levels
        return forecasts

    def fork(self) -> FastStream:
        """Return a stream that goes its own way from the same state."""
        twin = copy(self)
        twin._memory = self._memory.fork()  # noqa: SLF001 (its own twin)
        twin._bind()  # noqa: SLF001
        return twin

    def snapshot(self) -> StreamSnapshot:
        """Return the state."""
        return self.state.snapshot(self._origin)

    @property
    def state(self) -> StreamState:
        """All that the stream remembers, as a value; setting it copies."""
        memory = self._memory
        return state_of(memory.layers(), memory.reals, memory.whole)

    @state.setter
    def state(self, state: StreamState) -> None:
        self._memory.put_layers(state.network)
        put_numbers(state, self._memory.reals, self._memory.whole)
        self._bind()

    @property
    def state_bytes(self) -> int:
        """Memory of the state."""
        return self._memory.num_bytes + number_bytes()

    def _bind(self) -> None:
        """Look up the arrays and the functions on them once, not for each event."""
        self._values = self._memory.values
        numbers = self._memory.whole.data.cast("B")
        self._put_numbers = partial(_NUMBERS.pack_into, numbers, _NUMBERS_START)
        self._update, self._forecast = self._memory.entries()
        self._periods = None if self._history.since is None else Periods(self._history)

    def _retry_or_refuse(self, event: StreamEvent, code: int) -> None:
        if code == layout.FULL:
            self._memory.make_room()
            self._bind()
            self.update(event)
            return
        require_order(event.available_at, int(self._memory.whole[layout.NEWEST]))
        raise ValueError(
            f"an event's stream must be a code from 0 to {self._num_streams - 1}; got "
            f"{event.stream}. Streams are numbered as in the log of the fit."
        )

    def _refuse_values(self, number: int) -> NoReturn:
        raise ValueError(
            f"an event must have {self._width} values, NaN where missing; got {number}. "
            "Lay them out as in the log of the fit."
        )
