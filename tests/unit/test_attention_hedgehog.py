"""The learned feature map: its features, and the gradients that reach its matrices.

Tolerances are explained in `attention_rows`.
"""

import math

import pytest
import torch
from attention_draws import in_parts, in_plain_torch
from attention_rows import Attention, assert_near, linear_kernel, make_rows
from torch import Tensor

from infoset.models.attention import Hedgehog, linear_attention


def learned(num_heads: int) -> Hedgehog:
    """Return a map with matrices that differ between heads, in double precision."""
    phi = Hedgehog(4, num_heads=num_heads).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        phi.weight.add_(torch.randn(num_heads, 4, 4, generator=generator))
    return phi


def test_it_starts_as_a_softmax_of_both_signs() -> None:
    """The exponentials of (ln 2, 0) and of its negative: 2, 1, 1/2 and 1, over their sum."""
    phi = Hedgehog(2).double()
    features = phi(torch.tensor([[[[math.log(2), 0.0]]]], dtype=torch.float64))
    want = torch.tensor([2.0, 1.0, 0.5, 1.0], dtype=torch.float64) / 4.5
    assert_near(features.flatten(), want)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_features_are_not_negative_and_add_up_to_one(size: float) -> None:
    features = learned(2)(make_rows(20).q * size)
    assert features.shape == (2, 2, 20, 8)
    assert (features >= 0).all()
    assert_near(features.sum(-1), torch.ones(2, 2, 20, dtype=torch.float64))


def test_each_head_has_its_own_matrix() -> None:
    rows, phi = make_rows(20), learned(2)
    y, _ = linear_attention(*rows.qkv, feature_map=phi)
    for head in range(2):
        alone = Hedgehog(4).double()
        alone.load_state_dict({"weight": phi.weight[head : head + 1]})
        part = (x[:, head : head + 1] for x in rows.qkv)
        z, _ = linear_attention(*part, feature_map=alone)
        assert_near(z, y[:, head : head + 1])


def weight_gradient(attend: Attention, phi: Hedgehog) -> Tensor:
    rows = make_rows(20, padding="middle", forget=True)
    y, _ = attend(*rows.qkv, **rows.settings)
    (gradient,) = torch.autograd.grad(y.square().sum(), phi.weight)
    return gradient


@pytest.mark.parametrize("form", ["fused", "chunked", "step by step", "in two parts"])
def test_matrices_learn_alike_in_every_form(form: str) -> None:
    phi = learned(2)
    kernel = linear_kernel(phi)
    forms = {
        "fused": kernel.attend,
        "chunked": in_plain_torch(kernel.attend),
        "step by step": in_parts(kernel.attend),
        "in two parts": in_parts(kernel.attend, 7),
    }
    want = weight_gradient(kernel.naive, phi)
    assert want.abs().min() > 1e-3
    assert_near(weight_gradient(forms[form], phi), want)


def test_matrices_have_second_gradients() -> None:
    phi, rows = learned(1), make_rows(3, forget=True, batch=1, heads=1)

    def attended(weight: Tensor) -> Tensor:
        def features(x: Tensor) -> Tensor:
            out: Tensor = torch.func.functional_call(phi, {"weight": weight}, (x,))
            return out

        return linear_attention(*rows.qkv, feature_map=features, decay=rows.decay)[0]

    leaf = phi.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(attended, leaf)
    assert torch.autograd.gradgradcheck(attended, leaf)
