"""Rows, kernels and one measure of closeness for the tests of the attention core.

Tolerances, the same in every test, relative to the largest number that is compared (or
to one, if that is larger):

- float64, 1e-12: sums of at most a few thousand terms in another order, each off by
  1e-16. Gradients divide twice by a sum of weights, which amplifies that. Seen: 4e-15.
- float32, 1e-5: the same with 6e-8 per operation. Seen: 1.2e-6.
- bfloat16, 2e-2, and float16, 2e-3: a few units in the last of 8 and of 11 binary
  digits; only inputs and outputs are rounded to these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from attention_maps import MAPS
from torch import Tensor
from torch.testing import assert_close

from infoset.models.attention import (
    FeatureMap,
    LinearState,
    SoftmaxState,
    absorb_linear,
    absorb_softmax,
    denominators,
    linear_attention,
    read_linear,
    read_softmax,
    softmax_attention,
)
from infoset.models.attention import naive as definition

State = LinearState | SoftmaxState
Attention = Callable[..., tuple[Tensor, State]]

TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}
PADDINGS = ("none", "left", "right", "middle", "mixed")


@dataclass(frozen=True)
class Kernel:
    """One way to weigh rows, with everything it offers."""

    attend: Attention
    naive: Attention
    absorb: Callable[..., State]
    read: Callable[..., Tensor]
    phi: FeatureMap | None = None


def linear_kernel(phi: FeatureMap) -> Kernel:
    """Return linear attention with one feature map."""
    return Kernel(
        partial(linear_attention, feature_map=phi),
        partial(definition.linear_attention, feature_map=phi),
        partial(absorb_linear, feature_map=phi),
        partial(read_linear, feature_map=phi),
        phi,
    )


KERNELS = {
    **{name: linear_kernel(phi) for name, phi in MAPS.items()},
    "softmax": Kernel(
        softmax_attention, definition.softmax_attention, absorb_softmax, read_softmax
    ),
}


@dataclass(frozen=True, eq=False)
class Rows:
    """What an attention is called with."""

    q: Tensor
    k: Tensor
    v: Tensor
    mask: Tensor | None = None
    decay: Tensor | None = None

    @property
    def qkv(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.q, self.k, self.v

    @property
    def settings(self) -> dict[str, Tensor | None]:
        return {"mask": self.mask, "decay": self.decay}

    @property
    def shown(self) -> Tensor:
        """[B, 1, T, 1]: where a row is visible."""
        if self.mask is None:
            return torch.ones_like(self.q[:, :1, :, :1], dtype=torch.bool)
        return self.mask[:, None, :, None]

    def cut(self, start: int | None, stop: int | None) -> "Rows":
        part = slice(start, stop)
        return Rows(
            self.q[:, :, part],
            self.k[:, :, part],
            self.v[:, :, part],
            mask=None if self.mask is None else self.mask[:, part],
            decay=None if self.decay is None else self.decay[:, :, part],
        )

    def map(self, change: Callable[[Tensor], Tensor]) -> "Rows":
        return Rows(
            change(self.q),
            change(self.k),
            change(self.v),
            mask=None if self.mask is None else change(self.mask),
            decay=None if self.decay is None else change(self.decay),
        )

    def to(self, dtype: torch.dtype) -> "Rows":
        return self.map(lambda x: x.to(dtype) if x.is_floating_point() else x)


def make_rows(
    length: int,
    *,
    padding: str = "none",
    forget: bool = False,
    seed: int = 0,
    batch: int = 2,
    heads: int = 2,
) -> Rows:
    """Return random float64 rows: multiples of an eighth, exact in float32.

    Some features and denominators are zero then, but none is tiny. Near zero a ratio is
    so steep that its gradient keeps no correct digit in float32.
    """
    generator = torch.Generator().manual_seed(seed)
    normal = partial(torch.randn, generator=generator)
    q, k, v = (
        (8 * normal(batch, heads, length, width)).round().double() / 8
        for width in (4, 4, 3)
    )
    decay = 8 / max(length, 8) * torch.rand(batch, heads, length, generator=generator)
    return Rows(
        *(q, k, v),
        mask=padding_mask(padding, batch, length, generator),
        decay=decay.double() if forget else None,
    )


def padding_mask(
    padding: str, batch: int, length: int, generator: torch.Generator
) -> Tensor | None:
    """Return a mask whose hidden rows differ between batch rows; `mixed` may hide all."""
    if padding == "none":
        return None
    place = torch.arange(length).expand(batch, -1)
    third = (length + 2) // 3 + torch.arange(batch)[:, None]
    if padding == "left":
        return place >= third
    if padding == "right":
        return place < length - third
    if padding == "middle":
        return (place < third) | (place >= 2 * third)
    mask = torch.rand(batch, length, generator=generator) < 0.5
    mask[-1] = False
    return mask


def sums_of_weights(
    kernel: Kernel,
    rows: Rows,
    *,
    inclusive: bool = True,
    before: LinearState | None = None,
) -> Tensor:
    """Return the denominators of linear attention: [B, H, T]."""
    assert kernel.phi is not None
    return denominators(
        *(rows.q, rows.k),
        feature_map=kernel.phi,
        inclusive=inclusive,
        mask=rows.mask,
        decay=rows.decay,
        initial_state=before,
    )


def state_tensors(state: State) -> dict[str, Tensor]:
    """Return the floating tensors of a state by name; those that may be absent too."""
    return {
        name: x
        for name in ("S", "z", "keys", "values", "cumulative_decay")
        if isinstance(x := getattr(state, name, None), Tensor)
    }


def replaced(state: State, tensors: dict[str, Tensor]) -> State:
    """Return the same kind of state with other tensors."""
    if isinstance(state, LinearState):
        m = None if state.m is None else state.m.to(tensors["S"].dtype)
        return LinearState(S=tensors["S"], z=tensors["z"], count=state.count, m=m)
    return SoftmaxState(
        keys=tensors["keys"],
        values=tensors["values"],
        mask=state.mask,
        cumulative_decay=tensors.get("cumulative_decay"),
    )


def differentiate(
    attend: Attention,
    rows: Rows,
    *,
    before: State | None = None,
    select: Tensor | None = None,
    **settings: object,
) -> dict[str, Tensor]:
    """Return outputs, state and the gradients of a weighted sum of them, by name.

    `select` restricts the sum to some of the outputs.
    """
    inputs = dict(zip("qkv", rows.qkv, strict=True))
    if rows.decay is not None:
        inputs["decay"] = rows.decay
    old = {} if before is None else state_tensors(before)
    leaves = {
        name: x.detach().clone().requires_grad_()
        for name, x in {**inputs, **old}.items()
    }
    if before is not None:
        settings["initial_state"] = replaced(before, leaves)
    y, state = attend(
        *(leaves[name] for name in "qkv"),
        mask=rows.mask,
        decay=leaves.get("decay"),
        **settings,
    )
    after = state_tensors(state)
    after.pop("cumulative_decay", None)
    terms = [_weighted(y if select is None else torch.where(select, y, 0))]
    loss = torch.stack(terms + [_weighted(x) for x in after.values()]).sum()
    grads = torch.autograd.grad(
        loss, list(leaves.values()), allow_unused=True, materialize_grads=True
    )
    results = {"y": y, **after, "count": state.count}
    results |= {f"d{name}": x for name, x in zip(leaves, grads, strict=True)}
    return {name: x.detach() for name, x in results.items()}


def pulled_back(
    outputs: Callable[[Rows], Tensor], rows: Rows, towards: Tensor
) -> dict[str, Tensor]:
    """Return outputs, and the gradients of their inner product with `towards`, by name.

    `towards` may have fewer rows than the outputs: the first ones.
    """
    leaves = rows.map(
        lambda x: x.detach().requires_grad_() if x.is_floating_point() else x
    )
    inputs = dict(zip("qkv", leaves.qkv, strict=True))
    if leaves.decay is not None:
        inputs["decay"] = leaves.decay
    y = outputs(leaves)
    loss = (y[:, :, : towards.shape[2]] * towards).sum()
    grads = torch.autograd.grad(
        loss, list(inputs.values()), allow_unused=True, materialize_grads=True
    )
    return {"y": y.detach()} | {
        f"d{name}": x for name, x in zip(inputs, grads, strict=True)
    }


def _weighted(x: Tensor) -> Tensor:
    place = torch.arange(x.numel(), dtype=torch.float64, device=x.device)
    weights = place.mul(0.7).cos()
    return (x.double() * weights.view(x.shape)).sum()


def assert_near(
    got: Tensor, want: Tensor, *, dtype: torch.dtype | None = None, name: str = ""
) -> None:
    """Compare within the tolerance of `dtype`, by default that of `got`."""
    largest = max(1.0, float(want.detach().abs().max())) if want.numel() else 1.0
    tolerance = TOLERANCE[dtype or got.dtype] * largest
    assert_close(
        *(got.double(), want.double()),
        rtol=0,
        atol=tolerance,
        msg=lambda text: f"{name}: {text}",
    )


def assert_state_near(got: State, want: State) -> None:
    """Compare all that both states hold."""
    assert torch.equal(got.count, want.count)
    expected = state_tensors(want)
    for name, x in state_tensors(got).items():
        assert_near(x, expected[name], name=name)
