"""From a vector to a distribution: the quantile head, and its loss."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class QuantileHead(nn.Module):
    """Ascending quantiles that start at the training quantiles of each entity.

    The median moves by an offset, each gap between neighbouring levels by a factor
    exp(.). Offsets and factors come from a linear layer that starts at zero, so an
    untrained forecaster is the plain scaled-quantile baseline.

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
        self.adjust = nn.Linear(width, base.shape[1])
        nn.init.zeros_(self.adjust.weight)
        nn.init.zeros_(self.adjust.bias)

    def forward(
        self, x: Float[Tensor, "B P D"], entity: Int[Tensor, "B P"]
    ) -> Float[Tensor, "B P Q"]:
        """Return the quantiles in units of the causal scale."""
        base = self.base[entity]
        middle = base.shape[-1] // 2
        adjust = self.adjust(x)
        gaps = torch.diff(base, dim=-1) * torch.exp(adjust[..., 1:])
        median = base[..., middle : middle + 1] + adjust[..., :1]
        upper = median + torch.cumsum(gaps[..., middle:], dim=-1)
        lower = median - torch.cumsum(gaps[..., :middle].flip(-1), dim=-1).flip(-1)
        return torch.cat([lower, median, upper], dim=-1)


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
