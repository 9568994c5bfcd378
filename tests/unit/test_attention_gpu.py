"""Attention on a CUDA device: the numbers of the CPU, and no waiting for the device.

Tolerances are explained in `attention_rows`.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from attention_maps import favor_of, hedgehog_of
from attention_rows import (
    KERNELS,
    Kernel,
    assert_near,
    assert_state_near,
    differentiate,
    linear_kernel,
    make_rows,
    state_tensors,
    sums_of_weights,
)
from torch import Tensor, nn

from infoset.models.attention import LinearState, empty_rows

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
with_and_without_forgetting = pytest.mark.parametrize("forget", [False, True])


def on_device(x: Tensor) -> Tensor:
    return x.to("cuda")


def kernel_on_device(name: str) -> Kernel:
    modules: dict[str, nn.Module] = {"favor": favor_of(4), "hedgehog": hedgehog_of(4)}
    if name in modules:
        return linear_kernel(copy.deepcopy(modules[name]).to("cuda"))
    return KERNELS[name]


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_waiting_is_noticed() -> None:
    x = torch.ones(3, device="cuda")
    with waiting_is_an_error(), pytest.raises(RuntimeError, match="synchroniz"):
        x.sum().item()


@with_and_without_forgetting
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("padding", ["none", "left", "mixed"])
@pytest.mark.parametrize("length", [0, 1, 70, 300])
@every_kernel
def test_the_device_gives_what_the_cpu_gives(
    name: str, length: int, padding: str, *, inclusive: bool, forget: bool
) -> None:
    past = make_rows(9, forget=forget, seed=1)
    state = KERNELS[name].absorb(past.k, past.v, decay=past.decay)
    rows = make_rows(length, padding=padding, forget=forget)
    want = differentiate(KERNELS[name].attend, rows, before=state, inclusive=inclusive)
    kernel = kernel_on_device(name)
    for dtype in (torch.float64, torch.float32):
        got = differentiate(
            *(kernel.attend, rows.to(dtype).map(on_device)),
            before=state.to(dtype, device=torch.device("cuda")),
            inclusive=inclusive,
        )
        for key, x in got.items():
            assert x.device.type == "cuda"
            assert_near(x.cpu(), want[key], dtype=dtype, name=f"{dtype} {key}")


@with_and_without_forgetting
@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("length", [1, 300])
@every_kernel
def test_no_form_waits_for_the_device(
    name: str, length: int, padding: str, *, forget: bool
) -> None:
    kernel = kernel_on_device(name)
    rows = make_rows(length, padding=padding, forget=forget)
    rows = rows.to(torch.float32).map(on_device)
    leaves = [x.requires_grad_() for x in rows.qkv]
    state = kernel.absorb(rows.k.detach(), rows.v.detach(), **rows.settings)

    def all_forms() -> None:
        y, end = kernel.attend(*leaves, initial_state=state, **rows.settings)
        kernel.absorb(rows.k, rows.v, initial_state=state, **rows.settings)
        loss = (y + kernel.read(rows.q, end)).sum()
        torch.autograd.grad(loss, leaves)
        if rows.mask is not None:
            empty_rows(rows.mask, initial_state=end).sum()
        if name != "softmax":
            sums_of_weights(kernel, rows)

    all_forms()  # the first call may wait for libraries to load
    with waiting_is_an_error():
        all_forms()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@every_kernel
def test_half_inputs_keep_sums_in_single_precision(
    name: str, dtype: torch.dtype
) -> None:
    rows = make_rows(600, forget=True).to(dtype)
    want, _ = KERNELS[name].naive(*rows.qkv, decay=rows.decay)
    moved = rows.map(on_device)
    y, state = kernel_on_device(name).attend(*moved.qkv, decay=moved.decay)
    assert y.dtype == dtype
    assert not isinstance(state, LinearState) or state.S.dtype == torch.float32
    assert_near(y.cpu(), want)


@every_kernel
def test_autocast_keeps_sums_in_single_precision(name: str) -> None:
    rows = make_rows(100, forget=True).to(torch.float32)
    want, _ = KERNELS[name].attend(*rows.qkv, decay=rows.decay)
    moved = rows.map(on_device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y, state = kernel_on_device(name).attend(*moved.qkv, decay=moved.decay)
    assert all(x.dtype != torch.bfloat16 for x in state_tensors(state).values())
    assert_near(y.cpu(), want)


@every_kernel
def test_a_state_moves_to_the_device_and_back(name: str) -> None:
    rows = make_rows(10, padding="left", forget=True)
    _, state = KERNELS[name].attend(*rows.qkv, **rows.settings)
    there = state.to(device=torch.device("cuda"))
    assert {x.device.type for x in there.state_dict().values()} == {"cuda"}
    assert_state_near(there.to(device=torch.device("cpu")), state)
