"""Many events into a carried state at once: filling it one by one takes minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from infoset.data.instants import NS_PER_DAY
from infoset.data.module import Batch
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import EventWindow, StreamEvent
from infoset.models.streaming import StateStream, StreamState

_AT_ONCE = 1024


def absorb(
    stream: StateStream,
    forecaster: AttentionForecaster,
    entity: str,
    events: Sequence[StreamEvent],
) -> None:
    """Do what `stream.update` would for each event, up to rounding.

    Parameters
    ----------
    stream : StateStream
        Of `history: all`.
    forecaster : AttentionForecaster
        Whose stream it is.
    entity : str
    events : sequence of StreamEvent
        In order of availability, none before the stream's newest.
    """
    for first in range(0, len(events), _AT_ONCE):
        part = events[first : first + _AT_ONCE]
        stream.state = _after(stream.state, forecaster, entity, part)


def _after(
    state: StreamState,
    forecaster: AttentionForecaster,
    entity: str,
    events: Sequence[StreamEvent],
) -> StreamState:
    about, network = forecaster.fitted_on(), forecaster.network
    if network is None:
        raise ValueError("the forecaster must be fitted first. Call `fit`.")
    scale = about.scales[about.entities.index(entity)]
    weight, square = state.weight, state.square
    for event in events:
        weight, square = scale.with_event(event, weight, square)
    with torch.inference_mode():
        after = network.update(_batch(events, about.width, state), state.network)
    return replace(
        state,
        network=after,
        count=state.count + len(events),
        newest=events[-1].available_at,
        weight=weight,
        square=square,
    )


def _batch(events: Sequence[StreamEvent], width: int, state: StreamState) -> Batch:
    window = EventWindow(width, len(events))
    for event in events:
        window.add(event)
    tensors = window.tensors()
    if state.count:
        gap = (events[0].available_at - state.newest) / NS_PER_DAY
        tensors["elapsed_days"][0, 0] = gap
    no_numbers, no_codes = torch.zeros((1, 0)), torch.zeros((1, 0), dtype=torch.int64)
    return Batch(
        **tensors,
        stop=no_codes,
        entity=no_codes,
        clock=torch.zeros((1, 0, 0)),
        scale=no_numbers,
        target=no_numbers,
        point=no_codes,
    )
