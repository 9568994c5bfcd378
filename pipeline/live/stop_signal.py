"""SIGTERM and Ctrl-C as a wish to stop, which waiting for input notices at once."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    """While it is entered, the signals end nothing: they are noted here.

    Attributes
    ----------
    received : int or None
        The signal.
    """

    def __init__(self) -> None:
        self.received: int | None = None

    def __enter__(self) -> StopSignal:
        # A pipe: `select` goes on after a signal, but it sees that there is a byte.
        self._read, self._write = os.pipe()
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float | None, file: int | None = None) -> bool:
        """Wait until a file can be read, a signal comes, or time is up.

        Returns
        -------
        bool
            Whether the file can be read.
        """
        files = [self._read] if file is None else [self._read, file]
        ready, _, _ = select.select(files, [], [], seconds)
        return file in ready

    def _note(self, number: int, _: FrameType | None) -> None:
        self.received = number
        os.write(self._write, b"\0")
