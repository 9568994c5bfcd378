"""The lines of a feed as they come, and how far they were taken in."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, runtime_checkable

from .event_lines import LONGEST_LINE
from .stop_signal import StopSignal

_READ_BYTES = 1 << 16
_MOST_LINES = 1024


@runtime_checkable
class Feed(Protocol):
    """Where the lines come from."""

    def read(self, seconds: float | None) -> list[bytes] | None:
        """Return the next lines; none of them after a silence or a signal; None at the end.

        Parameters
        ----------
        seconds : float or None
            How long to wait; None = until there is a line.
        """


class LineFeed:
    """The lines of an open file.

    A line that is too long is cut where `read_line` refuses it, so that it needs no
    memory; a last line without an end counts.
    """

    def __init__(self, file: int, stop: StopSignal) -> None:
        self._file = file
        self._stop = stop
        self._lines: list[bytes] = []
        self._rest = b""
        self._is_cut = self._has_ended = False

    def read(self, seconds: float | None) -> list[bytes] | None:
        """See `Feed`."""
        while not self._lines and not self._has_ended:
            if not self._stop.wait(seconds, self._file):
                return []
            if self._stop.received:
                return []
            self._take(os.read(self._file, _READ_BYTES))
        if not self._lines:
            return None
        lines, self._lines = self._lines[:_MOST_LINES], self._lines[_MOST_LINES:]
        return lines

    def _take(self, content: bytes) -> None:
        if not content:
            self._has_ended = True
            self._lines = [self._rest] if self._rest and not self._is_cut else []
            return
        *lines, rest = (self._rest + content).split(b"\n")
        if self._is_cut and lines:  # the end of a line that was refused already
            lines, self._is_cut = lines[1:], False
        elif self._is_cut:
            rest = b""
        if len(rest) > LONGEST_LINE:
            lines.append(rest)
            rest, self._is_cut = b"", True
        self._lines += [line[: LONGEST_LINE + 1] for line in lines]
        self._rest = rest


@dataclass(frozen=True)
class Position:
    """The place after a line of a feed.

    Attributes
    ----------
    number : int
        Of the line, from 1; 0 = before the first.
    chain : str
        A digest of all lines up to it.
    """

    number: int = 0
    chain: str = ""

    def after(self, line: bytes) -> Position:
        """Return the place one line later."""
        content = self.chain.encode() + b"\0" + line
        return Position(self.number + 1, blake2b(content, digest_size=16).hexdigest())


class RestOfFeed:
    """A feed of which some lines were read already."""

    def __init__(self, first: list[bytes], feed: Feed) -> None:
        self._first = first
        self._feed = feed

    def read(self, seconds: float | None) -> list[bytes] | None:
        """See `Feed`."""
        if self._first:
            first, self._first = self._first, []
            return first
        return self._feed.read(seconds)


def rest_of(opened: Callable[[], Feed], position: Position) -> RestOfFeed | None:
    """Return what follows a place, if the feed begins with the lines up to it.

    After a signal nothing follows.
    """
    feed, now = opened(), Position()
    rest: list[bytes] = []
    while now.number < position.number:
        lines = feed.read(None)
        if lines is None:
            return None
        if not lines:
            return RestOfFeed([], feed)
        wanted = position.number - now.number
        for line in lines[:wanted]:
            now = now.after(line)
        rest = lines[wanted:]
    return RestOfFeed(rest, feed) if now == position else None
