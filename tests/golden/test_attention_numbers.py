"""Numbers of the attention core that were worked out without it.

The example is small enough for pencil and paper.

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
