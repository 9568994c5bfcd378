"""Three ways to the same linear attention, and the choice between them.

One row is added directly. On a CPU, maps that work number by number go through fused
blocks. Everything else goes through the chunked sums.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from .chunked import prefix_sums
from .fading import Levels
from .feature_maps import FeatureMap, PointwiseMap
from .fused import fused_attention
from .state import LinearState
from .visibility import key_levels, query_levels, usable_queries, without_hidden


def attend(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    phi: FeatureMap,
    *,
    inclusive: bool,
    mask: Bool[Tensor, "B T"] | None,
    decay: Float[Tensor, "B H T"] | None,
    before: LinearState | None,
    chunk_size: int | None,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Return outputs and the state after; see `linear_attention` for the arguments."""
    length = q.shape[2]
    if length == 1 and mask is None:
        return step(q, k, v, phi, inclusive=inclusive, decay=decay, before=before)
    size = chunk_size or balanced_chunk(length, v.shape[-1], forget=decay is not None)
    if q.numel() and q.device.type == "cpu" and isinstance(phi, PointwiseMap):
        return fused(
            *(q, k, v, phi),
            inclusive=inclusive,
            mask=mask,
            decay=decay,
            before=before,
            size=size,
        )
    return chunked(
        *(q, k, v, phi),
        inclusive=inclusive,
        mask=mask,
        decay=decay if length else None,
        before=before,
        size=size,
    )


def balanced_chunk(length: int, width: int, *, forget: bool) -> int:
    """Return a chunk size that leaves the last chunk almost full.

    Measured: 64 from a width of 64 on; below, the triangles within chunks cost more
    than the states between them, and their fading more still.
    """
    target = 64 if width >= 64 else 16 if forget else 32
    num_chunks = max(1, math.ceil(length / target))
    return max(1, 8 * math.ceil(length / num_chunks / 8))


def step(
    q: Float[Tensor, "B H 1 K"],
    k: Float[Tensor, "B H 1 K"],
    v: Float[Tensor, "B H 1 V"],
    phi: FeatureMap,
    *,
    inclusive: bool,
    decay: Float[Tensor, "B H 1"] | None,
    before: LinearState | None,
) -> tuple[Float[Tensor, "B H 1 V"], LinearState]:
    """Add one visible row: S = S + phi(k) v', z = z + phi(k)."""
    query, key = phi(q), phi(k)
    count = count_after(q, None, before)
    old = before or separated(empty_sums(key, v), torch.zeros_like(count))
    S, z = old.S, old.z
    if decay is not None:
        fade = torch.exp(-decay.to(S.dtype))
        S, z = S * fade[..., None], z * fade
    new = LinearState(S=torch.addcmul(S, key.mT, v), z=z + key[:, :, 0], count=count)
    # What has faded reads the same as before, by a common factor: the old state is
    # read as it was, so that a long silence cannot underflow it.
    return read(query, new if inclusive else old), new


def chunked(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    phi: FeatureMap,
    *,
    inclusive: bool,
    mask: Bool[Tensor, "B T"] | None,
    decay: Float[Tensor, "B H T"] | None,
    before: LinearState | None,
    size: int,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Sum chunk by chunk; any feature map on any device."""
    query, key = query_features(phi, q, mask), key_features(phi, k, mask)
    clock, levels = _clock(decay, mask, inclusive=inclusive)
    if clock is not None:
        # The levels are constants; this factor is one and carries the gradient.
        own = (clock - clock.detach()).exp().to(key.dtype)
        key = key * own[..., None]
    sums, end = prefix_sums(
        query,
        key,
        with_ones(without_hidden(v, mask)),
        empty_sums(key, v) if before is None else joined(before),
        inclusive=inclusive,
        chunk_size=size,
        levels=levels,
    )
    end = _at_last_row(end, clock, levels)
    return ratio(sums[..., :-1], sums[..., -1:]), separated(
        end, count_after(q, mask, before)
    )


def fused(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    phi: PointwiseMap,
    *,
    inclusive: bool,
    mask: Bool[Tensor, "B T"] | None,
    decay: Float[Tensor, "B H T"] | None,
    before: LinearState | None,
    size: int,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Work on blocks, with features and division inside."""
    clock, levels = _clock(decay, mask, inclusive=inclusive)
    y, end = fused_attention(
        *(q, k, v, phi),
        inclusive=inclusive,
        mask=mask,
        carry=empty_sums(k, v) if before is None else joined(before),
        chunk_size=size,
        clock=clock,
        levels=levels,
    )
    end = _at_last_row(end, clock, levels)
    return y, separated(end, count_after(q, mask, before))


def _clock(
    decay: Float[Tensor, "B H T"] | None,
    mask: Bool[Tensor, "B T"] | None,
    *,
    inclusive: bool,
) -> tuple[Float[Tensor, "B H T"] | None, Levels | None]:
    """Return the running sum of the exponents, and the levels of rows on it."""
    if decay is None:
        return None, None
    clock = decay.double().cumsum(-1)
    key = key_levels(clock, mask)
    return clock, Levels(key=key, query=query_levels(key, inclusive=inclusive))


def _at_last_row(
    sums: Float[Tensor, "B H R W"],
    clock: Float[Tensor, "B H T"] | None,
    levels: Levels | None,
) -> Float[Tensor, "B H R W"]:
    """Fade sums from the level of the last visible row to that of the last row."""
    if clock is None or levels is None:
        return sums
    fade = torch.exp(levels.key[..., -1:] - clock[..., -1:])
    return sums * fade.to(sums.dtype)[..., None]


def read(
    query: Float[Tensor, "B H P R"], state: LinearState
) -> Float[Tensor, "B H P V"]:
    """Return what features of queries read from a whole state."""
    return ratio(query @ state.S, query @ state.z[..., None])


def key_features(
    phi: FeatureMap, k: Float[Tensor, "B H T K"], mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B H T R"]:
    """Return the features of keys; zeros in hidden rows."""
    return without_hidden(phi(without_hidden(k, mask)), mask)


def query_features(
    phi: FeatureMap, q: Float[Tensor, "B H T K"], mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B H T R"]:
    """Return the features of queries; zeros in hidden rows that cannot be read."""
    if mask is None:
        return phi(q)
    usable = usable_queries(q, mask)
    with torch.no_grad():
        usable &= usable_queries(phi(torch.where(usable, q, 0)), mask)
    return torch.where(usable, phi(torch.where(usable, q, 0)), 0)


def ratio(
    weighted: Float[Tensor, "B H T V"], total: Float[Tensor, "B H T 1"]
) -> Float[Tensor, "B H T V"]:
    """Divide sums by totals; zeros, and zero gradients, where the total is zero.

    Both `where` are needed: the gradient of a division by zero is NaN even where its
    value is not chosen.
    """
    empty = total == 0
    return torch.where(empty, 0, weighted / torch.where(empty, 1, total))


def with_ones(v: Float[Tensor, "B H T V"]) -> Float[Tensor, "B H T W"]:
    """Append a column of ones, whose weighted sum is the denominator."""
    return functional.pad(v, (0, 1), value=1.0)


def joined(state: LinearState) -> Float[Tensor, "B H R W"]:
    """Return S with z as its last column."""
    return torch.cat([state.S, state.z[..., None]], dim=-1)


def separated(sums: Float[Tensor, "B H R W"], count: Int[Tensor, " B"]) -> LinearState:
    """Return the state whose last column is z."""
    return LinearState(S=sums[..., :-1], z=sums[..., -1], count=count)


def empty_sums(
    features: Float[Tensor, "B H T R"], v: Float[Tensor, "B H T V"]
) -> Float[Tensor, "B H R W"]:
    """Return S and z before any row, joined."""
    batch, heads, _, num_features = features.shape
    return v.new_zeros(batch, heads, num_features, v.shape[-1] + 1)


def count_after(
    rows: Float[Tensor, "B H T K"],
    mask: Bool[Tensor, "B T"] | None,
    before: LinearState | None,
) -> Int[Tensor, " B"]:
    """Return the number of visible rows per batch row, earlier ones included."""
    batch, _, length, _ = rows.shape
    if mask is None:
        added = torch.full((batch,), length, device=rows.device)
    else:
        added = mask.sum(-1)
    return added if before is None else before.count + added
