"""Attention through torch's compilers: the same numbers, from one graph.

The sequence form of compiled code is the plain one, that of code as it stands on a CPU
is fused. Tolerances are explained in `attention_rows`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attention_rows import Rows, assert_near, make_rows
from torch import Tensor, nn
from torch.export import Dim
from unchecked_attention import unchecked_attention


class Layer(nn.Module):
    """An attention with hidden rows, forgetting and a state, from tensors to tensors."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.core = unchecked_attention()
        self.phi = None
        if name != "softmax":
            self.phi = self.core.feature_map(name, width=4)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        decay: Tensor | None,
        *old: Tensor,
    ) -> tuple[Tensor, ...]:
        settings: dict[str, Any] = {"mask": mask, "decay": decay}
        if self.phi is None:
            state = self.core.SoftmaxState(*old[:2], None, old[2]) if old else None
            y, end = self.core.softmax_attention(
                *(q, k, v), initial_state=state, **settings
            )
            return y, end.keys, end.values
        state = self.core.LinearState(*old) if old else None
        y, end = self.core.linear_attention(
            *(q, k, v), feature_map=self.phi, initial_state=state, **settings
        )
        return y, end.S, end.z

    def after(self, past: Rows) -> tuple[Tensor, ...]:
        """Return the tensors of the state after some rows."""
        if self.phi is None:
            state = self.core.absorb_softmax(past.k, past.v, decay=past.decay)
            return state.keys, state.values, state.cumulative_decay
        state = self.core.absorb_linear(
            past.k, past.v, feature_map=self.phi, decay=past.decay
        )
        tensors = state.S, state.z, state.count
        return tensors if state.m is None else (*tensors, state.m)


def assert_compiles(name: str, rows: Rows, *, resumed: bool, backend: str) -> None:
    """Compare outputs, state and all gradients with those of the code as it stands."""
    layer = Layer(name)
    old = layer.after(make_rows(5, forget=True, seed=1)) if resumed else ()
    inputs = [
        x.detach().clone().requires_grad_()
        if x is not None and x.is_floating_point()
        else x
        for x in (*rows.qkv, rows.mask, rows.decay, *old)
    ]
    leaves = [x for x in inputs if x is not None and x.requires_grad]

    def results(layer: Callable[..., tuple[Tensor, ...]]) -> list[Tensor]:
        outputs = list(layer(*inputs))
        loss = torch.stack([x.sin().sum() for x in outputs]).sum()
        grads = torch.autograd.grad(
            loss, leaves, allow_unused=True, materialize_grads=True
        )
        return [x.detach() for x in (*outputs, *grads)]

    torch.compiler.reset()
    got = results(torch.compile(layer, backend=backend, fullgraph=True))
    for place, (x, want) in enumerate(zip(got, results(layer), strict=True)):
        assert_near(x, want, name=f"result {place}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elu1", "favor", "hedgehog", "softmax"])
def test_a_sequence_compiles_into_one_graph(name: str) -> None:
    rows = make_rows(20, padding="left", forget=True)
    assert_compiles(name, rows, resumed=True, backend="aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["favor", "softmax"])
def test_a_step_compiles_into_one_graph(name: str) -> None:
    rows = make_rows(1, forget=True)
    assert_compiles(name, rows, resumed=True, backend="aot_eager")


@pytest.mark.long
# Torch still imports what it deprecates itself.
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
def test_the_default_compiler_gives_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    assert_compiles("elu1", make_rows(8), resumed=False, backend="inductor")


def test_the_identity_is_not_for_compilers() -> None:
    """It reads the data, to refuse what is negative; the compiler says so."""
    rows = make_rows(3).map(Tensor.abs)
    compiled = torch.compile(Layer("identity"), backend="eager", fullgraph=True)
    torch.compiler.reset()
    with pytest.raises(RuntimeError, match="data-dependent"):
        compiled(*rows.qkv, None, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elu1", "favor", "softmax"])
def test_an_exported_program_takes_any_batch_and_number_of_heads(name: str) -> None:
    """The number of rows is fixed: sequences are cut into chunks of their own length."""
    layer = Layer(name)
    rows = make_rows(12, padding="left", forget=True, batch=3)
    batch, heads = Dim("batch", min=1, max=64), Dim("heads", min=1, max=64)
    both = {0: batch, 1: heads}
    program = torch.export.export(
        layer,
        (*rows.qkv, rows.mask, rows.decay),
        dynamic_shapes=(both, both, both, {0: batch}, both),
    ).module()
    for num_sequences, num_heads in ((3, 2), (1, 2), (5, 3)):
        other = make_rows(
            *(12,),
            padding="left",
            forget=True,
            seed=2,
            batch=num_sequences,
            heads=num_heads,
        )
        got = program(*other.qkv, other.mask, other.decay)
        want = layer(*other.qkv, other.mask, other.decay)
        for x, expected in zip(got, want, strict=True):
            assert_near(x, expected)
    longer = make_rows(13, padding="left", forget=True)
    with pytest.raises(AssertionError, match=r"Guard failed: q\.size"):
        program(*longer.qkv, longer.mask, longer.decay)
