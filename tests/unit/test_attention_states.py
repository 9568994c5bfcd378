"""What attention remembers: values that can be forked, saved, restored and continued.

Tolerances are explained in `attention_rows`.
"""

import dataclasses
import io

import pytest
import torch
from attention_rows import (
    KERNELS,
    assert_near,
    assert_state_near,
    make_rows,
    state_tensors,
)

from infoset.models.attention import LinearState

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
either_boundary = pytest.mark.parametrize("inclusive", [True, False])
any_padding = pytest.mark.parametrize("padding", ["none", "left", "middle", "mixed"])
with_and_without_forgetting = pytest.mark.parametrize("forget", [False, True])


@with_and_without_forgetting
@either_boundary
@any_padding
@pytest.mark.parametrize("stop", [0, 1, 17, 64, 69, 70])
@every_kernel
def test_split_and_resumed_is_whole(
    name: str, stop: int, padding: str, *, inclusive: bool, forget: bool
) -> None:
    attend, rows = KERNELS[name].attend, make_rows(70, padding=padding, forget=forget)
    want, end = attend(*rows.qkv, inclusive=inclusive, **rows.settings)
    first, second = rows.cut(0, stop), rows.cut(stop, None)
    y, middle = attend(*first.qkv, inclusive=inclusive, **first.settings)
    z, state = attend(
        *second.qkv, inclusive=inclusive, initial_state=middle, **second.settings
    )
    assert_near(torch.cat([y, z], dim=2), want)
    assert_state_near(state, end)


@every_kernel
def test_settings_may_differ_between_the_parts(name: str) -> None:
    """A mask or forgetting that only one part has is as good as ones or zeros."""
    attend, rows = KERNELS[name].attend, make_rows(30, padding="middle", forget=True)
    first, second = rows.cut(0, 12), rows.cut(12, None)
    assert first.mask is not None
    assert first.decay is not None
    _, plain = attend(*first.qkv)
    _, full = attend(
        *first.qkv,
        mask=torch.ones_like(first.mask),
        decay=torch.zeros_like(first.decay),
    )
    y, _ = attend(*second.qkv, initial_state=plain, **second.settings)
    want, _ = attend(*second.qkv, initial_state=full, **second.settings)
    assert_near(y, want)
    _, middle = attend(*first.qkv, **first.settings)
    assert second.mask is not None
    assert second.decay is not None
    y, _ = attend(*second.qkv, initial_state=middle)
    want, _ = attend(
        *second.qkv,
        initial_state=middle,
        mask=torch.ones_like(second.mask),
        decay=torch.zeros_like(second.decay),
    )
    assert_near(y, want)


@with_and_without_forgetting
@any_padding
@pytest.mark.parametrize("length", [0, 1, 70])
@every_kernel
def test_absorbing_gives_the_final_state(
    name: str, length: int, padding: str, *, forget: bool
) -> None:
    kernel, rows = KERNELS[name], make_rows(length, padding=padding, forget=forget)
    past = make_rows(5, forget=forget, seed=1)
    before = kernel.absorb(past.k, past.v, decay=past.decay)
    for state in (None, before):
        _, want = kernel.attend(*rows.qkv, initial_state=state, **rows.settings)
        got = kernel.absorb(rows.k, rows.v, initial_state=state, **rows.settings)
        assert_state_near(got, want)


@with_and_without_forgetting
@any_padding
@every_kernel
def test_reading_gives_what_the_last_row_reads_and_changes_nothing(
    name: str, padding: str, *, forget: bool
) -> None:
    kernel, rows = KERNELS[name], make_rows(70, padding=padding, forget=forget)
    y, state = kernel.attend(*rows.qkv, **rows.settings)
    before = state.state_dict()
    queries = torch.cat([rows.q[:, :, :4], rows.q[:, :, -1:]], dim=2)
    got = kernel.read(queries, state)
    assert_near(got[:, :, -1:], y[:, :, -1:])
    for i in range(5):
        assert_near(kernel.read(queries[:, :, i : i + 1], state), got[:, :, i : i + 1])
    after = state.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[key], before[key]) for key in before)


@every_kernel
def test_reading_what_holds_no_row_gives_zeros(name: str) -> None:
    kernel, rows = KERNELS[name], make_rows(3)
    hidden = torch.zeros(2, 3, dtype=torch.bool)
    for state in (
        kernel.absorb(rows.k[:, :, :0], rows.v[:, :, :0]),
        kernel.absorb(rows.k, rows.v, mask=hidden),
    ):
        assert state.count.tolist() == [0, 0]
        y = kernel.read(rows.q, state)
        assert y.shape == rows.v.shape
        assert not y.any()
        assert kernel.read(rows.q[:, :, :0], state).shape == (2, 2, 0, 3)


@with_and_without_forgetting
@pytest.mark.parametrize("length", [1, 20])
@every_kernel
def test_a_state_is_never_changed_and_forks_are_apart(
    name: str, length: int, *, forget: bool
) -> None:
    kernel, past = KERNELS[name], make_rows(10, forget=forget)
    _, state = kernel.attend(*past.qkv, **past.settings)
    before = state.state_dict()
    ends = []
    for seed in (1, 2, 1):
        rows = make_rows(length, forget=forget, seed=seed)
        ends.append(kernel.attend(*rows.qkv, initial_state=state, **rows.settings))
        kernel.absorb(rows.k, rows.v, initial_state=state, **rows.settings)
        after = state.state_dict()
        assert all(torch.equal(after[key], before[key]) for key in before)
    assert torch.equal(ends[0][0], ends[2][0])
    assert not torch.equal(ends[0][0], ends[1][0])
    first, last = (state_tensors(end[1]) for end in (ends[0], ends[2]))
    assert all(torch.equal(first[key], last[key]) for key in first)
    field = next(iter(before))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(state, field, before[field])


@pytest.mark.parametrize("padding", ["none", "left"])
@with_and_without_forgetting
@every_kernel
def test_a_saved_state_continues_where_it_was(
    name: str, padding: str, *, forget: bool
) -> None:
    kernel, rows = KERNELS[name], make_rows(20, padding=padding, forget=forget)
    v = rows.v.clone().requires_grad_()
    _, state = kernel.attend(rows.q, rows.k, v, **rows.settings)
    file = io.BytesIO()
    torch.save(state.state_dict(), file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    assert not any(x.requires_grad for x in saved.values())
    restored = type(state).from_state_dict(saved)
    assert restored.num_bytes == state.num_bytes
    assert_state_near(restored, state)
    more = make_rows(5, forget=forget, seed=1)
    y, _ = kernel.attend(*more.qkv, initial_state=restored, decay=more.decay)
    want, _ = kernel.attend(*more.qkv, initial_state=state, decay=more.decay)
    assert torch.equal(y, want)
    # The dictionary holds copies: writing to it does not reach the state.
    count = state.count.clone()
    for x in state.state_dict().values():
        x.zero_()
    assert torch.equal(state.count, count)
    assert all(x.any() for x in state_tensors(state).values())


@every_kernel
def test_a_linear_state_stays_as_small_as_it_was_and_a_cache_grows(name: str) -> None:
    rows, lengths = make_rows(40), (1, 20, 40)
    parts = [rows.cut(0, length) for length in lengths]
    states = [KERNELS[name].absorb(part.k, part.v) for part in parts]
    assert [state.count.tolist() for state in states] == [[n, n] for n in lengths]
    sizes = [state.num_bytes for state in states]
    if isinstance(states[0], LinearState):
        assert sizes[0] == sizes[1] == sizes[2]
    else:
        # Keys of 4 and values of 3 numbers of 8 bytes, of 2 heads in 2 batch rows.
        assert sizes == [length * 4 * 7 * 8 for length in lengths]


@with_and_without_forgetting
@any_padding
@every_kernel
def test_a_batch_of_one_is_the_same_as_one_of_many(
    name: str, padding: str, *, forget: bool
) -> None:
    attend = KERNELS[name].attend
    rows = make_rows(70, padding=padding, forget=forget, batch=5, heads=3)
    y, state = attend(*rows.qkv, **rows.settings)
    for i in range(5):
        one = rows.map(lambda x, i=i: x[i : i + 1])  # type: ignore[misc] # a default
        z, end = attend(*one.qkv, **one.settings)
        assert_near(z, y[i : i + 1])
        assert end.count.tolist() == state.count[i : i + 1].tolist()
        for key, x in state_tensors(end).items():
            assert_near(x, state_tensors(state)[key][i : i + 1], name=key)


@every_kernel
def test_a_state_moves_between_number_types(name: str) -> None:
    rows = make_rows(10, padding="left", forget=True)
    _, state = KERNELS[name].attend(*rows.qkv, **rows.settings)
    single = state.to(torch.float32, device=torch.device("cpu"))
    for key, x in state_tensors(single).items():
        # What sums ages stays in double precision.
        expected = torch.float64 if key == "cumulative_decay" else torch.float32
        assert x.dtype == expected
    assert torch.equal(single.count, state.count)
    assert_state_near(single, state)
