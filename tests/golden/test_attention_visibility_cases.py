"""Failures of attention code that its users reported, and what is right instead: what is visible.

The inputs are small and our own, multiples of a quarter, so that all number types hold
them. The right numbers were computed twice elsewhere, by a library's exact attention
and in plain numpy, in float64, for one kernel; for the other kernels they come from
`by_hand`, the sum over all pairs that may see each other. Each case names its reports.

Tolerances are those of `attention_rows`: 1e-12 in float64 for sums of a few terms.
"""

import math

import pytest
import torch
from attention_by_hand import by_hand, gradients, lower, rows
from attention_rows import KERNELS, TOLERANCE, assert_near
from torch import Tensor
from torch.nn import functional

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
every_type = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)


# A query that may see nothing, and whatever stands behind the mask.
# https://github.com/pytorch/pytorch/issues/103963
# https://github.com/pytorch/pytorch/issues/101967
# https://github.com/pytorch/pytorch/issues/160064
# https://github.com/Xilinx/brevitas/pull/1591
# https://github.com/pytorch/pytorch/issues/16317
MASKED_QUERIES = rows([-1.5, 0.25], [1.75, 0.0], [1.5, -0.25], [-0.25, 2.0])
MASKED_KEYS = rows([-1.75, 0.0], [-0.5, -0.75], [0.0, -1.25], [1.5, 1.75])
MASKED_VALUES = rows([2.0, 2.0], [-1.25, -1.0], [-1.0, -0.75], [-1.0, 1.25])
VISIBLE = torch.tensor([[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0]]) == 1
MASKED_OUTPUTS = rows(
    [0.0, 0.0],
    [-0.6794641412058827, -0.4733515149592764],
    [-0.8550350312189677, -0.623859471698773],
    [0.0, 0.0],
)


def test_the_pairs_by_hand_give_the_numbers_from_elsewhere() -> None:
    masked = MASKED_QUERIES, MASKED_KEYS, MASKED_VALUES
    assert_near(by_hand("softmax", *masked, VISIBLE), MASKED_OUTPUTS)
    assert_near(by_hand("elu1", *PADDED, lower(4)), PADDED_OUTPUTS)


@every_type
@pytest.mark.parametrize("garbage", [None, math.nan, math.inf, -math.inf])
@every_kernel
def test_queries_that_may_see_nothing_and_keys_that_none_may_see(
    name: str, garbage: float | None, dtype: torch.dtype
) -> None:
    """Queries 0 and 3 come first, on hidden rows; 1 and 2 on the keys 1 and 2."""
    order = torch.tensor([3, 3, 0, 1, 2])
    k, v = (x[:, :, order].clone() for x in (MASKED_KEYS, MASKED_VALUES))
    q = MASKED_QUERIES[:, :, [0, 3, 0, 1, 2]]
    if garbage is not None:
        k[:, :, :2], v[:, :, :2] = garbage, garbage
    q, k, v = (x.to(dtype).requires_grad_() for x in (q, k, v))
    mask = torch.tensor([[False, False, True, True, True]])
    y, _ = KERNELS[name].attend(q, k, v, mask=mask)
    want = by_hand(name, MASKED_QUERIES, MASKED_KEYS, MASKED_VALUES, VISIBLE)
    assert not y[:, :, :2].any()
    assert_near(y[:, :, 3:], want[:, :, 1:3])
    if name == "softmax":
        assert_near(y[:, :, [0, 3, 4, 1]], MASKED_OUTPUTS)
    dq, dk, dv = gradients(y, q, k, v)
    assert all(x.isfinite().all() for x in (dq, dk, dv))
    assert not any(x[:, :, :2].any() for x in (dq, dk, dv))


def test_a_very_small_number_for_a_mask_is_caught() -> None:
    """Planted: the row that sees nothing becomes the mean of all values, hidden ones too."""
    smallest = torch.finfo(torch.float64).min
    mask = torch.zeros(4, 4, dtype=torch.float64).masked_fill(~VISIBLE, smallest)
    wrong = functional.scaled_dot_product_attention(
        MASKED_QUERIES, MASKED_KEYS, MASKED_VALUES, attn_mask=mask
    )
    assert_near(wrong[:, :, 0], MASKED_VALUES.mean(2))
    with pytest.raises(AssertionError):
        assert_near(wrong, MASKED_OUTPUTS)


# New queries on a cache: the causal edge is anchored at the bottom right.
# https://github.com/pytorch/pytorch/issues/144858
# https://github.com/pytorch/pytorch/issues/108108
# https://github.com/pytorch/executorch/issues/22426
NEW_QUERIES = rows([-1.0, 1.75], [1.0, 0.25])
ALL_KEYS = rows([2.0, -1.5], [-1.0, -0.75], [-0.25, -1.25], [2.0, 0.0], [-0.25, 0.5])
ALL_VALUES = rows([0.0, 0.0], [0.5, -1.5], [1.75, 2.0], [-0.25, 0.75], [-1.75, 1.0])
BOTTOM_RIGHT = rows(
    [0.5869843146333561, -0.38301205870220995],
    [-0.13336650395716784, 0.5056504430567496],
)
TOP_LEFT = rows([0.0, 0.0], [0.060195229392082036, -0.1805856881762461])


@every_type
@every_kernel
def test_new_queries_on_a_cache_read_all_of_it(name: str, dtype: torch.dtype) -> None:
    """Rows 3 and 4 of five: together, step by step, and read only."""
    kernel = KERNELS[name]
    q, k, v = (x.to(dtype) for x in (NEW_QUERIES, ALL_KEYS, ALL_VALUES))
    visible = lower(5)[3:]
    want = by_hand(name, NEW_QUERIES, ALL_KEYS, ALL_VALUES, visible)
    if name == "softmax":
        assert_near(want, BOTTOM_RIGHT)
    cache = kernel.absorb(k[:, :, :3], v[:, :, :3])
    y, state = kernel.attend(q, k[:, :, 3:], v[:, :, 3:], initial_state=cache)
    assert_near(y, want)
    assert state.count.tolist() == [5]
    step, middle = kernel.attend(
        *(q[:, :, :1], k[:, :, 3:4], v[:, :, 3:4]), initial_state=cache
    )
    assert_near(step, want[:, :, :1])
    step, _ = kernel.attend(
        *(q[:, :, 1:], k[:, :, 4:], v[:, :, 4:]), initial_state=middle
    )
    assert_near(step, want[:, :, 1:])
    assert_near(kernel.read(q[:, :, 1:], state), want[:, :, 1:])
    padded = torch.cat([q[:, :, :1].expand(-1, -1, 3, -1), q], dim=2)
    whole, _ = kernel.attend(padded, k, v)
    assert_near(whole[:, :, 3:], want)


def test_a_causal_edge_at_the_top_left_is_caught() -> None:
    """Planted: torch's own flag lets the new queries read rows 0 and 1."""
    wrong = functional.scaled_dot_product_attention(
        NEW_QUERIES, ALL_KEYS, ALL_VALUES, is_causal=True
    )
    assert_near(wrong, TOP_LEFT)
    with pytest.raises(AssertionError):
        assert_near(wrong, BOTTOM_RIGHT)


# Left padding reaches the normaliser.
# https://github.com/fla-org/flash-linear-attention/issues/1263
PADDED = (
    rows([-1.5, 0.5], [-1.25, -1.5], [2.0, 0.25], [-2.0, 1.75]),
    rows([0.25, 0.25], [-1.0, 0.75], [1.25, -2.0], [1.75, 0.75]),
    rows([0.5, -1.5], [-1.75, -2.0], [-1.5, -1.0], [1.75, -1.0]),
)
PADDED_OUTPUTS = rows(
    [0.5, -1.5],
    [-0.48482026127925465, -1.7188489469509454],
    [-0.8685281824911392, -1.3831387042111332],
    [0.09437996223955514, -1.4651416559737318],
)
ONLY_VALUES_MASKED = rows(
    [0.02, -0.06],
    [-0.03344683554995061, -0.1185801474389289],
    [-0.09426465585950158, -0.1501172864471207],
    [0.013405577767070805, -0.20810636010933986],
)


def with_pads(x: Tensor, pad: float) -> Tensor:
    return torch.cat([torch.full_like(x[:, :, :3], pad), x], dim=2)


@every_type
@pytest.mark.parametrize("pad", [9.0, -1e6, math.nan, math.inf])
@every_kernel
def test_left_padding_reaches_neither_the_normaliser_nor_gradients(
    name: str, pad: float, dtype: torch.dtype
) -> None:
    attend = KERNELS[name].attend
    bare = [x.to(dtype).requires_grad_() for x in PADDED]
    alone, _ = attend(*bare)
    q, k, v = (with_pads(x, pad).to(dtype).requires_grad_() for x in PADDED)
    mask = torch.tensor([[False] * 3 + [True] * 4])
    y, _ = attend(q, k, v, mask=mask)
    assert_near(y[:, :, 3:], by_hand(name, *PADDED, lower(4)))
    if name == "elu1":
        assert_near(y[:, :, 3:], PADDED_OUTPUTS)
    pairs = zip(gradients(y, q, k, v), gradients(alone, *bare), strict=True)
    for gradient, want in pairs:
        assert not gradient[:, :, :3].any()
        assert_near(gradient[:, :, 3:], want)


def test_masking_the_values_alone_is_caught() -> None:
    """Planted: padded keys still count in the denominator."""
    q, k, v = (with_pads(x, pad) for x, pad in zip(PADDED, (9, 9, 0), strict=True))
    wrong, _ = KERNELS["elu1"].attend(q, k, v)
    assert_near(wrong[:, :, 3:], ONLY_VALUES_MASKED)
    with pytest.raises(AssertionError):
        assert_near(wrong[:, :, 3:], PADDED_OUTPUTS)
