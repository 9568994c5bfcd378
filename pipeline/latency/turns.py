"""A forecaster's streams, each time ready to take in one more event."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from infoset.models.event_window import StreamEvent
from infoset.models.streaming import Stream

from .tape import Tape

Workload = Literal["fresh", "streaming"]
WORKLOADS: tuple[Workload, ...] = ("fresh", "streaming")
NS_PER_US = 1_000.0
_GROWTH = 64


@dataclass(frozen=True, eq=False)
class FilledStream:
    """A stream that holds the first `length` events of a tape."""

    stream: Stream
    tape: Tape
    length: int


class Turns:
    """What is asked of one forecaster, one request after the other.

    With several streams the requests go round them. The history stays equally long:
    `fresh` slides a window along the tape; `streaming` goes back to a fork of the first
    state before the history has grown by more than 1/64.

    Parameters
    ----------
    filled : sequence of FilledStream
        All of the same length; they stay as they are.
    workload : {'fresh', 'streaming'}
    """

    def __init__(self, filled: Sequence[FilledStream], workload: Workload) -> None:
        self._filled = filled
        self._forks = workload == "streaming"
        self.rewind()

    def rewind(self) -> None:
        """Start again from the first request."""
        self._num = 0
        self._streams = [each.stream.fork() for each in self._filled]

    def ready(self) -> tuple[Stream, StreamEvent]:
        """Return the stream of the next request and the event that it is to take in."""
        step, place = divmod(self._num, len(self._filled))
        self._num += 1
        each = self._filled[place]
        if not self._forks:
            return self._streams[place], each.tape.at(each.length + step)
        run = longest_run(each.length)
        turn, within = divmod(step, run)
        if within == 0:
            self._streams[place] = each.stream.fork()
        # Forks all start from the same state: a short tape may be read again.
        starts = max(len(each.tape) - each.length - run + 1, 1)
        start = each.length + turn * run % starts
        return self._streams[place], each.tape.at(start + within)

    def rehearse(self, num: int) -> None:
        """Answer the next requests on forks and forget it: the caches are then warm."""
        place, streams = self._num, self._streams
        soon = {(place + ahead) % len(streams) for ahead in range(num)}
        self._streams = [
            stream.fork() if number in soon else stream
            for number, stream in enumerate(streams)
        ]
        for _ in range(num):
            service_us(*self.ready())
        self._num, self._streams = place, streams


def longest_run(length: int) -> int:
    """Return how many events a state of `length` may take in before it is forked anew."""
    return max(1, length // _GROWTH)


def service_us(stream: Stream, event: StreamEvent) -> float:
    """Take in one event and forecast at its instant; return the microseconds."""
    before = time.perf_counter_ns()
    stream.update(event)
    stream.forecast(event.available_at)
    return (time.perf_counter_ns() - before) / NS_PER_US
