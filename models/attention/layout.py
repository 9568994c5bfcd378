"""How a sequence is cut into blocks that stay in the processor's cache."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

from torch import Tensor

_BLOCK_TOKENS = 4096


@dataclass(frozen=True)
class Layout:
    """How [B, H, T, X] is cut into blocks of `rows` x `heads` x `chunks` x `chunk`.

    A block holds several whole sequences, or one of the `spans` of a single one. So it
    is one piece of memory wherever the tensor is, and blocks follow each other in the
    order of memory, the spans of a sequence oldest first.
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

    @functools.cached_property
    def lanes(self) -> int:
        """Sequences in a block: its batch rows times its heads."""
        return self.rows * self.heads

    @functools.cached_property
    def num_blocks(self) -> int:
        """Blocks of all sequences."""
        return self.batch * self.num_heads // self.lanes * self.spans

    def spans_of(self, group: int) -> range:
        """Return the numbers of the blocks of one group of lanes, oldest first."""
        return range(group * self.spans, (group + 1) * self.spans)

    def blocks(self, x: Tensor) -> list[Tensor]:
        """Return views of [B, H, T, X], each a block with X last."""
        width = x.shape[-1]
        if x.is_contiguous():
            if self.num_blocks == 1:
                return [x.view(-1, self.chunk, width)]
            count = self.lanes * self.chunks
            return list(x.view(-1, count, self.chunk, width).unbind())
        groups = x.view(
            *(self.batch // self.rows, self.rows),
            *(self.num_heads // self.heads, self.heads),
            *(self.spans, self.chunks, self.chunk, width),
        ).permute(0, 2, 4, 1, 3, 5, 6, 7)
        return [groups[key] for key in itertools.product(*map(range, groups.shape[:3]))]

    def flat_blocks(self, x: Tensor) -> list[Tensor]:
        """Return the blocks as [lanes * chunks, chunk, X]; views where memory allows."""
        if x.is_contiguous():
            return self.blocks(x)
        return [b.reshape(-1, self.chunk, b.shape[-1]) for b in self.blocks(x)]


@functools.lru_cache(maxsize=256)
def plan(batch: int, num_heads: int, length: int, chunk: int) -> Layout:
    """Return blocks of at most about 4096 tokens, as even as possible."""
    num_chunks = max(1, math.ceil(length / chunk))
    per_block = max(1, _BLOCK_TOKENS // chunk)
    spans = math.ceil(num_chunks / per_block)
    chunks = math.ceil(num_chunks / spans)
    lanes = 1 if spans > 1 else per_block // chunks
    heads = _divisor(num_heads, lanes)
    rows = _divisor(batch, lanes // num_heads) if heads == num_heads else 1
    return Layout(batch, num_heads, chunk, rows, heads, chunks, spans)


def _divisor(number: int, limit: int) -> int:
    """Return the largest divisor of `number` up to `limit`, at least 1."""
    return next(d for d in range(max(1, min(number, limit)), 0, -1) if number % d == 0)
