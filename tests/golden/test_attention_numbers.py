"""Numbers of the attention core that were worked out without it.

The first example is small enough for pencil and paper. The others were computed twice,
once with a library's exact attention and once in plain numpy, in float64; all digits
of theirs are given.

Tolerance: 1e-12, rounding of sums of a few terms in float64; half a unit of the last
digit where fewer digits are given.
"""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from infoset.models.attention import (
    absorb_linear,
    absorb_softmax,
    feature_map,
    linear_attention,
    read_linear,
    read_softmax,
    softmax_attention,
)


def rows(*numbers: list[float]) -> Tensor:
    """Rows of one head of one sequence."""
    return torch.tensor([[list(numbers)]], dtype=torch.float64)


def assert_exact(got: Tensor, want: Tensor) -> None:
    assert_close(got, want, rtol=0, atol=1e-12)


# q = (2, 1) reads k1 = (1, 0) with value 2 and k2 = (0, 1) with value 4.
QUERY = rows([2.0, 1.0])
KEYS = rows([1.0, 0.0], [0.0, 1.0])
VALUES = rows([2.0], [4.0])


def test_similarities_first_give_eight_thirds() -> None:
    similarities = QUERY @ KEYS.mT
    assert similarities.flatten().tolist() == [2.0, 1.0]
    y = similarities / similarities.sum(-1, keepdim=True) @ VALUES
    assert y.item() == pytest.approx(8 / 3, abs=1e-12)


def test_aggregation_first_gives_eight_thirds() -> None:
    state = absorb_linear(KEYS, VALUES, feature_map="identity")
    assert state.S.flatten().tolist() == [2.0, 4.0]
    assert state.z.flatten().tolist() == [1.0, 1.0]
    assert (QUERY @ state.S).item() == 8.0
    assert (QUERY @ state.z[..., None]).item() == 3.0
    y = read_linear(QUERY, state, feature_map="identity")
    assert y.item() == pytest.approx(8 / 3, abs=1e-12)


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_linear_attention_gives_eight_thirds(chunk_size: int | None) -> None:
    q = torch.cat([QUERY, QUERY], dim=2)
    y, _ = linear_attention(
        *(q, KEYS, VALUES), feature_map="identity", chunk_size=chunk_size
    )
    assert_exact(y, rows([2.0], [8 / 3]))
    y, _ = linear_attention(
        *(q, KEYS, VALUES),
        feature_map="identity",
        inclusive=False,
        chunk_size=chunk_size,
    )
    assert_exact(y, rows([0.0], [2.0]))


def test_softmax_of_the_same_inner_products() -> None:
    exact = (2 * math.e**2 + 4 * math.e) / (math.e**2 + math.e)
    assert exact == pytest.approx(2.5378828427, abs=5e-11)
    q = torch.cat([QUERY, QUERY], dim=2)
    y, state = softmax_attention(q, KEYS, VALUES, scale=1.0)
    assert_exact(y, rows([2.0], [exact]))
    assert_exact(read_softmax(QUERY, state, scale=1.0), rows([exact]))
    # By default the logits (2, 1) are divided by the root of the width.
    first, second = math.exp(2 / math.sqrt(2)), math.exp(1 / math.sqrt(2))
    default = (2 * first + 4 * second) / (first + second)
    assert_exact(read_softmax(QUERY, state), rows([default]))


def test_forgetting_halves_the_older_row_in_both_kernels() -> None:
    q = torch.cat([QUERY, QUERY], dim=2)
    decay = torch.tensor([[[0.0, math.log(2)]]], dtype=torch.float64)
    y, state = linear_attention(*(q, KEYS, VALUES), feature_map="identity", decay=decay)
    # Weights 2 / 2 and 1: the mean of 2 and 4.
    assert_exact(y, rows([2.0], [3.0]))
    assert_exact(state.z, torch.tensor([[[0.5, 1.0]]], dtype=torch.float64))
    y, _ = softmax_attention(q, KEYS, VALUES, decay=decay, scale=1.0)
    half = (2 * math.e**2 / 2 + 4 * math.e) / (math.e**2 / 2 + math.e)
    assert_exact(y, rows([2.0], [half]))


@pytest.mark.parametrize("name", ["q", "k"])
def test_the_identity_refuses_a_negative_component(name: str) -> None:
    inputs = {"q": torch.cat([QUERY, QUERY], dim=2), "k": KEYS}
    inputs[name] = rows([2.0, 1.0], [0.0, -0.25])
    message = (
        r"feature map identity needs components that are not negative; got -0\.25 at "
        r"position \(0, 0, 1, 1\)\. Use elu1, relu or squared_relu for signed inputs\."
    )
    with pytest.raises(ValueError, match=message):
        linear_attention(inputs["q"], inputs["k"], VALUES, feature_map="identity")


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("elu1", [math.exp(-10), math.exp(-0.5), 1.0, 3.5]),
        ("relu", [0.0, 0.0, 0.0, 2.5]),
        ("squared_relu", [0.0, 0.0, 0.0, 6.25]),
    ],
)
def test_features(name: str, want: list[float]) -> None:
    x = torch.tensor([-10.0, -0.5, 0.0, 2.5], dtype=torch.float64)
    expected = torch.tensor(want, dtype=torch.float64)
    assert_exact(feature_map(name)(x), expected)
    # No digits are lost for inputs far below zero, in single precision either.
    assert_close(feature_map(name)(x.float()), expected.float(), rtol=1e-6, atol=0)


def test_new_queries_on_a_cache_read_all_of_it() -> None:
    """Rows 3 and 4 of five; a causal flag anchored top left would read rows 0 and 1."""
    k = rows([2.0, -1.5], [-1.0, -0.75], [-0.25, -1.25], [2.0, 0.0], [-0.25, 0.5])
    v = rows([0.0, 0.0], [0.5, -1.5], [1.75, 2.0], [-0.25, 0.75], [-1.75, 1.0])
    q = rows([-1.0, 1.75], [1.0, 0.25])
    want = rows(
        [0.5869843146333561, -0.38301205870220995],
        [-0.13336650395716784, 0.5056504430567496],
    )
    cache = absorb_softmax(k[:, :, :3], v[:, :, :3])
    y, state = softmax_attention(q, k[:, :, 3:], v[:, :, 3:], initial_state=cache)
    assert_exact(y, want)
    assert state.count.tolist() == [5]
    step, cache = softmax_attention(
        *(q[:, :, :1], k[:, :, 3:4], v[:, :, 3:4]), initial_state=cache
    )
    assert_exact(step, want[:, :, :1])
    assert_exact(read_softmax(q[:, :, 1:], state), want[:, :, 1:])


@pytest.mark.parametrize("pad", [9.0, -1e6, math.nan, math.inf])
def test_left_padding_reaches_neither_the_normaliser_nor_gradients(pad: float) -> None:
    pads = rows(*[[pad, pad]] * 3)
    q, k, v = (
        torch.cat([pads, x], dim=2).requires_grad_()
        for x in (
            rows([-1.5, 0.5], [-1.25, -1.5], [2.0, 0.25], [-2.0, 1.75]),
            rows([0.25, 0.25], [-1.0, 0.75], [1.25, -2.0], [1.75, 0.75]),
            rows([0.5, -1.5], [-1.75, -2.0], [-1.5, -1.0], [1.75, -1.0]),
        )
    )
    mask = torch.tensor([[False] * 3 + [True] * 4])
    y, _ = linear_attention(q, k, v, feature_map="elu1", mask=mask)
    want = rows(
        [0.5, -1.5],
        [-0.48482026127925465, -1.7188489469509454],
        [-0.8685281824911392, -1.3831387042111332],
        [0.09437996223955514, -1.4651416559737318],
    )
    assert_exact(y[:, :, 3:], want)
    for gradient in torch.autograd.grad(y.square().sum(), (q, k, v)):
        assert not gradient[:, :, :3].any()
        assert gradient.isfinite().all()


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


@pytest.mark.parametrize("chunk_size", [None, 1, 4, 16])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 9])
def test_lengths_that_are_no_multiple_of_the_chunk(
    length: int, chunk_size: int | None
) -> None:
    q, k, v = (x[:, :, :length] for x in (NINE_QUERIES, NINE_KEYS, NINE_VALUES))
    y, _ = linear_attention(q, k, v, feature_map="elu1", chunk_size=chunk_size)
    assert_exact(y, NINE_OUTPUTS[:, :, :length])


def test_the_normaliser_is_one_number_per_query() -> None:
    q = rows([0.25, -0.25], [2.0, -0.75], [-0.75, -1.25])
    k = rows([1.25, 1.5], [0.75, 1.0], [-0.25, -0.5])
    v = rows([1.25, 1.0], [1.0, 2.0], [-1.5, 0.0])
    y, _ = linear_attention(q, k, v, feature_map="elu1")
    want = rows(
        [1.25, 1.0],
        [1.1403637473265142, 1.438545010693943],
        [0.7555736122231647, 1.2306202854881783],
    )
    assert_exact(y, want)


@pytest.mark.parametrize("chunk_size", [None, 1, 2])
def test_a_zero_denominator_gives_zeros_and_finite_gradients(
    chunk_size: int | None,
) -> None:
    """The first key has no positive feature, the last query none either."""
    q = rows([0.25, -0.25], [2.0, -0.75], [-0.75, -1.25]).requires_grad_()
    k = rows([-1.0, -1.0], [0.75, 1.0], [-0.25, -0.5]).requires_grad_()
    v = rows([1.25, 1.0], [1.0, 2.0], [-1.5, 0.0]).requires_grad_()
    y, _ = linear_attention(q, k, v, feature_map="relu", chunk_size=chunk_size)
    assert_exact(y, rows([0.0, 0.0], [1.0, 2.0], [0.0, 0.0]))
    for gradient in torch.autograd.grad(y.square().sum(), (q, k, v)):
        assert gradient.isfinite().all()
