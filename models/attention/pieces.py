"""Long sequences piece by piece, where features are written out.

Maps that work number by number are computed inside the fused blocks. Other features are
tensors of their own, and those of a long sequence leave the caches before they are used:
at 65,536 rows of eight heads of width 64, `favor` takes 2.4 times as long as `elu1` if
they are made for all rows at once, and 1.4 times piece by piece. A piece goes on from
the state after the one before.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from . import forms
from .state import LinearState

# Numbers of queries in a piece. Measured: half as many are as good, four times as many
# are too many. Fewer rows would cost more in calls than they gain.
_NUMBERS, _FEWEST_ROWS = 2**20, 512


def attend_in_pieces(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B H T K"],
    v: Float[Tensor, "B H T V"],
    call: forms.Call,
    *,
    chunk_size: int | None,
) -> tuple[Float[Tensor, "B H T V"], LinearState]:
    """Return what `forms.attend` does, up to rounding."""
    rows = _rows_per_piece(q, call)
    if q.shape[2] <= rows:
        return forms.attend(q, k, v, call, chunk_size=chunk_size)
    # Split, not sliced: the gradient of each slice would be as long as the sequence.
    parts = [x.split(rows, dim=2) for x in (q, k, v)]
    masks = None if call.mask is None else call.mask.split(rows, dim=1)
    decays = None if call.decay is None else call.decay.split(rows, dim=2)
    outputs: list[Tensor] = []
    state = call.before
    for place, (q_part, k_part, v_part) in enumerate(zip(*parts, strict=True)):
        part = replace(
            call,
            mask=None if masks is None else masks[place],
            decay=None if decays is None else decays[place],
            before=state,
        )
        y, state = forms.attend(q_part, k_part, v_part, part, chunk_size=chunk_size)
        outputs.append(y)
    if state is None:
        raise AssertionError  # there are at least two pieces
    return torch.cat(outputs, dim=2), state


def _rows_per_piece(q: Float[Tensor, "B H T K"], call: forms.Call) -> int:
    """Return how many rows go together: all of them where pieces gain nothing."""
    batch, heads, length, width = q.shape
    if call.pointwise is not None or not forms.is_fused(q):
        return length
    return max(_FEWEST_ROWS, _NUMBERS // (batch * heads * width))
