"""How a sequence is cut into blocks that stay in the processor's cache."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

from torch import Tensor

_BLOCK_TOKENS = 4096
_MIN_CHUNKS = 8


@dataclass(frozen=True)
class Layout:
    """How [B, H, T, X] is cut into blocks of `rows` x `heads` x `chunks` x `chunk`.

    The blocks of a sequence follow each other, oldest first: `spans` of them.
    """

    batch: int
    num_heads: int
    chunk: int
    rows: int
    heads: int
    chunks: int
    spans: int

    @property
    def length(self) -> int:
        """Rows of a sequence, filled up to whole blocks."""
        return self.spans * self.chunks * self.chunk

    @property
    def lanes(self) -> int:
        """Sequences in a block: its batch rows times its heads."""
        return self.rows * self.heads

    @property
    def num_blocks(self) -> int:
        """Blocks of all sequences."""
        return self.batch * self.num_heads // self.lanes * self.spans

    def as_block(self, x: Tensor) -> Tensor:
        """View a work array [lanes * chunks, chunk, X] in the shape of a block."""
        return x.view(self.rows, self.heads, self.chunks, self.chunk, x.shape[-1])

    def as_states(self, x: Tensor) -> Tensor:
        """View chunk states [lanes * chunks, R, W] as one row per chunk."""
        return x.view(self.lanes, self.chunks, -1)

    def blocks(self, x: Tensor) -> list[Tensor]:
        """Return views of [B, H, T, X], block by block."""
        if self.num_blocks == 1:
            return [self.as_block(x)]
        groups = x.view(
            self.batch // self.rows,
            self.rows,
            self.num_heads // self.heads,
            self.heads,
            self.spans,
            self.chunks,
            self.chunk,
            x.shape[-1],
        ).permute(0, 2, 4, 1, 3, 5, 6, 7)
        return [groups[key] for key in itertools.product(*map(range, groups.shape[:3]))]

    def states(self, x: Tensor) -> list[Tensor]:
        """Return views of [B, H, R, W], one for each group of lanes."""
        if self.num_blocks == 1:
            return [x]
        rows = x.split(self.rows)
        return [group for row in rows for group in row.split(self.heads, dim=1)]


@functools.lru_cache(maxsize=256)
def plan(batch: int, num_heads: int, length: int, chunk: int) -> Layout:
    """Return blocks of about 4096 tokens, with many lanes and few chunks each.

    The product with the triangle between chunks costs in proportion to `chunks`.
    """
    num_chunks = max(1, math.ceil(length / chunk))
    per_block = max(1, _BLOCK_TOKENS // chunk)
    lanes = batch * num_heads
    spans = math.ceil(num_chunks / max(_MIN_CHUNKS, per_block // lanes))
    chunks = math.ceil(num_chunks / spans)
    wanted = max(1, per_block // chunks)
    heads = _divisor(num_heads, wanted)
    rows = _divisor(batch, wanted // num_heads) if heads == num_heads else 1
    return Layout(batch, num_heads, chunk, rows, heads, chunks, spans)


def _divisor(number: int, limit: int) -> int:
    """Return the largest divisor of `number` up to `limit`, at least 1."""
    return next(d for d in range(max(1, min(number, limit)), 0, -1) if number % d == 0)
