"""Positive orthogonal random features, an estimate of the softmax kernel: (10)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from .feature_maps import ExponentialMap


class Favor(nn.Module, ExponentialMap):
    """phi(x) = exp(w . x' - |x'|^2 / 2) / sqrt(R) with x' = x K^(-1/4).

    The expectation of phi(q) . phi(k) over w is exp(q . k / sqrt(K)), the weight of
    softmax attention. That holds for each entry; the ratio of two sums of entries is
    biased all the same, the less the larger R is.

    The directions w are drawn once, from the seed, and stored with the weights.

    Parameters
    ----------
    width : int
        K.
    num_features : int
        R; blocks of K directions are orthogonal, with the lengths of independent
        normal vectors.
    num_heads : int
        Heads draw their own directions.
    seed : int

    References
    ----------
    .. [1] Choromanski et al. (2021), "Rethinking attention with Performers", lemma 1 and
       section 2.4, arXiv 2009.14794
    """

    projection: Tensor

    def __init__(
        self, width: int, num_features: int, *, num_heads: int = 1, seed: int = 0
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        heads = [
            orthogonal_directions(width, num_features, generator)
            for _ in range(num_heads)
        ]
        self.register_buffer("projection", torch.stack(heads))

    def exponents(self, x: Float[Tensor, "B H T K"], /) -> Float[Tensor, "B H T R"]:
        """Return w . x' - |x'|^2 / 2 - log(R) / 2."""
        width, num_features = self.projection.shape[1:]
        scale: float = width**-0.25
        size = x.square().sum(-1, keepdim=True) * (scale**2 / 2)
        exponents: Tensor = x @ (scale * self.projection.to(x.dtype))
        return exponents - (size + math.log(num_features) / 2)

    def forward(self, x: Float[Tensor, "B H T K"], /) -> Float[Tensor, "B H T R"]:
        """Return the features of `x`, which may overflow."""
        return self.exponents(x).exp()

    def extra_repr(self) -> str:
        """Return the map's sizes."""
        heads, width, num_features = self.projection.shape
        return f"{width}, {num_features}, num_heads={heads}"


def orthogonal_directions(
    width: int, number: int, generator: torch.Generator
) -> Float[Tensor, "K R"]:
    """Return directions that are normal vectors one by one, orthogonal in blocks of K."""
    blocks = []
    for _ in range(math.ceil(number / width)):
        normal = torch.randn(width, width, generator=generator, dtype=torch.float64)
        directions, triangle = torch.linalg.qr(normal)
        # Without the signs, the directions are not uniform.
        directions = directions * triangle.diagonal().sign()
        lengths = torch.randn(
            width, width, generator=generator, dtype=torch.float64
        ).norm(dim=0)
        blocks.append(directions * lengths)
    return torch.cat(blocks, dim=1)[:, :number].float()
