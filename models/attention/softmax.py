"""Softmax attention with the same arguments as the linear one, on a growing cache."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .errors import check_shapes, check_state
from .fading import difference
from .precision import full_precision
from .state import SoftmaxState
from .visibility import key_levels, query_levels, usable_queries, without_hidden

# Rows of scores at a time where a mask is needed: later rows' keys are not touched.
_ROWS = 128


def softmax_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    *,
    inclusive: bool = True,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: SoftmaxState | None = None,
    scale: float | None = None,
) -> tuple[Float[Tensor, "B H T V"], SoftmaxState]:
    """Let each row read the rows up to its own, weighted by a softmax.

    y_i = sum_j w_ij v_j / sum_j w_ij with w_ij = exp(scale q_i . k_j + c_j - c_i)
    and c the running sum of `decay`.

    Parameters
    ----------
    q, k : Tensor of shape [B, H, T, K]
    v : Tensor of shape [B, H, T, V]
    inclusive : bool
        Whether a row reads itself. If not, it reads first and is added afterwards.
    mask : bool Tensor of shape [B, T], optional
        True = a real event. A hidden row is never read, whatever it holds. Its query
        reads what is visible at its place all the same, unless its square is not
        finite: then its output is zeros.
    decay : Tensor of shape [B, H, T], optional
        Forgetting exponents, not negative: what row t adds to the ages of all earlier
        rows. Age is subtracted from the logit.
    initial_state : SoftmaxState, optional
        The cache of what came before the first row.
    scale : float, optional
        Factor of the inner products; None = 1 / sqrt(K).

    Returns
    -------
    y : Tensor of shape [B, H, T, V]
        Zeros where nothing can be read (see `empty_rows`).
    final_state : SoftmaxState
        The cache with these rows appended.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    check_shapes(k, v, q=q, mask=mask, decay=decay)
    state = absorb_softmax(k, v, mask=mask, decay=decay, initial_state=initial_state)
    usable = None if mask is None else usable_queries(q, mask)
    if usable is not None:
        q = torch.where(usable, q, 0)
    if state.mask is None and state.cumulative_decay is None:
        y = _plain(q, state, inclusive=inclusive, scale=scale)
    else:
        y = _masked(q, state, inclusive=inclusive, scale=scale)
    return (y if usable is None else torch.where(usable, y, 0)), state


def absorb_softmax(
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    *,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: SoftmaxState | None = None,
) -> SoftmaxState:
    """Append rows to a cache without reading it; the old cache stays as it is.

    Arguments and the returned state are those of `softmax_attention`. Without mask and
    initial state the cache shares memory with k and v.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    check_shapes(k, v, mask=mask, decay=decay)
    keys, values = without_hidden(k, mask), without_hidden(v, mask)
    cumulative = None if decay is None else decay.double().cumsum(-1)
    new = SoftmaxState(keys, values, mask, cumulative)
    if initial_state is None:
        return new
    check_state(initial_state.values, v)
    return _joined(initial_state, new)


def read_softmax(
    q: Float[Tensor, "B H P K"], state: SoftmaxState, *, scale: float | None = None
) -> Float[Tensor, "B H P V"]:
    """Read a cache without adding to it; each of the P queries reads all of it.

    No decay is asked for. The time since the last row ages all rows alike, and a
    softmax does not change when a constant is subtracted from its logits.

    Parameters
    ----------
    q : Tensor of shape [B, H, P, K]
    state : SoftmaxState
    scale : float, optional
        Factor of the inner products; None = 1 / sqrt(K).

    Returns
    -------
    Tensor of shape [B, H, P, V]
        Zeros where the cache shows nothing.
    """
    if state.keys.shape[2] == 0:
        return q.new_zeros(*q.shape[:3], state.values.shape[-1])
    if state.mask is None and state.cumulative_decay is None:
        return _product(q, state.keys, state.values, scale=scale)
    visible = torch.ones_like(state.keys[:, :1, None, :, 0], dtype=torch.bool)
    if state.mask is not None:
        visible = state.mask[:, None, None, :]
    level = None
    if state.cumulative_decay is not None:
        level = key_levels(state.cumulative_decay, state.mask)[..., -1:]
    return _visible_product(q, state, visible, level, scale=scale)


def _plain(
    q: Float[Tensor, "B H T K"],
    state: SoftmaxState,
    *,
    inclusive: bool,
    scale: float | None,
) -> Float[Tensor, "B H T V"]:
    """Read a cache that shows everything and forgets nothing."""
    length, total = q.shape[2], state.keys.shape[2]
    if length == 1 and inclusive:
        return _product(q, state.keys, state.values, scale=scale)
    if length < total or length == 0:
        # `is_causal` would let the first new row read only the first cached one.
        return _masked(q, state, inclusive=inclusive, scale=scale)
    if inclusive:
        return _product(q, state.keys, state.values, scale=scale, is_causal=True)
    # To read strictly is to read inclusively among the rows shifted by one.
    keys, values = state.keys[:, :, :-1], state.values[:, :, :-1]
    nothing = torch.zeros_like(state.values[:, :, :1])
    if length == 1:
        return nothing
    rest = _product(q[:, :, 1:], keys, values, scale=scale, is_causal=True)
    return torch.cat([nothing, rest], dim=2)


def _masked(
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
    parts = [torch.zeros_like(state.values[:, :, :0])]
    for start in range(0, length, _ROWS):
        rows = slice(start, start + _ROWS)
        queries = q[:, :, rows]
        first = total - length + start
        past = _first_rows(state, first + queries.shape[2])
        square = q.new_ones(queries.shape[2], past.keys.shape[2], dtype=torch.bool)
        visible = square.tril(first if inclusive else first - 1)[None, None]
        if past.mask is not None:
            visible = visible & past.mask[:, None, None, :]
        level = None if levels is None else levels[..., rows]
        parts.append(_visible_product(queries, past, visible, level, scale=scale))
    return torch.cat(parts, dim=2)


def _first_rows(state: SoftmaxState, num_rows: int) -> SoftmaxState:
    mask, decay = state.mask, state.cumulative_decay
    return SoftmaxState(
        keys=state.keys[:, :, :num_rows],
        values=state.values[:, :, :num_rows],
        mask=None if mask is None else mask[:, :num_rows],
        cumulative_decay=None if decay is None else decay[..., :num_rows],
    )


def _visible_product(
    q: Float[Tensor, "B H P K"],
    state: SoftmaxState,
    visible: Bool[Tensor, "_ 1 _ S"],
    level: Float[Tensor, "B H _"] | None,
    *,
    scale: float | None,
) -> Float[Tensor, "B H P V"]:
    """Return softmax averages over visible keys; zeros for queries that see none.

    A row that sees nothing is computed as if it saw everything, and then replaced: its
    own softmax would divide by zero, and its gradient would be NaN.
    """
    some = visible.any(-1, keepdim=True)
    allowed = visible | ~some
    if level is None or state.cumulative_decay is None:
        y = _product(q, state.keys, state.values, scale=scale, attn_mask=allowed)
        return torch.where(some, y, 0)
    with full_precision(q.device):
        y = _faded_product(
            *(q, state, state.cumulative_decay),
            allowed=allowed,
            level=level,
            scale=scale,
        )
    return torch.where(some, y, 0).to(state.values.dtype)


def _faded_product(
    q: Float[Tensor, "B H P K"],
    state: SoftmaxState,
    clock: Float[Tensor, "B H S"],
    *,
    allowed: Bool[Tensor, "_ 1 _ S"],
    level: Float[Tensor, "B H _"],
    scale: float | None,
) -> Float[Tensor, "B H P V"]:
    """Return softmax averages with age subtracted from the logits, in float32 at least.

    Where rates are learned, the gradient of the ages must not go through the mask: a
    mask that asks for a gradient makes torch keep whole matrices of scores, several
    times slower. It goes through one more component instead, one in the query and zero
    in the key, whose product is the key's own exponent minus itself as a constant.
    """
    dtype = torch.promote_types(state.keys.dtype, torch.float32)
    width = q.shape[-1]
    factor = 1 / math.sqrt(width) if scale is None else scale
    q, k, v = q.to(dtype) * factor, state.keys.to(dtype), state.values.to(dtype)
    age = difference(clock.detach()[:, :, None, :], level[..., None], dtype)
    logits = age.masked_fill_(~allowed, -torch.inf).expand(-1, -1, q.shape[2], -1)
    if not clock.requires_grad:
        return _product(q, k, v, scale=1.0, attn_mask=logits)
    own = (clock - clock.detach()).to(dtype)[..., None]
    # Widths that differ, or that are no multiple of 8, are slow.
    wide = 8 * math.ceil(max(width + 1, v.shape[-1]) / 8)
    q = functional.pad(functional.pad(q, (0, 1), value=1.0), (0, wide - width - 1))
    k = functional.pad(torch.cat([k, own], dim=-1), (0, wide - width - 1))
    y = _product(
        q, k, functional.pad(v, (0, wide - v.shape[-1])), scale=1.0, attn_mask=logits
    )
    return y[..., : v.shape[-1]]


def _product(
    q: Float[Tensor, "B H P K"],
    k: Float[Tensor, "B H S K"],
    v: Float[Tensor, "B H S V"],
    *,
    scale: float | None,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Float[Tensor, "B H P V"]:
    return functional.scaled_dot_product_attention(
        *(q.to(k.dtype), k, v), attn_mask=attn_mask, is_causal=is_causal, scale=scale
    )


def _joined(old: SoftmaxState, new: SoftmaxState) -> SoftmaxState:
    """Return a new cache with the rows of both."""
    mask = None
    if old.mask is not None or new.mask is not None:
        mask = torch.cat([_shown(old), _shown(new)], dim=-1)
    cumulative = None
    if old.cumulative_decay is not None or new.cumulative_decay is not None:
        before, after = _decayed(old), _decayed(new)
        last = functional.pad(before, (1, 0))[..., -1:]
        cumulative = torch.cat([before, last + after], dim=-1)
    return SoftmaxState(
        keys=torch.cat([old.keys, new.keys], dim=2),
        values=torch.cat([old.values, new.values], dim=2),
        mask=mask,
        cumulative_decay=cumulative,
    )


def _shown(state: SoftmaxState) -> Bool[Tensor, "B S"]:
    if state.mask is not None:
        return state.mask
    return torch.ones_like(state.keys[:, 0, :, 0], dtype=torch.bool)


def _decayed(state: SoftmaxState) -> Float[Tensor, "B H S"]:
    if state.cumulative_decay is not None:
        return state.cumulative_decay
    return torch.zeros_like(state.keys[..., 0], dtype=torch.float64)
