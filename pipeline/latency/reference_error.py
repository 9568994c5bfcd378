"""How far forecasts are from those of the same network in float64."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import fields, replace

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from infoset.data.module import Batch
from infoset.data.timeline import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.event_window import StreamEvent
from infoset.models.network import Network

from .filled_streams import Contestant
from .turns import FilledStream, Workload


class Float64Reference:
    """The network of a forecaster with weights and sums in float64.

    The events are those that the forecaster reads: rounded to float32 as it reads them.

    Parameters
    ----------
    forecaster : AttentionForecaster
        Fitted.
    """

    def __init__(self, forecaster: AttentionForecaster) -> None:
        if forecaster.network is None:
            raise ValueError("the forecaster must be fitted first. Call `fit`.")
        wide = copy(forecaster)
        wide.network = _InFloat64(forecaster.network)
        self._wide = Contestant("float64", wide, "torch")
        self._about = forecaster.fitted_on()

    def scaled_quantiles(
        self, entity: str, events: Sequence[StreamEvent], at: int
    ) -> tuple[Float64[np.ndarray, " q"], float]:
        """Return the quantiles in units of the scale, and the scale.

        Parameters
        ----------
        entity : str
        events : sequence of StreamEvent
            The information set, at least one event.
        at : int
            Forecast time, UTC nanoseconds.
        """
        scale = self._about.scales[self._about.entities.index(entity)]
        window = self._wide.stream(entity, History(last=len(events)))
        weight, square = 0.0, 0.0
        for event in events:
            window.update(event)
            weight, square = scale.with_event(event, weight, square)
        size = scale.of_sums(weight, square)
        return window.forecast(at).quantiles[0] / size, size


def reference_error(
    reference: Float64Reference,
    filled: FilledStream,
    workload: Workload,
    *,
    num: int,
) -> float:
    """Return the largest difference of some forecasts, in units of the scale.

    Parameters
    ----------
    reference : Float64Reference
        Of the stream's own network.
    filled : FilledStream
    workload : {'fresh', 'streaming'}
    num : int
        How many forecasts are compared.
    """
    stream, tape, length = filled.stream.fork(), filled.tape, filled.length
    events = [tape.at(place) for place in range(length)]
    worst = 0.0
    for place in range(length, length + num):
        event = tape.at(place)
        stream.update(event)
        found = stream.forecast(event.available_at).quantiles[0]
        events.append(event)
        if workload == "fresh":
            del events[0]
        expected, scale = reference.scaled_quantiles(
            tape.entity, events, event.available_at
        )
        worst = max(worst, float(np.abs(found / scale - expected).max()))
    return worst


class _InFloat64(Network):
    """A copy of a network that computes in float64 whatever it is given."""

    def __init__(self, network: Network) -> None:
        nn.Module.__init__(self)
        self.wide = deepcopy(network).double()

    def forward(self, batch: Batch) -> Float[Tensor, "B P Q"]:
        """See `Network.forward`."""
        wide = {
            field.name: value.double()
            for field in fields(batch)
            if (value := getattr(batch, field.name)).dtype == torch.float32
        }
        quantiles: Tensor = self.wide(replace(batch, **wide))
        return quantiles
