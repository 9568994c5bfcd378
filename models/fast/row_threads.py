"""Rows shared out among threads that compute without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np

from . import layout
from .linear_rows import work_room
from .packed_weights import PackedWeights

# Below this, threads wait for each other longer than they work.
_FEWEST_ROWS = 4 * layout.BLOCK_ROWS
Work = Callable[[slice, np.ndarray, np.ndarray], int]


class RowThreads:
    """Threads, each with room to work in.

    Parameters
    ----------
    packed : PackedWeights
    num_threads : int
    """

    def __init__(self, packed: PackedWeights, num_threads: int) -> None:
        room = work_room(packed.sizes, layout.BLOCK_ROWS)
        wide = int(packed.sizes[layout.WIDE_ROOM])
        self._rooms = [
            (np.zeros(room, np.float32), np.zeros(wide)) for _ in range(num_threads)
        ]

    def run(self, work: Work, num_rows: int) -> None:
        """Call `work` with parts of the rows and room to work in, side by side."""
        parts = self._parts(num_rows)
        *others, (own, own_room) = zip(parts, self._rooms, strict=False)
        waiting = [self._pool.submit(work, part, *room) for part, room in others]
        work(own, *own_room)
        for each in waiting:
            each.result()

    def _parts(self, num_rows: int) -> list[slice]:
        """Return whole blocks for each thread; the last one also takes the rest."""
        count = len(self._rooms) if num_rows >= _FEWEST_ROWS else 1
        blocks = max(1, -(-num_rows // layout.BLOCK_ROWS))
        each = layout.BLOCK_ROWS * (-(-blocks // count))
        starts = range(0, max(num_rows, 1), each)
        return [slice(start, min(start + each, num_rows)) for start in starts]

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(len(self._rooms) - 1, "infoset-rows")
