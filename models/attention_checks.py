"""Looking into a network's attention: what is not finite, and how small sums become.

The attention core never reads its data, because that would make it wait for the device.
These kernels do, in place of a network's own, for as long as somebody looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from .attention import (
    LinearState,
    NonFiniteError,
    check_finite,
    denominators,
    empty_rows,
    read_denominators,
)
from .blocks import CausalBlock, Readout
from .kernels import AttentionKernel, LinearKernel, State
from .network import Network


@dataclass
class DenominatorRecord:
    """The sums of weights that queries were divided by.

    Attributes
    ----------
    smallest : float
        Of those above zero; nan if there was none.
    num_rows : int
        Queries of all heads and layers.
    num_zero : int
        Queries that shared no feature with any key they could read; their outputs are
        zeros. First events, which have nothing to read, are not among them.
    num_floored : int
        Queries that were divided by the floor instead.
    """

    smallest: float = math.nan
    num_rows: int = 0
    num_zero: int = 0
    num_floored: int = 0

    def add(self, sums: Float[Tensor, " n"], floor: float) -> None:
        """Count the sums of some queries."""
        positive = sums[sums > 0]
        if positive.numel():
            least = float(positive.min())
            known = self.smallest
            self.smallest = least if math.isnan(known) else min(known, least)
        self.num_rows += sums.numel()
        self.num_zero += int((sums == 0).sum())
        self.num_floored += int((sums < floor).sum())

    @property
    def floored_share(self) -> float:
        """Share of queries that were divided by the floor; nan without queries."""
        return self.num_floored / self.num_rows if self.num_rows else math.nan

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name; what is undefined is left out."""
        found = {
            "smallest_denominator": self.smallest,
            "zero_denominators": float(self.num_zero),
            "floored_share": self.floored_share,
        }
        return {name: x for name, x in found.items() if not math.isnan(x)}


def check_attention(network: Network, pass_through: Callable[[], object]) -> None:
    """Call `pass_through`, which sends data through the network, and look at all of it.

    Raises
    ------
    NonFiniteError
        For the first layer in which a visible query, key or value is not finite; names
        layer, head and position.
    """
    with _in_place_of_kernels(network, _CheckedKernel), torch.no_grad():
        pass_through()


def require_finite(
    network: Network, outputs: Tensor, pass_through: Callable[[], object]
) -> None:
    """Refuse outputs that are not finite, by the place where that began.

    Raises
    ------
    NonFiniteError
        If an output is not finite.
    """
    if torch.isfinite(outputs).all():
        return
    check_attention(network, pass_through)
    raise NonFiniteError(
        "forecasts must be finite; got others although all attention is finite "
        "(after the readout). Look for weights that diverged in training."
    )


@contextmanager
def watched_denominators(network: Network) -> Iterator[DenominatorRecord]:
    """Record the denominators of linear attention for as long as the context lasts."""
    record = DenominatorRecord()

    def watched(kernel: AttentionKernel, where: str) -> AttentionKernel:
        if not isinstance(kernel, LinearKernel):
            return kernel
        return _WatchedKernel(kernel, record, is_readout=where == "readout")

    with _in_place_of_kernels(network, watched):
        yield record


@contextmanager
def _in_place_of_kernels(
    network: Network, make: Callable[[AttentionKernel, str], AttentionKernel]
) -> Iterator[None]:
    layers = [x for x in network.blocks if isinstance(x, CausalBlock)]
    places: list[tuple[str, CausalBlock | Readout]] = [
        *((f"layer {i}", block) for i, block in enumerate(layers, start=1)),
        ("readout", network.readout),
    ]
    own = [place.kernel for _, place in places]
    try:
        for where, place in places:
            place.kernel = make(place.kernel, where)
        yield
    finally:
        for (_, place), kernel in zip(places, own, strict=True):
            place.kernel = kernel


class _CheckedKernel(nn.Module):
    """A kernel that looks at everything before it passes it on."""

    def __init__(self, kernel: AttentionKernel, where: str) -> None:
        super().__init__()
        self.kernel = kernel
        self.where = where

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
        """Refuse what is not finite."""
        check_finite(q, k, v, mask, where=self.where, decay=decay)
        return self.kernel.attend(q, k, v, mask=mask, decay=decay, state=state)

    def absorb(
        self,
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> State:
        """Refuse what is not finite."""
        check_finite(None, k, v, mask, where=self.where, decay=decay)
        return self.kernel.absorb(k, v, mask=mask, decay=decay, state=state)

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """Refuse queries that are not finite."""
        check_finite(q, None, None, where=self.where)
        return self.kernel.read(q, state)


class _WatchedKernel(nn.Module):
    """A linear kernel whose denominators are recorded.

    In a readout over many forecast times, queries stand between the events as rows of
    their own (see `Readout.read_prefixes`), and the events ask nothing.
    """

    def __init__(
        self, kernel: LinearKernel, record: DenominatorRecord, *, is_readout: bool
    ) -> None:
        super().__init__()
        self.kernel = kernel
        self.absorb = kernel.absorb
        self.record = record
        self.is_readout = is_readout

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
        """Record what each row that asks was divided by."""
        shown = torch.ones_like(q[:, 0, :, 0], dtype=torch.bool)
        shown = shown if mask is None else mask
        asks = (q != 0).any(-1).any(1) if self.is_readout else shown
        before = state if isinstance(state, LinearState) else None
        sums = denominators(
            q,
            k,
            feature_map=self.kernel.feature_map,
            mask=mask,
            decay=decay,
            initial_state=before,
        )
        asks = asks & ~empty_rows(shown, initial_state=before)
        self.record.add(sums.transpose(1, 2)[asks].flatten(), self.kernel.floor)
        return self.kernel.attend(q, k, v, mask=mask, decay=decay, state=state)

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """Record what each query was divided by."""
        if isinstance(state, LinearState):
            phi = self.kernel.feature_map
            sums = read_denominators(q, state, feature_map=phi)[state.count > 0]
            self.record.add(sums.flatten(), self.kernel.floor)
        return self.kernel.read(q, state)
