"""Linear attention: aggregate first, query second.

Rows are added to a state of fixed size, S = sum_j phi(k_j) v_j' and
z = sum_j phi(k_j), and a query reads y = phi(q)' S / phi(q)' z.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from . import forms
from .errors import check_shapes, check_state
from .feature_maps import FeatureMap, as_feature_map
from .precision import full_precision, state_dtype
from .state import LinearState
from .visibility import without_hidden


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
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Let each row read the rows up to its own, weighted by a kernel of features.

    y_i = sum_j w_ij v_j / sum_j w_ij with w_ij = phi(q_i) . phi(k_j) exp(c_j - c_i)
    and c the running sum of `decay`. Time and memory grow with T, not with its square.

    Parameters
    ----------
    q, k : Tensor of shape [B, H, T, K]
    v : Tensor of shape [B, H, T, V]
    feature_map : FeatureMap or str
        phi, or one of the names elu1, identity, relu, squared_relu.
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

    Returns
    -------
    y : Tensor of shape [B, H, T, V]
        Zeros where nothing can be read (see `empty_rows`, `zero_denominators`).
    final_state : LinearState
        All visible rows, faded up to the last row; float32 at least.

    Raises
    ------
    ValueError
        If shapes do not fit, `chunk_size` is below 1, or the feature map refuses.

    References
    ----------
    .. [1] Katharopoulos, Vyas, Pappas, Fleuret (2020), "Transformers are RNNs",
       eq. (9) to (12), arXiv 2006.16236
    """
    check_shapes(k, v, q=q, mask=mask, decay=decay)
    if chunk_size is not None and chunk_size < 1:
        message = f"chunk_size must be at least 1; got {chunk_size}."
        raise ValueError(message)
    dtype = state_dtype(q, k, v, initial_state=initial_state)
    with full_precision(q.device):
        y, state = forms.attend(
            q.to(dtype),
            k.to(dtype),
            v.to(dtype),
            as_feature_map(feature_map),
            inclusive=inclusive,
            mask=mask,
            decay=decay,
            before=_continued(initial_state, v, dtype),
            chunk_size=chunk_size,
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
    with full_precision(k.device):
        features = forms.key_features(as_feature_map(feature_map), k.to(dtype), mask)
        values = forms.with_ones(without_hidden(v.to(dtype), mask))
        old = _continued(initial_state, v, dtype)
        sums = (
            forms.empty_sums(features, v.to(dtype))
            if old is None
            else forms.joined(old)
        )
        if decay is not None and k.shape[2]:
            cumulative = decay.double().cumsum(-1)
            left = (cumulative - cumulative[..., -1:]).exp().to(dtype)
            features = features * left[..., None]
            sums = sums * (-cumulative[..., -1:]).exp().to(dtype)[..., None]
        sums = sums + features.mT @ values
    return forms.separated(sums, forms.count_after(k, mask, old))


def read_linear(
    q: Float[Tensor, "B H P K"], state: LinearState, *, feature_map: FeatureMap | str
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

    Returns
    -------
    Tensor of shape [B, H, P, V]
        Zeros where the denominator is zero.
    """
    dtype = state_dtype(q, initial_state=state)
    with full_precision(q.device):
        features = as_feature_map(feature_map)(q.to(dtype))
        y = forms.read(features, state.to(dtype))
    return y.to(q.dtype)


def zero_denominators(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    *,
    feature_map: FeatureMap | str,
    inclusive: bool = True,
    mask: Bool[Tensor, "B T"] | None = None,
    decay: Float[Tensor, "B H T"] | None = None,
    initial_state: LinearState | None = None,
) -> Bool[Tensor, "B H T"]:
    """Return the rows whose weights are all zero and whose outputs are zeros therefore.

    Besides the rows of `empty_rows` these are queries that share no feature with any
    key, which maps with exact zeros (relu, squared_relu, identity) allow. Works
    without waiting for the device; costs one more pass over the sequence.

    Arguments are those of `linear_attention`.
    """
    # Values of one average to one wherever there is any weight, and to zero elsewhere.
    ones = k.new_ones(*k.shape[:3], 1)
    state = initial_state
    if state is not None:
        state = LinearState(S=state.z[..., None], z=state.z, count=state.count)
    y, _ = linear_attention(
        q.detach(),
        k.detach(),
        ones,
        feature_map=feature_map,
        inclusive=inclusive,
        mask=mask,
        decay=decay,
        initial_state=state,
    )
    return y[..., 0] == 0


def _continued(
    state: LinearState | None, v: Float[Tensor, "B H T V"], dtype: torch.dtype
) -> LinearState | None:
    """Return an initial state in the type of the sums, after a look at its shape."""
    if state is None:
        return None
    check_state(state.S, v)
    return state.to(dtype)
