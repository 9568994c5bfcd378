"""The one difference between the forecasters: which attention the layers use."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor, nn

from .attention import (
    FeatureMap,
    LinearState,
    SoftmaxState,
    absorb_linear,
    absorb_softmax,
    linear_attention,
    read_linear,
    read_softmax,
    softmax_attention,
)

State = LinearState | SoftmaxState
S = TypeVar("S")


@runtime_checkable
class AttentionKernel(Protocol):
    """Attend along a sequence, or absorb a sequence and read its state."""

    def attend(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> tuple[Float[Tensor, "B H T V"], State]:
        """Return the outputs of all rows and the state after the last."""

    def absorb(
        self,
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> State:
        """Return the state after the last row, without outputs."""

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """Return what each query reads from a state; the state stays as it is."""


class LinearKernel(nn.Module):
    """Causal linear attention with a feature map.

    Parameters
    ----------
    feature_map : FeatureMap
        Its weights, where it has any, become those of the kernel.
    floor : float
        Of the denominator, see `linear_attention`.
    """

    def __init__(self, feature_map: FeatureMap, *, floor: float = 0.0) -> None:
        super().__init__()
        self.feature_map = feature_map
        self.floor = floor

    def attend(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> tuple[Float[Tensor, "B H T V"], State]:
        """See `linear_attention`."""
        return linear_attention(
            q,
            k,
            v,
            feature_map=self.feature_map,
            mask=mask,
            decay=decay,
            initial_state=_own(state, LinearState),
            floor=self.floor,
        )

    def absorb(
        self,
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> State:
        """See `absorb_linear`."""
        return absorb_linear(
            k,
            v,
            feature_map=self.feature_map,
            mask=mask,
            decay=decay,
            initial_state=_own(state, LinearState),
        )

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """See `read_linear`."""
        own = _known(state, LinearState)
        return read_linear(q, own, feature_map=self.feature_map, floor=self.floor)


class SoftmaxKernel(nn.Module):
    """Causal softmax attention with a cache of keys and values."""

    def attend(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> tuple[Float[Tensor, "B H T V"], State]:
        """See `softmax_attention`."""
        return softmax_attention(
            q,
            k,
            v,
            mask=mask,
            decay=decay,
            initial_state=_own(state, SoftmaxState),
        )

    def absorb(
        self,
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> State:
        """See `absorb_softmax`."""
        return absorb_softmax(
            k,
            v,
            mask=mask,
            decay=decay,
            initial_state=_own(state, SoftmaxState),
        )

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """See `read_softmax`."""
        return read_softmax(q, _known(state, SoftmaxState))


def _known(state: State, kind: type[S]) -> S:
    if not isinstance(state, kind):
        raise TypeError(
            f"state must be a {kind.__name__}; got {type(state).__name__}. "
            "A state belongs to the kernel that made it."
        )
    return state


def _own(state: State | None, kind: type[S]) -> S | None:
    return None if state is None else _known(state, kind)
