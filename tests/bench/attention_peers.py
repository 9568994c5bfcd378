"""Other packages' causal attention: what linear attention is measured against.

`README.md` beside this file says how to install the two that are not on every machine.
Each peer is used as its authors meant it, except that work which only their interface
asks for (copies between layouts, masks as long as the square of the sequence) is left
out where that is possible: it would be unfair to win by it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
_EPSILON = 1e-6  # of the denominators in fast-transformers


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend by torch's own fused kernel."""
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def fast_transformers() -> Attend | None:
    """Return the causal linear attention of pytorch-fast-transformers, if installed.

    Its compiled product makes the numerators. Feature map and denominators are those of
    its module `CausalLinearAttention`, in the layout of the product: the module wants
    time before heads and copies queries, keys, values and outputs.
    """
    package = _installed("fast_transformers.causal_product")
    if package is None:
        return None
    product = package.causal_dot_product

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        query, key = functional.elu(q) + 1, functional.elu(k) + 1
        total = torch.einsum("nhli,nhli->nhl", query, key.cumsum(2)) + _EPSILON
        weighted: Tensor = product(query, key, v) * (1 / total)[..., None]
        return weighted

    return attend


def fast_transformers_module(width: int) -> Attend | None:
    """Return the same as its users call it: the module, on [B, T, H, K].

    The triangular mask that the module asks for has as many entries as the sequence
    has pairs; all that is read of it is that it is triangular.
    """
    attention = _installed("fast_transformers.attention.causal_linear_attention")
    masking = _installed("fast_transformers.masking")
    if attention is None or masking is None:
        return None
    module = attention.CausalLinearAttention(width)

    class Triangular:
        lower_triangular = True

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        lengths = masking.LengthMask(torch.full((len(q),), q.shape[1]))
        y: Tensor = module(q, k, v, Triangular, lengths, lengths)
        return y

    return attend


def performer(width: int) -> Attend | None:
    """Return the causal attention of performer-pytorch on a CPU, if installed.

    Random features as many as `width`, drawn once, and the sum over chunks that the
    package falls back to without a CUDA kernel.
    """
    package = _installed("performer_pytorch.performer_pytorch")
    if package is None:
        return None
    features, attention = (
        package.softmax_kernel,
        package.causal_linear_attention_noncuda,
    )
    projection = package.gaussian_orthogonal_random_matrix(width, width)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        query = features(q, projection_matrix=projection, is_query=True)
        key = features(k, projection_matrix=projection, is_query=False)
        y: Tensor = attention(query, key, v)
        return y

    return attend


def _installed(name: str) -> ModuleType | None:
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    # A library linked with -ffast-math turns off the smallest floats for the whole
    # process when it is loaded. The other forms must not be changed by that.
    torch.set_flush_denormal(False)
    return module
