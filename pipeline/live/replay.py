"""Feeding a recorded tape at the speed at which it happened, times a factor."""

from __future__ import annotations

import time
from collections.abc import Iterator

from .event_lines import FeedEvent, read_line
from .stop_signal import StopSignal
from .vocabulary import Vocabulary

_NS_PER_SECOND = 1e9


class Replay:
    """The clock of a replay.

    Parameters
    ----------
    factor : float
        10 = ten times as fast as it happened; 0 = as fast as possible.
    words : Vocabulary
    stop : StopSignal
    """

    def __init__(self, factor: float, words: Vocabulary, stop: StopSignal) -> None:
        self._factor = factor
        self._words = words
        self._stop = stop
        self._began: tuple[int, float] | None = None
        self._instant: int | None = None

    def parts(self, lines: list[bytes]) -> Iterator[tuple[list[bytes], bool]]:
        """Yield lines of one availability when their time has come.

        Yields
        ------
        lines : list of bytes
        is_complete : bool
            Whether a line of another instant is known to follow.
        """
        if not self._factor:
            yield lines, False
            return
        part: list[bytes] = []
        for line in lines:
            instant = self._instant_of(line)
            if instant is not None and instant != self._instant:
                if self._instant is not None:
                    yield part, True
                part, self._instant = [], instant
                self._wait_for(instant)
                if self._stop.received:
                    return
            part.append(line)
        yield part, False

    def _instant_of(self, line: bytes) -> int | None:
        try:
            said = read_line(line, self._words)
        except ValueError:
            return None  # it is refused later, by its number
        return said.available_at if isinstance(said, FeedEvent) else None

    def _wait_for(self, instant: int) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = instant, now
        first, began = self._began
        due = began + (instant - first) / _NS_PER_SECOND / self._factor
        if due > now:
            self._stop.wait(due - now)
