"""Streams that hold a history of a given length, for one forecaster and backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infoset.data.timeline import History
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.stream_making import ChosenBackend
from infoset.models.streaming import StateStream, Stream

from .bulk_fill import absorb
from .tape import Tape
from .turns import FilledStream, Workload


@dataclass(frozen=True, eq=False)
class Contestant:
    """A fitted network and what computes its streams.

    Attributes
    ----------
    name : str
    network : AttentionForecaster
    backend : {'auto', 'torch', 'numba'}
    """

    name: str
    network: AttentionForecaster
    backend: ChosenBackend = "auto"

    def stream(self, entity: str, history: History) -> Stream:
        """Return a stream without any event.

        Raises
        ------
        ValueError
            If the backend does not know this network or this history.
        """
        return self.network.stream(entity, history=history, backend=self.backend)


class FilledStreams:
    """Streams of one contestant and workload, filled further from length to length.

    Parameters
    ----------
    contestant : Contestant
    tapes : sequence of Tape
        One per stream; a tape may come again.
    workload : {'fresh', 'streaming'}
    """

    def __init__(
        self, contestant: Contestant, tapes: Sequence[Tape], workload: Workload
    ) -> None:
        self._contestant = contestant
        self._tapes = tapes
        self._workload = workload
        self._carried: list[FilledStream] = []

    def of_length(self, length: int) -> list[FilledStream]:
        """Return streams that hold the first `length` events of their tapes.

        Lengths must ascend from call to call: a carried state is filled further, a
        window is filled anew.
        """
        if self._workload == "fresh" or not self._carried:
            history = History(last=length if self._workload == "fresh" else None)
            self._carried = [
                FilledStream(self._contestant.stream(tape.entity, history), tape, 0)
                for tape in self._tapes
            ]
        self._carried = [self._filled_to(each, length) for each in self._carried]
        return self._carried

    def _filled_to(self, filled: FilledStream, length: int) -> FilledStream:
        """Return a stream that holds further events of its tape; the given one stays."""
        stream, tape = filled.stream.fork(), filled.tape
        events = [tape.at(place) for place in range(filled.length, length)]
        if isinstance(stream, StateStream):
            absorb(stream, self._contestant.network, tape.entity, events)
        else:
            for event in events:
                stream.update(event)
        return FilledStream(stream, tape, length)
