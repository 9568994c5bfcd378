"""Attention over any pairs of rows that may see each other, for the golden cases."""

import math

import torch
from attention_maps import MAPS, favor_of
from torch import Tensor


def rows(*numbers: list[float]) -> Tensor:
    """Rows of one head of one sequence."""
    return torch.tensor([[list(numbers)]], dtype=torch.float64)


def by_hand(name: str, q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
    """Return the average of the values that each query may see, zeros if it sees none."""
    if name == "softmax":
        weight = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    elif name == "favor":
        query, key = (favor_of(q.shape[-1]).exponents(x).exp() for x in (q, k))
        weight = query @ key.mT
    else:
        weight = MAPS[name](q) @ MAPS[name](k).mT
    weight = torch.where(visible, weight, 0)
    total = weight.sum(-1, keepdim=True)
    return weight @ v / torch.where(total == 0, 1, total)


def gradients(y: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Return those of a sum of squares."""
    return torch.autograd.grad(y.double().square().sum(), inputs)


def lower(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()
