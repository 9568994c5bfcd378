"""What a fitted forecaster must remember beside its weights, as plain data."""

from __future__ import annotations

import numpy as np

from infoset.data.sequences import Samples, own_change_channel
from infoset.data.strict import Strict
from infoset.data.timeline import History

from .event_window import StreamEvent


class StreamScale(Strict):
    """The causal scale of one entity, as its `CausalScale` defines it.

    Attributes
    ----------
    stream, place : int
        Stream code and value index of the entity's own change.
    unit : float
        Turns the change into the target's unit.
    decay, prior, prior_weight : float
    """

    stream: int
    place: int
    unit: float
    decay: float
    prior: float
    prior_weight: float

    def of_changes(self, changes: np.ndarray) -> float:
        """Return the scale after these changes, oldest first."""
        weights = self.decay ** np.arange(len(changes) - 1, -1, -1.0)
        square = float(weights @ (self.unit * changes) ** 2)
        return self.of_sums(float(weights.sum()), square)

    def of_sums(self, weight: float, square: float) -> float:
        """Return the scale for weighted sums of ones and of squared changes."""
        total = self.prior_weight * self.prior + square
        return float(np.sqrt(total / (self.prior_weight + weight)))

    def with_event(
        self, event: StreamEvent, weight: float, square: float
    ) -> tuple[float, float]:
        """Return the sums after an event; only first prints of the own change count."""
        if not (event.own and event.revision == 0 and event.stream == self.stream):
            return weight, square
        move = self.unit * float(event.values[self.place])
        if not np.isfinite(move):
            return weight, square
        return self.decay * weight + 1.0, self.decay * square + move**2


class FittedOn(Strict):
    """The vocabulary and the history of the data that a forecaster was fitted on.

    Attributes
    ----------
    entities : tuple of str
    scales : tuple of StreamScale
        In the order of the entities.
    streams : tuple of str
    channels : tuple of (stream, column)
    width : int
        Values per event.
    history : History
    """

    entities: tuple[str, ...]
    scales: tuple[StreamScale, ...]
    streams: tuple[str, ...]
    channels: tuple[tuple[str, str], ...]
    width: int
    history: History

    @classmethod
    def of(cls, train: Samples) -> FittedOn:
        """Take everything from the training samples.

        Raises
        ------
        ValueError
            If they were not scaled.
        """
        causal = train.causal_scale
        if causal is None:
            raise ValueError(
                "samples must be scaled before a fit; got them without a scale. "
                "Apply a CausalScale that was fitted on the training span."
            )
        # An entity without a training row was not learned: it has no place here.
        entities = tuple(sorted(set(train.entity)))
        scales = []
        for name in entities:
            target = train.targets[name]
            stream, place = own_change_channel(train.arrays, target)
            scales.append(
                StreamScale(
                    stream=stream,
                    place=place,
                    unit=target.scale,
                    decay=causal.decay,
                    prior=causal.prior[name],
                    prior_weight=causal.prior_weight,
                )
            )
        return cls(
            entities=entities,
            scales=tuple(scales),
            streams=train.arrays.streams,
            channels=train.arrays.channels,
            width=train.arrays.values.shape[1],
            history=train.history,
        )

    def require(self, samples: Samples) -> None:
        """Refuse samples that speak of other streams, channels or entities.

        Raises
        ------
        ValueError
        """
        arrays = samples.arrays
        if (arrays.streams, arrays.channels) != (self.streams, self.channels):
            mine, theirs = set(self.channels), set(arrays.channels)
            other = sorted("/".join(c) for c in mine ^ theirs) or ["another order"]
            raise ValueError(
                "samples must have the streams and values of the fit; got a difference "
                f"in {', '.join(other)}. Prepare them from a log with the same sources."
            )
        unknown = sorted(set(samples.entity) - set(self.entities))
        if unknown:
            raise ValueError(
                f"entity must be one of {', '.join(self.entities)}, which have training "
                f"rows; got {', '.join(unknown)}. Leave the points out or fit anew."
            )
