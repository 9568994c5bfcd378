"""Failures of attention code that its users reported, and what is right instead: sums and their division.

The inputs are small and our own, multiples of a quarter, so that all number types hold
them. The right numbers were computed twice elsewhere, by a library's exact attention
and in plain numpy, in float64, for one kernel; for the other kernels they come from
`by_hand`, the sum over all pairs that may see each other. Each case names its reports.

Tolerances are those of `attention_rows`: 1e-12 in float64 for sums of a few terms.
"""

from functools import partial

import pytest
import torch
from attention_by_hand import by_hand, gradients, lower, rows
from attention_rows import KERNELS, TOLERANCE, assert_near
from torch import Tensor

from infoset.models.attention import feature_map

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
every_type = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=str)


# Lengths that are no multiple of the chunk.
# https://github.com/fla-org/flash-linear-attention/issues/98
# https://github.com/fla-org/flash-linear-attention/issues/1142
# https://github.com/NVIDIA/TransformerEngine/issues/1070
# https://github.com/tile-ai/TileOPs/pull/6
NINE_QUERIES = rows(
    *([-0.25, 1.25], [0.5, -0.75], [1.25, 1.5], [0.25, 0.75], [-1.0, -2.0]),
    *([-1.0, -1.0], [1.25, -0.75], [1.0, -1.75], [-0.75, -1.5]),
)
NINE_KEYS = rows(
    *([-1.25, -1.0], [0.5, 0.0], [-1.5, 0.0], [1.75, -0.75], [-0.5, 0.25]),
    *([1.0, -0.25], [-2.0, 1.0], [-2.0, 0.5], [-1.75, 0.5]),
)
NINE_VALUES = rows(
    *([0.5, -1.0], [-1.25, -1.5], [-2.0, 0.0], [1.5, 0.75], [-1.25, -0.25]),
    *([-0.5, 2.0], [0.25, 0.75], [-0.5, 1.5], [0.0, -0.25]),
)
NINE_OUTPUTS = rows(
    [0.5, -1.0],
    [-0.9324377684553093, -1.409267933844374],
    [-1.2034493356972555, -0.993818549148231],
    [-0.1549365558568071, -0.2968243205121035],
    [-0.036860254984399966, -0.1888292624719828],
    [-0.3367805932380881, 0.25384598794024305],
    [-0.06452526921143593, 0.4175508886725322],
    [-0.028832920332864213, 0.47601206826369874],
    [-0.16025106697264127, 0.40912907562370554],
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("chunk_size", [None, 1, 4, 16])
@every_kernel
def test_lengths_that_are_no_multiple_of_the_chunk(
    name: str, chunk_size: int | None, dtype: torch.dtype
) -> None:
    """Values and gradients are those of the quadratic form; no rows are no error."""
    attend = KERNELS[name].attend
    if name != "softmax":
        attend = partial(attend, chunk_size=chunk_size)
    for length in (0, 1, 3, 4, 5, 8, 9):
        nine = (x[:, :, :length] for x in (NINE_QUERIES, NINE_KEYS, NINE_VALUES))
        q, k, v = (x.clone().requires_grad_() for x in nine)
        want = by_hand(name, q, k, v, lower(length))
        inputs = [x.detach().to(dtype).requires_grad_() for x in (q, k, v)]
        y, state = attend(*inputs)
        assert y.shape == (1, 1, length, 2)
        assert state.count.tolist() == [length]
        assert_near(y, want)
        if name == "elu1":
            assert_near(y, NINE_OUTPUTS[:, :, :length])
        got = torch.autograd.grad(
            y.double().square().sum(), inputs, allow_unused=True, materialize_grads=True
        )
        for x, expected in zip(got, gradients(want, q, k, v), strict=True):
            assert_near(x, expected)


# The normaliser of causal linear attention is one number per query.
# https://github.com/lucidrains/performer-pytorch/issues/21
# https://github.com/lucidrains/performer-pytorch/issues/40
# https://github.com/idiap/fast-transformers/issues/11
QUERIES = rows([0.25, -0.25], [2.0, -0.75], [-0.75, -1.25])
KEYS = rows([1.25, 1.5], [0.75, 1.0], [-0.25, -0.5])
DEAD_FIRST_KEY = rows([-1.0, -1.0], [0.75, 1.0], [-0.25, -0.5])
VALUES = rows([1.25, 1.0], [1.0, 2.0], [-1.5, 0.0])
NORMALISED = rows(
    [1.25, 1.0],
    [1.1403637473265142, 1.438545010693943],
    [0.7555736122231647, 1.2306202854881783],
)
DIVIDED_BY_FEATURE = rows(
    [2.5360009788392563, 2.028800783071405],
    [3.959848018399489, 4.9948072428481325],
    [0.5720101315489978, 0.9330521405210486],
)
NOT_DIVIDED = rows(
    [5.94937744709814, 4.759501957678513],
    [16.1083785827977, 20.320382592816596],
    [2.811029403856523, 4.578388857852071],
)


@every_type
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@every_kernel
def test_the_normaliser_is_one_number_per_query(
    name: str, chunk_size: int | None, dtype: torch.dtype
) -> None:
    attend = KERNELS[name].attend
    if name != "softmax":
        attend = partial(attend, chunk_size=chunk_size)
    q, k, v = (x.to(dtype) for x in (QUERIES, KEYS, VALUES))
    y, _ = attend(q, k, v)
    assert_near(y, by_hand(name, QUERIES, KEYS, VALUES, lower(3)))
    if name == "elu1":
        assert_near(y, NORMALISED)


def test_other_ways_to_normalise_are_caught() -> None:
    """Planted: the sums divided feature by feature, or by nothing; they look plausible."""
    query, key = feature_map("elu1")(QUERIES), feature_map("elu1")(KEYS)
    S = (key[..., None] * VALUES[..., None, :]).cumsum(2)
    by_feature = S / key.cumsum(2)[..., None]
    for sums, want in ((by_feature, DIVIDED_BY_FEATURE), (S, NOT_DIVIDED)):
        wrong = (query[..., None, :] @ sums)[..., 0, :]
        assert_near(wrong, want)
        with pytest.raises(AssertionError):
            assert_near(wrong, NORMALISED)


@every_type
@pytest.mark.parametrize("chunk_size", [None, 1, 2])
@every_kernel
def test_a_zero_denominator_gives_zeros_and_finite_gradients(
    name: str, chunk_size: int | None, dtype: torch.dtype
) -> None:
    """Of relu: the first key has no positive feature, the last query none either."""
    attend = KERNELS[name].attend
    if name != "softmax":
        attend = partial(attend, chunk_size=chunk_size)
    inputs = [x.to(dtype).requires_grad_() for x in (QUERIES, DEAD_FIRST_KEY, VALUES)]
    y, _ = attend(*inputs)
    assert_near(y, by_hand(name, QUERIES, DEAD_FIRST_KEY, VALUES, lower(3)))
    if name in {"relu", "squared_relu"}:
        assert torch.equal(y, rows([0.0, 0.0], [1.0, 2.0], [0.0, 0.0]).to(dtype))
    assert all(x.isfinite().all() for x in gradients(y, *inputs))
    ones, _ = attend(*inputs[:2], torch.ones_like(inputs[2]))
    some = by_hand(name, QUERIES, DEAD_FIRST_KEY, torch.ones_like(VALUES), lower(3))
    assert_near(ones, some.round())


def divided_and_then_chosen(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Planted: zeros are put in place of what was divided by zero."""
    weight = (q.relu() @ k.relu().mT).tril()
    total = weight.sum(-1, keepdim=True)
    return torch.where(total == 0, 0, weight @ v / total)


def test_repairing_a_division_afterwards_is_caught() -> None:
    inputs = [x.clone().requires_grad_() for x in (QUERIES, DEAD_FIRST_KEY, VALUES)]
    y = divided_and_then_chosen(*inputs)
    assert_near(y, rows([0.0, 0.0], [1.0, 2.0], [0.0, 0.0]))
    assert any(x.isnan().any() for x in gradients(y, *inputs))
