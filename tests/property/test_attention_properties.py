"""What holds of attention for any rows, whatever form computes it.

Rows lie on a coarse grid, so that ties, zero features and zero denominators are common.
Tolerances are explained in `attention_rows`; all is float64 here.
"""

from collections.abc import Callable, Sequence

import pytest
import torch
from attention_rows import (
    KERNELS,
    MAPS,
    Rows,
    State,
    assert_near,
    assert_state_near,
    state_tensors,
)
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch import Tensor

from infoset.models.attention import (
    denominators,
    empty_rows,
    linear_attention,
    naive,
)

few = settings(max_examples=10, deadline=None, derandomize=True, database=None)
# What is expected to fail need not be made small.
unshrunk = settings(few, phases=[Phase.generate])
every_kernel = pytest.mark.parametrize("name", list(KERNELS))
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


def joined(first: Rows, second: Rows) -> Rows:
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


def stepwise(
    name: str, rows: Rows, *, inclusive: bool, before: State | None = None
) -> tuple[list[Tensor], list[State]]:
    """Return outputs and states of one row after the other."""
    outputs, states = [], []
    for t in range(rows.q.shape[2]):
        row = rows.cut(t, t + 1)
        y, before = KERNELS[name].attend(
            *row.qkv, inclusive=inclusive, initial_state=before, **row.settings
        )
        outputs.append(y)
        states.append(before)
    return outputs, states


@few
@given(data=st.data(), rows=some_rows(), inclusive=st.booleans())
@pytest.mark.parametrize("name", list(MAPS))
def test_all_forms_agree(
    name: str, data: st.DataObject, rows: Rows, *, inclusive: bool
) -> None:
    want, end = KERNELS[name].naive(*rows.qkv, inclusive=inclusive, **rows.settings)
    for size in (None, data.draw(chunk_sizes, label="chunk_size")):
        y, state = linear_attention(
            *rows.qkv,
            feature_map=MAPS[name],
            inclusive=inclusive,
            mask=rows.mask,
            decay=rows.decay,
            chunk_size=size,
        )
        assert_near(y, want)
        assert_state_near(state, end)
    if rows.mask is None and rows.q.shape[2]:
        y = naive.linear_recurrence(
            *rows.qkv, feature_map=MAPS[name], inclusive=inclusive, decay=rows.decay
        )
        assert_near(y, want)


@few
@given(rows=some_rows(longest=20), inclusive=st.booleans())
@every_kernel
def test_step_by_step_is_whole(name: str, rows: Rows, *, inclusive: bool) -> None:
    want, end = KERNELS[name].attend(*rows.qkv, inclusive=inclusive, **rows.settings)
    outputs, states = stepwise(name, rows, inclusive=inclusive)
    if outputs:
        assert_near(torch.cat(outputs, dim=2), want)
        assert_state_near(states[-1], end)


Outputs = Callable[[Rows], Tensor]


def assert_causal(outputs: Outputs, rows: Rows, others: Sequence[Rows]) -> None:
    """Later rows, of whatever size, leave the outputs of `rows` as they are."""
    length = rows.q.shape[2]
    want = outputs(rows)
    for later in others:
        large = Rows(
            *(later.q * 1e3, later.k * 10, later.v * 1e6), later.mask, later.decay
        )
        for more in (later, large):
            assert_near(outputs(joined(rows, more))[:, :, :length], want)


@st.composite
def rows_and_later_ones(
    draw: st.DrawFn, *, longest: int = 40
) -> tuple[Rows, list[Rows]]:
    rows = draw(some_rows(min_length=1, longest=longest))
    later = some_rows(like=rows, min_length=1, longest=longest)
    return rows, [draw(later) for _ in range(2)]


@few
@given(drawn=rows_and_later_ones(), inclusive=st.booleans(), size=chunk_sizes)
@every_kernel
def test_later_rows_do_not_reach_earlier_outputs(
    name: str, drawn: tuple[Rows, list[Rows]], size: int | None, *, inclusive: bool
) -> None:
    own = {} if name == "softmax" else {"chunk_size": size}

    def outputs(rows: Rows) -> Tensor:
        y, _ = KERNELS[name].attend(
            *rows.qkv, inclusive=inclusive, **rows.settings, **own
        )
        return y

    assert_causal(outputs, *drawn)


@few
@given(drawn=rows_and_later_ones(longest=8), inclusive=st.booleans())
@every_kernel
def test_step_by_step_later_rows_change_no_bit_of_earlier_ones(
    name: str, drawn: tuple[Rows, list[Rows]], *, inclusive: bool
) -> None:
    rows, others = drawn
    want, _ = stepwise(name, rows, inclusive=inclusive)
    for later in others:
        got, _ = stepwise(name, joined(rows, later), inclusive=inclusive)
        for x, expected in zip(got, want, strict=False):
            assert torch.equal(x, expected)


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


@few
@given(rows=some_rows(), inclusive=st.booleans(), size=chunk_sizes)
@every_kernel
def test_values_of_one_give_one_wherever_there_is_weight(
    name: str, rows: Rows, size: int | None, *, inclusive: bool
) -> None:
    mask = rows.shown[:, 0, :, 0].expand(len(rows.q), -1)
    zero = empty_rows(mask, inclusive=inclusive)[:, None].expand(rows.q.shape[:3])
    own: dict[str, int | None] = {}
    if name != "softmax":
        own = {"chunk_size": size}
        sums = denominators(
            rows.q,
            rows.k,
            feature_map=MAPS[name],
            inclusive=inclusive,
            mask=rows.mask,
            decay=rows.decay,
        )
        zero = sums == 0
    y, _ = KERNELS[name].attend(
        *(rows.q, rows.k, torch.ones_like(rows.v)),
        inclusive=inclusive,
        **rows.settings,
        **own,
    )
    assert_near(y, (~zero)[..., None].double().expand_as(y))


@few
@given(data=st.data(), rows=some_rows(), inclusive=st.booleans())
@every_kernel
def test_permuting_batch_rows_permutes_outputs_and_states(
    name: str, data: st.DataObject, rows: Rows, *, inclusive: bool
) -> None:
    order = torch.tensor(data.draw(st.permutations(range(len(rows.q)))))
    attend, moved = KERNELS[name].attend, rows.map(lambda x: x[order])
    want, end = attend(*rows.qkv, inclusive=inclusive, **rows.settings)
    y, state = attend(*moved.qkv, inclusive=inclusive, **moved.settings)
    assert_near(y, want[order])
    assert torch.equal(state.count, end.count[order])
    for key, x in state_tensors(state).items():
        assert_near(x, state_tensors(end)[key][order], name=key)


@few
@given(drawn=rows_and_later_ones(longest=8), inclusive=st.booleans())
@every_kernel
def test_forks_do_not_know_of_each_other(
    name: str, drawn: tuple[Rows, list[Rows]], *, inclusive: bool
) -> None:
    rows, (first, second) = drawn
    attend = KERNELS[name].attend
    _, state = attend(*rows.qkv, inclusive=inclusive, **rows.settings)

    def outputs(fork: Rows) -> Tensor:
        y, _ = attend(
            *fork.qkv, inclusive=inclusive, initial_state=state, **fork.settings
        )
        return y

    alone = outputs(first)
    for fork in (first, second):
        steps, _ = stepwise(name, fork, inclusive=inclusive, before=state)
        assert_near(torch.cat(steps, dim=2), outputs(fork))
        whole = joined(rows, fork)
        want, _ = attend(*whole.qkv, inclusive=inclusive, **whole.settings)
        assert_near(outputs(fork), want[:, :, rows.q.shape[2] :])
    assert torch.equal(outputs(first), alone)
