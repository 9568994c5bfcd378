"""Both attentions against their definitions, all pairs of rows in float64.

Values, states and gradients (of q, k, v, decay and the state before). Tolerances are
explained in `attention_rows`. The full product of the choices has thousands of cases;
those below hold every pair of choices, which a test of their own checks.
"""

import itertools
import random
from functools import partial
from typing import NamedTuple

import pytest
import torch
from attention_maps import MAPS
from attention_rows import (
    KERNELS,
    PADDINGS,
    State,
    assert_near,
    differentiate,
    make_rows,
    replaced,
    state_tensors,
)

from infoset.models.attention import forms, pieces

LENGTHS = (0, 1, 63, 64, 65)
CHUNK_SIZES = (None, 1, 7, 16, 64, 100)
DTYPES = (torch.float64, torch.float32)
# Maps whose features are tensors of their own: long sequences go piece by piece.
WRITTEN_OUT, PIECE = {"both_signs", "favor", "hedgehog"}, 16


class Case(NamedTuple):
    length: int
    inclusive: bool
    padding: str
    forget: bool
    kernel: str
    chunk_size: int | None
    resumed: bool

    def __str__(self) -> str:
        return "-".join(f"{name}={x}" for name, x in self._asdict().items())


def covering_cases() -> list[Case]:
    """Every combination of the first four choices, with every pair of two others."""
    draw = random.Random(14)  # noqa: S311 - no secret
    firsts = list(itertools.product(LENGTHS, (True, False), PADDINGS, (True, False)))
    draw.shuffle(firsts)
    pairs = itertools.cycle(itertools.product(MAPS, CHUNK_SIZES))
    return [
        Case(*first, kernel=kernel, chunk_size=size, resumed=draw.random() < 0.5)
        for first, (kernel, size) in zip(firsts, pairs, strict=False)
    ]


CASES = covering_cases()
PLAIN = Case(
    length=1000,
    inclusive=True,
    padding="none",
    forget=False,
    kernel="elu1",
    chunk_size=None,
    resumed=False,
)
FULL = PLAIN._replace(padding="mixed", forget=True, resumed=True)
LONG = [
    PLAIN,
    PLAIN._replace(kernel="softmax", inclusive=False),
    PLAIN._replace(kernel="both_signs", inclusive=False, padding="left", chunk_size=64),
    FULL._replace(kernel="squared_relu"),
    FULL._replace(kernel="relu", inclusive=False, padding="middle", chunk_size=100),
    FULL._replace(kernel="softmax", padding="right"),
    FULL._replace(kernel="favor", padding="left"),
    PLAIN._replace(kernel="hedgehog", inclusive=False),
]


def earlier_state(case: Case) -> State | None:
    """Return a state after nine earlier rows, as the definitions give it."""
    if not case.resumed:
        return None
    past = make_rows(9, padding="left", forget=case.forget, seed=1)
    _, state = KERNELS[case.kernel].naive(*past.qkv, **past.settings)
    return state


def check(case: Case) -> None:
    """Compare a case in both number types."""
    kernel, before = KERNELS[case.kernel], earlier_state(case)
    rows = make_rows(case.length, padding=case.padding, forget=case.forget)
    attend = kernel.attend
    if case.kernel != "softmax":
        attend = partial(attend, chunk_size=case.chunk_size)
    if before is not None:
        # Numbers that float32 holds, so that the oracle starts from the same ones.
        tensors = state_tensors(before)
        before = replaced(before, {n: x.float().double() for n, x in tensors.items()})
    want = differentiate(kernel.naive, rows, before=before, inclusive=case.inclusive)
    for dtype in DTYPES:
        old = before
        if before is not None:
            clock = state_tensors(before).get("cumulative_decay")
            tensors = state_tensors(before.to(dtype))
            old = replaced(
                before,
                tensors if clock is None else {**tensors, "cumulative_decay": clock},
            )
        got = differentiate(
            *(attend, rows.to(dtype)),
            before=old,
            inclusive=case.inclusive,
        )
        assert got.keys() == want.keys()
        for name, x in got.items():
            assert_near(x, want[name], dtype=dtype, name=f"{dtype} {name}")
        assert got["y"].dtype == dtype


@pytest.mark.parametrize("case", CASES, ids=str)
def test_linear_attention_is_its_definition(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "case", [c._replace(kernel="softmax", chunk_size=None) for c in CASES], ids=str
)
def test_softmax_attention_is_its_definition(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", LONG, ids=str)
def test_long_sequences_are_their_definition(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.kernel in WRITTEN_OUT and c.length > PIECE],
    ids=str,
)
def test_piece_by_piece_is_the_definition(case: Case, monkeypatch) -> None:
    lengths = []

    def watched(q, k, v, call, *, chunk_size):
        lengths.append(q.shape[2])
        return attend(q, k, v, call, chunk_size=chunk_size)

    attend = forms.attend
    monkeypatch.setattr(forms, "attend", watched)
    monkeypatch.setattr(pieces, "_NUMBERS", 0)
    monkeypatch.setattr(pieces, "_FEWEST_ROWS", PIECE)
    check(case)
    assert max(lengths) == PIECE
    assert sum(lengths) == case.length * len(DTYPES)


def test_the_cases_hold_every_pair_of_choices() -> None:
    choices = {
        "length": LENGTHS,
        "inclusive": (True, False),
        "padding": PADDINGS,
        "forget": (True, False),
        "kernel": tuple(MAPS),
        "chunk_size": CHUNK_SIZES,
        "resumed": (True, False),
    }
    for (a, firsts), (b, seconds) in itertools.combinations(choices.items(), 2):
        present = {(getattr(case, a), getattr(case, b)) for case in CASES}
        assert present >= set(itertools.product(firsts, seconds)), (a, b)


def test_an_error_in_the_last_digits_would_be_seen() -> None:
    rows = make_rows(65)
    y = KERNELS["elu1"].naive(*rows.qkv)[0]
    with pytest.raises(AssertionError):
        assert_near(y * (1 + 1e-10), y)
    with pytest.raises(AssertionError):
        assert_near((y * (1 + 1e-4)).float(), y)
