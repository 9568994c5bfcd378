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

from .fading import CalmFading, Fading
from .feature_maps import PointwiseMap
from .layout import Layout

# Weights that matter to a larger sum are at least 10^-7 of it, and features of theirs
# are not lost before 10^-38.
_FAINT = 1e-20


class Work:
    """Features, weights, states and sums of a block; used again for the next one.

    `q` and `k` act within chunks. `reader` and `writer` act on states: they are `q` and
    `k`, faded to the start and the end of their chunk where rows read at their own level.
    """

    def __init__(self, layout: Layout, q: Tensor, v: Tensor) -> None:
        count, chunk = layout.lanes * layout.chunks, layout.chunk
        keyed = (count, chunk, q.shape[-1])
        valued = (count, chunk, v.shape[-1] + 1)
        stated = (count, q.shape[-1], v.shape[-1] + 1)
        self.states = (layout.lanes, layout.chunks, stated[1] * stated[2])
        self.q, self.k, self.v = (q.new_empty(x) for x in (keyed, keyed, valued))
        self.reader, self.writer = self.q, self.k
        # Scratch is needed before the weights and after them, sums after what is added.
        self.scores, self.scratch = shared(q, (count, chunk, chunk), keyed)
        self.added, self.sums = shared(q, stated, valued)
        self.k_T = self.k.mT
        self.values, self.ones = self.v[..., :-1], self.v[..., -1:]
        self.weighted, self.total = self.sums[..., :-1], self.sums[..., -1:]
        self.added_rows = self.added.view(self.states)
        self.earlier = _strictly_lower(layout.chunks, q.dtype).expand(
            layout.lanes, -1, -1
        )
        self.fade: Fading | CalmFading | None = None
        self.ones.fill_(1)

    def load(
        self,
        feature_map: PointwiseMap,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        hidden: Tensor | None,
        fade: Fading | CalmFading | None,
    ) -> None:
        """Fill in the features and values of a block."""
        self.fade = fade
        feature_map.write(q, self.q.view(q.shape), self.scratch.view(q.shape))
        feature_map.write(k, self.k.view(k.shape), self.scratch.view(k.shape))
        values = self.v.view(*v.shape[:-1], -1)[..., :-1]
        if isinstance(fade, CalmFading):
            torch.mul(v, fade.values.view(*v.shape[:-1], 1), out=values)
            self.ones.copy_(fade.values.flatten(0, 1))
        else:
            values.copy_(v)
            self.ones.fill_(1)
        if hidden is not None:
            self.k.masked_fill_(hidden, 0)
            self.values.masked_fill_(hidden, 0)
            # As in `usable_queries`, for queries and for their features.
            size = torch.mul(q, q, out=self.scratch.view(q.shape)).sum(-1)
            usable = torch.isfinite(size.view(hidden.shape))
            size = torch.mul(self.q, self.q, out=self.scratch).sum(-1, keepdim=True)
            usable &= torch.isfinite(size)
            self.q.masked_fill_(hidden & ~usable, 0)
        self.reader, self.writer = self.q, self.k
        if isinstance(fade, Fading):
            self.reader = self.q * fade.query.flatten(0, 1)
            self.writer = self.k * fade.key.flatten(0, 1)

    def compare(self, diagonal: int) -> None:
        """Write the weights within each chunk."""
        torch.bmm(self.q, self.k_T, out=self.scores)
        self.restrict(self.scores, diagonal)

    def restrict(self, scores: Tensor, diagonal: int) -> None:
        """Fade scores in place, those of the future to nothing."""
        if isinstance(self.fade, Fading):
            scores.mul_(self.fade.within.flatten(0, 1))
        else:
            scores.tril_(diagonal)

    def accumulate(self, carry: Tensor, before: Tensor) -> Tensor:
        """Write the state before each chunk, from `carry` on; return the state after."""
        torch.bmm(self.writer.mT, self.v, out=self.added)
        added, before, fade = self.added_rows, before.view(self.states), self.fade
        if fade is None:
            # Products with a triangle of ones: running sums are slower.
            torch.bmm(self.earlier, added, out=before).add_(carry[:, None])
            return before[:, -1] + added[:, -1]
        torch.bmm(fade.between, added, out=before)
        before.addcmul_(fade.carry, carry[:, None])
        if isinstance(fade, CalmFading):
            return before[:, -1] + added[:, -1]
        return torch.addcmul(added[:, -1], before[:, -1], fade.end)

    def read(
        self, before: Tensor, y: Tensor, normaliser: Tensor, *, floor: float
    ) -> None:
        """Write the outputs of a block and what they were divided by.

        Rows with a zero denominator are divided by infinity: zeros, and no gradient.
        """
        torch.bmm(self.scores, self.v, out=self.sums)
        self.sums.baddbmm_(self.reader, before)
        if floor > 0:
            torch.clamp_min(self.total, floor, out=normaliser)
        else:
            infinity = _infinity(y.dtype)
            torch.where(self.total == 0, infinity, self.total, out=normaliser)
        torch.div(self.weighted, normaliser, out=y)

    def is_faint(self, empty: Tensor | None) -> bool:
        """Return whether a shared level has left some row with next to no weight.

        What made up such a sum may have been lost below the smallest numbers. Rows
        without a query, and those with nothing to read (`empty`), have no weight anyway.
        """
        if not isinstance(self.fade, CalmFading) or self.total.amin() >= _FAINT:
            return False
        asks = self.q.sum(-1, keepdim=True) > 0
        faint = (self.total < _FAINT) & asks
        return bool((faint if empty is None else faint & ~empty).any())


class BackwardWork:
    """The gradients of what `Work` holds, which they use up."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.sums, self.after = torch.empty_like(work.v), torch.empty_like(work.added)
        self.scores, self.product = shared(work.q, work.scores.shape, work.values.shape)
        # Gradients of sums faded like readers, and values faded like writers.
        self.reader, self.writer = self.sums, work.v
        self.weighted, self.total = self.sums[..., :-1], self.sums[..., -1:]
        self.scores_T, self.weights_T = self.scores.mT, work.scores.mT
        self.q_T, self.v_T, self.later = work.q.mT, work.v.mT, work.earlier.mT
        self.after_T, self.after_S = self.after.mT, self.after[..., :-1]
        self.after_rows = self.after.view(work.states)

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor, *, floor: float) -> None:
        """Write the gradient of a block's sums, from that of the ratio."""
        torch.div(dy, normaliser, out=self.weighted)
        torch.mul(self.weighted, y, out=self.product)
        torch.sum(self.product, -1, keepdim=True, out=self.total).neg_()
        if floor > 0:  # a constant has taken the denominator's place
            self.total.masked_fill_(normaliser <= floor, 0)
        fade = self.work.fade
        self.reader, self.writer = self.sums, self.work.v
        if isinstance(fade, Fading):
            self.reader = self.sums * fade.query.flatten(0, 1)
            self.writer = self.work.v * fade.key.flatten(0, 1)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.sums, self.v_T, out=self.scores)
        self.work.restrict(self.scores, diagonal)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        torch.bmm(self.q_T, self.reader, out=self.work.added)
        added, after, fade = self.work.added_rows, self.after_rows, self.work.fade
        if fade is None:
            torch.bmm(self.later, added, out=after).add_(carry[:, None])
            return after[:, 0] + added[:, 0]
        if isinstance(fade, CalmFading):
            added[:, -1].add_(carry)
        else:
            added[:, -1].addcmul_(carry, fade.end)
        torch.bmm(fade.between.mT, added, out=after)
        after[:, -1].add_(carry)
        return torch.bmm(fade.carry.mT, added)[:, 0]

    def leave_values(self, dv: Tensor) -> None:
        """Write the gradient of a block's values."""
        torch.bmm(self.weights_T, self.weighted, out=dv)
        dv.baddbmm_(self.work.writer, self.after_S)
        if isinstance(self.work.fade, CalmFading):
            dv.mul_(self.work.fade.values.flatten(0, 1))

    def leave_features(
        self, before: Tensor, dq: Tensor, dk: Tensor, dclock: Tensor | None
    ) -> None:
        """Write the gradients of a block's features, and of their clock."""
        work = self.work
        torch.bmm(self.scores, work.k, out=dq)
        dq.baddbmm_(self.reader, before.mT)
        torch.bmm(self.scores_T, work.q, out=dk)
        dk.baddbmm_(self.writer, self.after_T)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            torch.mul(dk, work.k, out=work.scratch)
            dclock.copy_(work.scratch.sum(-1, keepdim=True))

    def leave_maps(self, feature_map: PointwiseMap, dq: Tensor, dk: Tensor) -> None:
        """Turn gradients of features into those of queries and keys, in place."""
        scratch = self.work.scratch
        for grad, features in ((dq, self.work.q), (dk, self.work.k)):
            feature_map.slope(features, scratch)
            grad.mul_(scratch)


def shared(like: Tensor, *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return new arrays of the given shapes in the same memory."""
    sizes = [math.prod(shape) for shape in shapes]
    memory = like.new_empty(max(sizes))
    pairs = zip(sizes, shapes, strict=True)
    return [memory[:size].view(shape) for size, shape in pairs]


@functools.cache
def _infinity(dtype: torch.dtype) -> Tensor:
    return torch.tensor(torch.inf, dtype=dtype)


@functools.lru_cache(maxsize=256)
def _strictly_lower(size: int, dtype: torch.dtype) -> Tensor:
    return torch.ones(size, size, dtype=dtype).tril(-1)
