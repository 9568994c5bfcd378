"""Softmax averages over a cache: plain, with hidden rows, with forgetting (15)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .fading import difference
from .precision import full_precision
from .state import SoftmaxState
from .visibility import key_levels, query_levels

# Rows of scores at a time where a mask is needed: later rows' keys are not touched.
_ROWS = 128


def causal_average(
    q: Float[Tensor, "B H T K"],
    state: SoftmaxState,
    *,
    inclusive: bool,
    scale: float | None,
) -> Float[Tensor, "B H T V"]:
    """Let the last T rows of a cache read it, each up to its own place."""
    length, total = q.shape[2], state.keys.shape[2]
    if length == 1 and inclusive:
        return whole_average(q, state, scale=scale)
    hidden_or_faded = state.mask is not None or state.cumulative_decay is not None
    if hidden_or_faded or length < total or length == 0:
        # With fewer queries than keys `is_causal` would let the first new row read
        # only the first cached one.
        return _masked_average(q, state, inclusive=inclusive, scale=scale)
    if inclusive:
        return _product(q, state.keys, state.values, scale=scale, is_causal=True)
    # To read strictly is to read inclusively among the rows shifted by one.
    keys, values = state.keys[:, :, :-1], state.values[:, :, :-1]
    # A sum of no rows: zeros, and still a part of the graph.
    nothing = state.values[:, :, :0].sum(2, keepdim=True)
    if length == 1:
        return nothing
    rest = _product(q[:, :, 1:], keys, values, scale=scale, is_causal=True)
    return torch.cat([nothing, rest], dim=2)


def whole_average(
    q: Float[Tensor, "B H P K"], state: SoftmaxState, *, scale: float | None
) -> Float[Tensor, "B H P V"]:
    """Let every query read the whole cache; zeros where it shows nothing."""
    if state.keys.shape[2] == 0:
        return q.new_zeros(*q.shape[:3], state.values.shape[-1])
    visible, level = None, None
    if state.mask is not None:
        visible = state.mask[:, None, None, :]
    if state.cumulative_decay is not None:
        level = key_levels(state.cumulative_decay, state.mask)[..., -1:]
    return _visible_average(q, state, visible, level, scale=scale)


def _masked_average(
    q: Float[Tensor, "B H T K"],
    state: SoftmaxState,
    *,
    inclusive: bool,
    scale: float | None,
) -> Float[Tensor, "B H T V"]:
    """Read the last T rows of a cache, some rows at a time, with explicit masks."""
    length, total = q.shape[2], state.keys.shape[2]
    levels = None
    if state.cumulative_decay is not None:
        top = key_levels(state.cumulative_decay, state.mask)
        levels = query_levels(top, inclusive=inclusive)[..., total - length :]
    parts = [state.values[:, :, :0]]
    for start in range(0, length, _ROWS):
        rows = slice(start, start + _ROWS)
        queries = q[:, :, rows]
        first = total - length + start
        past = _first_rows(state, first + queries.shape[2])
        # Not `new_ones`: inside `torch.func.vmap` that is as many triangles as queries.
        square = torch.ones(
            *(queries.shape[2], past.keys.shape[2]), dtype=torch.bool, device=q.device
        )
        visible = square.tril(first if inclusive else first - 1)[None, None]
        if past.mask is not None:
            visible = visible & past.mask[:, None, None, :]
        level = None if levels is None else levels[..., rows]
        parts.append(_visible_average(queries, past, visible, level, scale=scale))
    return torch.cat(parts, dim=2)


def _first_rows(state: SoftmaxState, num_rows: int) -> SoftmaxState:
    mask, decay = state.mask, state.cumulative_decay
    return SoftmaxState(
        keys=state.keys[:, :, :num_rows],
        values=state.values[:, :, :num_rows],
        mask=None if mask is None else mask[:, :num_rows],
        cumulative_decay=None if decay is None else decay[..., :num_rows],
    )


def _visible_average(
    q: Float[Tensor, "B H P K"],
    state: SoftmaxState,
    visible: Bool[Tensor, "_ 1 _ S"] | None,
    level: Float[Tensor, "B H _"] | None,
    *,
    scale: float | None,
) -> Float[Tensor, "B H P V"]:
    """Average over visible keys, all if None; zeros for queries that see none.

    A row that sees nothing is computed as if it saw everything, and then replaced: its
    own softmax would divide by zero, and its gradient would be NaN.
    """
    some, allowed = None, None
    if visible is not None:
        some = visible.any(-1, keepdim=True)
        allowed = visible | ~some
    if level is None or state.cumulative_decay is None:
        y = _product(q, state.keys, state.values, scale=scale, attn_mask=allowed)
    else:
        with full_precision(q.device):
            y = _faded_average(
                *(q, state, state.cumulative_decay),
                allowed=allowed,
                level=level,
                scale=scale,
            )
    return y if some is None else torch.where(some, y, 0)


def _faded_average(
    q: Float[Tensor, "B H P K"],
    state: SoftmaxState,
    clock: Float[Tensor, "B H S"],
    *,
    allowed: Bool[Tensor, "_ 1 _ S"] | None,
    level: Float[Tensor, "B H _"],
    scale: float | None,
) -> Float[Tensor, "B H P V"]:
    """Average with age subtracted from the logits, in float32 at least.

    Where rates are learned, the gradient of the ages must not go through the mask: a
    mask that asks for a gradient makes torch keep whole matrices of scores, several
    times slower. It goes through one more component instead, one in the query and zero
    in the key, whose product is the key's own exponent minus itself as a constant.
    """
    dtype = torch.promote_types(state.keys.dtype, state.values.dtype)
    dtype = torch.promote_types(dtype, torch.float32)
    width = q.shape[-1]
    factor = 1 / math.sqrt(width) if scale is None else scale
    q, k, v = q.to(dtype) * factor, state.keys.to(dtype), state.values.to(dtype)
    logits = difference(clock.detach()[:, :, None, :], level[..., None], dtype)
    if allowed is not None:
        logits = logits.masked_fill_(~allowed, -torch.inf)
    logits = logits.expand(-1, -1, q.shape[2], -1)
    if clock.requires_grad:
        own = (clock - clock.detach()).to(dtype)[..., None]
        q = functional.pad(q, (0, 1), value=1.0)
        q, k, v = _one_width(q, torch.cat([k, own], dim=-1), v)
    y = _product(q, k, v, scale=1.0, attn_mask=logits)
    return y[..., : state.values.shape[-1]].to(state.values.dtype)


def _one_width(*tensors: Tensor) -> list[Tensor]:
    """Fill up with zeros: widths that differ, or are no multiple of 8, are slow."""
    wide = 8 * math.ceil(max(x.shape[-1] for x in tensors) / 8)
    return [functional.pad(x, (0, wide - x.shape[-1])) for x in tensors]


def _product(
    q: Float[Tensor, "B H P K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S V"],
    *,
    scale: float | None,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "B H P V"]:
    dtype = torch.promote_types(k.dtype, v.dtype)
    return functional.scaled_dot_product_attention(
        *(q.to(dtype), k.to(dtype), v.to(dtype)),
        attn_mask=attn_mask,
        is_causal=is_causal,
        scale=scale,
    )
