"""Linear attention with a backward pass of its own, for the CPU.

Equations (18) and (19) of docs/attention.md.

The same sums as `chunked`, feature map and division included. The sequence is worked
off in blocks of a few thousand tokens, whose features and triangles live in work
arrays close to the processor's cache; the backward pass computes them again. Only
outputs, chunk states and gradients are as long as the sequence: touching fresh memory
costs more here than the arithmetic.

With features q and k, weights w_ij = (q_i . k_j) f_ij, of which f_ij is what forgetting
leaves, u_i the gradient of row i's weighted sum and t_i that of its sum of weights, the
way back is the same kind of sum, run backwards in time:

    dq_i = sum_(j<=i) (u_i . v_j + t_i) f_ij k_j      dv_j = sum_(i>=j) w_ij u_i
    dk_j = sum_(i>=j) (u_i . v_j + t_i) f_ij q_i
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .chunked import chunked_attention
from .fading import CalmFading, Clock, Fading, calm_fading, fading, is_calm
from .feature_maps import PointwiseMap
from .features import key_features, query_features
from .layout import Layout, plan
from .visibility import without_hidden
from .workspace import BackwardWork, Work


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
    clock: Clock | None = None,
    empty: Bool[Tensor, "B T"] | None = None,
    floor: float = 0.0,
) -> tuple[Float[Tensor, "B H T V"], Float[Tensor, "B H K W"]]:
    """Return outputs and the state after the last row, at its key level.

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
        S and z of the rows before, side by side, at level 0.
    chunk_size : int
        Rows per chunk.
    clock : Clock, optional
        Forgetting; None = none.
    empty : bool Tensor of shape [B, T], optional
        True = a row that has nothing to read; given if `clock` is.
    floor : float
        Of the denominator, see `ratio`.
    """
    batch, heads, length, _ = q.shape
    layout = plan(batch, heads, length, min(chunk_size, length))
    hidden, missing = None, layout.length - length
    if mask is not None or missing:
        shown = mask
        if shown is None:
            shown = torch.ones(batch, length, dtype=torch.bool, device=q.device)
        hidden = ~functional.pad(shown, (0, missing))[:, None, :, None]
        hidden = hidden.expand(-1, heads, -1, -1)
    if missing:
        q, k, v = (functional.pad(x, (0, 0, 0, missing)) for x in (q, k, v))
        clock = None if clock is None else clock.padded(missing)
        empty = None if empty is None else functional.pad(empty, (0, missing))
    time = None if clock is None else clock.time
    learned = any(x is not None and x.requires_grad for x in (q, k, v, time, carry))
    setting = _Setting(
        *(feature_map, layout, clock, empty, inclusive, floor),
        keep=learned and torch.is_grad_enabled(),
    )
    y, end = _FusedLinear.apply(  # type: ignore[no-untyped-call] # torch's own
        *(q, k, v, time, carry, hidden, setting)
    )
    return (y[:, :, :length] if missing else y), end


@dataclass(frozen=True, eq=False)
class _Setting:
    """What a call does, besides its differentiable inputs."""

    feature_map: PointwiseMap
    layout: Layout
    clock: Clock | None
    empty: Bool[Tensor, "B T"] | None
    inclusive: bool
    floor: float
    keep: bool

    @property
    def num_kept(self) -> int:
        """How many blocks' states must be there at the same time."""
        return self.layout.num_blocks if self.keep else 1

    @property
    def diagonal(self) -> int:
        return 0 if self.inclusive else -1


class _Inputs:
    """The inputs of a call, loaded block by block.

    Rows of the blocks in `exact` read at their own levels, others may share one.
    """

    def __init__(
        self,
        setting: _Setting,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        hidden: Tensor | None,
        *,
        exact: set[int],
    ) -> None:
        layout, self.setting, self.exact = setting.layout, setting, exact
        self.q, self.k, self.v = (layout.blocks(x) for x in (q, k, v))
        self.hidden = None if hidden is None else layout.flat_blocks(hidden)
        self.empty = None
        if setting.empty is not None:
            rows = setting.empty[:, None, :, None].expand(*q.shape[:3], 1)
            self.empty = layout.flat_blocks(rows)
        if setting.clock is not None:
            self.key_levels = layout.blocks(setting.clock.key[..., None])
            self.query_levels = layout.blocks(setting.clock.query[..., None])

    def load(self, work: Work, i: int) -> None:
        """Write the features, values and weights of block `i`."""
        work.load(
            self.setting.feature_map,
            *(self.q[i], self.k[i], self.v[i]),
            hidden=None if self.hidden is None else self.hidden[i],
            fade=self._fading(i, work.q.dtype),
        )
        work.compare(self.setting.diagonal)

    def _fading(self, i: int, dtype: torch.dtype) -> Fading | CalmFading | None:
        layout, setting = self.setting.layout, self.setting
        if setting.clock is None:
            return None
        shape = layout.lanes, layout.chunks, layout.chunk
        key, query = (x[i].reshape(shape) for x in (self.key_levels, self.query_levels))
        base = key.new_zeros(layout.lanes)
        if i % layout.spans:
            base = self.key_levels[i - 1].reshape(shape)[:, -1, -1]
        # A floor is compared with denominators as they are.
        if setting.floor == 0 and i not in self.exact and is_calm(key, query):
            return calm_fading(key, base, dtype=dtype)
        return fading(key, query, base, inclusive=setting.inclusive, dtype=dtype)


class _Gradients:
    """The gradients of the inputs of a call, stored block by block."""

    def __init__(self, setting: _Setting, q: Tensor, v: Tensor) -> None:
        layout, self.feature_map = setting.layout, setting.feature_map
        dq, dk, dv = (x.new_empty(x.shape) for x in (q, q, v))
        dclock, self.clocks = None, None
        if setting.clock is not None:
            dclock = torch.empty_like(setting.clock.key)
            self.clocks = layout.flat_blocks(dclock[..., None])
        self.all = dq, dk, dv, dclock
        self.blocks = [layout.flat_blocks(x) for x in (dq, dk, dv)]

    def store(self, grad: BackwardWork, before: Tensor, i: int) -> None:
        """Write those of block `i`."""
        dq, dk, dv = (blocks[i] for blocks in self.blocks)
        dclock = None if self.clocks is None else self.clocks[i]
        grad.leave_values(dv)
        grad.leave_features(before, dq, dk, dclock)
        grad.leave_maps(self.feature_map, dq, dk)


class _FusedLinear(torch.autograd.Function):
    """Block by block, forwards and backwards in time."""

    @staticmethod
    def forward(  # noqa: PLR0917 - the order of `apply`
        ctx: Any,  # noqa: ANN401 - torch's context takes any attribute
        q: Tensor,
        k: Tensor,
        v: Tensor,
        time: Tensor | None,
        carry: Tensor,
        hidden: Tensor | None,
        setting: _Setting,
    ) -> tuple[Tensor, Tensor]:
        layout, exact = setting.layout, set[int]()
        y, normaliser = v.new_empty(v.shape), v.new_empty(*v.shape[:3], 1)
        inputs = _Inputs(setting, q, k, v, hidden, exact=exact)
        work = Work(layout, q, v)
        outputs = list(zip(*map(layout.flat_blocks, (y, normaliser)), strict=True))
        befores = [torch.empty_like(work.added) for _ in range(setting.num_kept)]
        ends = []
        for group, start in enumerate(carry.reshape(-1, *work.states[::2])):
            state = start
            for i in layout.spans_of(group):
                before = befores[i % setting.num_kept]
                inputs.load(work, i)
                after = work.accumulate(state, before)
                work.read(before, *outputs[i], floor=setting.floor)
                if work.is_faint(inputs.empty[i] if inputs.empty else None):
                    exact.add(i)
                    inputs.load(work, i)
                    after = work.accumulate(state, before)
                    work.read(before, *outputs[i], floor=setting.floor)
                state = after
            ends.append(state)
        ctx.save_for_backward(q, k, v, time, carry, hidden, y, normaliser, *befores)
        ctx.setting, ctx.exact = setting, exact
        # A single block need not be computed again: its arrays are all there is.
        ctx.work = work if layout.num_blocks == 1 else None
        return y, _of_all_lanes(ends, carry)

    @staticmethod
    def backward(
        ctx: Any,  # noqa: ANN401 - torch's context takes any attribute
        dy: Tensor,
        dend: Tensor,
    ) -> tuple[Tensor | None, ...]:
        q, k, v, time, carry, hidden, y, normaliser, *befores = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient is to be differentiated too
            grads = _plain_gradients(
                *((q, k, v, time, carry), hidden, ctx.setting, (dy, dend))
            )
            return *grads, None, None
        setting, layout = ctx.setting, ctx.setting.layout
        work, ctx.work = ctx.work, None
        inputs = None if work else _Inputs(setting, q, k, v, hidden, exact=ctx.exact)
        work = work or Work(layout, q, v)
        grad = BackwardWork(work)
        of_inputs = _Gradients(setting, q, v)
        ratios = list(zip(*map(layout.flat_blocks, (dy, y, normaliser)), strict=True))
        starts = []
        for group, end in enumerate(dend.reshape(-1, *work.states[::2])):
            state = end
            for i in reversed(layout.spans_of(group)):
                if inputs is not None:
                    inputs.load(work, i)
                grad.enter(*ratios[i], floor=setting.floor)
                grad.compare(setting.diagonal)
                state = grad.accumulate(state)
                of_inputs.store(grad, befores[i], i)
            starts.append(state)
        return *of_inputs.all, _of_all_lanes(starts, dend), None, None


def _plain_gradients(
    inputs: tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor],
    hidden: Tensor | None,
    setting: _Setting,
    of_outputs: tuple[Tensor, Tensor],
) -> list[Tensor | None]:
    """Return the gradients of the inputs as torch's own graph gives them.

    The same function once more without blocks, so that its gradient has one in turn.
    """
    q, k, v, time, carry = inputs
    mask = None if hidden is None else ~hidden[:, 0, :, 0]
    phi, clock = setting.feature_map, setting.clock
    if clock is not None and time is not None:
        clock = replace(clock, time=time)
    outputs = chunked_attention(
        query_features(phi, q, mask),
        key_features(phi, k, mask, None).features,
        without_hidden(v, mask),
        inclusive=setting.inclusive,
        carry=carry,
        chunk_size=setting.layout.chunk,
        clock=clock,
        floor=setting.floor,
    )
    learned = [x is not None and x.requires_grad for x in inputs]
    # The state after does not depend on queries.
    pairs = [
        (x, g) for x, g in zip(outputs, of_outputs, strict=True) if x.requires_grad
    ]
    grads = torch.autograd.grad(
        [x for x, _ in pairs],
        [x for x in inputs if x is not None and x.requires_grad],
        [g for _, g in pairs],
        create_graph=True,
        allow_unused=True,
    )
    found = iter(grads)
    return [next(found) if asked else None for asked in learned]


def _of_all_lanes(states: list[Tensor], like: Tensor) -> Tensor:
    """Return the states of all groups of lanes in the shape of `like`."""
    whole = states[0] if len(states) == 1 else torch.cat(states)
    return whole.view(like.shape)
