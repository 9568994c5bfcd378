"""The arrays that one block of `fused` is worked on in, forwards and backwards.

N is the number of chunks in a block, C the rows of a chunk. The state of a chunk, S
and z, stands in one row of R V + R numbers, so that both are carried on at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .fading import Fading
from .feature_maps import PointwiseMap
from .layout import Layout


class States:
    """One state per chunk: a row of numbers, seen as S [N, R, V] and z [N, R, 1]."""

    def __init__(self, layout: Layout, k: Tensor, v: Tensor) -> None:
        count, num_features, width = len(k), k.shape[-1], v.shape[-1]
        size = num_features * width
        rows = k.new_empty(count, size + num_features)
        self.rows = rows.view(layout.lanes, layout.chunks, -1)
        self.S = rows[:, :size].view(count, num_features, width)
        self.z = rows[:, size:, None]


class Work:
    """Features, weights and states of a block; used again for the next one.

    `q` and `k` act within chunks. `reader` and `writer`, faded to the start and the end
    of their chunk, act on states; without forgetting they are `q` and `k`.
    """

    def __init__(self, layout: Layout, q: Tensor, v: Tensor, *, forget: bool) -> None:
        count, chunk = layout.lanes * layout.chunks, layout.chunk
        self.layout = layout
        self.q = q.new_empty(count, chunk, q.shape[-1])
        self.k = torch.empty_like(self.q)
        self.v = v.new_empty(count, chunk, v.shape[-1])
        self.scores = q.new_empty(count, chunk, chunk)
        self.added = States(layout, self.k, self.v)
        self.before = States(layout, self.k, self.v)
        self.scratch = q.new_empty(count * chunk * max(q.shape[-1], v.shape[-1]))
        self.reader = torch.empty_like(self.q) if forget else self.q
        self.writer = torch.empty_like(self.k) if forget else self.k
        self.fade: Fading | None = None
        lower = q.new_ones(layout.chunks, layout.chunks).tril_(-1)
        self.earlier = lower.expand(layout.lanes, -1, -1)

    def temporary(self, like: Tensor) -> Tensor:
        """Return scratch space in the shape of another array."""
        return self.scratch[: like.numel()].view(like.shape)

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
        q_block, k_block = self.q.view(q.shape), self.k.view(q.shape)
        scratch = self.temporary(q)
        feature_map.write(q, q_block, scratch)
        feature_map.write(k, k_block, scratch)
        self.v = self.layout.flat(v)
        if hidden is not None:
            k_block.masked_fill_(hidden, 0)
            self.v = self.layout.flat(v.masked_fill(hidden, 0))
            broken = ~torch.isfinite(q_block.sum(-1, keepdim=True))
            q_block.masked_fill_(broken & hidden, 0)
        self.fade = fade
        if fade is not None:
            self.earlier = fade.between
            torch.mul(self.q, fade.query.flatten(0, 1), out=self.reader)
            torch.mul(self.k, fade.key.flatten(0, 1), out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the weights within each chunk."""
        torch.bmm(self.q, self.k.mT, out=self.scores)
        self.restrict(self.scores, diagonal)

    def restrict(self, scores: Tensor, diagonal: int) -> None:
        """Fade scores in place, those of the future to nothing."""
        if self.fade is None:
            scores.tril_(diagonal)
        else:
            scores.mul_(self.fade.within.flatten(0, 1))

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the state before each chunk, from `carry` on; return the state after."""
        added, before = self.added.rows, self.before.rows
        torch.bmm(self.writer.mT, self.v, out=self.added.S)
        torch.sum(self.writer, 1, out=self.added.z[..., 0])
        torch.bmm(self.earlier, added, out=before)
        if self.fade is None:
            before.add_(carry[:, None])
            return before[:, -1] + added[:, -1]
        before.addcmul_(self.fade.carry, carry[:, None])
        return torch.addcmul(added[:, -1], before[:, -1], self.fade.end)

    def read(self, y: Tensor, normaliser: Tensor) -> None:
        """Write the outputs of a block and what they were divided by.

        Rows with a zero denominator are divided by infinity: zeros, and no gradient.
        """
        torch.sum(self.scores, -1, keepdim=True, out=normaliser)
        normaliser.baddbmm_(self.reader, self.before.z)
        normaliser.masked_fill_(normaliser == 0, torch.inf)
        torch.bmm(self.scores, self.v, out=y)
        y.baddbmm_(self.reader, self.before.S).div_(normaliser)


class BackwardWork:
    """The gradients of what `Work` holds; of the sums y was the ratio of."""

    def __init__(self, work: Work, *, forget: bool) -> None:
        self.work = work
        self.scores = torch.empty_like(work.scores)
        self.after = States(work.layout, work.k, work.v)
        self.weighted = work.v.new_empty(work.v.shape)
        self.total = work.v.new_empty(*work.v.shape[:2], 1)
        # The same two, faded like the readers of `Work`.
        self.reader = torch.empty_like(self.weighted) if forget else self.weighted
        self.reader_total = torch.empty_like(self.total) if forget else self.total

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor) -> None:
        """Write the gradients of the weighted sums and of the sums of weights."""
        product = self.work.temporary(self.weighted)
        torch.div(dy, normaliser, out=self.weighted)
        torch.mul(self.weighted, y, out=product)
        torch.sum(product, -1, keepdim=True, out=self.total).neg_()
        if self.work.fade is not None:
            query = self.work.fade.query.flatten(0, 1)
            torch.mul(self.weighted, query, out=self.reader)
            torch.mul(self.total, query, out=self.reader_total)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.weighted, self.work.v.mT, out=self.scores).add_(self.total)
        self.work.restrict(self.scores, diagonal)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        work, fade = self.work, self.work.fade
        added, after = work.added.rows, self.after.rows
        torch.bmm(work.q.mT, self.reader, out=work.added.S)
        torch.bmm(work.q.mT, self.reader_total, out=work.added.z)
        if fade is None:
            torch.bmm(work.earlier.mT, added, out=after).add_(carry[:, None])
            return after[:, 0] + added[:, 0]
        added[:, -1].addcmul_(carry, fade.end)
        torch.bmm(work.earlier.mT, added, out=after)
        after[:, -1].add_(carry)
        return torch.bmm(fade.carry.mT, added)[:, 0]

    def leave_queries(self, feature_map: PointwiseMap, dq: Tensor) -> None:
        """Write the gradient of a block's queries."""
        work = self.work
        torch.bmm(self.scores, work.k, out=dq)
        dq.baddbmm_(self.reader, work.before.S.mT)
        dq.addcmul_(self.reader_total, work.before.z.mT)
        self._through(feature_map, work.q, dq)

    def leave_keys(
        self, feature_map: PointwiseMap, dk: Tensor, dclock: Tensor | None
    ) -> None:
        """Write the gradients of a block's keys and of their clock."""
        work, fade = self.work, self.work.fade
        torch.bmm(self.scores.mT, work.q, out=dk)
        if fade is None:
            dk.baddbmm_(work.v, self.after.S.mT).add_(self.after.z.mT)
        else:
            key = fade.key.flatten(0, 1)
            dk.baddbmm_(work.v * key, self.after.S.mT).addcmul_(key, self.after.z.mT)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            product = torch.mul(dk, work.k, out=work.temporary(dk))
            dclock.copy_(product.sum(-1, keepdim=True))
        self._through(feature_map, work.k, dk)

    def leave_values(self, dv: Tensor) -> None:
        """Write the gradient of a block's values."""
        torch.bmm(self.work.scores.mT, self.weighted, out=dv)
        dv.baddbmm_(self.work.writer, self.after.S)

    def _through(
        self, feature_map: PointwiseMap, features: Tensor, out: Tensor
    ) -> None:
        slope = self.work.temporary(features)
        feature_map.slope(features, slope)
        out.mul_(slope)
