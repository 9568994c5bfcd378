"""Features of queries and keys, free of hidden rows and of overflow: equation (11).

Exponential maps need care. A key's exponents are kept relative to m_i, the largest one
of all visible rows up to its own, and the state relative to the same: when m grows, S
and z are multiplied by exp(m_old - m_new), which is what forgetting does. So growth is
handed on as forgetting. All of it cancels in the ratio of the sums and needs no
gradient. Nothing is added to the features: an epsilon would not cancel, and through a
maximum over the whole sequence it would let later rows into earlier outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .feature_maps import ExponentialMap, FeatureMap
from .state import LinearState
from .visibility import usable_queries, without_hidden


@dataclass(frozen=True, eq=False)
class Keys:
    """Features of keys, and the scale that they are relative to.

    Parameters
    ----------
    features : Tensor of shape [B, H, T, R]
        Zeros in hidden rows.
    growth : float64 Tensor of shape [B, H, T], optional
        By how much the maximum has grown since before the first row; None = the
        features are not relative to anything.
    m : Tensor of shape [B, H], optional
        The maximum after the last row; -inf if no row was visible so far.
    """

    features: Float[Tensor, "B H T R"]
    growth: Float[Tensor, "B H T"] | None = None
    m: Float[Tensor, "B H"] | None = None


def key_features(
    phi: FeatureMap,
    k: Float[Tensor, "B H T K"],
    mask: Bool[Tensor, "B T"] | None,
    before: LinearState | None,
) -> Keys:
    """Return the features of keys; exponential ones go on from a state's maximum."""
    shown = without_hidden(k, mask)
    if not isinstance(phi, ExponentialMap):
        return Keys(without_hidden(phi(shown), mask))
    exponents = phi.exponents(shown)
    top = exponents.detach().amax(-1)
    if mask is not None:
        top = torch.where(mask[:, None, :], top, -torch.inf)
    start = top.new_full(top.shape[:2], -torch.inf)
    if before is not None and before.m is not None:
        start = before.m
    top = torch.cat([start[..., None], top], dim=-1).cummax(-1).values
    # Before any visible row all sums are zero: there the first maximum will do.
    first = torch.where(top > -torch.inf, top, torch.inf).amin(-1, keepdim=True)
    running = torch.maximum(top, torch.where(torch.isposinf(first), 0, first))
    growth = running[..., 1:].double() - running[..., :1].double()
    features = (exponents - running[..., 1:, None]).exp_()
    return Keys(without_hidden(features, mask), growth, top[..., -1])


def query_features(
    phi: FeatureMap, q: Float[Tensor, "B H T K"], mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B H T R"]:
    """Return the features of queries; zeros in hidden rows that cannot be read.

    Of exponential features the largest in each row is one.
    """
    if mask is None:
        return _scaled(phi, q)
    usable = usable_queries(q, mask)
    with torch.no_grad():
        usable &= usable_queries(_scaled(phi, torch.where(usable, q, 0)), mask)
    return torch.where(usable, _scaled(phi, torch.where(usable, q, 0)), 0)


def _scaled(phi: FeatureMap, q: Float[Tensor, "B H T K"]) -> Float[Tensor, "B H T R"]:
    if not isinstance(phi, ExponentialMap):
        return phi(q)
    exponents = phi.exponents(q)
    return (exponents - exponents.detach().amax(-1, keepdim=True)).exp_()
