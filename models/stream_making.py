"""Which stream serves a network and a history: torch or compiled, one or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from infoset.data.timeline import History

from .fast import FastStream, StreamBatch, packed_weights, unserved
from .fitted import FittedOn
from .network import Network
from .stream_snapshot import StreamOrigin
from .streaming import StateStream, Stream, WindowStream

ChosenBackend = Literal["auto", "torch", "numba"]


def make_stream(
    network: Network,
    about: FittedOn,
    levels: tuple[float, ...],
    *,
    origin: StreamOrigin,
    backend: ChosenBackend,
) -> Stream:
    """Return a stream of one entity; see `AttentionForecaster.stream`.

    Raises
    ------
    ValueError
        If the entity is unknown, or numba is asked for what it cannot do.
    """
    (place,) = entity_places(about, [origin.entity])
    scale, width, history = about.scales[place], about.width, origin.history
    refused = _refused(network, history)
    if backend == "numba" and refused:
        raise ValueError(
            "backend numba must have a history of `all` or `since`, and the layers and "
            f"feature maps that it knows; got {refused}. Use backend auto or torch."
        )
    if history.last is not None:
        return WindowStream(
            network,
            levels,
            entity=place,
            scale=scale,
            width=width,
            last=history.last,
            origin=origin,
        )
    carried: Callable[..., Stream] = partial(StateStream, network)
    if backend != "torch" and not refused:
        carried = partial(FastStream, packed_weights(network))
    return carried(
        levels, entity=place, scale=scale, width=width, history=history, origin=origin
    )


def make_stream_batch(
    network: Network,
    about: FittedOn,
    levels: tuple[float, ...],
    *,
    entities: Sequence[str],
    history: History,
) -> StreamBatch:
    """Return the streams of many entities; see `AttentionForecaster.stream_batch`.

    Raises
    ------
    ValueError
        If an entity is unknown, or the network or the history cannot be batched.
    """
    places = entity_places(about, entities)
    refused = _refused(network, history)
    packed = None if refused else packed_weights(network)
    if packed is None or not packed.is_linear:
        raise ValueError(
            "a batch of streams must have a history of `all` or `since` and linear "
            "attention with a feature map that numba knows; got "
            f"{refused or 'softmax attention'}. Use `stream` for each entity."
        )
    return StreamBatch(
        packed,
        levels,
        entities=entities,
        numbers=places,
        scales=[about.scales[place] for place in places],
        width=about.width,
        history=history,
    )


def entity_places(about: FittedOn, entities: Sequence[str]) -> list[int]:
    """Return the numbers of entities in the network.

    Raises
    ------
    ValueError
        If the forecaster was not fitted for one of them.
    """
    for name in entities:
        if name not in about.entities:
            raise ValueError(
                f"entity must be one of {', '.join(about.entities)}; got {name!r}."
            )
    return [about.entities.index(name) for name in entities]


def _refused(network: Network, history: History) -> str | None:
    """Return what compiled streams cannot do, or None."""
    if history.last is not None:
        return f"history {history}"
    return unserved(network)
