"""What callers of the attention core may rely on: hidden rows, number types, layouts.

Tolerances are explained in `attention_rows`.
"""

import math

import pytest
import torch
from attention_rows import (
    KERNELS,
    TOLERANCE,
    Rows,
    assert_near,
    differentiate,
    make_rows,
    state_tensors,
)
from torch import Tensor

from infoset.models.attention import (
    LinearState,
    denominators,
    empty_rows,
    linear_attention,
)

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
either_boundary = pytest.mark.parametrize("inclusive", [True, False])
with_and_without_forgetting = pytest.mark.parametrize("forget", [False, True])


def one_head(*rows: list[float]) -> Tensor:
    return torch.tensor([[list(rows)]], dtype=torch.float64)


def with_garbage(rows: Rows, garbage: float) -> Rows:
    q, k, v = (torch.where(rows.shown, x, garbage) for x in rows.qkv)
    return Rows(q, k, v, rows.mask, rows.decay)


@with_and_without_forgetting
@either_boundary
@pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)
@every_kernel
def test_rows_that_see_nothing_are_zeros_with_finite_gradients(
    name: str, dtype: torch.dtype, *, inclusive: bool, forget: bool
) -> None:
    rows = make_rows(20, padding="mixed", forget=forget).to(dtype)
    got = differentiate(KERNELS[name].attend, rows, inclusive=inclusive)
    assert rows.mask is not None
    empty = empty_rows(rows.mask, inclusive=inclusive)
    assert empty[-1].all()
    assert not empty[0].all()
    assert not torch.where(empty[:, None, :, None], got["y"], 0).any()
    for key, x in got.items():
        assert x.isfinite().all(), key


@either_boundary
@every_kernel
def test_without_a_mask_only_the_first_strict_row_sees_nothing(
    name: str, *, inclusive: bool
) -> None:
    for length in (1, 40):
        rows = make_rows(length)
        got = differentiate(KERNELS[name].attend, rows, inclusive=inclusive)
        if not inclusive:
            assert not got["y"][:, :, 0].any()
        assert all(x.isfinite().all() for x in got.values())


@with_and_without_forgetting
@every_kernel
def test_what_has_nothing_to_read_is_a_part_of_the_graph(
    name: str, *, forget: bool
) -> None:
    """So that a loss of no rows, or of a first strict one, has gradients: zeros."""
    for length, inclusive in ((0, True), (0, False), (1, False)):
        rows = make_rows(length, forget=forget)
        leaves = [x.requires_grad_() for x in rows.qkv]
        y, _ = KERNELS[name].attend(*leaves, inclusive=inclusive, decay=rows.decay)
        assert y.shape == rows.v.shape
        gradients = torch.autograd.grad(
            y.sum(), leaves, allow_unused=True, materialize_grads=True
        )
        assert not any(x.any() for x in gradients)


@with_and_without_forgetting
@pytest.mark.parametrize("padding", ["left", "right", "middle", "mixed"])
@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf, 1e30])
@every_kernel
def test_whatever_hidden_rows_hold_changes_nothing(
    name: str, garbage: float, padding: str, *, forget: bool
) -> None:
    rows = make_rows(20, padding=padding, forget=forget)
    attend, shown = KERNELS[name].attend, rows.shown
    want = differentiate(attend, with_garbage(rows, 0.0), select=shown)
    got = differentiate(attend, with_garbage(rows, garbage), select=shown)
    for key, x in got.items():
        # Of outputs, those of visible rows: a hidden query may be read or not.
        seen = shown.any(1) if x.ndim == 3 else shown
        if key == "y":
            assert torch.equal(torch.where(seen, x, 0), torch.where(seen, want[key], 0))
        else:
            assert torch.equal(x, want[key]), key
    for key in ("dq", "dk", "dv"):
        assert not torch.where(shown, 0, got[key]).any(), key


@with_and_without_forgetting
@pytest.mark.parametrize("components", [1, 4])
@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf])
@every_kernel
def test_a_hidden_query_that_is_not_finite_gives_zeros(
    name: str, garbage: float, components: int, *, forget: bool
) -> None:
    rows = make_rows(20, padding="right", forget=forget)
    broken = with_garbage(rows, garbage)
    rows.q[..., :components] = broken.q[..., :components]
    got = differentiate(KERNELS[name].attend, rows)
    assert not torch.where(rows.shown, 0, got["y"]).any()
    assert all(x.isfinite().all() for x in got.values())


@pytest.mark.parametrize("garbage", [1e30, -1e30])
@every_kernel
def test_a_hidden_query_whose_features_overflow_reaches_no_gradient(
    name: str, garbage: float
) -> None:
    """Finite in single precision, while its square is not."""
    rows = with_garbage(make_rows(20, padding="left"), garbage).to(torch.float32)
    got = differentiate(KERNELS[name].attend, rows, select=rows.shown)
    for key in ("dq", "dk", "dv"):
        assert got[key].isfinite().all(), key


@every_kernel
def test_a_visible_number_that_is_not_finite_shows_in_the_output(name: str) -> None:
    rows = make_rows(20)
    rows.v[0, 1, 7] = math.nan
    y, _ = KERNELS[name].attend(*rows.qkv)
    assert y[0, 1, 7:].isnan().all()
    assert y[1].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@every_kernel
def test_half_inputs_keep_sums_in_single_precision(
    name: str, dtype: torch.dtype
) -> None:
    rows = make_rows(600, forget=True).to(dtype)
    y, state = KERNELS[name].attend(*rows.qkv, decay=rows.decay)
    assert y.dtype == dtype
    if isinstance(state, LinearState):
        assert state.S.dtype == state.z.dtype == torch.float32
        # Ages are sums too: those of softmax are kept in double precision.
    else:
        assert state_tensors(state)["cumulative_decay"].dtype == torch.float64
    # Of the same rounded inputs. Sums in half precision would be off by a quarter:
    # they stop growing at 256 or 2048 rows.
    want, _ = KERNELS[name].naive(*rows.qkv, decay=rows.decay)
    assert_near(y, want)


@with_and_without_forgetting
@every_kernel
def test_autocast_keeps_sums_in_single_precision(name: str, *, forget: bool) -> None:
    rows = make_rows(100, forget=forget).to(torch.float32)
    kernel = KERNELS[name]
    outside, want = kernel.attend(*rows.qkv, decay=rows.decay)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y, state = kernel.attend(*rows.qkv, decay=rows.decay)
        absorbed = kernel.absorb(rows.k, rows.v, decay=rows.decay)
    for got in (state, absorbed):
        for key, x in state_tensors(got).items():
            assert x.dtype == state_tensors(want)[key].dtype
            assert_near(x, state_tensors(want)[key], name=key)
    # A plain softmax has no sums of its own; torch may compute it in half precision.
    plain = name == "softmax" and not forget
    assert_near(y, outside, dtype=torch.bfloat16 if plain else torch.float32)


@every_kernel
def test_memory_layout_does_not_matter(name: str) -> None:
    """As from [B, T, H, X] projections, with keys shared by heads and decay by width."""
    rows = make_rows(70, padding="left", forget=True, batch=3)
    assert rows.decay is not None
    shared = Rows(
        rows.q,
        rows.k[:, :1].expand_as(rows.k),
        rows.v[:1].expand_as(rows.v),
        rows.mask,
        rows.decay[:, :1, :1].expand_as(rows.decay),
    )
    want = differentiate(KERNELS[name].attend, shared.map(Tensor.contiguous))
    turned = shared.q.transpose(1, 2).contiguous().transpose(1, 2)
    assert not turned.is_contiguous()
    y, state = KERNELS[name].attend(turned, shared.k, shared.v, **shared.settings)
    assert_near(y, want["y"])
    for key, x in state_tensors(state).items():
        if key in want:
            assert_near(x, want[key], name=key)
    base = [
        turned.requires_grad_(),
        rows.k[:, :1].clone().requires_grad_(),
        rows.v[:1].clone().requires_grad_(),
    ]
    y, _ = KERNELS[name].attend(
        *(x.expand_as(z) for x, z in zip(base, rows.qkv, strict=True)),
        **shared.settings,
    )
    plain = [x.detach().contiguous().requires_grad_() for x in shared.qkv]
    z, _ = KERNELS[name].attend(*plain, **shared.settings)
    # The gradient that arrives here is an expanded tensor itself.
    got = torch.autograd.grad(y.sum(), base)
    full = torch.autograd.grad(z.sum(), plain)
    sums = (full[0], full[1].sum(1, keepdim=True), full[2].sum(0, keepdim=True))
    for x, expected in zip(got, sums, strict=True):
        assert_near(x, expected)


def test_empty_rows_counts_what_has_nothing_to_read() -> None:
    mask = torch.tensor([[False, False, True, False, True], [False] * 5])
    assert empty_rows(mask).sum(-1).tolist() == [2, 5]
    assert empty_rows(mask, inclusive=False).sum(-1).tolist() == [3, 5]
    rows = make_rows(2)
    for kernel in KERNELS.values():
        hidden = torch.tensor([[True, False], [False, False]])
        state = kernel.absorb(rows.k, rows.v, mask=hidden)
        assert empty_rows(mask, initial_state=state).sum(-1).tolist() == [0, 5]


def test_denominators_are_zero_for_queries_that_share_no_feature() -> None:
    q = one_head([1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0])
    k = one_head([1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0])

    def count(**settings: object) -> list[bool]:
        sums = denominators(q, k, feature_map="relu", **settings)  # type: ignore[arg-type] # a mixed dict
        zero: list[bool] = (sums == 0).flatten().tolist()
        return zero

    assert count() == [False, True, True, False]
    assert count(inclusive=False) == [True, True, True, False]
    mask = torch.tensor([[False, True, False, True]])
    assert count(mask=mask) == [True, True, True, False]
    before = KERNELS["relu"].absorb(one_head([0.0, 2.0]), one_head([5.0, 5.0, 5.0]))
    assert count(initial_state=before) == [False, False, True, False]
    v = one_head([1.0], [1.0], [1.0], [1.0])
    y, _ = linear_attention(q, k, v, feature_map="relu")
    assert (y == 0).flatten().tolist() == count()
    assert (denominators(q, k, feature_map="elu1") > 0).all()
