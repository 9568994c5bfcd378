"""No form of attention reads its data, so none of them waits for a device.

Tensors on the device `meta` have shapes and no numbers. Whatever asks for a number
there, by `item`, `nonzero`, `bool` or a copy, raises an error. On the CPU, where there
is nothing to wait for, sequences take the fused form; what is shown here is the form
for all other devices.
"""

import copy

import pytest
import torch
from attention_maps import both_signs, favor_of, hedgehog_of
from attention_rows import (
    KERNELS,
    Kernel,
    Rows,
    linear_kernel,
    make_rows,
    sums_of_weights,
)
from torch import Tensor, nn

from infoset.models.attention import (
    LinearState,
    check_finite,
    empty_rows,
    feature_map,
    read_denominators,
)

NAMES = list(KERNELS)
META = torch.device("meta")


def on_meta(x: Tensor) -> Tensor:
    return x.to(META)


def kernel_on_meta(name: str) -> Kernel:
    """Return a kernel whose map, if it has numbers of its own, has them on `meta`."""
    modules: dict[str, nn.Module] = {"favor": favor_of(4), "hedgehog": hedgehog_of(4)}
    if name in modules:
        return linear_kernel(copy.deepcopy(modules[name]).to(META))
    return KERNELS[name]


@pytest.fixture
def _autocast_is_off_on_meta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch does not answer the question for a device without numbers."""
    asked = torch.is_autocast_enabled
    monkeypatch.setattr(
        torch, "is_autocast_enabled", lambda kind: kind != "meta" and asked(kind)
    )


@pytest.mark.usefixtures("_autocast_is_off_on_meta")
@pytest.mark.parametrize(
    ("padding", "inclusive", "forget"), [("none", True, False), ("left", False, True)]
)
@pytest.mark.parametrize("length", [1, 70])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_read_from_the_device(
    name: str, length: int, padding: str, *, forget: bool, inclusive: bool
) -> None:
    """In any form, forwards and backwards, with a state before and without."""
    kernel = kernel_on_meta(name)
    floor = {} if name == "softmax" else {"floor": 0.1}
    past = make_rows(5, padding=padding, forget=forget).map(on_meta)
    state = kernel.absorb(past.k, past.v, **past.settings)
    rows = make_rows(length, padding=padding, forget=forget).map(on_meta)
    for x in (*rows.qkv, rows.decay):
        if x is not None:
            x.requires_grad_()
    for before, own in ((None, {}), (state, floor)):
        y, end = kernel.attend(
            *rows.qkv,
            inclusive=inclusive,
            initial_state=before,
            **rows.settings,
            **own,
        )
        read = kernel.read(rows.q, end)
        assert y.shape == read.shape == rows.v.shape
        assert {x.device for x in end.state_dict().values()} == {META}
        torch.autograd.grad((y + read).sum(), rows.qkv, allow_unused=True)
        if rows.mask is not None:
            empty_rows(rows.mask, inclusive=inclusive, initial_state=before)
        if name != "softmax":
            count_on_meta(kernel, rows, inclusive=inclusive)


def count_on_meta(kernel: Kernel, rows: Rows, *, inclusive: bool) -> None:
    sums = sums_of_weights(kernel, rows, inclusive=inclusive)
    assert sums.shape == rows.q.shape[:3]
    _, state = kernel.attend(*rows.qkv, **rows.settings)
    assert isinstance(state, LinearState)
    assert kernel.phi is not None
    read = read_denominators(rows.q, state, feature_map=kernel.phi)
    assert read.shape == sums.shape


@pytest.mark.usefixtures("_autocast_is_off_on_meta")
def test_what_reads_data_says_so_and_is_caught_here() -> None:
    """The identity refuses negative numbers, and `check_finite` those not finite."""
    rows = make_rows(3).map(on_meta)
    for kernel in (
        linear_kernel(feature_map("identity")),
        linear_kernel(lambda x: both_signs(x) if x.any() else x),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
            kernel.attend(*rows.qkv)
    with pytest.raises(RuntimeError, match="meta"):
        check_finite(*rows.qkv, where="layer 1")
    documented = str(type(feature_map("identity")).__doc__)
    assert "waits for the device" in " ".join(documented.split())
