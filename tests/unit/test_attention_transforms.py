"""Attention under torch's function transforms, twice differentiated.

Compilers have tests of their own, in `test_attention_compilers`. Tolerances are
explained in `attention_rows`.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from attention_maps import favor_of, hedgehog_of
from attention_rows import (
    KERNELS,
    Kernel,
    Rows,
    State,
    assert_near,
    linear_kernel,
    make_rows,
    replaced,
    state_tensors,
    sums_of_weights,
)
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from infoset.models.attention import LinearState

# Random and learned maps are made beforehand, as a model does.
FIXED = {
    **{name: KERNELS[name] for name in ("elu1", "relu", "squared_relu", "softmax")},
    "favor": linear_kernel(favor_of(4)),
    "hedgehog": linear_kernel(hedgehog_of(4)),
}
every_kernel = pytest.mark.parametrize("name", list(FIXED))
either_boundary = pytest.mark.parametrize("inclusive", [True, False])


def full_rows(length: int, *, batch: int = 2, heads: int = 2) -> Rows:
    return make_rows(length, padding="left", forget=True, batch=batch, heads=heads)


def earlier_state(kernel: Kernel, *, batch: int = 2, heads: int = 2) -> State:
    past = make_rows(3, forget=True, seed=1, batch=batch, heads=heads)
    return kernel.absorb(past.k, past.v, decay=past.decay)


def as_function(
    kernel: Kernel, rows: Rows, before: State, *, inclusive: bool = True
) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """Return outputs as a function of all that is differentiable, and that."""
    names = list(state_tensors(before))
    assert rows.decay is not None

    def outputs(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, *old: Tensor) -> Tensor:
        state = replaced(before, dict(zip(names, old, strict=True)))
        y, _ = kernel.attend(
            *(q, k, v),
            mask=rows.mask,
            decay=decay,
            initial_state=state,
            inclusive=inclusive,
        )
        return y

    return outputs, (*rows.qkv, rows.decay, *state_tensors(before).values())


def squares(outputs: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *inputs: outputs(*inputs).square().sum()


@either_boundary
@pytest.mark.parametrize("length", [1, 20])
@every_kernel
def test_func_grad_is_autograd(name: str, length: int, *, inclusive: bool) -> None:
    kernel = FIXED[name]
    outputs, inputs = as_function(
        *(kernel, full_rows(length), earlier_state(kernel)), inclusive=inclusive
    )
    numbers = tuple(range(len(inputs)))
    got = torch.func.grad(squares(outputs), argnums=numbers)(*inputs)
    leaves = [x.clone().requires_grad_() for x in inputs]
    want = torch.autograd.grad(squares(outputs)(*leaves), leaves)
    for place, (x, expected) in enumerate(zip(got, want, strict=True)):
        assert_near(x, expected, name=f"input {place}")


@pytest.mark.parametrize("place", range(6))
@every_kernel
def test_vmap_is_a_loop(name: str, place: int) -> None:
    """Over q, k, v, decay and the state's tensors, one at a time."""
    kernel = FIXED[name]
    outputs, inputs = as_function(
        *(kernel, full_rows(12), earlier_state(kernel)), inclusive=place % 2 == 0
    )
    many = torch.stack([inputs[place], inputs[place] / 2, inputs[place] / 4])

    def of_one(x: Tensor) -> Tensor:
        return outputs(*inputs[:place], x, *inputs[place + 1 :])

    got = torch.func.vmap(of_one)(many)
    assert_near(got, torch.stack([of_one(x) for x in many]))


@every_kernel
def test_vmap_over_masks_is_a_loop(name: str) -> None:
    rows, attend = make_rows(12, forget=True), FIXED[name].attend
    masks = torch.stack([make_rows(12, padding=p).mask for p in ("left", "mixed")])  # type: ignore[misc] # both have one

    def outputs(mask: Tensor) -> Tensor:
        return attend(*rows.qkv, mask=mask, decay=rows.decay)[0]

    got = torch.func.vmap(outputs)(masks)
    assert_near(got, torch.stack([outputs(mask) for mask in masks]))


@every_kernel
def test_per_sample_gradients_are_those_of_each_sample(name: str) -> None:
    rows, attend = make_rows(12, batch=4), FIXED[name].attend

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        y, _ = attend(*(x[None] for x in (q, k, v)))
        return y.square().sum()

    got = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*rows.qkv)
    leaves = [x.clone().requires_grad_() for x in rows.qkv]
    want = torch.autograd.grad(attend(*leaves)[0].square().sum(), leaves)
    for x, expected in zip(got, want, strict=True):
        assert_near(x, expected)


# Torch's own forward derivatives are still compiled in the old way.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("place", range(6))
@every_kernel
def test_jacobians_and_hessians_are_those_of_the_definition(
    name: str, place: int
) -> None:
    """For q, k, v, decay and the state's tensors, one at a time."""
    kernel = FIXED[name]
    before = earlier_state(kernel, batch=1, heads=1)
    rows = full_rows(4, batch=1, heads=1)
    outputs, inputs = as_function(kernel, rows, before)
    defined, _ = as_function(replace(kernel, attend=kernel.naive), rows, before)

    def of_one(outputs: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: outputs(*inputs[:place], x, *inputs[place + 1 :])

    # Only the plain kernel of softmax can be differentiated twice, see below.
    with sdpa_kernel(SDPBackend.MATH):
        jacobian = torch.func.jacrev(of_one(outputs))(inputs[place])
        hessian = torch.func.hessian(of_one(squares(outputs)))(inputs[place])
    want = torch.autograd.functional.jacobian(of_one(defined), inputs[place])
    assert_near(jacobian, want)
    want = torch.autograd.functional.hessian(of_one(squares(defined)), inputs[place])
    assert_near(hessian, want)


# Below a floor the maxima of favor do not cancel; they are constants by definition,
# which differences do not know. So its floor is below all rows.
@pytest.mark.parametrize(
    ("name", "floor", "num_below", "forget"),
    [
        ("elu1", 0.0, 0, True),
        ("elu1", 12.0, 1, False),
        ("elu1", 7.0, 1, True),
        ("favor", 0.0, 0, False),
        ("favor", 0.1, 0, True),
        ("hedgehog", 0.0, 0, True),
        ("hedgehog", 0.6, 2, False),
    ],
)
def test_gradients_have_gradients(
    name: str, floor: float, num_below: int, *, forget: bool
) -> None:
    """Compared with differences; with hidden rows and an initial state."""
    kernel = FIXED[name]
    rows = make_rows(3, padding="left", forget=forget, batch=1, heads=1)
    before = earlier_state(kernel, batch=1, heads=1)
    assert isinstance(before, LinearState)
    sums = sums_of_weights(kernel, rows, before=before)
    assert (sums < floor).sum() == num_below

    def attended(
        q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, *decay: Tensor
    ) -> Tensor:
        y, _ = kernel.attend(
            *(q, k, v),
            mask=rows.mask,
            decay=decay[0] if forget else None,
            initial_state=replaced(before, {"S": S, "z": z}),
            floor=floor,
        )
        return y

    decay = () if rows.decay is None else (rows.decay,)
    inputs = (*rows.qkv, before.S, before.z, *decay)
    leaves = [x.clone().requires_grad_() for x in inputs]
    assert torch.autograd.gradcheck(attended, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(attended, leaves, fast_mode=True)


@pytest.mark.parametrize("place", ["q", "k", "v", "decay"])
@pytest.mark.parametrize("name", ["elu1", "favor", "hedgehog"])
def test_one_input_alone_has_second_gradients(name: str, place: str) -> None:
    """Whatever else of outputs and state depends on it."""
    rows = full_rows(6)
    x = getattr(rows, place).requires_grad_()
    y, _ = FIXED[name].attend(*rows.qkv, **rows.settings)
    (first,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.isfinite().all()
    assert second.any()


@every_kernel
def test_a_graph_can_be_walked_twice(name: str) -> None:
    rows = full_rows(20)
    v = rows.v.requires_grad_()
    y, _ = FIXED[name].attend(*rows.qkv, **rows.settings)
    (want,) = torch.autograd.grad(y.square().sum(), v, retain_graph=True)
    (got,) = torch.autograd.grad(y.square().sum(), v)
    assert torch.equal(got, want)


@pytest.mark.parametrize("forget", [False, True])
def test_second_gradients_of_softmax_are_refused_or_right(*, forget: bool) -> None:
    """Torch's fast kernel has none and says so; its plain one has them."""
    rows = make_rows(3, forget=forget, batch=1, heads=1)
    same_width = Rows(rows.q, rows.k, rows.q + rows.k, decay=rows.decay)
    outputs = KERNELS["softmax"].attend
    leaves = [x.clone().requires_grad_() for x in same_width.qkv]

    def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return outputs(q, k, v, decay=rows.decay)[0]

    loss = attended(*leaves).square().sum()
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        torch.autograd.grad(first[0].sum(), leaves)
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(attended, leaves, fast_mode=True)
