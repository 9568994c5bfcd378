"""The arrays that one block of `fused` is worked on in, forwards and backwards."""

from __future__ import annotations

import torch
from torch import Tensor

from .fading import Fading
from .feature_maps import PointwiseMap
from .layout import Layout


class Work:
    """Features, weights, states and sums of a block; used again for the next one.

    `q` and `k` act within chunks. `reader` and `writer`, faded to the start and the end
    of their chunk, act on states; without forgetting they are `q` and `k`.
    """

    def __init__(self, layout: Layout, q: Tensor, v: Tensor, *, forget: bool) -> None:
        count, chunk, width = layout.lanes * layout.chunks, layout.chunk, v.shape[-1]
        keyed, valued = (count, chunk, q.shape[-1]), (count, chunk, width + 1)
        stated, empty = (count, q.shape[-1], width + 1), q.new_empty
        self.layout, self.width = layout, width
        self.q, self.k, self.v = empty(keyed), empty(keyed), empty(valued)
        self.v[..., width:] = 1
        self.scores = empty(count, chunk, chunk)
        self.added, self.before = empty(stated), empty(stated)
        self.sums = empty(valued)
        self.scratch = empty(count * chunk * max(width, q.shape[-1]))
        self.reader = empty(keyed) if forget else self.q
        self.writer = empty(keyed) if forget else self.k
        self.fade: Fading | None = None
        lower = q.new_ones(layout.chunks, layout.chunks).tril_(-1)
        self.earlier = lower.expand(layout.lanes, -1, -1)
        sums = layout.as_block(self.sums)
        self.weighted, self.total = sums[..., :width], sums[..., width:]

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
        q_block, k_block, v_block = map(self.layout.as_block, (self.q, self.k, self.v))
        values, scratch = v_block[..., : self.width], self.temporary(q_block)
        feature_map.write(q, q_block, scratch)
        feature_map.write(k, k_block, scratch)
        values.copy_(v)
        if hidden is not None:
            k_block.masked_fill_(hidden, 0)
            values.masked_fill_(hidden, 0)
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
        torch.bmm(self.writer.mT, self.v, out=self.added)
        added, before = map(self.layout.as_states, (self.added, self.before))
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
        torch.bmm(self.scores, self.v, out=self.sums)
        self.sums.baddbmm_(self.reader, self.before)
        normaliser.copy_(self.total)
        normaliser.masked_fill_(normaliser == 0, torch.inf)
        torch.div(self.weighted, normaliser, out=y)


class BackwardWork:
    """The gradients of what `Work` holds; of sums in the place of the sums."""

    def __init__(self, work: Work, *, forget: bool) -> None:
        self.work = work
        self.scores = torch.empty_like(work.scores)
        self.after = torch.empty_like(work.before)
        self.features = torch.empty_like(work.q)
        self.values = work.v.new_empty(*work.v.shape[:2], work.width)
        # Gradients of sums faded like readers, and values faded like writers.
        self.reader = torch.empty_like(work.sums) if forget else work.sums
        self.writer = torch.empty_like(work.v) if forget else work.v

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor) -> None:
        """Write the gradient of a block's sums, from that of the ratio."""
        work = self.work
        product = work.temporary(work.weighted)
        torch.div(dy, normaliser, out=work.weighted)
        torch.mul(work.weighted, y, out=product)
        torch.sum(product, -1, keepdim=True, out=work.total).neg_()
        if work.fade is not None:
            torch.mul(work.sums, work.fade.query.flatten(0, 1), out=self.reader)
            torch.mul(work.v, work.fade.key.flatten(0, 1), out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.work.sums, self.work.v.mT, out=self.scores)
        self.work.restrict(self.scores, diagonal)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        work, fade = self.work, self.work.fade
        torch.bmm(work.q.mT, self.reader, out=work.added)
        added, after = map(work.layout.as_states, (work.added, self.after))
        if fade is None:
            torch.bmm(work.earlier.mT, added, out=after).add_(carry[:, None])
            return after[:, 0] + added[:, 0]
        added[:, -1].addcmul_(carry, fade.end)
        torch.bmm(work.earlier.mT, added, out=after)
        after[:, -1].add_(carry)
        return torch.bmm(fade.carry.mT, added)[:, 0]

    def leave_queries(self, feature_map: PointwiseMap, dq: Tensor) -> None:
        """Write the gradient of a block's queries."""
        torch.bmm(self.scores, self.work.k, out=self.features)
        self.features.baddbmm_(self.reader, self.work.before.mT)
        self._through(feature_map, self.work.q, dq)

    def leave_keys(
        self, feature_map: PointwiseMap, dk: Tensor, dclock: Tensor | None
    ) -> None:
        """Write the gradients of a block's keys and of their clock."""
        work, grad = self.work, self.features
        torch.bmm(self.scores.mT, work.q, out=grad)
        grad.baddbmm_(self.writer, self.after.mT)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            product = torch.mul(grad, work.k, out=work.temporary(grad))
            dclock.copy_(work.layout.as_block(product.sum(-1, keepdim=True)))
        self._through(feature_map, work.k, dk)

    def leave_values(self, dv: Tensor) -> None:
        """Write the gradient of a block's values."""
        work, width = self.work, self.work.width
        torch.bmm(work.scores.mT, work.sums[..., :width], out=self.values)
        self.values.baddbmm_(work.writer, self.after[..., :width])
        dv.copy_(work.layout.as_block(self.values))

    def _through(self, feature_map: PointwiseMap, features: Tensor, out: Tensor) -> None:
        as_block, slope = self.work.layout.as_block, self.work.temporary(features)
        feature_map.slope(features, slope)
        torch.mul(as_block(self.features), as_block(slope), out=out)
