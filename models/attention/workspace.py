"""The arrays that one block of `fused` is worked on in, forwards and backwards.

N is the number of chunks in a block, C the rows of a chunk. Values carry a column of
ones, W = V + 1, so that S and z come out of one product, and so do sum and denominator.

What counts here is how much memory a block touches: arrays that are never needed at
the same time share theirs. Views are made once, because making one costs as much as
starting a product.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from .fading import Fading
from .feature_maps import PointwiseMap
from .layout import Layout

# Chunks whose states are added up by one product; more cost more than they save.
_GROUP = 16


class Work:
    """Features, weights, states and sums of a block; used again for the next one.

    `q` and `k` act within chunks. `reader` and `writer`, faded to the start and the end
    of their chunk, act on states; without forgetting they are `q` and `k`.
    """

    def __init__(self, layout: Layout, q: Tensor, v: Tensor, *, forget: bool) -> None:
        count, chunk = layout.lanes * layout.chunks, layout.chunk
        num_features, width = q.shape[-1], v.shape[-1]
        keyed, valued = (count, chunk, num_features), (count, chunk, width + 1)
        stated = (count, num_features, width + 1)
        self.q, self.k, self.v = (q.new_empty(x) for x in (keyed, keyed, valued))
        self.reader = q.new_empty(keyed) if forget else self.q
        self.writer = q.new_empty(keyed) if forget else self.k
        self.before = q.new_empty(stated)
        # Scratch is needed before the weights and after them, sums after what is added.
        self.scores, self.scratch = shared(q, (count, chunk, chunk), keyed)
        self.added, self.sums = shared(q, stated, valued)
        self.k_T = self.k.mT
        self.writer_T = self.writer.mT if forget else self.k_T
        self.values, ones = self.v[..., :width], self.v[..., width:]
        self.weighted, self.total = self.sums[..., :width], self.sums[..., width:]
        self.added_rows = self.added.view(layout.lanes, layout.chunks, -1)
        self.before_rows = self.before.view(layout.lanes, layout.chunks, -1)
        ones.fill_(1)
        self.fade: Fading | None = None

    def load(
        self,
        feature_map: PointwiseMap,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        hidden: Tensor | None,
        fade: Fading | None,
    ) -> None:
        """Fill in the features and values of a block."""
        for rows, features in ((q, self.q), (k, self.k)):
            shape = rows.shape
            feature_map.write(rows, features.view(shape), self.scratch.view(shape))
        self.v.view(*v.shape[:-1], -1)[..., :-1].copy_(v)
        if hidden is not None:
            self.k.masked_fill_(hidden, 0)
            self.values.masked_fill_(hidden, 0)
            # As in `usable_queries`, for queries and for their features.
            size = torch.mul(q, q, out=self.scratch.view(q.shape)).sum(-1)
            usable = torch.isfinite(size.view(hidden.shape))
            size = torch.mul(self.q, self.q, out=self.scratch).sum(-1, keepdim=True)
            usable &= torch.isfinite(size)
            self.q.masked_fill_(hidden & ~usable, 0)
        self.fade = fade
        if fade is not None:
            torch.mul(self.q, fade.query.flatten(0, 1), out=self.reader)
            torch.mul(self.k, fade.key.flatten(0, 1), out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the weights within each chunk."""
        torch.bmm(self.q, self.k_T, out=self.scores)
        self.restrict(self.scores, diagonal)

    def restrict(self, scores: Tensor, diagonal: int) -> None:
        """Fade scores in place, those of the future to nothing."""
        if self.fade is None:
            scores.tril_(diagonal)
        else:
            scores.mul_(self.fade.within.flatten(0, 1))

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the state before each chunk, from `carry` on; return the state after."""
        torch.bmm(self.writer_T, self.v, out=self.added)
        added, before, fade = self.added_rows, self.before_rows, self.fade
        if fade is None:
            return running_sum(added, carry, out=before)
        torch.bmm(fade.between, added, out=before)
        before.addcmul_(fade.carry, carry[:, None])
        return torch.addcmul(added[:, -1], before[:, -1], fade.end)

    def read(self, y: Tensor, normaliser: Tensor) -> None:
        """Write the outputs of a block and what they were divided by.

        Rows with a zero denominator are divided by infinity: zeros, and no gradient.
        """
        torch.bmm(self.scores, self.v, out=self.sums)
        self.sums.baddbmm_(self.reader, self.before)
        torch.where(self.total == 0, _infinity(y.dtype), self.total, out=normaliser)
        torch.div(self.weighted, normaliser, out=y)


class BackwardWork:
    """The gradients of what `Work` holds, which they use up."""

    def __init__(self, work: Work, *, forget: bool) -> None:
        self.work, values = work, work.values.shape
        self.sums, self.after = torch.empty_like(work.v), torch.empty_like(work.before)
        self.scores, self.product = shared(work.q, work.scores.shape, values)
        # Gradients of sums faded like readers, and values faded like writers.
        self.reader = torch.empty_like(work.v) if forget else self.sums
        self.writer = torch.empty_like(work.v) if forget else work.v
        self.weighted, self.total = self.sums[..., :-1], self.sums[..., -1:]
        self.scores_T, self.weights_T = self.scores.mT, work.scores.mT
        self.q_T, self.v_T, self.before_T = work.q.mT, work.v.mT, work.before.mT
        self.after_T, self.after_S = self.after.mT, self.after[..., :-1]
        self.after_rows = self.after.view(work.before_rows.shape)

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor) -> None:
        """Write the gradient of a block's sums, from that of the ratio."""
        torch.div(dy, normaliser, out=self.weighted)
        torch.mul(self.weighted, y, out=self.product)
        torch.sum(self.product, -1, keepdim=True, out=self.total).neg_()
        fade = self.work.fade
        if fade is not None:
            torch.mul(self.sums, fade.query.flatten(0, 1), out=self.reader)
            torch.mul(self.work.v, fade.key.flatten(0, 1), out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.sums, self.v_T, out=self.scores)
        self.work.restrict(self.scores, diagonal)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        torch.bmm(self.q_T, self.reader, out=self.work.added)
        added, after, fade = self.work.added_rows, self.after_rows, self.work.fade
        if fade is None:
            return running_sum(added, carry, out=after, reverse=True)
        added[:, -1].addcmul_(carry, fade.end)
        torch.bmm(fade.between.mT, added, out=after)
        after[:, -1].add_(carry)
        return torch.bmm(fade.carry.mT, added)[:, 0]

    def leave(
        self,
        feature_map: PointwiseMap,
        dq: Tensor,
        dk: Tensor,
        dv: Tensor,
        dclock: Tensor | None,
    ) -> None:
        """Write the gradients of a block's inputs."""
        work = self.work
        torch.bmm(self.weights_T, self.weighted, out=dv)
        dv.baddbmm_(work.writer, self.after_S)
        torch.bmm(self.scores, work.k, out=dq)
        dq.baddbmm_(self.reader, self.before_T)
        torch.bmm(self.scores_T, work.q, out=dk)
        dk.baddbmm_(self.writer, self.after_T)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            torch.mul(dk, work.k, out=work.scratch)
            dclock.copy_(work.scratch.sum(-1, keepdim=True))
        for grad, features in ((dq, work.q), (dk, work.k)):
            feature_map.slope(features, work.scratch)
            grad.mul_(work.scratch)


def shared(like: Tensor, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return new arrays of the given shapes in the same memory."""
    sizes = [math.prod(shape) for shape in shapes]
    memory = like.new_empty(max(sizes))
    pairs = zip(sizes, shapes, strict=True)
    return [memory[:size].view(shape) for size, shape in pairs]


def running_sum(
    rows: Tensor, carry: Tensor, *, out: Tensor, reverse: bool = False
) -> Tensor:
    """Write what comes before each of N rows, `carry` and earlier rows; return all.

    Products with a triangle of ones, for rows [L, N, X] and carry [L, X]. `reverse`
    runs from the last row to the first.
    """
    lanes, length, _ = rows.shape
    starts = range(0, length, _GROUP)
    for start in reversed(starts) if reverse else starts:
        part, before = rows[:, start : start + _GROUP], out[:, start : start + _GROUP]
        earlier = _earlier(part.shape[1], rows.dtype, reverse=reverse)
        torch.bmm(earlier.expand(lanes, -1, -1), part, out=before).add_(carry[:, None])
        last = 0 if reverse else -1
        carry = before[:, last] + part[:, last]
    return carry


@functools.cache
def _infinity(dtype: torch.dtype) -> Tensor:
    return torch.tensor(torch.inf, dtype=dtype)


@functools.lru_cache(maxsize=256)
def _earlier(size: int, dtype: torch.dtype, *, reverse: bool) -> Tensor:
    lower = torch.ones(size, size, dtype=dtype).tril(-1)
    return lower.mT if reverse else lower
