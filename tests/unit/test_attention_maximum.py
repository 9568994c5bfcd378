"""The running maximum that keeps exponential features finite, and what it leaves alone.

Tolerances are explained in `attention_rows`.
"""

import io
import math
from collections.abc import Callable

import pytest
import torch
from attention_maps import Exponents, favor_of
from attention_rows import (
    KERNELS,
    Kernel,
    Rows,
    State,
    assert_near,
    assert_state_near,
    differentiate,
    linear_kernel,
    make_rows,
)
from torch import Tensor
from torch.testing import assert_close

from infoset.models.attention import LinearState

BOTH_TYPES = (torch.float64, torch.float32)
FAVOR = KERNELS["favor"]
PLAIN = linear_kernel(Exponents())
either_boundary = pytest.mark.parametrize("inclusive", [True, False])
any_padding = pytest.mark.parametrize("padding", ["none", "left", "middle", "mixed"])
with_and_without_forgetting = pytest.mark.parametrize("forget", [False, True])

# What a row of keys is multiplied by, over 40 rows.
SIZES: dict[str, Callable[[Tensor], Tensor]] = {
    "growing": lambda place: 10 ** (6 * place / 39 - 3),
    "falling": lambda place: 10 ** (3 - 6 * place / 39),
    "all huge": lambda place: torch.full_like(place, 1e3),
    "all tiny": lambda place: torch.full_like(place, 1e-3),
    "huge and tiny in turn": lambda place: 10 ** (3 - 6 * (place % 2)),
}


def sized(size: str, *, forget: bool) -> Rows:
    """Rows whose keys have norms from a thousandth to a thousand."""
    rows = make_rows(40, forget=forget)
    direction = rows.k + 0.1
    unit = direction / direction.norm(dim=-1, keepdim=True)
    factor = SIZES[size](torch.arange(40, dtype=torch.float64))
    return Rows(rows.q, unit * factor[:, None], rows.v, rows.mask, rows.decay)


@with_and_without_forgetting
@either_boundary
@pytest.mark.parametrize("size", SIZES)
def test_huge_and_tiny_keys_are_the_definition(
    size: str, *, inclusive: bool, forget: bool
) -> None:
    rows = sized(size, forget=forget)
    want = differentiate(FAVOR.naive, rows, inclusive=inclusive)
    # The exponents go down to -10^5 and are exact to half a unit in their last place,
    # and so are the weights, relatively: 11 digits. Seen: 1.4e-11.
    lowest = favor_of(4).exponents(rows.k).min()
    assert size == "all tiny" or lowest < -1e5
    rounding = max(1e-12, -lowest.item() * torch.finfo(torch.float64).eps)
    got = differentiate(FAVOR.attend, rows, inclusive=inclusive)
    for name, x in got.items():
        atol = rounding * max(1.0, want[name].double().abs().max().item())
        assert_close(x.double(), want[name].double(), rtol=0, atol=atol)
    # In single precision that leaves two digits.
    single = differentiate(FAVOR.attend, rows.to(torch.float32), inclusive=inclusive)
    assert all(x.isfinite().all() for x in single.values())


# Exponents of 40 rows in multiples of an eighth, exact in single precision too.
STEPS = {"growing": 25.0, "falling": -25.0, "growing slowly": 0.875, "still": 0.0}


@either_boundary
@pytest.mark.parametrize("start", [0.0, 1000.0, -1000.0])
@pytest.mark.parametrize("step", STEPS)
def test_exponents_far_beyond_single_precision_are_the_definition(
    step: str, start: float, *, inclusive: bool
) -> None:
    """From exp(-1000) to exp(2000), where float32 ends at exp(88)."""
    rows = make_rows(40, padding="middle", forget=True)
    level = start + STEPS[step] * torch.arange(40, dtype=torch.float64)
    rows = Rows(rows.q + start, rows.k + level[:, None], rows.v, rows.mask, rows.decay)
    want = differentiate(PLAIN.naive, rows, inclusive=inclusive)
    assert all(x.isfinite().all() for x in want.values())
    for dtype in BOTH_TYPES:
        got = differentiate(PLAIN.attend, rows.to(dtype), inclusive=inclusive)
        for name, x in got.items():
            assert_near(x, want[name], dtype=dtype, name=f"{dtype} {name}")


@either_boundary
@pytest.mark.parametrize("gap", [20.0, 75.0])
@pytest.mark.parametrize("growth", [0.0, 1.0, 3.0])
def test_queries_that_share_little_with_any_key_are_the_definition(
    growth: float, gap: float, *, inclusive: bool
) -> None:
    """All weights are near exp(-gap), and the maximum grows within a chunk."""
    rows = make_rows(40)
    level = growth * torch.arange(40, dtype=torch.float64)
    apart = torch.tensor([0.0, 0.0, -gap, -gap])
    q, k = rows.q + apart.flip(0), rows.k + level[:, None] + apart
    distant = Rows(q, k, rows.v)
    want = differentiate(PLAIN.naive, distant, inclusive=inclusive)
    for dtype in BOTH_TYPES:
        got = differentiate(PLAIN.attend, distant.to(dtype), inclusive=inclusive)
        for name, x in got.items():
            assert_near(x, want[name], dtype=dtype, name=f"{dtype} {name}")


@either_boundary
@pytest.mark.parametrize("decay", [0.0, 1.0, 3.0])
def test_small_features_and_forgetting_are_the_definition(
    decay: float, *, inclusive: bool
) -> None:
    """The same without a maximum: elu1 weighs rows with exp(-75), and they fade."""
    rows = make_rows(40)
    fading = torch.full((2, 2, 40), decay, dtype=torch.float64)
    small = Rows(rows.q - 37.5, rows.k - 37.5, rows.v, decay=fading)
    kernel = KERNELS["elu1"]
    want = differentiate(kernel.naive, small, inclusive=inclusive)
    for dtype in BOTH_TYPES:
        got = differentiate(kernel.attend, small.to(dtype), inclusive=inclusive)
        assert_near(got["y"], want["y"], name=f"{dtype} y")


def running_maximum(rows: Rows) -> Tensor:
    """Return the largest exponent of visible rows up to each row: [B, H, T]."""
    top = favor_of(4).exponents(rows.k).amax(-1)
    if rows.mask is not None:
        top = torch.where(rows.mask[:, None], top, -math.inf)
    return top.cummax(-1).values


def maximum(state: object) -> Tensor:
    assert isinstance(state, LinearState)
    assert state.m is not None
    return state.m


@with_and_without_forgetting
@either_boundary
@any_padding
def test_the_state_keeps_the_largest_exponent_so_far(
    padding: str, *, inclusive: bool, forget: bool
) -> None:
    """Whatever is hidden, forgotten or read first."""
    rows = make_rows(30, padding=padding, forget=forget)
    want = running_maximum(rows)
    state: State | None = None
    _, end = FAVOR.attend(*rows.qkv, inclusive=inclusive, **rows.settings)
    for stop in (1, 2, 3, 17, 30):
        part = rows.cut(0, stop)
        _, after = FAVOR.attend(*part.qkv, inclusive=inclusive, **part.settings)
        # The product behind an exponent may be added up in another order.
        seen = want[:, :, stop - 1]
        got = maximum(after)
        assert torch.equal(got.isneginf(), seen.isneginf())
        assert_near(*(torch.where(seen.isneginf(), 0, x) for x in (got, seen)))
        absorbed = FAVOR.absorb(part.k, part.v, **part.settings)
        assert torch.equal(maximum(absorbed), got)
    for t in range(30):
        row = rows.cut(t, t + 1)
        before = state
        _, state = FAVOR.attend(
            *row.qkv, inclusive=inclusive, initial_state=before, **row.settings
        )
        assert before is None or (maximum(state) >= maximum(before)).all()
    assert state is not None
    assert_state_near(state, end)


@pytest.mark.parametrize("garbage", [1e3, math.nan, math.inf])
def test_hidden_rows_do_not_move_the_maximum(garbage: float) -> None:
    rows = make_rows(20, padding="mixed")
    q, k, v = (torch.where(rows.shown, x, garbage) for x in rows.qkv)
    hidden = Rows(q, k, v, rows.mask)
    for kernel in (FAVOR, PLAIN):
        want, got = (
            maximum(kernel.attend(*x.qkv, mask=x.mask)[1]) for x in (rows, hidden)
        )
        assert torch.equal(got, want)
        assert want[-1].isneginf().all()
        assert want[0].isfinite().all()


@pytest.mark.parametrize("length", [0, 1, 20])
def test_before_any_visible_row_there_is_no_maximum_and_nothing_to_read(
    length: int,
) -> None:
    hidden = make_rows(length, forget=True)
    mask = torch.zeros(2, length, dtype=torch.bool)
    y, state = FAVOR.attend(*hidden.qkv, mask=mask, decay=hidden.decay)
    assert isinstance(state, LinearState)
    assert maximum(state).isneginf().all()
    assert not y.any()
    assert not state.S.any()
    assert not state.z.any()
    rows = make_rows(20, padding="left", forget=True, seed=1)
    got = differentiate(FAVOR.attend, rows, before=state)
    want = differentiate(FAVOR.attend, rows)
    for name, x in want.items():
        assert_near(got[name], x, dtype=torch.float64, name=name)
    assert all(x.isfinite().all() for x in got.values())


def test_maps_without_exponentials_have_no_maximum() -> None:
    rows = make_rows(5)
    for name in ("elu1", "hedgehog"):
        _, state = KERNELS[name].attend(*rows.qkv)
        assert isinstance(state, LinearState)
        assert state.m is None
        assert "m" not in state.state_dict()


@pytest.mark.parametrize("kernel", [FAVOR, PLAIN], ids=["favor", "plain"])
def test_a_saved_maximum_resumes_to_the_last_bit(kernel: Kernel) -> None:
    rows = make_rows(30, padding="left", forget=True)
    first, second = rows.cut(0, 13), rows.cut(13, None)
    _, state = kernel.attend(*first.qkv, **first.settings)
    file = io.BytesIO()
    torch.save(state.state_dict(), file)
    file.seek(0)
    restored = LinearState.from_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(maximum(restored), maximum(state))
    assert not torch.equal(maximum(restored), torch.zeros(2, 2))
    y, end = kernel.attend(*second.qkv, initial_state=restored, **second.settings)
    want, _ = kernel.attend(*second.qkv, initial_state=state, **second.settings)
    assert torch.equal(y, want)
    whole, last = kernel.attend(*rows.qkv, **rows.settings)
    assert_near(y, whole[:, :, 13:])
    assert torch.equal(maximum(end), maximum(last))


def test_a_row_smaller_than_all_before_leaves_the_maximum_as_it_is() -> None:
    """So that a step then adds to S and z as they are."""
    rows = make_rows(6)
    _, state = PLAIN.attend(rows.q, rows.k + 50, rows.v)
    row = rows.cut(0, 1)
    _, after = PLAIN.attend(*row.qkv, initial_state=state)
    assert torch.equal(maximum(after), maximum(state))
    assert isinstance(state, LinearState)
    assert isinstance(after, LinearState)
    added = (row.k[:, :, 0] - maximum(state)[..., None]).exp()
    assert torch.equal(after.z, state.z + added)
