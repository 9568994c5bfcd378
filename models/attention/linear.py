"""Linear attention: aggregate first, query second.

Rows are added to a state of fixed size, S = sum_j phi(k_j) v_j' and
z = sum_j phi(k_j), and a query reads y = phi(q)' S / phi(q)' z.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from . import forms
from .errors import check_shapes, check_state
from .feature_maps import FeatureMap
from .features import query_features
from .named_maps import as_feature_map
from .pieces import attend_in_pieces
from .precision import full_precision, state_dtype
from .state import LinearState


def linear_attention(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    *,
    feature_map: FeatureMap | str,
    inclusive: bool = True,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: LinearState | None = None,
    chunk_size: int | None = None,
    floor: float = 0.0,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Let each row read the rows up to its own, weighted by a kernel of features.

    y_i = sum_j w_ij v_j / sum_j w_ij with w_ij = phi(q_i) . phi(k_j) exp(c_j - c_i)
    and c the running sum of `decay`. Time and memory grow with T, not with its square.

    Parameters
    ----------
    q, k : Tensor of shape [B, H, T, K]
    v : Tensor of shape [B, H, T, V]
    feature_map : FeatureMap or str
        phi, or the name of a map without sizes: elu1, identity, relu, squared_relu.
    inclusive : bool
        Whether a row reads itself. If not, it reads first and is added afterwards.
    mask : bool Tensor of shape [B, T], optional
        True = a real event. A hidden row is never added, whatever it holds. Its query
        reads what is visible at its place all the same, unless its square or that of
        its features is not finite: then its output is zeros.
    decay : Tensor of shape [B, H, T], optional
        Forgetting exponents, not negative: the state is multiplied by exp(-decay[t])
        before row t is added. Hidden rows fade the state too.
    initial_state : LinearState, optional
        What came before the first row.
    chunk_size : int, optional
        Rows per chunk; None = chosen by length. Changes nothing beyond rounding.
    floor : float
        What to divide by where the denominator is smaller: weights then add up to less
        than one. 0 = never. Of a map that is an exponential, features are relative to
        their maxima, and so is the denominator.

    Returns
    -------
    y : Tensor of shape [B, H, T, V]
        Zeros where nothing can be read (see `empty_rows`, `zero_denominators`).
    final_state : LinearState
        All visible rows, faded up to the last row; float32 at least.

    Raises
    ------
    ValueError
        If shapes do not fit, `chunk_size` is below 1, `floor` below 0 or not finite,
        or the feature map refuses.

    References
    ----------
    .. [1] Katharopoulos, Vyas, Pappas, Fleuret (2020), "Transformers are RNNs",
       eq. (9) to (12), arXiv 2006.16236
    """
    check_shapes(k, v, q=q, mask=mask, decay=decay)
    if chunk_size is not None and chunk_size < 1:
        message = f"chunk_size must be at least 1; got {chunk_size}."
        raise ValueError(message)
    _check_floor(floor)
    dtype = state_dtype(q, k, v, initial_state=initial_state)
    call = forms.Call(
        phi=as_feature_map(feature_map),
        inclusive=inclusive,
        mask=mask,
        decay=decay,
        before=_continued(initial_state, v, dtype),
        floor=floor,
    )
    with full_precision(q.device):
        y, state = attend_in_pieces(
            q.to(dtype), k.to(dtype), v.to(dtype), call, chunk_size=chunk_size
        )
    return y.to(v.dtype), state


def absorb_linear(
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    *,
    feature_map: FeatureMap | str,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: LinearState | None = None,
) -> LinearState:
    """Add rows to a state without reading them: one matrix product, no prefixes.

    Arguments and the returned state are those of `linear_attention`.

    Raises
    ------
    ValueError
        If shapes do not fit or the feature map refuses.
    """
    check_shapes(k, v, mask=mask, decay=decay)
    dtype = state_dtype(k, v, initial_state=initial_state)
    call = forms.Call(
        phi=as_feature_map(feature_map),
        inclusive=True,
        mask=mask,
        decay=decay,
        before=_continued(initial_state, v, dtype),
        floor=0.0,
    )
    with full_precision(k.device):
        return forms.absorb(k.to(dtype), v.to(dtype), call)


def read_linear(
    q: Float[Tensor, "B H P K"],
    state: LinearState,
    *,
    feature_map: FeatureMap | str,
    floor: float = 0.0,
) -> Float[Tensor, "B H P V"]:
    """Read a state without adding to it; each of the P queries reads all of it.

    No decay is asked for. The time since the last row fades all rows by one factor,
    which stands in the numerator and in the denominator.

    Parameters
    ----------
    q : Tensor of shape [B, H, P, K]
    state : LinearState
    feature_map : FeatureMap or str
        The one that the state was made with.
    floor : float
        Of the denominator, as for `linear_attention`.

    Returns
    -------
    Tensor of shape [B, H, P, V]
        Zeros where the denominator is zero.

    Raises
    ------
    ValueError
        If `floor` is below 0 or not finite, or the feature map refuses.
    """
    _check_floor(floor)
    dtype = state_dtype(q, initial_state=state)
    with full_precision(q.device):
        query = query_features(as_feature_map(feature_map), q.to(dtype), None)
        y = forms.read(query, state.to(dtype), floor=floor)
    return y.to(q.dtype)


def denominators(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    *,
    feature_map: FeatureMap | str,
    inclusive: bool = True,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: LinearState | None = None,
) -> Float[Tensor, "B H T"]:
    """Return the sum of the weights of each row, before any floor; no gradients.

    Zero where a row has nothing to read (`empty_rows`), and where its query shares no
    feature with any key, which maps with exact zeros (relu, squared_relu, identity)
    allow. Those outputs are zeros. Works without waiting for the device; costs one more
    pass over the sequence. Weights have faded up to the row itself, and
    exponential features are relative to their maxima.

    Arguments are those of `linear_attention`.

    Raises
    ------
    ValueError
        If shapes do not fit or the feature map refuses.
    """
    # With values of nothing, the sums have only their last column.
    nothing = k.new_zeros(*k.shape[:3], 0)
    check_shapes(k, nothing, q=q, mask=mask, decay=decay)
    dtype = state_dtype(q, k, initial_state=initial_state)
    if initial_state is not None:
        initial_state = replace(initial_state, S=initial_state.S[..., :0]).to(dtype)
    call = forms.Call(
        phi=as_feature_map(feature_map),
        inclusive=inclusive,
        mask=mask,
        decay=decay,
        before=initial_state,
        floor=0.0,
    )
    with torch.no_grad(), full_precision(q.device):
        return forms.denominators(q.to(dtype), k.to(dtype), call)


def read_denominators(
    q: Float[Tensor, "B H P K"], state: LinearState, *, feature_map: FeatureMap | str
) -> Float[Tensor, "B H P"]:
    """Return what `read_linear` divides by, before any floor; no gradients."""
    dtype = state_dtype(q, initial_state=state)
    with torch.no_grad(), full_precision(q.device):
        query = query_features(as_feature_map(feature_map), q.to(dtype), None)
        return (query @ state.to(dtype).z[..., None])[..., 0]


def _check_floor(floor: float) -> None:
    if not 0 <= floor < math.inf:
        message = f"floor must be finite and not negative; got {floor}."
        raise ValueError(message)


def _continued(
    state: LinearState | None, v: Float[Tensor, "B H T V"], dtype: torch.dtype
) -> LinearState | None:
    """Return an initial state in the type of the sums, after a look at its shape."""
    if state is None:
        return None
    check_state(state.S, v)
    return state.to(dtype)
