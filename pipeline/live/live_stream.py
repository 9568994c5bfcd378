"""The stream with its state: taken in, durable, answered, in this order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.stream_making import ChosenBackend
from infoset.models.stream_snapshot import FORMAT, StreamSnapshot
from infoset.models.streaming import Stream

from .answers import Answer
from .feeds import Position
from .journal import Kind, Record
from .session import Session
from .state_folder import StateFolder

# What a restart does again takes about that long; a snapshot may take a tenth of it.
_WORK_SECONDS, _SHARE = 10.0, 10.0
# Lines that are taken in at once: as many as need about that long, so that a signal is
# heard soon.
_MOST_LINES, _QUICK_SECONDS, _SLOW_SECONDS = 1024, 0.1, 0.4
_ENCODER = json.JSONEncoder(allow_nan=False)


@runtime_checkable
class Sink(Protocol):
    """Takes bytes, such as `sys.stdout.buffer`."""

    def write(self, content: bytes, /) -> int:
        """Take bytes."""

    def flush(self) -> None:
        """Hand them on."""


@dataclass
class Output:
    """Where answers go: forecasts and acknowledgements, and notices about lines."""

    forecasts: Sink
    notices: Sink

    def write(self, answer: Answer) -> None:
        """Write one answer as a line of JSON."""
        target = self.forecasts if answer.is_forecast else self.notices
        target.write(_ENCODER.encode(answer.content).encode() + b"\n")

    def acknowledge(self, number: int) -> None:
        """Say that all lines up to one are durable."""
        self.forecasts.write(b'{"ack": %d}\n' % number)

    def flush(self) -> None:
        """Hand on what was written."""
        self.forecasts.flush()
        self.notices.flush()


class LiveStream:
    """A session whose every line is durable before anything is said about it.

    Parameters
    ----------
    folder : StateFolder
    forecaster : AttentionForecaster
    make_session : callable
        Returns a session of some streams.
    settings : Mapping[str, object]
        JSON values that must stay the same while the state lasts.
    output : Output
    backend : {'auto', 'torch', 'numba'}
    """

    def __init__(
        self,
        folder: StateFolder,
        forecaster: AttentionForecaster,
        make_session: Callable[[Mapping[str, Stream]], Session],
        settings: Mapping[str, Any],
        output: Output,
        *,
        backend: ChosenBackend = "auto",
    ) -> None:
        self._folder = folder
        self._model = forecaster.model_digest()
        self._settings = dict(settings)
        self._output = output
        self._busy_seconds = self._snapshot_seconds = 0.0
        self._most_lines = 64
        self.position = Position()
        self.first = ""  # the chain of the feed's first line
        self.source = ""
        names = self._settings["entities"]
        if folder.is_new:
            self.streams = {
                name: forecaster.stream(name, backend=backend) for name in names
            }
            self.session = make_session(self.streams)
            self._keep()
        else:
            header, tensors = folder.read()
            self._require_same(header)
            snapshots = _apart(header["streams"], tensors)
            self.streams = {
                one.origin.entity: forecaster.restore(one, backend=backend)
                for one in snapshots
            }
            self.session = make_session(self.streams)
            self.session.restore(header["session"], tensors)
            self.position = Position(*header["position"])
            self.first = header["first"]
            self.source = header["source"]
        self._journal = folder.opened()
        self._replay()

    def begin(self, source: str, *, is_new: bool) -> None:
        """Say from where lines come, and where to go on."""
        if is_new and self.source:
            note = "another feed than before; its lines are numbered from 1"
            self._output.write(Answer({"note": note}, is_forecast=False))
        if is_new:
            self._journal.append([Record(Kind.NEW_FEED, source.encode())])
            self.position, self.source = Position(), source
        self._output.acknowledge(self.position.number)
        self._output.flush()

    def pieces(self, lines: list[bytes]) -> Iterator[list[bytes]]:
        """Yield lines, no more at a time than can be taken in soon."""
        while lines:
            count = self._most_lines
            yield lines[:count]
            lines = lines[count:]

    def take(self, lines: list[bytes]) -> None:
        """Take in lines."""
        started = time.monotonic()
        self._journal.append([Record(Kind.LINE, line) for line in lines])
        said = 0
        for line in lines:
            said = max(said, self._answer(self._taken(line)))
        if said < self.position.number:
            self._output.acknowledge(self.position.number)
        seconds = time.monotonic() - started
        if seconds < _QUICK_SECONDS:
            self._most_lines = min(2 * self._most_lines, _MOST_LINES)
        elif seconds > _SLOW_SECONDS:
            self._most_lines = max(self._most_lines // 2, 1)
        self._delivered(started)

    def complete(self) -> None:
        """Say that the newest instant is complete."""
        if self.session.is_waiting:
            started = time.monotonic()
            self._journal.append([Record(Kind.COMPLETE)])
            self._answer(self.session.complete())
            self._delivered(started)

    def close(self) -> None:
        """Keep a snapshot, and close the journal."""
        self._keep()
        self._journal.close()

    def abandon(self) -> None:
        """Close the journal as it is; it holds everything."""
        self._journal.close()

    def _delivered(self, started: float) -> None:
        self._output.flush()
        self._journal.append([Record(Kind.DELIVERED)], durable=False)
        self._busy_seconds += time.monotonic() - started
        if self._busy_seconds > max(_WORK_SECONDS, _SHARE * self._snapshot_seconds):
            self._journal.close()
            self._keep()
            self._journal = self._folder.opened()

    def _taken(self, line: bytes, *, quiet: bool = False) -> list[Answer]:
        self.position = self.position.after(line)
        if self.position.number == 1:
            self.first = self.position.chain
        return self.session.take(self.position.number, line, quiet=quiet)

    def _answer(self, answers: Iterable[Answer]) -> int:
        """Write answers; return the newest line that a forecast holds."""
        newest = 0
        for answer in answers:
            self._output.write(answer)
            if answer.is_forecast:
                newest = max(newest, int(str(answer.content["line"])))
        return newest

    def _replay(self) -> None:
        """Do again what the journal tells; answer what may not have been answered."""
        last = -1
        for place, record in enumerate(self._folder.records()):
            last = place if record.kind == Kind.DELIVERED else last
        for place, record in enumerate(self._folder.records()):
            answers: list[Answer] = []
            match record.kind:
                case Kind.LINE:
                    answers = self._taken(record.content, quiet=place < last)
                case Kind.COMPLETE:
                    answers = self.session.complete(quiet=place < last)
                case Kind.NEW_FEED:
                    self.position = Position()
                    self.source = record.content.decode()
            if place > last:
                self._answer(answers)
        self._output.flush()
        self._journal.append([Record(Kind.DELIVERED)], durable=False)

    def _keep(self) -> None:
        """Keep a snapshot of everything."""
        started = time.monotonic()
        snapshots = [
            self.streams[name].snapshot() for name in self._settings["entities"]
        ]
        session, tensors = self.session.state()
        header = {
            "format": FORMAT,
            "kind": "session",
            "model": self._model,
            "settings": self._settings,
            "position": [self.position.number, self.position.chain],
            "first": self.first,
            "source": self.source,
            "session": session,
            "streams": [dict(one.header) for one in snapshots],
        }
        for place, one in enumerate(snapshots):
            tensors |= {f"{place}/{name}": x for name, x in one.tensors.items()}
        self._folder.begin(header, tensors)
        self._snapshot_seconds = time.monotonic() - started
        self._busy_seconds = 0.0

    def _require_same(self, header: Mapping[str, Any]) -> None:
        folder = self._folder.folder
        if header["kind"] != "session" or header["model"] != self._model:
            raise ValueError(
                f"a stream must go on with the model that began it; got another one for "
                f"the state in {folder}. Name another --state, or remove the folder to "
                "begin anew."
            )
        for name, was in header["settings"].items():
            if was != self._settings[name]:
                raise ValueError(
                    f"a stream must go on as it was begun; got {name} "
                    f"{json.dumps(self._settings[name])} for the state in {folder}, "
                    f"begun with {json.dumps(was)}. Repeat that, or name another --state."
                )


def _apart(
    headers: Sequence[Mapping[str, Any]], tensors: Mapping[str, Tensor]
) -> list[StreamSnapshot]:
    """Return the streams' snapshots, whose tensors are named ``place/name``."""
    own: list[dict[str, Tensor]] = [{} for _ in headers]
    for name, tensor in tensors.items():
        place, separator, rest = name.partition("/")
        if separator:
            own[int(place)][rest] = tensor
    return [StreamSnapshot(*pair) for pair in zip(headers, own, strict=True)]
