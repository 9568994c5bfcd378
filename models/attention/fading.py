"""What weights lose by forgetting, within chunks and between them: equation (14)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .visibility import key_levels, query_levels

# exp(-20) leaves sums two billionths of what they are. Those that are tiny then are
# added up once more at their own level, see `fused`.
_CALM = 20.0


@dataclass(frozen=True, eq=False)
class Clock:
    """When rows are added and read, in exponents of forgetting since the first row.

    Parameters
    ----------
    time : float64 Tensor of shape [B, H, T]
        Running sum of the exponents; carries the gradient.
    key, query : float64 Tensor of shape [B, H, T]
        The levels at which rows are added and read; constants (see `visibility`).
    """

    time: Float[Tensor, "B H T"]
    key: Float[Tensor, "B H T"]
    query: Float[Tensor, "B H T"]

    @classmethod
    def of(
        cls,
        time: Float[Tensor, "B H T"],
        mask: Bool[Tensor, "B T"] | None,
        *,
        inclusive: bool,
    ) -> Clock:
        """Return the clock of rows at `time`."""
        key = key_levels(time, mask)
        return cls(time, key, query_levels(key, inclusive=inclusive))

    def padded(self, missing: int) -> Clock:
        """Return the clock with rows added that stand still."""
        if not missing:
            return self
        padded = (
            functional.pad(x, (0, missing), mode="replicate")
            for x in (self.time, self.key, self.query)
        )
        return Clock(*padded)

    def silence(self) -> Float[Tensor, "B H 1"]:
        """Return what is left, at the last row, of sums at the last visible one's level."""
        return torch.exp(self.key[..., -1:] - self.time[..., -1:])


def clock_of(
    decay: Float[Tensor, "B H T"] | None, growth: Float[Tensor, "B H T"] | None
) -> Float[Tensor, "B H T"] | None:
    """Return the running sum of all that fades rows, in float64; None if nothing does."""
    if decay is None:
        return growth
    clock = decay.double().cumsum(-1)
    return clock if growth is None else clock + growth


@dataclass(frozen=True, eq=False)
class Fading:
    """Factors for N chunks of C rows; none is above one.

    Every row reads at its own level, and the state of a chunk is kept at the level of
    its last row: only differences from older to newer rows are ever exponentiated.

    Parameters
    ----------
    within : Tensor of shape [..., N, C, C]
        Of key j as row i of its chunk reads it; zero where i may not.
    key, query : Tensor of shape [..., N, C, 1]
        Of a key in its chunk's state, and of the state before a chunk as row i reads it.
    between : Tensor of shape [..., N, N]
        Of the state of chunk n in the state before chunk m; zero unless n < m.
    carry : Tensor of shape [..., N, 1]
        Of the state before all chunks in the state before chunk m.
    end : Tensor of shape [..., 1]
        Of the state before the last chunk in the state after it.
    """

    within: Float[Tensor, "*L N C C"]
    key: Float[Tensor, "*L N C 1"]
    query: Float[Tensor, "*L N C 1"]
    between: Float[Tensor, "*L N N"]
    carry: Float[Tensor, "*L N 1"]
    end: Float[Tensor, "*L 1"]


@dataclass(frozen=True, eq=False)
class CalmFading:
    """The same where all rows of a chunk read at the level of its last row.

    What a key has lost then does not depend on who reads it: its value, and the one
    that counts for it in the denominator, take the factor. The states before the last
    chunk need none to become that after it.

    Parameters
    ----------
    values : Tensor of shape [..., N, C, 1]
    between, carry : Tensor
        As in `Fading`.
    """

    values: Float[Tensor, "*L N C 1"]
    between: Float[Tensor, "*L N N"]
    carry: Float[Tensor, "*L N 1"]


def fading(
    key: Float[Tensor, "*L N C"],
    query: Float[Tensor, "*L N C"],
    base: Float[Tensor, "*L"],
    *,
    inclusive: bool,
    dtype: torch.dtype,
) -> Fading:
    """Return the factors between the levels of chunks that start at level `base`."""
    last = key[..., -1]
    start = torch.cat([base[..., None], last[..., :-1]], dim=-1)
    future = _upper(key.shape[-1], 1 if inclusive else 0, key.device)
    within = difference(key[..., None, :], query[..., None], dtype)
    return Fading(
        between=_between(last, start, dtype),
        carry=(base[..., None] - start).to(dtype).exp_()[..., None],
        within=within.masked_fill_(future, -torch.inf).exp_(),
        key=(key - last[..., None]).to(dtype).exp_()[..., None],
        query=(start[..., None] - query).to(dtype).exp_()[..., None],
        end=(start[..., -1:] - last[..., -1:]).to(dtype).exp_(),
    )


def is_calm(key: Float[Tensor, "*L N C"], query: Float[Tensor, "*L N C"]) -> bool:
    """Return whether all rows may read at the level of the last row of their chunk.

    The common factor by which that shrinks a row's sums cancels in their ratio, as long
    as it leaves them far above the smallest number. Reads the levels.
    """
    return bool((key[..., -1] - query.amin(-1)).amax() <= _CALM)


def calm_fading(
    key: Float[Tensor, "*L N C"], base: Float[Tensor, "*L"], *, dtype: torch.dtype
) -> CalmFading:
    """Return the factors between the levels of chunks that start at level `base`."""
    last = key[..., -1]
    return CalmFading(
        between=_between(last, last, dtype),
        carry=(base[..., None] - last).to(dtype).exp_()[..., None],
        values=(key - last[..., None]).to(dtype).exp_()[..., None],
    )


def _between(
    last: Float[Tensor, "*L N"], read_at: Float[Tensor, "*L N"], dtype: torch.dtype
) -> Float[Tensor, "*L N N"]:
    later = _upper(last.shape[-1], 0, last.device)
    between = difference(last[..., None, :], read_at[..., None], dtype)
    return between.masked_fill_(later, -torch.inf).exp_()


def difference(
    a: Float[Tensor, ...], b: Float[Tensor, ...], dtype: torch.dtype
) -> Float[Tensor, ...]:
    """Return a - b in `dtype`, for float64 tensors that broadcast to something large.

    A running sum can be a million times its smallest differences, so float32 alone will
    not do; and subtracting in float64 is ten times slower than in two float32 parts.
    """
    if dtype == torch.float64:
        return a - b
    a_high, b_high = a.to(dtype), b.to(dtype)
    a_low, b_low = (a - a_high).to(dtype), (b - b_high).to(dtype)
    return (a_high - b_high).add_(a_low).sub_(b_low)


def _upper(size: int, diagonal: int, device: torch.device) -> Tensor:
    square = torch.ones(size, size, dtype=torch.bool, device=device)
    return square.triu(diagonal)
