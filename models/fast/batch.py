"""Streams of thousands of entities that take in their events together, tick by tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Int64

from infoset.data.timeline import History
from infoset.models.fitted import StreamScale
from infoset.models.forecasts import Forecasts
from infoset.models.stream_order import require_not_before, require_order
from infoset.models.streaming import StreamState

from . import layout
from .entries import linear_streams
from .packed_weights import PackedWeights
from .periods import NO_PERIOD, Periods
from .row_threads import RowThreads
from .single import aligned_zeros
from .states import (
    forget_all,
    linear_bytes,
    linear_layers,
    number_bytes,
    put_linear_layers,
    put_numbers,
    set_up,
    state_of,
    sums_end,
)
from .tick_events import TickEvents


class StreamBatch:
    """The streams of many entities, with linear attention and carried states.

    Each one forecasts what its own `FastStream` would; which others are there, and in
    which order, changes nothing. Only one thread at a time may use it; inside, it uses
    several.

    Parameters
    ----------
    packed : PackedWeights
        With linear attention.
    levels : tuple of float
    entities : sequence of str
    numbers : sequence of int
        Of the entities in the network.
    scales : sequence of StreamScale
    width : int
        Values of an event.
    history : History
        `all` or `since`.
    num_threads : int, optional
        By default as many as torch uses.
    """

    def __init__(
        self,
        packed: PackedWeights,
        levels: tuple[float, ...],
        *,
        entities: Sequence[str],
        numbers: Sequence[int],
        scales: Sequence[StreamScale],
        width: int,
        history: History,
        num_threads: int | None = None,
    ) -> None:
        self.entities = tuple(entities)
        self._place = {name: place for place, name in enumerate(self.entities)}
        self._packed = packed
        self._levels = levels
        self._width = width
        self._periods = None if history.since is None else Periods(history)
        self._threads = RowThreads(packed, num_threads or torch.get_num_threads())
        count, end = len(self.entities), sums_end(packed)
        self._reals = aligned_zeros(count * end).reshape(count, end)
        self._whole = np.zeros((count, layout.NUM_COUNTERS), np.int64)
        forget_all(packed, self._reals)
        for place, (number, scale) in enumerate(zip(numbers, scales, strict=True)):
            row = self._reals[place], self._whole[place]
            set_up(*row, entity=number, scale=scale)

    def update(self, entities: Sequence[str], events: TickEvents) -> None:
        """Put one event each into the states of some entities: all of them or none.

        Parameters
        ----------
        entities : sequence of str
            In any order, each at most once.
        events : TickEvents
            In the order of the entities.

        Raises
        ------
        ValueError
            If an entity is unknown or named twice, an event comes before the newest one
            of its entity, or the columns do not fit.
        """
        places = self._places(entities)
        num_streams = int(self._packed.sizes[layout.NUM_STREAMS])
        events.require_fitting(len(places), width=self._width, num_streams=num_streams)
        self._require_order(places, events.available_at)
        period = (
            self._periods.starts(events.available_at) if self._periods else NO_PERIOD
        )
        numbers = events.numbers(places, period)
        values = np.ascontiguousarray(events.values, np.float64)
        arrays = self._packed.numbers, self._packed.sizes, self._reals, self._whole
        compiled = linear_streams().update

        def update(part: slice, work: np.ndarray, wide: np.ndarray) -> int:
            return compiled(*arrays, values[part], numbers[part], work, wide)

        self._threads.run(update, len(places))

    def forecast(self, at: int) -> Forecasts:
        """Read all states at an instant (UTC nanoseconds); nothing changes by asking.

        Returns
        -------
        Forecasts
            In the order of `entities`.

        Raises
        ------
        LookAheadError
            If the instant lies before the newest event of an entity.
        """
        newest = self._whole[:, layout.NEWEST]
        for place in np.flatnonzero((newest != 0) & (newest > at))[:1]:
            require_not_before(at, int(newest[place]), entity=self.entities[place])
        period = self._periods.start(at) if self._periods else NO_PERIOD
        quantiles = np.empty((len(self.entities), len(self._levels)))
        weights = self._packed.numbers, self._packed.sizes
        compiled = linear_streams().forecast

        def forecast(part: slice, work: np.ndarray, wide: np.ndarray) -> int:
            rows = self._reals[part], self._whole[part]
            return compiled(*weights, *rows, at, period, work, wide, quantiles[part])

        self._threads.run(forecast, len(quantiles))
        return Forecasts(quantiles, self._levels)

    def state(self, entity: str) -> StreamState:
        """Return all that is remembered of one entity, as a value."""
        place = int(self._places([entity])[0])
        reals, whole = self._reals[place], self._whole[place]
        layers = linear_layers(self._packed, reals, int(whole[layout.COUNT]))
        return state_of(layers, reals, whole)

    def put_state(self, entity: str, state: StreamState) -> None:
        """Remember that of one entity instead."""
        place = int(self._places([entity])[0])
        put_linear_layers(self._packed, self._reals[place], state.network)
        put_numbers(state, self._reals[place], self._whole[place])

    @property
    def state_bytes(self) -> int:
        """Memory of all states."""
        return len(self.entities) * (linear_bytes(self._packed) + number_bytes())

    def _places(self, entities: Sequence[str]) -> Int64[np.ndarray, " n"]:
        """Return the rows of some entities."""
        if entities is self.entities:
            return np.arange(len(entities))
        try:
            places = np.array([self._place[name] for name in entities], np.int64)
        except KeyError as error:
            raise ValueError(
                f"entities must be among those of the batch; got {error.args[0]!r}. "
                "Make a batch that holds it."
            ) from error
        counts = np.bincount(places, minlength=1)
        if counts.max() > 1:
            name = self.entities[int(counts.argmax())]
            raise ValueError(
                f"an entity must have at most one event in an update; got {name!r} "
                f"{counts.max()} times. Update once for each, in order of availability."
            )
        return places

    def _require_order(
        self, places: Int64[np.ndarray, " n"], available_at: Int64[np.ndarray, " n"]
    ) -> None:
        newest = self._whole[places, layout.NEWEST]
        for row in np.flatnonzero((newest != 0) & (available_at < newest))[:1]:
            require_order(
                int(available_at[row]),
                int(newest[row]),
                entity=self.entities[places[row]],
            )
