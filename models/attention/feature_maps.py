"""Feature maps: what turns queries and keys into non-negative features.

Equations (8) and (9) of docs/attention.md; (10) is in `favor`, (12) in `hedgehog`.

A kernel is a feature map: the similarity of a query and a key is the inner product of
their features, so non-negative features give non-negative weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


@runtime_checkable
class FeatureMap(Protocol):
    """Any callable from [B, H, T, K] to non-negative features [B, H, T, R], row by row.

    A row's features may depend on that row alone: a statistic taken over time would let
    later rows into earlier outputs.
    """

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`."""
        ...


class ExponentialMap(ABC):
    """A map whose features are exponentials, which alone could overflow.

    Attention never calls it, but works with `exponents` relative to a maximum: of a
    query's own for the query, and the running one of the keys so far, which the state
    keeps (see `stabilised`).
    """

    @abstractmethod
    def exponents(self, x: Tensor, /) -> Tensor:
        """Return the logarithms of the features of `x`; differentiable."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`."""
        return self.exponents(x).exp()


class PointwiseMap(ABC):
    """A map that works number by number, without parameters, so that R = K.

    `write` and `slope` let the fused form compute features and their derivative inside
    its own small work arrays instead of in tensors of the sequence's length. A feature
    of zero must have a slope of zero: hidden rows are rows of zero features.
    """

    @abstractmethod
    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`; differentiable."""

    @abstractmethod
    def write(self, x: Tensor, out: Tensor, scratch: Tensor) -> None:
        """Write the features of `x` to `out`, using `scratch` of the same shape."""

    @abstractmethod
    def slope(self, features: Tensor, out: Tensor) -> None:
        """Write the map's derivative to `out`, given the features it returned."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Elu1(PointwiseMap):
    """elu(x) + 1: exp(x) below zero and x + 1 above.

    Computed as exp(min(x, 0)) + max(x, 0). Written as elu(x) + 1 the one is subtracted
    and added again, which at x = -10 leaves only three correct digits in float32.

    References
    ----------
    .. [1] Katharopoulos, Vyas, Pappas, Fleuret (2020), "Transformers are RNNs", eq. (7),
       arXiv 2006.16236
    """

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`."""
        return x.clamp(max=0).exp() + x.relu()

    def write(self, x: Tensor, out: Tensor, scratch: Tensor) -> None:
        """Write the features of `x` to `out`."""
        torch.clamp_max(x, 0, out=out).exp_()
        out.add_(torch.clamp_min(x, 0, out=scratch))

    def slope(self, features: Tensor, out: Tensor) -> None:
        """Write min(feature, 1): exp(x) below zero, one above."""
        torch.clamp_max(features, 1, out=out)


class Relu(PointwiseMap):
    """max(x, 0). Many queries can share no feature with any key: see zero denominators."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`."""
        return x.relu()

    def write(self, x: Tensor, out: Tensor, scratch: Tensor) -> None:  # noqa: ARG002
        """Write the features of `x` to `out`."""
        torch.clamp_min(x, 0, out=out)

    def slope(self, features: Tensor, out: Tensor) -> None:
        """Write one where the feature is positive, zero elsewhere."""
        torch.sign(features, out=out)


class SquaredRelu(PointwiseMap):
    """max(x, 0) squared."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return the features of `x`."""
        return x.relu().square()

    def write(self, x: Tensor, out: Tensor, scratch: Tensor) -> None:  # noqa: ARG002
        """Write the features of `x` to `out`."""
        torch.clamp_min(x, 0, out=out).square_()

    def slope(self, features: Tensor, out: Tensor) -> None:
        """Write 2 max(x, 0), the root of the feature doubled."""
        torch.sqrt(features, out=out).mul_(2)


class Identity:
    """The inputs themselves, which must be non-negative.

    Signed inputs would give negative weights, so they are refused. The check reads the
    data, which waits for the device: this map is for teaching and for tests.
    """

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return `x` unchanged.

        Raises
        ------
        ValueError
            If a component is negative; the message names the first such position.
        """
        negative = torch.nonzero(x.detach() < 0)
        if len(negative):
            place = tuple(negative[0].tolist())
            message = (
                "feature map identity needs components that are not negative; "
                f"got {x[place].item():.6g} at position {place}. "
                "Use elu1, relu or squared_relu for signed inputs."
            )
            raise ValueError(message)
        return x

    def __repr__(self) -> str:
        return "Identity()"


class Given(PointwiseMap):
    """Features as they are: what other maps have returned already."""

    def __call__(self, x: Tensor, /) -> Tensor:
        """Return `x` itself."""
        return x

    def write(self, x: Tensor, out: Tensor, scratch: Tensor) -> None:  # noqa: ARG002
        """Copy `x` to `out`."""
        out.copy_(x)

    def slope(self, features: Tensor, out: Tensor) -> None:  # noqa: ARG002
        """Write one everywhere; whoever gave the features minds the hidden rows."""
        out.fill_(1)
