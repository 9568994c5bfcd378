"""The arrays that one block of `fused` is worked on in, forwards and backwards.

N is the number of chunks in a block, C the rows of a chunk. Values carry a column of
ones, W = V + 1, so that S and z come out of one product, and so do sum and denominator.
Views are made once: to make one costs as much as to start a product.
"""

from __future__ import annotations

import functools

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
        count, chunk, width = layout.lanes * layout.chunks, layout.chunk, v.shape[-1]
        num_features, empty = q.shape[-1], q.new_empty
        self.q = empty(count, chunk, num_features)
        self.k = empty(count, chunk, num_features)
        self.v = empty(count, chunk, width + 1)
        self.scores = empty(count, chunk, chunk)
        self.added = empty(count, num_features, width + 1)
        self.before = empty(count, num_features, width + 1)
        self.sums = empty(count, chunk, width + 1)
        self.reader = torch.empty_like(self.q) if forget else self.q
        self.writer = torch.empty_like(self.k) if forget else self.k
        scratch = empty(count * chunk * max(width, num_features))
        self.scratch_k = scratch[: self.k.numel()].view(self.k.shape)
        self.scratch_v = scratch[: count * chunk * width].view(count, chunk, width)
        self.k_T, self.writer_T = self.k.mT, self.writer.mT
        self.values, self.ones = self.v[..., :width], self.v[..., width:]
        self.weighted, self.total = self.sums[..., :width], self.sums[..., width:]
        self.added_rows = self.added.view(layout.lanes, layout.chunks, -1)
        self.before_rows = self.before.view(layout.lanes, layout.chunks, -1)
        self.ones.fill_(1)
        self.infinity = q.new_tensor(torch.inf)
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
            out, scratch = features.view(rows.shape), self.scratch_k.view(rows.shape)
            feature_map.write(rows, out, scratch)
        self.v.view(*v.shape[:-1], -1)[..., :-1].copy_(v)
        if hidden is not None:
            self.k.masked_fill_(hidden, 0)
            self.values.masked_fill_(hidden, 0)
            # As in `usable_queries`, for queries and for their features.
            size = torch.mul(q, q, out=self.scratch_k.view(q.shape)).sum(-1)
            usable = torch.isfinite(size.view(hidden.shape))
            size = torch.mul(self.q, self.q, out=self.scratch_k).sum(-1, keepdim=True)
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
        torch.where(self.total == 0, self.infinity, self.total, out=normaliser)
        torch.div(self.weighted, normaliser, out=y)


class BackwardWork:
    """The gradients of what `Work` holds; those of the sums stand in their place."""

    def __init__(self, work: Work, *, forget: bool) -> None:
        self.work = work
        self.scores = torch.empty_like(work.scores)
        self.after = torch.empty_like(work.before)
        # Gradients of sums faded like readers, and values faded like writers.
        self.reader = torch.empty_like(work.sums) if forget else work.sums
        self.writer = torch.empty_like(work.v) if forget else work.v
        self.scores_T, self.weights_T = self.scores.mT, work.scores.mT
        self.q_T, self.v_T, self.before_T = work.q.mT, work.v.mT, work.before.mT
        self.after_T, self.after_S = self.after.mT, self.after[..., :-1]
        self.after_rows = self.after.view(work.before_rows.shape)

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor) -> None:
        """Write the gradient of a block's sums, from that of the ratio."""
        work = self.work
        torch.div(dy, normaliser, out=work.weighted)
        torch.mul(work.weighted, y, out=work.scratch_v)
        torch.sum(work.scratch_v, -1, keepdim=True, out=work.total).neg_()
        if work.fade is not None:
            torch.mul(work.sums, work.fade.query.flatten(0, 1), out=self.reader)
            torch.mul(work.v, work.fade.key.flatten(0, 1), out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.work.sums, self.v_T, out=self.scores)
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

    def leave_queries(self, feature_map: PointwiseMap, dq: Tensor) -> None:
        """Write the gradient of a block's queries."""
        torch.bmm(self.scores, self.work.k, out=dq)
        dq.baddbmm_(self.reader, self.before_T)
        feature_map.slope(self.work.q, self.work.scratch_k)
        dq.mul_(self.work.scratch_k)

    def leave_keys(
        self, feature_map: PointwiseMap, dk: Tensor, dclock: Tensor | None
    ) -> None:
        """Write the gradients of a block's keys and of their clock."""
        work = self.work
        torch.bmm(self.scores_T, work.q, out=dk)
        dk.baddbmm_(self.writer, self.after_T)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            torch.mul(dk, work.k, out=work.scratch_k)
            dclock.copy_(work.scratch_k.sum(-1, keepdim=True))
        feature_map.slope(work.k, work.scratch_k)
        dk.mul_(work.scratch_k)

    def leave_values(self, dv: Tensor) -> None:
        """Write the gradient of a block's values."""
        torch.bmm(self.weights_T, self.work.weighted, out=dv)
        dv.baddbmm_(self.work.writer, self.after_S)


def running_sum(
    rows: Tensor, carry: Tensor, *, out: Tensor, reverse: bool = False
) -> Tensor:
    """Write what comes before each of N rows, `carry` and earlier rows; return all.

    Products with a triangle of ones, for rows [L, N, X] and carry [L, X].
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


@functools.lru_cache(maxsize=256)
def _earlier(size: int, dtype: torch.dtype, *, reverse: bool) -> Tensor:
    lower = torch.ones(size, size, dtype=dtype).tril(-1)
    return lower.mT if reverse else lower
