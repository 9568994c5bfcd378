"""How many rows sources read, by stream: the first line of an ingest's account.

A log knows what it holds, not what it was given. The count is taken where rows are
read, before anything is dropped, so that an account can be held against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COUNTS: ContextVar[Counter[str] | None] = ContextVar("row counts", default=None)


@contextmanager
def row_counts() -> Iterator[Counter[str]]:
    """Count by stream the rows that are read inside the `with` block."""
    counts: Counter[str] = Counter()
    token = _COUNTS.set(counts)
    try:
        yield counts
    finally:
        _COUNTS.reset(token)


def is_counting() -> bool:
    """Whether somebody asked for the counts."""
    return _COUNTS.get() is not None


def count_rows(stream: str, num_rows: int) -> None:
    """Count rows of a stream that were read."""
    counts = _COUNTS.get()
    if counts is not None:
        counts[stream] += num_rows
