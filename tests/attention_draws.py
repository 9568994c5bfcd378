"""Any rows, drawn by hypothesis, and the forms that read them, for property tests.

Rows lie on a coarse grid, so that ties, zero features and zero denominators are common.
"""

import itertools
from collections.abc import Callable
from unittest import mock

import torch
from attention_rows import KERNELS, Attention, Rows, State, assert_near
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from infoset.models.attention import forms

Outputs = Callable[[Rows], Tensor]

BOTH_TYPES = (torch.float64, torch.float32)
few = settings(max_examples=6, deadline=None, derandomize=True, database=None)
chunk_sizes = st.none() | st.integers(1, 50)


@st.composite
def grid(draw: st.DrawFn, *shape: int, low: int = -8) -> Tensor:
    """Multiples of a quarter, drawn by a seed: what fails is small in its shape."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    return torch.randint(low, 9, shape, generator=generator).double() / 4


@st.composite
def some_rows(
    draw: st.DrawFn, *, like: Rows | None = None, min_length: int = 0, longest: int = 40
) -> Rows:
    """Any rows, or more rows of the same sequences."""
    length = draw(st.integers(min_length, longest))
    if like is None:
        batch, heads = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        widths = draw(st.integers(1, 4)), draw(st.integers(1, 3))
        masked, forget = draw(st.booleans()), draw(st.booleans())
    else:
        batch, heads = like.q.shape[:2]
        widths = like.q.shape[-1], like.v.shape[-1]
        masked, forget = like.mask is not None, like.decay is not None
    axes = batch, heads, length
    q, k = (draw(grid(*axes, widths[0])) for _ in "qk")
    return Rows(
        *(q, k, draw(grid(*axes, widths[1]))),
        mask=draw(grid(batch, length)) > -1 if masked else None,
        decay=draw(grid(*axes, low=0)) / 4 if forget else None,
    )


@st.composite
def rows_and_later_ones(
    draw: st.DrawFn, *, longest: int = 40
) -> tuple[Rows, list[Rows]]:
    """Rows, and two ways in which they may go on."""
    rows = draw(some_rows(min_length=1, longest=longest))
    later = some_rows(like=rows, min_length=1, longest=longest)
    return rows, [draw(later) for _ in range(2)]


def joined(first: Rows, second: Rows) -> Rows:
    """Return the rows of both, one after the other."""
    pairs = zip(
        (*first.qkv, first.mask, first.decay),
        (*second.qkv, second.mask, second.decay),
        strict=True,
    )
    return Rows(
        *(
            None
            if a is None or b is None
            else torch.cat([a, b], 1 if a.ndim == 2 else 2)
            for a, b in pairs
        )  # type: ignore[arg-type] # q, k and v are always there
    )


def at_once(
    name: str, *, inclusive: bool, size: int | None = None, before: State | None = None
) -> Outputs:
    """Return what gives the outputs of a whole sequence."""
    own = {} if name == "softmax" else {"chunk_size": size}

    def outputs(rows: Rows) -> Tensor:
        y, _ = KERNELS[name].attend(
            *rows.qkv,
            inclusive=inclusive,
            initial_state=before,
            **rows.settings,
            **own,
        )
        return y

    return outputs


def step_by_step(name: str, *, inclusive: bool, before: State | None = None) -> Outputs:
    """Return what gives the outputs of one row after the other."""
    attend = in_parts(KERNELS[name].attend)

    def outputs(rows: Rows) -> Tensor:
        y, _ = attend(
            *rows.qkv, inclusive=inclusive, initial_state=before, **rows.settings
        )
        return y

    return outputs


def in_parts(attend: Attention, *stops: int) -> Attention:
    """Return an attention that works on some rows at a time, by default on single ones."""

    def attend_parts(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None,
        decay: Tensor | None,
        initial_state: State | None = None,
        **own: object,
    ) -> tuple[Tensor, State]:
        rows, state, outputs = Rows(q, k, v, mask, decay), initial_state, []
        edges = [0, *(stops or range(1, q.shape[2])), q.shape[2]]
        for start, stop in itertools.pairwise(edges):
            part = rows.cut(start, stop)
            y, state = attend(*part.qkv, initial_state=state, **part.settings, **own)
            outputs.append(y)
        assert state is not None
        return torch.cat(outputs, dim=2), state

    return attend_parts


def in_plain_torch(attend: Attention) -> Attention:
    """Return an attention that takes the form for other devices and for compilers."""

    def attend_plainly(*rows: Tensor, **settings: object) -> tuple[Tensor, State]:
        with mock.patch.object(forms, "_is_transformed", return_value=True):
            return attend(*rows, **settings)

    return attend_plainly


def assert_all_near(
    got: dict[str, Tensor], want: dict[str, Tensor], *, dtype: torch.dtype
) -> None:
    """Compare all outputs and gradients by name."""
    assert got.keys() == want.keys()
    for name, x in got.items():
        assert_near(x, want[name], dtype=dtype, name=f"{dtype} {name}")
