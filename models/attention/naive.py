"""Both attentions as their definitions say: all pairs of rows, in float64.

Equations (1), (2), (13) to (15) and (17) of docs/attention.md: the yardstick of the fast
forms, with the same arguments; and (5) to (7) once more, row by row. Nothing here is fast, and nothing here is clever.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .feature_maps import ExponentialMap, FeatureMap
from .named_maps import as_feature_map
from .state import LinearState, SoftmaxState


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
    floor: float = 0.0,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Return what `linear.linear_attention` returns, from the matrix of weights."""
    shown, clock, phi = _shown(k, mask), _clock(k, decay), as_feature_map(feature_map)
    query, _ = _features(phi, _readers(q, shown))
    key, top = _features(phi, _without_hidden(k, shown))
    value = _without_hidden(v, shown)
    old, old_top = _linear_start(initial_state, phi, key, value)

    # The state before stands as one more row, the oldest, at clock zero.
    readable = _readable(
        functional.pad(shown, (1, 0), value=True), q.shape[2], inclusive
    )
    tops = torch.cat([old_top, torch.where(shown[:, None], top, -torch.inf)], dim=-1)
    ticks = functional.pad(clock, (1, 0))
    own = None
    if floor > 0:  # is compared with sums as they are at the time of the row
        own = ticks[..., 1:] if inclusive else ticks[..., :-1]
    faded = torch.exp(-_ages(ticks, readable, own))
    faded = faded * _relative(torch.where(readable, tops[:, :, None], -torch.inf))
    weight = (query @ key.mT) * faded[..., 1:]
    earlier = query * faded[..., :1]
    total = weight.sum(-1, keepdim=True) + earlier @ old.z[..., None]
    y = _divided(weight @ value + earlier @ old.S, total, floor)

    end = functional.pad(clock, (1, 0))[..., -1:]
    left = torch.exp(functional.pad(clock, (1, 0)) - end) * _relative(tops)
    key = torch.where(shown[:, None, :, None], key * left[..., 1:, None], 0)
    state = LinearState(
        S=old.S * left[..., :1, None] + key.mT @ value,
        z=old.z * left[..., :1] + key.sum(2),
        count=old.count + shown.sum(-1),
        m=tops.amax(-1) if isinstance(phi, ExponentialMap) else None,
    )
    return torch.where(_usable(q, shown), y, 0), state


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
    """Return what `softmax.softmax_attention` returns, from the matrix of weights."""
    new = _shown(k, mask)
    shown, clock, key, value = _cache(initial_state, k, v, new, _clock(k, decay))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale

    readable = _readable(shown, q.shape[2], inclusive)
    logit = factor * _readers(q, new) @ key.mT - _ages(clock, readable)
    # A constant per row cancels; without it the exponentials overflow.
    largest = functional.pad(logit.detach(), (1, 0), value=-1e300).amax(
        -1, keepdim=True
    )
    weight = torch.exp(logit - largest)
    y = _divided(weight @ value, weight.sum(-1, keepdim=True))
    state = SoftmaxState(key, value, mask=shown, cumulative_decay=clock)
    return torch.where(_usable(q, new), y, 0), state


def linear_recurrence(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    *,
    feature_map: FeatureMap | str,
    inclusive: bool = True,
    decay: Float[Tensor, "B H T"] | None = None,
) -> Float[Tensor, "B H T V"]:
    """Return the outputs row by row: fade, add and read, or read first if strict.

    Exponential features are taken as they are, so they must fit into float64.
    """
    phi = as_feature_map(feature_map)
    query, key, value = phi(q.double()), phi(k.double()), v.double()
    S, z = (
        torch.zeros_like(key[:, :, :1].mT @ value[:, :, :1]),
        torch.zeros_like(key[:, :, 0]),
    )
    rows = []
    for t in range(q.shape[2]):
        old = S, z
        if decay is not None:
            fade = torch.exp(-decay[:, :, t].double())
            S, z = S * fade[..., None, None], z * fade[..., None]
        S, z = S + key[:, :, t, :, None] * value[:, :, t, None], z + key[:, :, t]
        summed, total = (S, z) if inclusive else old
        row = query[:, :, t, None]
        rows.append(_divided(row @ summed, row @ total[..., None]))
    return torch.cat(rows, dim=2)


def _shown(k: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None:
        return mask
    return torch.ones(k.shape[0], k.shape[2], dtype=torch.bool, device=k.device)


def _clock(k: Tensor, decay: Tensor | None) -> Tensor:
    if decay is None:
        return torch.zeros(k.shape[:3], dtype=torch.float64, device=k.device)
    return decay.double().cumsum(-1)


def _without_hidden(x: Tensor, shown: Tensor) -> Tensor:
    return torch.where(shown[:, None, :, None], x, 0).double()


def _usable(q: Tensor, shown: Tensor) -> Tensor:
    finite = torch.isfinite(q.detach()).all(-1, keepdim=True)
    return finite | shown[:, None, :, None]


def _readers(q: Tensor, shown: Tensor) -> Tensor:
    return torch.where(_usable(q, shown), q, 0).double()


def _readable(shown: Tensor, num_queries: int, inclusive: bool) -> Tensor:  # noqa: FBT001
    """Return [B, 1, T, S]: the last T of S rows read visible rows up to themselves."""
    rows = torch.arange(shown.shape[1], device=shown.device)
    last = rows[shown.shape[1] - num_queries :, None]
    past = rows <= last if inclusive else rows < last
    return shown[:, None, None, :] & past


def _ages(clock: Tensor, readable: Tensor, own: Tensor | None = None) -> Tensor:
    """Return [B, H, T, S]: age against the newest readable row; unreadable = infinite.

    Ages against any other time differ by a constant per query, which cancels.
    """
    ticks = torch.where(readable, clock[:, :, None, :], 0)
    newest = functional.pad(ticks, (1, 0)).amax(-1, keepdim=True)
    if own is not None:
        newest = own[..., None]
    return torch.where(readable, newest - clock[:, :, None, :], torch.inf)


def _features(phi: FeatureMap, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return features, and the exponents that they are relative to: zero, or their top."""
    if not isinstance(phi, ExponentialMap):
        return phi(x), torch.zeros_like(x[..., 0])
    exponents = phi.exponents(x)
    top = exponents.detach().amax(-1)
    return (exponents - top[..., None]).exp(), top


def _relative(tops: Tensor) -> Tensor:
    """Return exp(tops - the largest of them); zero for rows that are not there."""
    largest = tops.amax(-1, keepdim=True)
    return torch.where(torch.isneginf(tops), 0, torch.exp(tops - largest))


def _divided(summed: Tensor, total: Tensor, floor: float = 0.0) -> Tensor:
    if floor > 0:
        return summed / torch.where(total <= floor, floor, total)
    none = total == 0
    return torch.where(none, 0, summed / torch.where(none, 1, total))


def _linear_start(
    state: LinearState | None, phi: FeatureMap, key: Tensor, value: Tensor
) -> tuple[LinearState, Tensor]:
    """Return the state before in float64, and its top [B, H, 1]."""
    if state is None:
        zeros = torch.zeros_like(key[:, :, :1]).sum(2)
        state = LinearState(
            S=zeros[..., None] * torch.zeros_like(value[:, :, :1]).sum(2)[..., None, :],
            z=zeros,
            count=torch.zeros(key.shape[0], dtype=torch.int64, device=key.device),
        )
    start = -torch.inf if isinstance(phi, ExponentialMap) else 0.0
    top = (
        torch.full_like(key[:, :, :1].sum((2, 3)), start)
        if state.m is None
        else state.m
    )
    return state.to(torch.float64), top.double()[..., None]


def _cache(
    old: SoftmaxState | None, k: Tensor, v: Tensor, shown: Tensor, clock: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return mask, clock, keys and values of the rows before and of these."""
    key, value = _without_hidden(k, shown), _without_hidden(v, shown)
    if old is None:
        return shown, clock, key, value
    past = _clock(old.keys, None)
    if old.cumulative_decay is not None:
        past = old.cumulative_decay
    return (
        torch.cat([_shown(old.keys, old.mask), shown], dim=1),
        torch.cat([past, functional.pad(past, (1, 0))[..., -1:] + clock], dim=2),
        torch.cat([old.keys.double(), key], dim=2),
        torch.cat([old.values.double(), value], dim=2),
    )
