"""Linear attention with a backward pass of its own, for the CPU.

The same sums as `chunked`, feature map and division included. The sequence is worked
off in blocks of a few thousand tokens whose features, triangles and chunk states live
in work arrays that stay in the processor's cache; the backward pass computes them
again. Only the output and the gradients are as long as the sequence: touching fresh
memory costs more here than the arithmetic.

With features q, k, values v that carry a column of ones, weights w_ij = (q_i . k_j) f_ij
and u_i the gradient of row i's sums, the way back is the same kind of sum, run
backwards in time:

    dq_i = sum_(j<=i) (u_i . v_j) f_ij k_j      dk_j = sum_(i>=j) (u_i . v_j) f_ij q_i
    dv_j = sum_(i>=j) w_ij u_i
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .fading import Fading, Levels, fading
from .feature_maps import PointwiseMap
from .layout import Layout, plan


def fused_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    feature_map: PointwiseMap,
    *,
    inclusive: bool,
    mask: Bool[Tensor, "B T"] | None,
    carry: Float[Tensor, "B H K W"],
    chunk_size: int,
    clock: Float[Tensor, "B H T"] | None = None,
    levels: Levels | None = None,
) -> tuple[Float[Tensor, "B H T V"], Float[Tensor, "B H K W"]]:
    """Return outputs and the sums after the last row, at its key level.

    Parameters
    ----------
    q, k, v : Tensor
        On the CPU, of one type. Hidden rows may hold anything.
    feature_map : PointwiseMap
    inclusive : bool
        Whether a row reads itself.
    mask : bool Tensor of shape [B, T], optional
        True = a real event.
    carry : Tensor of shape [B, H, K, W]
        S and z side by side, at level 0.
    chunk_size : int
        Rows per chunk.
    clock : float64 Tensor of shape [B, H, T], optional
        Running sum of the forgetting exponents; receives the gradient.
    levels : Levels, optional
        The same as constants; given if `clock` is.
    """
    batch, heads, length, _ = q.shape
    layout = plan(batch, heads, length, min(chunk_size, length))
    hidden, missing = None, layout.length - length
    if mask is not None or missing:
        shown = mask
        if shown is None:
            shown = torch.ones(batch, length, dtype=torch.bool, device=q.device)
        hidden = ~F.pad(shown, (0, missing))[:, None, :, None]
        hidden = hidden.expand(-1, heads, -1, -1)
    if missing:
        q, k, v = (F.pad(x, (0, 0, 0, missing)) for x in (q, k, v))
        if clock is not None and levels is not None:
            clock, key, query = (
                F.pad(x, (0, missing), mode="replicate")
                for x in (clock, levels.key, levels.query)
            )
            levels = Levels(key, query)
    setting = feature_map, layout, levels, inclusive
    y, end = _FusedLinear.apply(q, k, v, clock, carry, hidden, *setting)
    return y[:, :, :length], end


class _Work:
    """The arrays that one block is worked on in, used again by the next.

    `q` and `k` act within chunks; `reader` and `writer`, which have faded to the start
    or end of their chunk, act on states. Without forgetting they are the same.
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
        self.scratch = empty(count * chunk * (max(width, q.shape[-1]) + 1))
        self.reader = empty(keyed) if forget else self.q
        self.writer = empty(keyed) if forget else self.k
        lower = q.new_ones(layout.chunks, layout.chunks).tril_(-1)
        self.earlier = lower.expand(layout.lanes, -1, -1)
        self.fade: Fading | None = None
        sums = layout.as_block(self.sums)
        self.weighted, self.total = sums[..., :width], sums[..., width:]

    def temporary(self, like: Tensor) -> Tensor:
        """Return scratch space in the shape of another work array."""
        return self.scratch[: like.numel()].view(like.shape)

    def load(
        self,
        feature_map: PointwiseMap,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        hidden: Tensor | None,
        fade: Fading | None,
    ) -> None:
        """Fill in the features and values of a block."""
        q_block, k_block, v_block = map(self.layout.as_block, (self.q, self.k, self.v))
        values = v_block[..., : self.width]
        scratch = self.temporary(q_block)
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
            torch.mul(self.q, fade.query, out=self.reader)
            torch.mul(self.k, fade.key, out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the weights within each chunk."""
        torch.bmm(self.q, self.k.mT, out=self.scores)
        self.restrict(self.scores, diagonal)

    def restrict(self, scores: Tensor, diagonal: int) -> None:
        """Fade scores in place, those of the future to nothing."""
        if self.fade is None:
            scores.tril_(diagonal)
        else:
            scores.mul_(self.fade.within)

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

    def read(self, normaliser: Tensor, y: Tensor) -> None:
        """Write the outputs of a block and what they were divided by.

        Rows with a zero denominator are divided by infinity: zeros, and no gradient.
        """
        torch.bmm(self.scores, self.v, out=self.sums)
        self.sums.baddbmm_(self.reader, self.before)
        normaliser.copy_(self.total)
        normaliser.masked_fill_(normaliser == 0, torch.inf)
        torch.div(self.weighted, normaliser, out=y)


class _Gradients:
    """The arrays for the way back through one block."""

    def __init__(self, work: _Work, *, forget: bool) -> None:
        self.work = work
        self.scores = torch.empty_like(work.scores)
        self.after = torch.empty_like(work.before)
        self.of_features = torch.empty_like(work.q)
        self.of_values = work.v.new_empty(*work.v.shape[:2], work.width)
        # What `reader` and `writer` are to features, to gradients and values.
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
            torch.mul(work.sums, work.fade.query, out=self.reader)
            torch.mul(work.v, work.fade.key, out=self.writer)

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.work.sums, self.work.v.mT, out=self.scores)
        self.work.restrict(self.scores, diagonal)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        work, fade = self.work, self.work.fade
        torch.bmm(work.q.mT, self.reader, out=work.added)
        added, after = map(work.layout.as_states, (work.added, self.after))
        later = work.earlier.mT
        if fade is None:
            torch.bmm(later, added, out=after).add_(carry[:, None])
            return after[:, 0] + added[:, 0]
        added[:, -1].addcmul_(fade.end, carry)
        torch.bmm(later, added, out=after)
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
        work, grad, width = self.work, self.of_features, self.work.width
        torch.bmm(self.scores, work.k, out=grad)
        grad.baddbmm_(self.reader, work.before.mT)
        self._through(feature_map, work.q, dq)
        torch.bmm(self.scores.mT, work.q, out=grad)
        grad.baddbmm_(self.writer, self.after.mT)
        if dclock is not None:
            # A key's own exponent multiplies all of its features.
            product = torch.mul(grad, work.k, out=work.temporary(grad))
            dclock.copy_(work.layout.as_block(product.sum(-1, keepdim=True)))
        self._through(feature_map, work.k, dk)
        torch.bmm(work.scores.mT, work.sums[..., :width], out=self.of_values)
        self.of_values.baddbmm_(work.writer, self.after[..., :width])
        dv.copy_(work.layout.as_block(self.of_values))

    def _through(self, feature_map: PointwiseMap, features: Tensor, out: Tensor) -> None:
        as_block, slope = self.work.layout.as_block, self.work.temporary(features)
        feature_map.slope(features, slope)
        torch.mul(as_block(self.of_features), as_block(slope), out=out)


class _FusedLinear(torch.autograd.Function):
    """Block by block, forwards and backwards in time."""

    @staticmethod
    def forward(ctx, q, k, v, clock, carry, hidden, feature_map, layout, levels, inclusive):
        """Return y and the state after the last row."""
        forget = levels is not None
        y, end = torch.empty_like(v), torch.empty_like(carry)
        normaliser = q.new_empty(*q.shape[:3], 1)
        starts = carry.new_empty(layout.num_blocks, layout.lanes, carry[0, 0].numel())
        work = _Work(layout, q, v, forget=forget)
        blocks = zip(*map(layout.blocks, (q, k, v, y, normaliser)), strict=True)
        hiddens = None if hidden is None else layout.blocks(hidden)
        fades = _Fades(layout, levels, inclusive, q.dtype)
        carries, ends = layout.states(carry), layout.states(end)
        diagonal = 0 if inclusive else -1
        state = starts[0]
        for i, (q_block, k_block, v_block, y_block, n_block) in enumerate(blocks):
            lanes, span = divmod(i, layout.spans)
            if span == 0:
                state = carries[lanes].reshape(state.shape)
            starts[i].copy_(state)
            work.load(feature_map, q_block, k_block, v_block, None if hiddens is None else hiddens[i], fades[i])
            work.compare(diagonal)
            state = work.accumulate(starts[i])
            work.read(n_block, y_block)
            if span == layout.spans - 1:
                ends[lanes].copy_(state.view(ends[lanes].shape))
        ctx.save_for_backward(q, k, v, hidden, y, normaliser, starts)
        ctx.setting = feature_map, layout, levels, inclusive
        ctx.work = work if layout.num_blocks == 1 else None
        return y, end

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, dend):
        q, k, v, hidden, y, normaliser, starts = ctx.saved_tensors
        feature_map, layout, levels, inclusive = ctx.setting
        forget = levels is not None
        diagonal = 0 if inclusive else -1
        work = ctx.work or _Work(layout, q, v, forget=forget)
        grad = _Gradients(work, forget=forget)
        dq, dk, dv, dcarry = map(torch.empty_like, (q, k, v, dend))
        dclock = torch.empty_like(levels.key) if forget else None
        hiddens = None if hidden is None else layout.blocks(hidden)
        ys, ns, dys, dqs, dks, dvs = map(layout.blocks, (y, normaliser, dy, dq, dk, dv))
        dclocks = layout.blocks(dclock[...,None]) if forget else [None]*layout.num_blocks
        if ctx.work is None:
            qs,ks,vs=map(layout.blocks,(q,k,v))
            fades = _Fades(layout, levels, inclusive, q.dtype)
        dends, dcarries = layout.states(dend), layout.states(dcarry)
        state = starts[0]
        for i in reversed(range(layout.num_blocks)):
            lanes, span = divmod(i, layout.spans)
            if span == layout.spans - 1:
                state = dends[lanes].reshape(state.shape)
            if ctx.work is None:
                work.load(feature_map, qs[i], ks[i], vs[i], None if hiddens is None else hiddens[i], fades[i])
                work.compare(diagonal)
                work.accumulate(starts[i])
            grad.enter(dys[i], ys[i], ns[i])
            grad.compare(diagonal)
            state = grad.accumulate(state)
            grad.leave(feature_map, dqs[i], dks[i], dvs[i], dclocks[i])
            if span == 0:
                dcarries[lanes].copy_(state.view(dcarries[lanes].shape))
        return dq, dk, dv, dclock, dcarry, None, None, None, None, None


class _Fades:
    def __init__(self, layout, levels, inclusive, dtype):
        self.layout, self.inclusive, self.dtype = layout, inclusive, dtype
        self.levels = levels
        if levels is not None:
            self.keys, self.queries = (layout.blocks(x[..., None]) for x in (levels.key, levels.query))

    def __getitem__(self, i):
        if self.levels is None:
            return None
        layout = self.layout
        shape = layout.lanes, layout.chunks, layout.chunk
        key, query = self.keys[i].reshape(shape), self.queries[i].reshape(shape)
        if i % layout.spans:
            base = self.keys[i - 1][:, :, -1, -1].reshape(-1)
        else:
            base = key.new_zeros(layout.lanes)
        fade = fading(key, query, base, inclusive=self.inclusive, dtype=self.dtype)
        return Fading(within=fade.within.flatten(0,1), key=fade.key.flatten(0,1), query=fade.query.flatten(0,1), between=fade.between, carry=fade.carry, end=fade.end)
