"""Which rows a query may read, and how much each of them has faded."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from .state import LinearState, SoftmaxState


def without_hidden(
    x: Float[Tensor, "B H T X"], mask: Bool[Tensor, "B T"] | None
) -> Float[Tensor, "B H T X"]:
    """Return `x` with zeros in hidden rows, whatever they held.

    Zero weight is not enough: zero times NaN is NaN, in values and in gradients.
    """
    return x if mask is None else torch.where(mask[:, None, :, None], x, 0)


def usable_queries(
    q: Float[Tensor, "B H T K"], mask: Bool[Tensor, "B T"]
) -> Bool[Tensor, "B H T 1"]:
    """Return which queries are read: all but hidden ones that would spoil a product.

    That is, whose squares do not add up to a finite number. A visible row is read in
    any case, so that its output shows the fault.
    """
    size = q.detach().square().sum(-1, keepdim=True)
    return torch.isfinite(size) | mask[:, None, :, None]


def empty_rows(
    mask: Bool[Tensor, "B T"],
    *,
    inclusive: bool = True,
    initial_state: LinearState | SoftmaxState | None = None,
) -> Bool[Tensor, "B T"]:
    """Return the rows that have nothing to read and whose outputs are zeros therefore.

    Works without waiting for the device; `empty_rows(...).sum()` is their number.

    Parameters
    ----------
    mask : bool Tensor of shape [B, T]
        True = a real event.
    inclusive : bool
        Whether a row reads itself.
    initial_state : LinearState or SoftmaxState, optional
        Rows before the first.
    """
    seen = mask.cumsum(-1)
    if not inclusive:
        seen = seen - mask.long()
    if initial_state is not None:
        seen = seen + initial_state.count[:, None]
    return seen == 0


def key_levels(
    cumulative: Float[Tensor, "B H S"], mask: Bool[Tensor, "B S"] | None
) -> Float[Tensor, "B H S"]:
    """Return the cumulative decay of the last visible row up to each row; a constant.

    A key at level c read at level m has the weight exp(c - m). A factor common to all
    keys cancels in the ratio of the sums, so a query may read at any level. It reads
    at that of the last visible row: then the newest weight is exactly one, and a long
    silence cannot underflow all of them. For the same reason no gradient is lost by
    taking the levels as constants, as long as the keys' own exponents are not.
    """
    constant = cumulative.detach()
    if mask is None:
        return constant
    return torch.where(mask[:, None, :], constant, 0).cummax(-1).values


def query_levels(
    levels: Float[Tensor, "B H S"], *, inclusive: bool
) -> Float[Tensor, "B H S"]:
    """Return the level at which each row reads, given those of `key_levels`."""
    if inclusive:
        return levels
    return functional.pad(levels, (1, 0))[..., :-1]
