"""The floor of the denominator, in every form, and the denominators themselves.

Tolerances are explained in `attention_rows`.
"""

import itertools
import math
import re
from collections.abc import Callable
from functools import partial

import pytest
import torch
from attention_draws import assert_all_near, in_parts, in_plain_torch
from attention_maps import MAPS
from attention_rows import (
    KERNELS,
    Attention,
    Rows,
    State,
    assert_near,
    differentiate,
    make_rows,
    state_tensors,
    sums_of_weights,
)
from torch import Tensor

from infoset.models.attention import (
    LinearState,
    linear_attention,
    read_denominators,
    read_linear,
)

BOTH_TYPES = (torch.float64, torch.float32)
every_map = pytest.mark.parametrize("name", list(MAPS))
either_boundary = pytest.mark.parametrize("inclusive", [True, False])

# So large that every row is below it: divided by a power of two no digit is lost.
_ABOVE_ALL = 2.0**80


def earlier_state(name: str, *, forget: bool) -> LinearState:
    past = make_rows(9, padding="left", forget=forget, seed=1)
    _, state = KERNELS[name].naive(*past.qkv, **past.settings)
    # Numbers that float32 holds, so that all start from the same ones.
    state = state.to(torch.float32).to(torch.float64)
    assert isinstance(state, LinearState)
    return state


def defined_sums(
    name: str, rows: Rows, *, before: LinearState | None = None, inclusive: bool = True
) -> Tensor:
    """Return the sums of weights [B, H, T] that the definition divides by.

    The definition does not return them; with values of one and every row below the
    floor, an output is the sum of its weights over the floor.
    """
    if before is not None:
        before = LinearState(
            before.z[..., None].double(), before.z.double(), before.count, before.m
        )
    y, _ = KERNELS[name].naive(
        *(rows.q, rows.k, torch.ones_like(rows.v[..., :1])),
        inclusive=inclusive,
        initial_state=before,
        floor=_ABOVE_ALL,
        **rows.settings,
    )
    return y[..., 0] * _ABOVE_ALL


def between_two(sums: Tensor) -> float:
    """Return a floor above about half of the sums, and near none of them."""
    some = sums[sums > 0].unique()
    pairs: list[tuple[float, float]] = list(itertools.pairwise(some.tolist()))
    later = pairs[len(pairs) // 2 :]
    return next((low + high) / 2 for low, high in later if high > 1.001 * low)


FORMS: dict[str, Callable[[Attention], Attention]] = {
    "fused": lambda attend: partial(attend, chunk_size=7),
    "chunked": lambda attend: in_plain_torch(partial(attend, chunk_size=7)),
    "step by step": in_parts,
    "in two parts": lambda attend: in_parts(attend, 11),
}


@pytest.mark.parametrize(("inclusive", "resumed"), [(True, True), (False, False)])
@pytest.mark.parametrize("form", FORMS)
@every_map
def test_rows_above_and_below_the_floor_are_the_definition(
    name: str, form: str, *, inclusive: bool, resumed: bool
) -> None:
    """Values and gradients; with hidden rows where resumed."""
    rows = make_rows(20, padding="middle" if resumed else "none")
    before = earlier_state(name, forget=True) if resumed else None
    sums = defined_sums(name, rows, before=before, inclusive=inclusive)
    floor = between_two(sums)
    assert (sums > floor).any()
    assert ((sums > 0) & (sums < floor)).any()
    want = differentiate(
        KERNELS[name].naive, rows, before=before, inclusive=inclusive, floor=floor
    )
    attend: Attention = FORMS[form](partial(KERNELS[name].attend, floor=floor))
    for dtype in BOTH_TYPES:
        old = None if before is None else before.to(dtype)
        got = differentiate(attend, rows.to(dtype), before=old, inclusive=inclusive)
        assert_all_near(got, want, dtype=dtype)


def faded(name: str, form: str) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return results of a form and of the definition, with forgetting and a floor."""
    rows = make_rows(20, forget=True)
    floor = between_two(defined_sums(name, rows))
    attend: Attention = FORMS[form](partial(KERNELS[name].attend, floor=floor))
    want = differentiate(KERNELS[name].naive, rows, floor=floor)
    return differentiate(attend, rows), want


@pytest.mark.parametrize("form", FORMS)
@every_map
def test_a_floor_under_forgetting_is_the_definition(name: str, form: str) -> None:
    got, want = faded(name, form)
    del got["ddecay"], want["ddecay"]
    assert_all_near(got, want, dtype=torch.float64)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["elu1", "favor"])
def test_decay_has_a_gradient_through_what_the_floor_is_compared_with(
    name: str, form: str
) -> None:
    """Below the floor the level at which a row reads does not cancel."""
    got, want = faded(name, form)
    assert_near(got["ddecay"], want["ddecay"])


@either_boundary
@pytest.mark.parametrize("padding", ["left", "middle", "right"])
@pytest.mark.parametrize("form", ["step by step", "in two parts"])
@pytest.mark.parametrize("name", ["elu1", "favor"])
def test_a_floor_under_forgetting_does_not_care_where_rows_are_split(
    name: str, form: str, padding: str, *, inclusive: bool
) -> None:
    """Hidden rows fade the state: what is below a floor must not depend on the split."""
    rows = make_rows(20, padding=padding, forget=True)
    floor = between_two(defined_sums(name, rows, inclusive=inclusive))
    attend = partial(KERNELS[name].attend, floor=floor, inclusive=inclusive)
    want, _ = attend(*rows.qkv, **rows.settings)
    got, _ = FORMS[form](attend)(*rows.qkv, **rows.settings)
    assert_near(got, want)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_at_the_floor_is_the_definition(form: str) -> None:
    """Sums of products of eighths are exact, so that one of them can be the floor."""
    rows = make_rows(20)
    sums = defined_sums("relu", rows)
    floor = sums[sums > 0].median().item()
    assert (sums == floor).any()
    attend: Attention = FORMS[form](partial(KERNELS["relu"].attend, floor=floor))
    want = differentiate(KERNELS["relu"].naive, rows, floor=floor)
    for dtype in BOTH_TYPES:
        got = differentiate(attend, rows.to(dtype))
        assert_all_near(got, want, dtype=dtype)


@every_map
def test_reading_with_a_floor_is_the_definition(name: str) -> None:
    """To read a state is to attend with hidden rows after it, which add nothing."""
    state, rows = earlier_state(name, forget=True), make_rows(12)
    hidden = Rows(*rows.qkv, torch.zeros(2, 12, dtype=torch.bool))
    sums = defined_sums(name, hidden, before=state)
    floor = between_two(sums)

    def read(
        q: Tensor, _k: Tensor, _v: Tensor, *, initial_state: State, **_: object
    ) -> tuple[Tensor, State]:
        assert isinstance(initial_state, LinearState)
        y = read_linear(q, initial_state, feature_map=MAPS[name], floor=floor)
        return y, initial_state

    want = differentiate(KERNELS[name].naive, hidden, before=state, floor=floor)
    for dtype in BOTH_TYPES:
        got = differentiate(read, hidden.to(dtype), before=state.to(dtype))
        assert_all_near(got, want, dtype=dtype)
        read_sums = read_denominators(
            rows.q.to(dtype), state.to(dtype), feature_map=MAPS[name]
        )
        assert_near(read_sums, sums, dtype=dtype)


@every_map
def test_a_floor_of_zero_is_none(name: str) -> None:
    rows = make_rows(20, padding="mixed", forget=True)
    attend = KERNELS[name].attend
    want = differentiate(attend, rows, inclusive=False)
    got = differentiate(attend, rows, inclusive=False, floor=0.0)
    assert all(torch.equal(x, want[key]) for key, x in got.items())
    _, state = attend(*rows.qkv, **rows.settings)
    read = KERNELS[name].read
    assert torch.equal(read(rows.q, state, floor=0.0), read(rows.q, state))


@every_map
def test_rows_that_see_nothing_are_zeros_under_a_floor_too(name: str) -> None:
    rows = make_rows(20, padding="mixed", forget=True)
    got = differentiate(KERNELS[name].attend, rows, inclusive=False, floor=0.5)
    assert not got["y"][-1].any()
    assert not got["y"][:, :, 0].any()
    assert all(x.isfinite().all() for x in got.values())


@pytest.mark.parametrize("floor", [-1e-6, -math.inf, math.inf, math.nan])
def test_a_floor_that_is_negative_or_not_finite_is_refused(floor: float) -> None:
    rows = make_rows(3)
    message = re.escape(f"floor must be finite and not negative; got {floor}.")
    with pytest.raises(ValueError, match=message):
        linear_attention(*rows.qkv, feature_map="elu1", floor=floor)
    state = earlier_state("elu1", forget=False)
    with pytest.raises(ValueError, match=message):
        read_linear(rows.q, state, feature_map="elu1", floor=floor)


@pytest.mark.parametrize(("inclusive", "resumed"), [(True, True), (False, False)])
@pytest.mark.parametrize("length", [0, 1, 70])
@pytest.mark.parametrize(
    ("padding", "forget"), [("none", False), ("mixed", False), ("left", True)]
)
@every_map
def test_denominators_are_the_sums_of_the_definition(
    name: str,
    padding: str,
    length: int,
    *,
    forget: bool,
    inclusive: bool,
    resumed: bool,
) -> None:
    rows = make_rows(length, padding=padding, forget=forget)
    before = earlier_state(name, forget=forget) if resumed else None
    want = defined_sums(name, rows, before=before, inclusive=inclusive)
    for dtype in BOTH_TYPES:
        typed = rows.to(dtype)
        got = sums_of_weights(
            *(KERNELS[name], typed),
            inclusive=inclusive,
            before=None if before is None else before.to(dtype),
        )
        assert got.dtype == dtype
        assert torch.equal(got == 0, want == 0)
        assert_near(got, want, dtype=dtype)


@every_map
def test_denominators_take_no_part_in_gradients(name: str) -> None:
    rows = make_rows(9, forget=True).map(lambda x: x.requires_grad_())
    state = earlier_state(name, forget=False)
    for x in state_tensors(state).values():
        x.requires_grad_()
    assert not sums_of_weights(KERNELS[name], rows, before=state).requires_grad
    read = read_denominators(rows.q, state, feature_map=MAPS[name])
    assert not read.requires_grad


@every_map
def test_the_rows_that_a_floor_changes_can_be_counted(name: str) -> None:
    rows = make_rows(70, padding="left", forget=True)
    sums = sums_of_weights(KERNELS[name], rows)
    floor = between_two(sums)
    plain, _ = KERNELS[name].attend(*rows.qkv, **rows.settings)
    floored, _ = KERNELS[name].attend(*rows.qkv, floor=floor, **rows.settings)
    changed = ((floored - plain).abs() > 1e-12 * plain.abs()).any(-1)
    below = (sums > 0) & (sums < floor)
    assert torch.equal(below, changed)
    assert 0.2 < below.double().mean() < 0.6
