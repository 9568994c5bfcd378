"""From a vector to a distribution: the quantile head, and its loss."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# How fast the location may move relative to the spread. The next change's direction
# is far less predictable than its size, so an equally free location mostly fits noise.
_LOCATION_RATE = 0.1


class QuantileHead(nn.Module):
    """Quantiles that start at the training quantiles of each entity.

    All quantiles of an entity are stretched by one positive factor and moved by one
    offset, both linear in the readout (the factor through an exponential) and both
    starting at zero: an untrained forecaster is the plain scaled-quantile baseline, and
    the levels can never cross.

    Parameters
    ----------
    base : [E, Q]
        Training quantiles of the scaled target per entity, ascending.
    width : int
        D.
    """

    base: Tensor

    def __init__(self, base: Float[Tensor, "E Q"], width: int) -> None:
        super().__init__()
        self.register_buffer("base", base)
        self.adjust = nn.Linear(width, 2)
        nn.init.zeros_(self.adjust.weight)
        nn.init.zeros_(self.adjust.bias)

    def forward(
        self, x: Float[Tensor, "B P D"], entity: Int[Tensor, "B P"]
    ) -> Float[Tensor, "B P Q"]:
        """Return the quantiles in units of the causal scale."""
        location, log_spread = self.adjust(x).split(1, dim=-1)
        quantiles: Tensor = (
            self.base[entity] * torch.exp(log_spread) + _LOCATION_RATE * location
        )
        return quantiles


def pinball_loss(
    target: Float[Tensor, " n"],
    quantiles: Float[Tensor, "n Q"],
    levels: Float[Tensor, " Q"],
) -> Float[Tensor, " n"]:
    """Return each row's pinball loss, averaged over the levels.

    References
    ----------
    .. [1] Koenker, Bassett (1978), Econometrica 46(1), eq. (3.1), doi:10.2307/1913643
    """
    error = target[:, None] - quantiles
    return torch.maximum(levels * error, (levels - 1) * error).mean(-1)
