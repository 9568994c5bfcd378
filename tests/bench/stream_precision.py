"""How far streamed forecasts are from those of a network that computes in float64.

The reference takes in the same events (their float32 inputs are part of the data, not
of the computation) in chunks, in which each event still reads only earlier ones.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from stream_tapes import benchmark_forecaster, events_from

from infoset.data.clock_features import clock_features
from infoset.data.module import Batch, event_tensors
from infoset.models.event_window import StreamEvent
from infoset.models.fast import FastStream
from infoset.models.network import Network, NetworkState

_CHUNK = 4096
# The largest error of so many, one after the other: rounding alone makes the largest of
# fifty differ by half between any two places of the tape.
_FORECASTS = 4096


@dataclass
class Reference:
    """A network in float64 and its state."""

    network: Network
    state: NetworkState | None = None
    newest: int = 0

    def update(self, events: list[StreamEvent]) -> None:
        """Take in a chunk of events."""
        available_at = np.array([[e.available_at for e in events]])
        tensors = event_tensors(
            values=np.array([[e.values for e in events]]),
            stream=np.array([[e.stream for e in events]]),
            revision=np.array([[e.revision for e in events]]),
            event_time=np.array([[e.event_time for e in events]]),
            available_at=available_at,
            mask=np.ones(available_at.shape, dtype=bool),
        )
        if self.state is not None:
            waited = (int(available_at[0, 0]) - self.newest) / 86_400e9
            tensors["elapsed_days"][0, 0] = waited
        wide = {
            n: x.double() if x.is_floating_point() else x for n, x in tensors.items()
        }
        none = torch.zeros((1, 0), dtype=torch.int64)
        nothing = torch.zeros((1, 0), dtype=torch.float64)
        points = {"stop": none, "entity": none, "point": none}
        batch = Batch(
            **wide,
            **points,
            clock=nothing[..., None],
            scale=nothing,
            target=nothing,
        )
        with torch.inference_mode():
            self.state = self.network.update(batch, self.state)
        self.newest = int(available_at[0, -1])

    def forecast(self, at: int, count: int) -> np.ndarray:
        """Return quantiles of the first entity in units of the scale."""
        assert self.state is not None
        clock = clock_features(
            np.array([at]), np.array([self.newest]), np.array([count])
        )
        with torch.inference_mode():
            quantiles = self.network.forecast(
                self.state,
                clock=torch.from_numpy(clock).double()[None],
                entity=torch.zeros((1, 1), dtype=torch.int64),
            )
        return quantiles[0, 0].numpy()


def relative_errors(counts: list[int], *, forgetting: bool) -> dict[int, float]:
    """Return the largest relative error of forecasts after so many events.

    Parameters
    ----------
    counts : list of int
        Ascending.
    forgetting : bool
        Without it, sums grow for ever.
    """
    forecaster = benchmark_forecaster(forgetting=forgetting)
    stream = forecaster.stream("A", backend="numba")
    assert isinstance(stream, FastStream)
    reference = Reference(deepcopy(forecaster._trained()).double().eval())
    scale, fed, errors = forecaster.fitted_on().scales[0], 0, {}
    for count in counts:
        while fed < count:
            events = list(events_from(fed, min(_CHUNK, count - fed)))
            _feed(stream, reference, events)
            fed += len(events)
        worst = 0.0
        for event in events_from(fed, _FORECASTS):
            _feed(stream, reference, [event])
            fed += 1
            state = stream.state
            found = stream.forecast(event.available_at).quantiles[0]
            found = found / scale.of_sums(state.weight, state.square)
            want = reference.forecast(event.available_at, fed)
            worst = max(worst, np.abs(found - want).max() / np.abs(want).max())
        errors[count] = float(worst)
    return errors


def _feed(stream: FastStream, reference: Reference, events: list[StreamEvent]) -> None:
    for event in events:
        stream.update(event)
    reference.update(events)
