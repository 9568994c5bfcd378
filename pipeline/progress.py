"""What a person sees while a run works; nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

T = TypeVar("T")


class Progress:
    """Stages and bars on standard error, if that is a terminal.

    Parameters
    ----------
    enabled : bool
        False for silence whatever the terminal.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._console = Console(stderr=True)
        self._shown = enabled and self._console.is_terminal

    def stage(self, text: str) -> None:
        """Say what is done next."""
        if self._shown:
            self._console.print(f"[dim]{text}[/dim]")

    def track(self, items: Iterable[T], total: int, text: str) -> Iterator[T]:
        """Yield the items beside a bar."""
        if not self._shown or not total:
            yield from items
            return
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
