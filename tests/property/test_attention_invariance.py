"""What changes nothing in attention, for any rows: company, order, layout, number type.

Values and gradients, in double and in single precision unless a test says otherwise.
Tolerances are explained in `attention_rows`.
"""

from collections.abc import Callable

import pytest
import torch
from attention_draws import (
    BOTH_TYPES,
    Outputs,
    assert_all_near,
    at_once,
    chunk_sizes,
    few,
    joined,
    rows_and_later_ones,
    some_rows,
    step_by_step,
)
from attention_rows import (
    KERNELS,
    TOLERANCE,
    Rows,
    assert_near,
    assert_state_near,
    pulled_back,
    state_tensors,
    sums_of_weights,
)
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from infoset.models.attention import LinearState, empty_rows

every_kernel = pytest.mark.parametrize("name", list(KERNELS))


def weightless(name: str, rows: Rows, *, inclusive: bool) -> Tensor:
    """Return [B, H, T, 1]: where a row has nothing to read."""
    if name != "softmax":
        sums = sums_of_weights(KERNELS[name], rows, inclusive=inclusive)
        return (sums == 0)[..., None]
    mask = rows.shown[:, 0, :, 0].expand(len(rows.q), -1)
    zero = empty_rows(mask, inclusive=inclusive)[:, None, :, None]
    return zero.expand_as(rows.q[..., :1])


@few
@given(rows=some_rows(), inclusive=st.booleans(), size=chunk_sizes)
@every_kernel
def test_values_of_one_give_one_wherever_there_is_weight(
    name: str, rows: Rows, size: int | None, *, inclusive: bool
) -> None:
    ones = Rows(rows.q, rows.k, torch.ones_like(rows.v), rows.mask, rows.decay)
    for dtype in BOTH_TYPES:
        typed = ones.to(dtype)
        outputs = at_once(name, inclusive=inclusive, size=size)
        got = pulled_back(outputs, typed, typed.v)
        some = ~weightless(name, typed, inclusive=inclusive)
        assert_near(got.pop("y"), some.expand_as(typed.v).to(dtype))
        # One whatever the weights are: only values have a gradient, and weights add up
        # to one for each row that has any.
        total = got.pop("dv").sum((2, 3))
        rows_with_weight = some.sum((2, 3)) * rows.v.shape[-1]
        assert_near(total, rows_with_weight.to(dtype))
        for key, x in got.items():
            assert_near(x, torch.zeros_like(x), name=f"{dtype} {key}")


@few
@given(data=st.data(), rows=some_rows(), inclusive=st.booleans())
@every_kernel
def test_permuting_batch_rows_permutes_outputs_gradients_and_states(
    name: str, data: st.DataObject, rows: Rows, *, inclusive: bool
) -> None:
    order = torch.tensor(data.draw(st.permutations(range(len(rows.q)))))
    outputs = at_once(name, inclusive=inclusive)
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        moved = typed.map(lambda x: x[order])
        want = pulled_back(outputs, typed, typed.v)
        got = pulled_back(outputs, moved, moved.v)
        assert_all_near(got, {n: x[order] for n, x in want.items()}, dtype=dtype)
        ends = [
            KERNELS[name].attend(*x.qkv, inclusive=inclusive, **x.settings)[1]
            for x in (typed, moved)
        ]
        assert torch.equal(ends[1].count, ends[0].count[order])
        for key, x in state_tensors(ends[1]).items():
            assert_near(x, state_tensors(ends[0])[key][order], name=key)


def through_forks(name: str, forks: tuple[Rows, ...], *, inclusive: bool) -> Outputs:
    """Return what gives the outputs of all forks of one past."""

    def outputs(past: Rows) -> Tensor:
        _, state = KERNELS[name].attend(*past.qkv, **past.settings)
        fork = at_once(name, inclusive=inclusive, before=state)
        return torch.cat([fork(x) for x in forks], dim=2)

    return outputs


@few
@given(drawn=rows_and_later_ones(longest=8), inclusive=st.booleans())
@every_kernel
def test_forks_do_not_know_of_each_other(
    name: str, drawn: tuple[Rows, list[Rows]], *, inclusive: bool
) -> None:
    """Gradients too: those of the common past are those of each fork, added up."""
    for dtype in BOTH_TYPES:
        past, first, second = (x.to(dtype) for x in (drawn[0], *drawn[1]))
        _, state = KERNELS[name].attend(*past.qkv, **past.settings)
        outputs = at_once(name, inclusive=inclusive, before=state)
        alone = pulled_back(outputs, first, first.v)
        pulled_back(outputs, second, second.v)
        again = pulled_back(outputs, first, first.v)
        assert all(torch.equal(again[key], x) for key, x in alone.items())
        steps = step_by_step(name, inclusive=inclusive, before=state)
        assert_all_near(pulled_back(steps, first, first.v), alone, dtype=dtype)

        both, one, other = (
            pulled_back(
                through_forks(name, forks, inclusive=inclusive),
                *(past, torch.cat([x.v for x in forks], dim=2)),
            )
            for forks in ((first, second), (first,), (second,))
        )
        assert torch.equal(both["y"], torch.cat([one["y"], other["y"]], dim=2))
        length = past.q.shape[2]
        whole = pulled_back(
            at_once(name, inclusive=inclusive),
            joined(past, first),
            torch.cat([torch.zeros_like(past.v), first.v], dim=2),
        )
        assert_near(one["y"], whole["y"][:, :, length:])
        for key in whole.keys() - {"y"}:
            assert_near(both[key], one[key] + other[key], name=f"{dtype} {key}")
            assert_near(one[key], whole[key][:, :, :length], name=f"{dtype} {key}")


def as_projected(x: Tensor) -> Tensor:
    """Batch, rows, heads in memory: what a linear layer's output is."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def every_other_row(x: Tensor) -> Tensor:
    axis = 1 if x.ndim == 2 else 2
    return x.repeat_interleave(2, dim=axis)[
        (slice(None),) * axis + (slice(1, None, 2),)
    ]


def part_of_wider_rows(x: Tensor) -> Tensor:
    return torch.cat([x, x], dim=-1)[..., x.shape[-1] :]


def widths_apart(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT


def heads_alike(x: Tensor) -> Tensor:
    return x[:, :1].expand_as(x)


def batch_rows_alike(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


def numbers_alike(x: Tensor) -> Tensor:
    return x[..., :1].expand_as(x)


LAYOUTS = (
    as_projected,
    every_other_row,
    part_of_wider_rows,
    widths_apart,
    heads_alike,
    batch_rows_alike,
    numbers_alike,
)


@few
@given(
    rows=some_rows(),
    inclusive=st.booleans(),
    layouts=st.tuples(*[st.sampled_from(LAYOUTS)] * 4),
    mask_layout=st.sampled_from([every_other_row, part_of_wider_rows]),
)
@every_kernel
def test_memory_layout_does_not_matter(
    name: str,
    rows: Rows,
    layouts: tuple[Callable[[Tensor], Tensor], ...],
    mask_layout: Callable[[Tensor], Tensor],
    *,
    inclusive: bool,
) -> None:
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        q, k, v = (lay(x) for lay, x in zip(layouts, typed.qkv, strict=False))
        odd = Rows(
            *(q, k, v),
            mask=None if typed.mask is None else mask_layout(typed.mask),
            decay=None if typed.decay is None else layouts[3](typed.decay),
        )
        plain = odd.map(Tensor.contiguous)
        outputs = at_once(name, inclusive=inclusive)
        want = pulled_back(outputs, plain, typed.v)
        assert_all_near(pulled_back(outputs, odd, typed.v), want, dtype=dtype)
        attend = KERNELS[name].attend
        _, end = attend(*plain.qkv, inclusive=inclusive, **plain.settings)
        _, state = attend(*odd.qkv, inclusive=inclusive, **odd.settings)
        assert_state_near(state, end)


@few
@given(
    rows=some_rows(),
    inclusive=st.booleans(),
    types=st.tuples(*[st.sampled_from(list(TOLERANCE))] * 4),
)
@every_kernel
def test_number_types_may_be_mixed(
    name: str, rows: Rows, types: tuple[torch.dtype, ...], *, inclusive: bool
) -> None:
    """Rows are multiples of a quarter, exact in each of the four types."""
    typed = Rows(
        rows.q.to(types[0]),
        rows.k.to(types[1]),
        rows.v.to(types[2]),
        mask=rows.mask,
        decay=None if rows.decay is None else rows.decay.to(types[3]),
    )
    coarsest = max(types, key=lambda dtype: TOLERANCE[dtype])
    kernel = KERNELS[name]
    want = pulled_back(
        lambda x: kernel.naive(*x.qkv, inclusive=inclusive, **x.settings)[0],
        *(rows, rows.v),
    )
    got = pulled_back(at_once(name, inclusive=inclusive), typed, rows.v)
    assert got["y"].dtype == typed.v.dtype
    _, state = kernel.attend(*typed.qkv, inclusive=inclusive, **typed.settings)
    if isinstance(state, LinearState):
        assert state.S.dtype in BOTH_TYPES
    assert_all_near(got, want, dtype=coarsest)
