"""Linear attention without forgetting, with a backward pass of its own, for the CPU.

The same sums as `chunked`, feature map and division included. The sequence is worked
off in blocks of a few thousand tokens whose features, triangles and chunk states live
in work arrays that stay in the processor's cache; the backward pass computes them
again. Only the output and the gradients are as long as the sequence: touching fresh
memory costs more here than the arithmetic.

With features q, k, values v that carry a column of ones, and u_i the gradient of row
i's sums, the gradient of the sums in `chunked` is the same kind of sum run backwards:

    dq_i = sum_(j<=i) (u_i . v_j) k_j    dk_j = sum_(i>=j) (u_i . v_j) q_i
    dv_j = sum_(i>=j) (q_i . k_j) u_i
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from .feature_maps import PointwiseMap

_BLOCK_TOKENS = 4096
_MIN_CHUNKS = 8


@dataclass(frozen=True)
class Layout:
    """How [B, H, T, X] is cut into blocks of `rows` x `heads` x `chunks` x `chunk`."""

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

    def keys(self) -> list[tuple[int, int, int]]:
        """Return the blocks' indices; the blocks of a sequence are in order of time."""
        groups = range(self.batch // self.rows), range(self.num_heads // self.heads)
        return list(itertools.product(*groups, range(self.spans)))

    def split(self, x: Tensor) -> Tensor:
        """View [B, H, T, X] so that indexing with a block's key gives the block."""
        return x.view(
            self.batch // self.rows,
            self.rows,
            self.num_heads // self.heads,
            self.heads,
            self.spans,
            self.chunks,
            self.chunk,
            x.shape[-1],
        ).permute(0, 2, 4, 1, 3, 5, 6, 7)

    def split_state(self, x: Tensor) -> Tensor:
        """View [B, H, R, W] so that indexing with a key's first two gives lanes."""
        return x.view(
            self.batch // self.rows,
            self.rows,
            self.num_heads // self.heads,
            self.heads,
            -1,
        ).transpose(1, 2)

    def as_block(self, x: Tensor) -> Tensor:
        """View a work array [lanes * chunks, chunk, X] in the shape of a block."""
        return x.view(self.rows, self.heads, self.chunks, self.chunk, x.shape[-1])

    def as_states(self, x: Tensor) -> Tensor:
        """View chunk states [lanes * chunks, R, W] as one row per chunk."""
        return x.view(self.lanes, self.chunks, -1)


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


class _Work:
    """The arrays that one block is worked on in, used again by the next."""

    def __init__(
        self, layout: Layout, like: Tensor, num_features: int, width: int
    ) -> None:
        count, chunk = layout.lanes * layout.chunks, layout.chunk
        self.layout = layout
        self.q = like.new_empty(count, chunk, num_features)
        self.k = like.new_empty(count, chunk, num_features)
        self.v = like.new_empty(count, chunk, width + 1)
        self.v[..., width:] = 1
        self.scores = like.new_empty(count, chunk, chunk)
        self.added = like.new_empty(count, num_features, width + 1)
        self.before = like.new_empty(count, num_features, width + 1)
        self.sums = like.new_empty(count, chunk, width + 1)
        self.scratch = like.new_empty(count * chunk * max(width, num_features))
        lower = like.new_ones(layout.chunks, layout.chunks).tril_(-1)
        self.earlier = lower.expand(layout.lanes, -1, -1)

    @property
    def width(self) -> int:
        """Width of the values, without the column of ones."""
        return self.v.shape[-1] - 1

    def temporary(self, like: Tensor) -> Tensor:
        """Return scratch space in the shape of another work array."""
        return self.scratch[: like.numel()].view_as(like)

    def load(
        self,
        feature_map: PointwiseMap,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        hidden: Tensor | None,
    ) -> None:
        """Fill in the features and values of a block."""
        q_block, k_block, v_block = map(self.layout.as_block, (self.q, self.k, self.v))
        values = v_block[..., : self.width]
        feature_map.write(q, q_block, self.temporary(q_block))
        feature_map.write(k, k_block, self.temporary(k_block))
        values.copy_(v)
        if hidden is not None:
            k_block.masked_fill_(hidden, 0)
            values.masked_fill_(hidden, 0)
            broken = ~torch.isfinite(q_block.sum(-1, keepdim=True))
            q_block.masked_fill_(broken & hidden, 0)

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the state before each chunk, from `carry` on; return the state after."""
        torch.bmm(self.k.mT, self.v, out=self.added)
        added, before = map(self.layout.as_states, (self.added, self.before))
        torch.bmm(self.earlier, added, out=before).add_(carry[:, None])
        return before[:, -1] + added[:, -1]

    def compare(self, diagonal: int) -> None:
        """Write the triangle of similarities within each chunk."""
        torch.bmm(self.q, self.k.mT, out=self.scores).tril_(diagonal)

    def read(self, normaliser: Tensor, y: Tensor) -> None:
        """Write the outputs of a block and what they were divided by.

        Rows with a zero denominator are divided by infinity: zeros, and no gradient.
        """
        torch.bmm(self.scores, self.v, out=self.sums).baddbmm_(self.q, self.before)
        sums, width = self.layout.as_block(self.sums), self.width
        normaliser.copy_(sums[..., width:])
        normaliser.masked_fill_(normaliser == 0, torch.inf)
        torch.div(sums[..., :width], normaliser, out=y)


class _Gradients:
    """The arrays for the way back through one block."""

    def __init__(self, work: _Work) -> None:
        self.work = work
        self.scores = torch.empty_like(work.scores)
        self.after = torch.empty_like(work.before)
        self.of_features = torch.empty_like(work.q)
        self.of_values = torch.empty_like(work.v[..., : work.width])
        self.later = work.earlier.mT

    def enter(self, dy: Tensor, y: Tensor, normaliser: Tensor) -> None:
        """Write the gradient of a block's sums, from that of the ratio."""
        sums, width = self.work.layout.as_block(self.work.sums), self.work.width
        torch.div(dy, normaliser, out=sums[..., :width])
        product = self.work.temporary(self.of_values).view(sums[..., :width].shape)
        torch.mul(sums[..., :width], y, out=product)
        torch.sum(product, -1, keepdim=True, out=sums[..., width:]).neg_()

    def accumulate(self, carry: Tensor) -> Tensor:
        """Write the gradient of each chunk's state; return that of the state before."""
        work = self.work
        torch.bmm(work.q.mT, work.sums, out=work.added)
        added, after = map(work.layout.as_states, (work.added, self.after))
        torch.bmm(self.later, added, out=after).add_(carry[:, None])
        return after[:, 0] + added[:, 0]

    def compare(self, diagonal: int) -> None:
        """Write the gradient of the similarities within each chunk."""
        torch.bmm(self.work.sums, self.work.v.mT, out=self.scores).tril_(diagonal)

    def leave(
        self, feature_map: PointwiseMap, dq: Tensor, dk: Tensor, dv: Tensor
    ) -> None:
        """Write the gradients of a block's inputs."""
        work, grad = self.work, self.of_features
        torch.bmm(self.scores, work.k, out=grad).baddbmm_(work.sums, work.before.mT)
        self._through(feature_map, work.q, dq)
        torch.bmm(self.scores.mT, work.q, out=grad).baddbmm_(work.v, self.after.mT)
        self._through(feature_map, work.k, dk)
        values = slice(0, work.width)
        torch.bmm(work.scores.mT, work.sums[..., values], out=self.of_values)
        self.of_values.baddbmm_(work.k, self.after[..., values])
        dv.copy_(work.layout.as_block(self.of_values))

    def _through(self, feature_map: PointwiseMap, features: Tensor, out: Tensor) -> None:
        as_block, slope = self.work.layout.as_block, self.work.temporary(features)
        feature_map.slope(features, slope)
        torch.mul(as_block(self.of_features), as_block(slope), out=out)


class _FusedLinear(torch.autograd.Function):
    """Block by block, forwards and backwards in time."""

    @staticmethod
    def forward(ctx, q, k, v, hidden, carry, feature_map, layout, diagonal):
        """Return y and the state after the last row."""
        y = torch.empty_like(v)
        normaliser = q.new_empty(*q.shape[:3], 1)
        end = torch.empty_like(carry)
        keys = layout.keys()
        starts = carry.new_empty(len(keys), layout.lanes, carry[0, 0].numel())
        work = _Work(layout, q, q.shape[-1], v.shape[-1])
        qs, ks, vs, ys, ns = map(layout.split, (q, k, v, y, normaliser))
        hs = None if hidden is None else layout.split(hidden)
        carries, ends = map(layout.split_state, (carry, end))
        state = starts[0]
        for key, start in zip(keys, starts, strict=True):
            if key[2] == 0:
                state = carries[key[:2]].reshape(start.shape)
            start.copy_(state)
            work.load(feature_map, qs[key], ks[key], vs[key], None if hs is None else hs[key])
            work.compare(diagonal)
            state = work.accumulate(start)
            work.read(ns[key], ys[key])
            if key[2] == layout.spans - 1:
                ends[key[:2]].copy_(state.view_as(ends[key[:2]]))
        ctx.save_for_backward(q, k, v, hidden, y, normaliser, starts)
        ctx.setting = feature_map, layout, diagonal
        ctx.work = work if len(keys) == 1 else None
        return y, end

    @staticmethod
    @once_differentiable
    def backward(ctx, dy, dend):
        q, k, v, hidden, y, normaliser, starts = ctx.saved_tensors
        feature_map, layout, diagonal = ctx.setting
        work = ctx.work or _Work(layout, q, q.shape[-1], v.shape[-1])
        grad = _Gradients(work)
        dq, dk, dv, dcarry = map(torch.empty_like, (q, k, v, dend))
        qs, ks, vs, ys, ns, dys, dqs, dks, dvs = map(layout.split, (q, k, v, y, normaliser, dy, dq, dk, dv))
        hs = None if hidden is None else layout.split(hidden)
        dends, dcarries = map(layout.split_state, (dend, dcarry))
        keys = layout.keys()
        state = starts[0]
        for key, start in zip(reversed(keys), reversed(starts.unbind()), strict=True):
            if key[2] == layout.spans - 1:
                state = dends[key[:2]].reshape(start.shape)
            if ctx.work is None:
                work.load(feature_map, qs[key], ks[key], vs[key], None if hs is None else hs[key])
                work.compare(diagonal)
                work.accumulate(start)
            grad.enter(dys[key], ys[key], ns[key])
            grad.compare(diagonal)
            state = grad.accumulate(state)
            grad.leave(feature_map, dqs[key], dks[key], dvs[key])
            if key[2] == 0:
                dcarries[key[:2]].copy_(state.view_as(dcarries[key[:2]]))
        return dq, dk, dv, None, dcarry, None, None, None
