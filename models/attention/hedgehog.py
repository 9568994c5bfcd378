"""A learned feature map, a softmax over both signs of a projection: equation (12)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Hedgehog(nn.Module):
    """phi(x) = softmax([W x, -W x]), with a matrix W for each head; R = 2 K.

    Features are positive and add up to one, whatever the inputs are. W starts as the
    identity, so that no random number is drawn.

    Parameters
    ----------
    width : int
        K.
    num_heads : int

    References
    ----------
    .. [1] Zhang, Bhatia, Kumbong, Re (2024), "The Hedgehog & the Porcupine", section
       4.1, arXiv 2402.04347
    """

    def __init__(self, width: int, *, num_heads: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(width).repeat(num_heads, 1, 1))

    def forward(self, x: Float[Tensor, "B H T K"], /) -> Float[Tensor, "B H T R"]:
        """Return the features of `x`."""
        projected = x @ self.weight.to(x.dtype)
        return torch.cat([projected, -projected], dim=-1).softmax(-1)

    def extra_repr(self) -> str:
        """Return the map's sizes."""
        heads, width, _ = self.weight.shape
        return f"{width}, num_heads={heads}"
