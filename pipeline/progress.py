"""What a person sees while a run works: bars, or a few lines in a log file."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

T = TypeVar("T")
_QUARTERS = 4


class Progress:
    """Stages on standard error: with bars if that is a terminal, else one line each.

    Parameters
    ----------
    enabled : bool
        False for silence; a warning then goes to the logger ``infoset``.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._console = Console(stderr=True)
        self._enabled = enabled
        self._has_bars = enabled and self._console.is_terminal
        self._started = time.monotonic()

    def stage(self, text: str) -> None:
        """Say what is done next."""
        if self._has_bars:
            self._console.print(text, style="dim", markup=False, highlight=False)
        elif self._enabled:
            self._line(text)

    def warning(self, text: str) -> None:
        """Say what a person may not expect."""
        if self._has_bars:
            self._console.print(text, style="yellow", markup=False, highlight=False)
        elif self._enabled:
            self._line(text)
        else:
            logging.getLogger("infoset").warning(text)

    def track(self, items: Iterable[T], total: int, text: str) -> Iterator[T]:
        """Yield the items beside a bar, or with a line at each quarter of them."""
        if self._has_bars and total:
            yield from self._beside_a_bar(items, total, text)
            return
        for done, item in enumerate(items, start=1):
            quarter, before = (_QUARTERS * n // total for n in (done, done - 1))
            # At the end the next stage speaks.
            if quarter > before and done < total:
                self.stage(f"{text}: {done} of {total} done")
            yield item

    def _line(self, text: str) -> None:
        seconds = time.monotonic() - self._started
        sys.stderr.write(f"{seconds:5.0f} s  {text}\n")
        sys.stderr.flush()

    def _beside_a_bar(self, items: Iterable[T], total: int, text: str) -> Iterator[T]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Bar(*columns, console=self._console, transient=True) as bar:
            row = bar.add_task(text, total=total)
            for item in items:
                bar.advance(row)
                yield item
