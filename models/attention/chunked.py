"""Causal weighted sums over a sequence, chunk by chunk, in plain differentiable torch.

The readable form of what `fused` does with a backward pass of its own, and the only
one that knows forgetting. A sequence that fits into one chunk is the quadratic form.

Inside a chunk the weights are a triangle of similarities. Between chunks, each chunk
adds one state, and a query reads the sum of the states before its chunk: a product
with a strictly lower triangular matrix, because a running sum along time is many times
slower than a matrix product of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

# Bounds the memory of a span's triangles, and the rounding error of its sums: spans
# are added up one after the other.
MAX_SPAN_TOKENS = 4096
MAX_SPAN_CHUNKS = 64


@dataclass(frozen=True)
class Levels:
    """The exponents at which rows of [B, H, T] are added and read (see visibility)."""

    key: Float[Tensor, "B H T"]
    query: Float[Tensor, "B H T"]


@dataclass(frozen=True)
class _Fading:
    """What weights lose within and between the N chunks of one span; all at most 1."""

    within: Float[Tensor, "B H N C C"]
    key: Float[Tensor, "B H N C 1"]
    query: Float[Tensor, "B H N C 1"]
    between: Float[Tensor, "B H N N"]
    carry: Float[Tensor, "B H N 1 1"]
    end: Float[Tensor, "B H 1 1"]


def prefix_sums(
    q: Float[Tensor, "B H T R"],
    k: Float[Tensor, "B H T R"],
    v: Float[Tensor, "B H T W"],
    carry: Float[Tensor, "B H R W"],
    *,
    inclusive: bool,
    chunk_size: int,
    levels: Levels | None = None,
) -> tuple[Float[Tensor, "B H T W"], Float[Tensor, "B H R W"]]:
    """Return sum_j (q_i . k_j) v_j over the rows j that row i may read, and the rest.

    Parameters
    ----------
    q, k : Tensor of shape [B, H, T, R]
        Features; those of hidden keys are zeros.
    v : Tensor of shape [B, H, T, W]
    carry : Tensor of shape [B, H, R, W]
        Sum of the outer products of all earlier rows, at level 0.
    inclusive : bool
        Whether row i reads itself.
    chunk_size : int
        Rows per chunk.
    levels : Levels, optional
        Forgetting; None = none.

    Returns
    -------
    sums : Tensor of shape [B, H, T, W]
        Not divided by anything.
    carry : Tensor of shape [B, H, R, W]
        With these rows added, at the key level of the last row.
    """
    length = q.shape[-2]
    chunk = min(chunk_size, length)
    span = chunk * max(1, min(MAX_SPAN_CHUNKS, MAX_SPAN_TOKENS // chunk))
    sums = []
    base = None if levels is None else levels.key.new_zeros(q.shape[:2])
    for start in range(0, length, span):
        rows = slice(start, start + span)
        qs, ks, vs = (_in_chunks(x[:, :, rows], chunk) for x in (q, k, v))
        fading = None
        if levels is not None and base is not None:
            key = _in_chunks(levels.key[:, :, rows, None], chunk, mode="replicate")
            query = _in_chunks(levels.query[:, :, rows, None], chunk, mode="replicate")
            fading = _fading(key, query, base, inclusive=inclusive, dtype=q.dtype)
            base = key[:, :, -1, -1, 0]
        read, carry = _span(qs, ks, vs, carry, fading, inclusive=inclusive)
        sums.append(read.flatten(2, 3))
    return torch.cat(sums, dim=2)[:, :, :length], carry


def _span(
    q: Float[Tensor, "B H N C R"],
    k: Float[Tensor, "B H N C R"],
    v: Float[Tensor, "B H N C W"],
    carry: Float[Tensor, "B H R W"],
    fading: _Fading | None,
    *,
    inclusive: bool,
) -> tuple[Float[Tensor, "B H N C W"], Float[Tensor, "B H R W"]]:
    """Return the sums of N chunks and the state after them."""
    scores = q @ k.mT
    start = carry[:, :, None]
    if fading is None:
        scores = scores.tril(0 if inclusive else -1)
        between = q.new_ones(q.shape[2], q.shape[2]).tril(-1)
    else:
        scores = scores * fading.within
        between, start = fading.between, start * fading.carry
        q, k = q * fading.query, k * fading.key
    added = k.mT @ v
    before = (between @ added.flatten(-2)).unflatten(-1, added.shape[-2:]) + start
    last = before[:, :, -1] if fading is None else before[:, :, -1] * fading.end
    return scores @ v + q @ before, last + added[:, :, -1]


def _fading(
    key: Float[Tensor, "B H N C 1"],
    query: Float[Tensor, "B H N C 1"],
    base: Float[Tensor, "B H"],
    *,
    inclusive: bool,
    dtype: torch.dtype,
) -> _Fading:
    """Return the factors between the levels of one span that starts at level `base`.

    Each state is kept at the level of its chunk's last row, so no exponent is positive.
    """
    end = key[:, :, :, -1:]
    start = torch.cat([base[:, :, None, None, None], end[:, :, :-1]], dim=2)
    # Differences of large numbers: taken in float64, rounded afterwards.
    within = (key.mT - query).to(dtype)
    future = within.new_ones(within.shape[-2:], dtype=torch.bool).triu(
        1 if inclusive else 0
    )
    between = (end[..., 0, 0][:, :, None, :] - start[..., 0, 0][..., None]).to(dtype)
    later = between.new_ones(between.shape[-2:], dtype=torch.bool).triu()
    return _Fading(
        within=within.masked_fill(future, -torch.inf).exp(),
        key=(key - end).to(dtype).exp(),
        query=(start - query).to(dtype).exp(),
        between=between.masked_fill(later, -torch.inf).exp(),
        carry=(base[:, :, None, None, None] - start).to(dtype).exp(),
        end=(start[:, :, -1] - end[:, :, -1]).to(dtype).exp(),
    )


def _in_chunks(
    x: Float[Tensor, "B H T X"], chunk: int, *, mode: str = "constant"
) -> Float[Tensor, "B H N C X"]:
    """Split rows into chunks, filling up the last one."""
    missing = -x.shape[2] % chunk
    if missing:
        x = F.pad(x, (0, 0, 0, missing), mode=mode)
    return x.unflatten(2, (-1, chunk))
