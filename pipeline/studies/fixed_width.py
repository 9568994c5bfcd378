"""What no training can change: the part of n stored values that R features must lose.

Let n values be orthonormal, so that none can be guessed from the others. What n
questions read is W v with weights W = D^-1 phi(q) phi(k)', a matrix of rank R at most.
The mean squared error of the values read back is |W - I|^2 / n, and no matrix of rank R
comes closer to the identity than n - R (Eckart, Young). So the error is at least
1 - R / n, whatever the map, the keys and the questions are, learned or not.

References
----------
.. [1] Eckart, Young (1936), Psychometrika 1(3), doi:10.1007/BF02288367
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from infoset.models.attention import linear_attention, softmax_attention

# Sharp enough for exact reading, and far from the overflow of its exponentials.
_SHARP = 1e3


def least_forgotten(num_pairs: int, num_features: int) -> float:
    """Return the least mean squared error of n orthonormal values from R features."""
    return max(0.0, 1 - num_features / num_pairs)


def one_hot_forgotten(num_pairs: int, num_features: int) -> float:
    """Store n orthonormal values under R one-hot keys, ask for each, measure the error.

    Nothing is trained: keys are their own features (identity map), used in turn. Where
    R divides n, or is at least n, this reaches the bound.
    """
    keys = torch.eye(num_features)[torch.arange(num_pairs) % num_features]
    y = _read_after_all(keys, feature_map="identity")
    return _mean_squared_error(y)


def softmax_forgotten(num_pairs: int, width: int, *, seed: int = 0) -> float:
    """Do the same by sharp softmax attention over random directions of width K."""
    generator = torch.Generator().manual_seed(seed)
    keys = functional.normalize(
        torch.randn(num_pairs, width, generator=generator), dim=-1
    )
    return _mean_squared_error(_read_after_all(keys, feature_map=None))


def _read_after_all(keys: Tensor, *, feature_map: str | None) -> Tensor:
    """Return what each key reads once all pairs are stored, [n, n]."""
    num_pairs = len(keys)
    rows = torch.cat([keys, keys])[None, None]
    values = torch.cat([torch.eye(num_pairs), torch.zeros(num_pairs, num_pairs)])
    is_pair = torch.arange(2 * num_pairs)[None] < num_pairs
    if feature_map is None:
        y, _ = softmax_attention(
            rows, rows, values[None, None], mask=is_pair, scale=_SHARP
        )
    else:
        y, _ = linear_attention(
            rows, rows, values[None, None], mask=is_pair, feature_map=feature_map
        )
    return y[0, 0, num_pairs:]


def _mean_squared_error(y: Tensor) -> float:
    wrong = y.double() - torch.eye(len(y), dtype=torch.float64)
    error = float(wrong.square().sum(dim=1).mean())
    if not math.isfinite(error):
        raise ValueError(f"what is read must be finite; got {error}. Report this.")
    return error
