"""The same work on many files at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_LARGEST_BATCH = 64  # of small files, where handing over costs as much as reading


def side_by_side(
    work: Callable[[T], R], items: Sequence[T], num_threads: int
) -> list[R]:
    """Return the results for all items, in their order.

    When one fails or the user interrupts, what has begun is finished, nothing more is
    begun, and the first error is raised.
    """
    size = max(1, min(_LARGEST_BATCH, len(items) // (4 * num_threads)))
    batches = [items[start : start + size] for start in range(0, len(items), size)]

    def batch(part: Sequence[T]) -> list[R]:
        return [work(item) for item in part]

    with ThreadPoolExecutor(num_threads) as pool:
        futures = [pool.submit(batch, part) for part in batches]
        try:
            return [result for future in futures for result in future.result()]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
