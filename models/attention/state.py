"""What attention remembers: immutable values that can be forked, saved and restored.

Equations (3) and (11) of docs/attention.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class LinearState:
    """All that linear attention keeps of the rows it has added.

    Its size does not depend on how many rows there were, and no past row can be told
    apart in it.

    Parameters
    ----------
    S : Tensor of shape [B, H, R, V]
        Sum of the outer products of key features and values, each faded by forgetting.
    z : Tensor of shape [B, H, R]
        Sum of the key features, faded alike.
    count : int Tensor of shape [B]
        Visible rows added so far.
    m : Tensor of shape [B, H], optional
        Running maximum of the keys' exponents, for maps that are exponentials: S and z
        are kept divided by exp(m). -inf before the first visible row; None = the map
        needs none.

    Raises
    ------
    TypeError
        If S and z are not of one type, float32 or float64. Half precision would stop
        changing after a few hundred rows.
    """

    S: Float[Tensor, "B H R V"]
    z: Float[Tensor, "B H R"]
    count: Int[Tensor, " B"]
    m: Float[Tensor, "B H"] | None = None

    def __post_init__(self) -> None:
        if self.S.dtype not in {torch.float32, torch.float64}:
            message = f"S must be float32 or float64; got {self.S.dtype}."
            raise TypeError(message)
        if self.z.dtype != self.S.dtype:
            message = f"z must have the type of S, {self.S.dtype}; got {self.z.dtype}."
            raise TypeError(message)

    @property
    def num_bytes(self) -> int:
        """Memory of the state in bytes."""
        return _num_bytes(self.S, self.z, self.count, self.m)

    def to(
        self, dtype: torch.dtype | None = None, *, device: torch.device | None = None
    ) -> LinearState:
        """Return the state in another type, on another device, or both."""
        return LinearState(
            S=self.S.to(device=device, dtype=dtype),
            z=self.z.to(device=device, dtype=dtype),
            count=self.count.to(device=device),
            m=None if self.m is None else self.m.to(device=device, dtype=dtype),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of the tensors by name, free of gradients; None is left out."""
        present = {name: getattr(self, name) for name in ("S", "z", "count", "m")}
        return {name: _copy(x) for name, x in present.items() if x is not None}

    @classmethod
    def from_state_dict(cls, tensors: dict[str, Tensor]) -> LinearState:
        """Return the state that `state_dict` described."""
        return cls(
            S=tensors["S"],
            z=tensors["z"],
            count=tensors["count"],
            m=tensors.get("m"),
        )


@dataclass(frozen=True, eq=False)
class SoftmaxState:
    """The cache of softmax attention: every key and value, hidden ones as zeros.

    Parameters
    ----------
    keys : Tensor of shape [B, H, S, K]
    values : Tensor of shape [B, H, S, V]
    mask : bool Tensor of shape [B, S], optional
        True = a real event; None = all of them.
    cumulative_decay : float64 Tensor of shape [B, H, S], optional
        Sum of the forgetting exponents up to each row, so that the difference of two
        rows is what the older one has faded; None = no forgetting. Double precision,
        because the sum grows for ever while the differences stay small.
    """

    keys: Float[Tensor, "B H S K"]
    values: Float[Tensor, "B H S V"]
    mask: Bool[Tensor, "B S"] | None = None
    cumulative_decay: Float[Tensor, "B H S"] | None = None

    @property
    def count(self) -> Int[Tensor, " B"]:
        """Visible rows added so far, per batch row."""
        if self.mask is not None:
            return self.mask.sum(-1)
        batch, _, length, _ = self.keys.shape
        return torch.full((batch,), length, device=self.keys.device)

    @property
    def num_bytes(self) -> int:
        """Memory of the state in bytes."""
        return _num_bytes(self.keys, self.values, self.mask, self.cumulative_decay)

    def to(
        self, dtype: torch.dtype | None = None, *, device: torch.device | None = None
    ) -> SoftmaxState:
        """Return the state with keys and values in another type, or on a device."""
        mask, decay = self.mask, self.cumulative_decay
        return SoftmaxState(
            keys=self.keys.to(device=device, dtype=dtype),
            values=self.values.to(device=device, dtype=dtype),
            mask=None if mask is None else mask.to(device=device),
            cumulative_decay=None if decay is None else decay.to(device=device),
        )

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of the tensors by name, free of gradients; None is left out."""
        names = ("keys", "values", "mask", "cumulative_decay")
        present = {name: getattr(self, name) for name in names}
        return {name: _copy(x) for name, x in present.items() if x is not None}

    @classmethod
    def from_state_dict(cls, tensors: dict[str, Tensor]) -> SoftmaxState:
        """Return the state that `state_dict` described."""
        return cls(
            keys=tensors["keys"],
            values=tensors["values"],
            mask=tensors.get("mask"),
            cumulative_decay=tensors.get("cumulative_decay"),
        )


def _copy(x: Tensor) -> Tensor:
    return x.detach().clone(memory_format=torch.contiguous_format)


def _num_bytes(*tensors: Tensor | None) -> int:
    return sum(x.numel() * x.element_size() for x in tensors if x is not None)
