"""Softmax attention with the same arguments as the linear one, on a growing cache.

Equations (13) and (15) of docs/attention.md.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .averages import causal_average, whole_average
from .errors import check_shapes, check_state
from .state import SoftmaxState
from .visibility import usable_queries, without_hidden


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

    Notes
    -----
    Torch's fast kernel refuses second gradients; its plain one has them:
    `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.
    """
    check_shapes(k, v, q=q, mask=mask, decay=decay)
    state = absorb_softmax(k, v, mask=mask, decay=decay, initial_state=initial_state)
    usable = None if mask is None else usable_queries(q, mask)
    if usable is not None:
        q = torch.where(usable, q, 0)
    y = causal_average(q, state, inclusive=inclusive, scale=scale).to(v.dtype)
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
    return whole_average(q, state, scale=scale).to(q.dtype)


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
