"""The ways to the same linear attention, and the choice between them.

One row is added directly. On a CPU, sequences go through fused blocks. Other devices,
compilers and function transforms get the same sums in plain torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from .chunked import chunked_attention, prefix_sums
from .fading import Clock, clock_of
from .feature_maps import FeatureMap, Given, PointwiseMap
from .features import Keys, key_features, query_features
from .fused import fused_attention
from .ratio import ratio, with_ones
from .state import LinearState
from .visibility import empty_rows, query_levels, without_hidden

_GIVEN = Given()


@dataclass(frozen=True, eq=False)
class Call:
    """What an attention is asked for, besides its rows.

    Parameters
    ----------
    phi : FeatureMap
    inclusive : bool
    mask : bool Tensor of shape [B, T], optional
    decay : Tensor of shape [B, H, T], optional
    before : LinearState, optional
        In the type of the sums.
    floor : float
        Of the denominator.
    """

    phi: FeatureMap
    inclusive: bool
    mask: Bool[Tensor, "B T"] | None
    decay: Float[Tensor, "B H T"] | None
    before: LinearState | None
    floor: float

    @property
    def pointwise(self) -> PointwiseMap | None:
        """The map, if fused blocks compute it inside; None = features are written out."""
        if isinstance(self.phi, PointwiseMap) and self.floor == 0:
            return self.phi
        return None

    def clock(self, keys: Keys, *, as_they_are: bool = False) -> Clock | None:
        """Return when rows are added and read, if anything fades them."""
        time = clock_of(self.decay, keys.growth)
        if time is None or not time.shape[-1]:
            return None
        # A floor is compared with sums as they are at the time of each row.
        mask = None if as_they_are or self.floor > 0 else self.mask
        return Clock.of(time, mask, inclusive=self.inclusive)

    def timed(
        self, query: Float[Tensor, "B H T R"], clock: Clock | None
    ) -> Float[Tensor, "B H T R"]:
        """Return queries with the gradient of the levels that they read at.

        Only a floor lets it through: everywhere else levels cancel.
        """
        if clock is None or self.floor == 0 or not clock.time.requires_grad:
            return query
        level = query_levels(clock.time, inclusive=self.inclusive)
        return query * (level.detach() - level).exp().to(query.dtype)[..., None]

    def empty_rows(self, q: Float[Tensor, "B H T K"]) -> Bool[Tensor, "B T"]:
        """Return the rows that have nothing to read."""
        shown = self.mask
        if shown is None:
            shown = torch.ones_like(q[:, 0, :, 0], dtype=torch.bool)
        return empty_rows(shown, inclusive=self.inclusive, initial_state=self.before)

    def carry(
        self, keys: Keys, v: Float[Tensor, "B H T V"]
    ) -> Float[Tensor, "B H R W"]:
        """Return S and z before the first row, joined."""
        if self.before is None:
            return empty_sums(keys.features, v)
        return joined(self.before)

    def state_after(
        self,
        sums: Float[Tensor, "B H R W"],
        keys: Keys,
        clock: Clock | None,
        q: Float[Tensor, "B H T K"],
    ) -> LinearState:
        """Return the state of sums at the level of the last visible row."""
        if clock is not None:
            sums = sums * clock.silence().to(sums.dtype)[..., None]
        return separated(sums, count_after(q, self.mask, self.before), keys)


def attend(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    call: Call,
    *,
    chunk_size: int | None,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Return outputs and the state after; see `linear_attention` for the arguments."""
    length = q.shape[2]
    if length == 1 and call.mask is None:
        return step(q, k, v, call)
    size = chunk_size or balanced_chunk(length, v.shape[-1])
    if is_fused(q):
        return fused(q, k, v, call, size=size)
    return chunked(q, k, v, call, size=size)


def is_fused(q: Float[Tensor, "B H T K"]) -> bool:
    """Whether sequences of this kind go through fused blocks."""
    return bool(q.numel()) and q.device.type == "cpu" and not _is_transformed()


def balanced_chunk(length: int, width: int) -> int:
    """Return a chunk size that leaves the last chunk almost full.

    Measured: 64 from a width of 64 on; below, the triangles within chunks cost more
    than the states between them.
    """
    target = 64 if width >= 64 else 32
    num_chunks = max(1, math.ceil(length / target))
    return max(1, 8 * math.ceil(length / num_chunks / 8))


def step(
    q: Float[Tensor, "B H 1 K"],
    k: Float[Tensor, "B H 1 K"],
    v: Float[Tensor, "B H 1 V"],
    call: Call,
) -> tuple[Float[Tensor, "B H 1 V"], LinearState]:
    """Add one visible row, faded as in (14), and read: equations (5) to (7)."""
    keys = key_features(call.phi, k, None, call.before)
    query = query_features(call.phi, q, None)
    count = count_after(q, None, call.before)
    old = call.before or separated(
        empty_sums(keys.features, v), torch.zeros_like(count), keys
    )
    S, z = old.S, old.z
    clock = clock_of(call.decay, keys.growth)
    if clock is not None:
        fade = torch.exp(-clock.to(S.dtype))
        S, z = S * fade[..., None], z * fade
    new = LinearState(
        S=torch.addcmul(S, keys.features.mT, v),
        z=z + keys.features[:, :, 0],
        count=count,
        m=keys.m,
    )
    # What has faded reads the same as before, by a common factor: the old state is
    # read as it was, so that a long silence cannot underflow it.
    return read(query, new if call.inclusive else old, floor=call.floor), new


def chunked(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    call: Call,
    *,
    size: int,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Sum chunk by chunk; any feature map on any device."""
    keys = key_features(call.phi, k, call.mask, call.before)
    clock = call.clock(keys)
    y, end = chunked_attention(
        call.timed(query_features(call.phi, q, call.mask), clock),
        keys.features,
        without_hidden(v, call.mask),
        inclusive=call.inclusive,
        carry=call.carry(keys, v),
        chunk_size=size,
        clock=clock,
        floor=call.floor,
    )
    return y, call.state_after(end, keys, clock, q)


def fused(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    call: Call,
    *,
    size: int,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Work on blocks; maps that work number by number are computed inside."""
    if call.pointwise is not None:
        phi, query, keys = call.pointwise, q, Keys(k)
    else:
        phi, query = _GIVEN, query_features(call.phi, q, call.mask)
        keys = key_features(call.phi, k, call.mask, call.before)
    clock = call.clock(keys)
    y, end = fused_attention(
        *(call.timed(query, clock), keys.features, v, phi),
        inclusive=call.inclusive,
        mask=call.mask,
        carry=call.carry(keys, v),
        chunk_size=size,
        clock=clock,
        empty=None if clock is None else call.empty_rows(q),
        floor=call.floor,
    )
    return y, call.state_after(end, keys, clock, q)


def absorb(
    k: Float[Tensor, "B H T K"], v: Float[Tensor, "B H T V"], call: Call
) -> LinearState:
    """Return the state after all rows, from one product: equation (3)."""
    keys = key_features(call.phi, k, call.mask, call.before)
    features, sums = keys.features, call.carry(keys, v)
    clock = clock_of(call.decay, keys.growth)
    if clock is not None and k.shape[2]:
        left = (clock - clock[..., -1:]).exp().to(v.dtype)
        features = features * left[..., None]
        sums = sums * (-clock[..., -1:]).exp().to(v.dtype)[..., None]
    sums = sums + features.mT @ with_ones(without_hidden(v, call.mask))
    return separated(sums, count_after(k, call.mask, call.before), keys)


def denominators(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H T K"], call: Call
) -> Float[Tensor, "B H T"]:
    """Return the sums of the weights alone."""
    keys = key_features(call.phi, k, call.mask, call.before)
    ones = keys.features.new_ones(*k.shape[:3], 1)
    sums, _ = prefix_sums(
        query_features(call.phi, q, call.mask),
        keys.features,
        ones,
        call.carry(keys, ones[..., :0]),
        inclusive=call.inclusive,
        chunk_size=balanced_chunk(k.shape[2], 1),
        clock=call.clock(keys, as_they_are=True),
    )
    return sums[..., 0]


def read(
    query: Float[Tensor, "B H P R"], state: LinearState, *, floor: float
) -> Float[Tensor, "B H P V"]:
    """Return what features of queries read from a whole state: equation (4)."""
    return ratio(query @ joined(state), floor=floor)


def joined(state: LinearState) -> Float[Tensor, "B H R W"]:
    """Return S with z as its last column."""
    return torch.cat([state.S, state.z[..., None]], dim=-1)


def separated(
    sums: Float[Tensor, "B H R W"], count: Int[Tensor, " B"], keys: Keys
) -> LinearState:
    """Return the state whose last column is z."""
    return LinearState(S=sums[..., :-1], z=sums[..., -1], count=count, m=keys.m)


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


def _is_transformed() -> bool:
    """Return whether a compiler or a function transform (torch.func) is at work.

    They look into plain torch only. The second question has no public name; torch asks
    it the same way in `autograd.Function.apply`.
    """
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()  # noqa: SLF001
