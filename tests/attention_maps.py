"""Feature maps for the tests of the attention core."""

from functools import cache

import torch
from torch import Tensor

from infoset.models.attention import (
    ExponentialMap,
    Favor,
    FeatureMap,
    Hedgehog,
    feature_map,
)


def both_signs(x: Tensor) -> Tensor:
    """Return twice as many features as numbers: a map that only the general form knows."""
    return torch.cat([x.relu(), (-x).relu().square()], dim=-1)


@cache
def favor_of(width: int) -> Favor:
    """Return random features of rows of one width; always the same ones."""
    return Favor(width, 6, seed=3)


@cache
def hedgehog_of(width: int) -> Hedgehog:
    """Return learned features of rows of one width, with a matrix that is not the first."""
    phi = Hedgehog(width)
    generator = torch.Generator().manual_seed(4)
    with torch.no_grad():
        phi.weight.add_(torch.randn(phi.weight.shape, generator=generator))
    return phi


class AnyFavor(ExponentialMap):
    """Random features for rows of any width."""

    def exponents(self, x: Tensor, /) -> Tensor:
        return favor_of(x.shape[-1]).exponents(x)


def any_hedgehog(x: Tensor) -> Tensor:
    """Return learned features of rows of any width."""
    features: Tensor = hedgehog_of(x.shape[-1])(x)
    return features


class Exponents(ExponentialMap):
    """The rows themselves as exponents: no rounding before the stabiliser's own."""

    def exponents(self, x: Tensor, /) -> Tensor:
        return x


MAPS: dict[str, FeatureMap] = {
    **{name: feature_map(name) for name in ("elu1", "relu", "squared_relu")},
    "both_signs": both_signs,
    "favor": AnyFavor(),
    "hedgehog": any_hedgehog,
}
