"""All forms of attention agree, and none of them looks ahead, for any rows.

Values and gradients, in double and in single precision. Tolerances are explained in
`attention_rows`.
"""

from collections.abc import Sequence
from functools import partial

import pytest
import torch
from attention_draws import (
    BOTH_TYPES,
    Outputs,
    assert_all_near,
    at_once,
    chunk_sizes,
    few,
    in_parts,
    in_plain_torch,
    joined,
    rows_and_later_ones,
    some_rows,
    step_by_step,
)
from attention_maps import MAPS
from attention_rows import KERNELS, Rows, assert_near, differentiate, pulled_back
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from infoset.models.attention import linear_attention, naive

# What is expected to fail need not be made small.
unshrunk = settings(few, phases=[Phase.generate])
every_kernel = pytest.mark.parametrize("name", list(KERNELS))


@few
@given(
    data=st.data(), rows=some_rows(), inclusive=st.booleans(), size=st.integers(1, 50)
)
@every_kernel
def test_all_forms_agree(
    name: str, data: st.DataObject, rows: Rows, size: int, *, inclusive: bool
) -> None:
    stop = data.draw(st.integers(0, rows.q.shape[2]), label="stop")
    kernel = KERNELS[name]
    forms = [kernel.attend, in_parts(kernel.attend, stop)]
    if name != "softmax":
        chunked = partial(kernel.attend, chunk_size=size)
        forms += [chunked, in_plain_torch(chunked)]
    want = differentiate(kernel.naive, rows, inclusive=inclusive)
    for dtype in BOTH_TYPES:
        for form in forms:
            got = differentiate(form, rows.to(dtype), inclusive=inclusive)
            assert_all_near(got, want, dtype=dtype)


@few
@given(rows=some_rows(min_length=1), inclusive=st.booleans())
@pytest.mark.parametrize("name", list(MAPS))
def test_the_definition_is_the_recurrence(
    name: str, rows: Rows, *, inclusive: bool
) -> None:
    shown = Rows(*rows.qkv, decay=rows.decay)

    def recurrence(rows: Rows) -> Tensor:
        return naive.linear_recurrence(
            *rows.qkv, feature_map=MAPS[name], inclusive=inclusive, decay=rows.decay
        )

    def definition(rows: Rows) -> Tensor:
        return KERNELS[name].naive(*rows.qkv, inclusive=inclusive, **rows.settings)[0]

    got, want = (pulled_back(x, shown, rows.v) for x in (recurrence, definition))
    assert_all_near(got, want, dtype=torch.float64)


@few
@given(rows=some_rows(min_length=1, longest=12), inclusive=st.booleans())
@every_kernel
def test_step_by_step_is_whole(name: str, rows: Rows, *, inclusive: bool) -> None:
    attend = KERNELS[name].attend
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        want = differentiate(attend, typed, inclusive=inclusive)
        got = differentiate(in_parts(attend), typed, inclusive=inclusive)
        assert_all_near(got, want, dtype=dtype)


def enlarged(rows: Rows) -> Rows:
    return Rows(*(rows.q * 1e3, rows.k * 10, rows.v * 1e6), rows.mask, rows.decay)


def assert_causal(outputs: Outputs, rows: Rows, others: Sequence[Rows]) -> None:
    """Later rows, of whatever size, change neither outputs nor gradients of `rows`."""
    length = rows.q.shape[2]
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        want = pulled_back(outputs, typed, typed.v)
        for later in others:
            for more in (later, enlarged(later)):
                got = pulled_back(outputs, joined(typed, more.to(dtype)), typed.v)
                for name, x in got.items():
                    assert_near(x[:, :, :length], want[name], name=name)
                    assert name == "y" or not x[:, :, length:].any(), name


@few
@given(drawn=rows_and_later_ones(), inclusive=st.booleans(), size=chunk_sizes)
@every_kernel
def test_later_rows_do_not_reach_earlier_outputs(
    name: str, drawn: tuple[Rows, list[Rows]], size: int | None, *, inclusive: bool
) -> None:
    rows, others = drawn
    assert_causal(at_once(name, inclusive=inclusive, size=size), rows, others[:1])


@few
@given(drawn=rows_and_later_ones(longest=6), inclusive=st.booleans())
@every_kernel
def test_step_by_step_later_rows_change_no_bit_of_earlier_ones(
    name: str, drawn: tuple[Rows, list[Rows]], *, inclusive: bool
) -> None:
    outputs = step_by_step(name, inclusive=inclusive)
    (rows, (later, _)), length = drawn, drawn[0].q.shape[2]
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        want = pulled_back(outputs, typed, typed.v)
        for more in (later, enlarged(later)):
            got = pulled_back(outputs, joined(typed, more.to(dtype)), typed.v)
            for key, x in got.items():
                assert torch.equal(x[:, :, :length], want[key]), f"{dtype} {key}"
                assert key == "y" or not x[:, :, length:].any(), f"{dtype} {key}"


def one_row_too_many(rows: Rows) -> Tensor:
    """Planted: a prefix that ends one row late."""
    keys = torch.cat([rows.k[:, :, 1:], rows.k[:, :, -1:]], dim=2)
    values = torch.cat([rows.v[:, :, 1:], rows.v[:, :, -1:]], dim=2)
    y, _ = linear_attention(rows.q, keys, values, feature_map="elu1")
    return y


def scaled_by_all_of_time(rows: Rows) -> Tensor:
    """Planted: keys shifted by their maximum over time, and an epsilon added."""

    def phi(x: Tensor) -> Tensor:
        return (x - x.amax((2, 3), keepdim=True)).exp() + 1e-4

    y, _ = linear_attention(*rows.qkv, feature_map=phi)
    return y


def whole_summary(rows: Rows) -> Tensor:
    """Planted: every row reads the state after the last one."""
    kernel = KERNELS["elu1"]
    return kernel.read(rows.q, kernel.absorb(rows.k, rows.v))


def by_difference(rows: Rows) -> Tensor:
    """Planted: a prefix as the total less the suffix, right but for its rounding."""
    phi = MAPS["elu1"]
    values = torch.cat([rows.v, torch.ones_like(rows.v[..., :1])], dim=-1)
    added = phi(rows.k)[..., None] * values[..., None, :]
    suffix = added.flip(2).cumsum(2).flip(2)
    prefix = suffix[:, :, :1] - suffix + added
    sums = (phi(rows.q)[..., None, :] @ prefix)[..., 0, :]
    return sums[..., :-1] / sums[..., -1:]


@pytest.mark.parametrize(
    "planted", [one_row_too_many, scaled_by_all_of_time, whole_summary, by_difference]
)
def test_a_planted_look_ahead_is_caught(planted: Outputs) -> None:
    @unshrunk
    @given(drawn=rows_and_later_ones())
    def property_of_the_planted_fault(drawn: tuple[Rows, list[Rows]]) -> None:
        assert_causal(planted, *drawn)

    with pytest.raises(AssertionError):
        property_of_the_planted_fault()
