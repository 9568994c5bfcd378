"""Causal weighted sums over a sequence, chunk by chunk, in plain differentiable torch.

Equation (18) of docs/attention.md.

The readable form of what `fused` does with a backward pass of its own, and the form for
feature maps and devices that `fused` does not know. A sequence that fits into one chunk
is the quadratic form.

Inside a chunk the weights are a triangle of similarities. Between chunks, each chunk
adds one state, and a query reads the sum of the states before its chunk: a product
with a strictly lower triangular matrix, because a running sum along time is many times
slower than a matrix product of the same size.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from .fading import Clock, Fading, fading
from .ratio import ratio, with_ones

# Bounds the memory of a span's triangles, and the rounding error of its sums: spans
# are added up one after the other.
_SPAN_TOKENS = 4096
_SPAN_CHUNKS = 64


def chunked_attention(
    query: Float[Tensor, "B H T R"],
    key: Float[Tensor, "B H T R"],
    v: Float[Tensor, "B H T V"],
    *,
    inclusive: bool,
    carry: Float[Tensor, "B H R W"],
    chunk_size: int,
    clock: Clock | None,
    floor: float,
) -> tuple[Float[Tensor, "B H T V"], Float[Tensor, "B H R W"]]:
    """Return outputs and the state after the last row, at its key level.

    Arguments are those of `fused_attention`, with features in place of a map, and
    zeros in hidden rows of features and values.
    """
    if clock is not None and clock.time.requires_grad:
        # The levels are constants; this factor is one and carries the gradient.
        own = (clock.time - clock.time.detach()).exp().to(key.dtype)
        key = key * own[..., None]
    sums, end = prefix_sums(
        *(query, key, with_ones(v), carry),
        inclusive=inclusive,
        chunk_size=chunk_size,
        clock=clock,
    )
    return ratio(sums, floor=floor), end


def prefix_sums(
    q: Float[Tensor, "B H T R"],
    k: Float[Tensor, "B H T R"],
    v: Float[Tensor, "B H T W"],
    carry: Float[Tensor, "B H R W"],
    *,
    inclusive: bool,
    chunk_size: int,
    clock: Clock | None = None,
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
    clock : Clock, optional
        Forgetting; None = none.

    Returns
    -------
    sums : Tensor of shape [B, H, T, W]
        Not divided by anything.
    carry : Tensor of shape [B, H, R, W]
        With these rows added, at the key level of the last row.
    """
    length = q.shape[2]
    if length == 0:
        return v, carry
    chunk = min(chunk_size, length)
    span = chunk * max(1, min(_SPAN_CHUNKS, _SPAN_TOKENS // chunk))
    sums = []
    for start in range(0, length, span):
        rows = slice(start, start + span)
        q_part, k_part, v_part = (_in_chunks(x[:, :, rows], chunk) for x in (q, k, v))
        fade = None
        if clock is not None:
            base = functional.pad(clock.key, (1, 0))[:, :, start]
            key, query = (
                _in_chunks(x[:, :, rows, None], chunk, mode="replicate")[..., 0]
                for x in (clock.key, clock.query)
            )
            fade = fading(key, query, base, inclusive=inclusive, dtype=q.dtype)
        read, carry = _span(q_part, k_part, v_part, carry, fade, inclusive=inclusive)
        sums.append(read.flatten(2, 3))
    return torch.cat(sums, dim=2)[:, :, :length], carry


def _span(
    q: Float[Tensor, "B H N C R"],
    k: Float[Tensor, "B H N C R"],
    v: Float[Tensor, "B H N C W"],
    carry: Float[Tensor, "B H R W"],
    fade: Fading | None,
    *,
    inclusive: bool,
) -> tuple[Float[Tensor, "B H N C W"], Float[Tensor, "B H R W"]]:
    """Return the sums of N chunks and the state after them."""
    scores, start = q @ k.mT, carry[:, :, None]
    if fade is None:
        scores = scores.tril(0 if inclusive else -1)
        earlier = q.new_ones(q.shape[2], q.shape[2]).tril(-1)
    else:
        scores, earlier = scores * fade.within, fade.between
        q, k, start = q * fade.query, k * fade.key, start * fade.carry[..., None]
    added = k.mT @ v
    before = (earlier @ added.flatten(3)).view(added.shape) + start
    last = before[:, :, -1] if fade is None else before[:, :, -1] * fade.end[..., None]
    return scores @ v + q @ before, last + added[:, :, -1]


def _in_chunks(
    x: Float[Tensor, "B H T X"], chunk: int, *, mode: str = "constant"
) -> Float[Tensor, "B H N C X"]:
    """Split rows into chunks, filling up the last one."""
    missing = -x.shape[2] % chunk
    if missing:
        x = functional.pad(x, (0, 0, 0, missing), mode=mode)
    batch, heads, length, width = x.shape
    return x.reshape(batch, heads, length // chunk, chunk, width)
