"""The last step: weighted sums of values divided by the sums of the weights.

Equations (2) and (17) of docs/attention.md.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def with_ones(v: Float[Tensor, "B H T V"]) -> Float[Tensor, "B H T W"]:
    """Append a column of ones, whose weighted sum is the denominator."""
    return functional.pad(v, (0, 1), value=1.0)


def ratio(sums: Float[Tensor, "*L W"], *, floor: float = 0.0) -> Float[Tensor, "*L V"]:
    """Divide sums by the last of them; zeros, and zero gradients, where that is zero.

    Parameters
    ----------
    sums : Tensor of shape [..., V + 1]
    floor : float
        What to divide by where the denominator is smaller. It changes the formula:
        weights then add up to less than one. 0 = never.
    """
    weighted, total = sums[..., :-1], sums[..., -1:]
    if floor > 0:
        # At the floor itself the constant counts, in every form: no gradient.
        return weighted / torch.where(total <= floor, floor, total)
    # Both `where` are needed: the gradient of a division by zero is NaN even where its
    # value is not chosen.
    empty = total == 0
    return torch.where(empty, 0, weighted / torch.where(empty, 1, total))
