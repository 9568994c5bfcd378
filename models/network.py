"""The network: events to embeddings, causal blocks, readout, quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from infoset.data.clock_features import NUM_CLOCK_FEATURES
from infoset.data.module import Batch

from .attention import LinearState, SoftmaxState
from .blocks import CausalBlock, Readout
from .embedding import ChannelStatistics, EventEmbedding
from .heads import QuantileHead
from .kernels import AttentionKernel, State
from .settings import NetworkSize


@dataclass(frozen=True)
class NetworkState:
    """What a stream carries from event to event; a value, never changed in place."""

    blocks: tuple[State, ...]
    readout: State

    @property
    def num_bytes(self) -> int:
        """Memory of all layers' states."""
        return sum(state.num_bytes for state in (*self.blocks, self.readout))

    def with_wide_sums(self) -> NetworkState:
        """Return the state with linear sums in float64, which they then stay in."""
        return NetworkState(tuple(map(_wide, self.blocks)), _wide(self.readout))

    @property
    def kinds(self) -> list[str]:
        """Return the kind of each layer's state, the readout's last."""
        states = (*self.blocks, self.readout)
        return ["linear" if isinstance(x, LinearState) else "softmax" for x in states]

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of all tensors; ``0.`` begins the names of the first layer's."""
        return {
            f"{place}.{name}": x
            for place, state in enumerate((*self.blocks, self.readout))
            for name, x in state.state_dict().items()
        }

    @classmethod
    def from_state_dict(
        cls, kinds: Sequence[str], tensors: Mapping[str, Tensor]
    ) -> NetworkState:
        """Return the state that `kinds` and `state_dict` described."""
        layers: list[State] = []
        for place, kind in enumerate(kinds):
            prefix = f"{place}."
            own = {
                name.removeprefix(prefix): x
                for name, x in tensors.items()
                if name.startswith(prefix)
            }
            of_kind = LinearState if kind == "linear" else SoftmaxState
            layers.append(of_kind.from_state_dict(own))
        return cls(tuple(layers[:-1]), layers[-1])


class Network(nn.Module):
    """Forecast scaled quantiles from the events of an information set.

    Parameters
    ----------
    kernels : sequence of AttentionKernel
        The attention of each layer, and of the readout last.
    size : NetworkSize
    statistics : ChannelStatistics
        Of the training span.
    base : [E, Q]
        Training quantiles of the scaled target per entity.
    """

    def __init__(
        self,
        kernels: Sequence[AttentionKernel],
        size: NetworkSize,
        statistics: ChannelStatistics,
        *,
        base: Float[Tensor, "E Q"],
    ) -> None:
        super().__init__()
        self.embedding = EventEmbedding(statistics, size.width)
        *inner, last = kernels
        self.blocks = nn.ModuleList(
            CausalBlock(
                kernel,
                width=size.width,
                num_heads=size.num_heads,
                dropout=size.dropout,
                forgetting=size.forgetting,
            )
            for kernel in inner
        )
        self.readout = Readout(
            last,
            width=size.width,
            num_heads=size.num_heads,
            dropout=size.dropout,
            forgetting=size.forgetting,
        )
        self.query = nn.Linear(NUM_CLOCK_FEATURES, size.width)
        # How much each entity minds the clock, and what it is besides.
        self.entity_gain = nn.Embedding(len(base), size.width)
        self.entity = nn.Embedding(len(base), size.width)
        nn.init.ones_(self.entity_gain.weight)
        self.norm = nn.LayerNorm(size.width)
        self.head = QuantileHead(base, size.width)

    def forward(self, batch: Batch) -> Float[Tensor, "B P Q"]:
        """Return the quantiles of each forecast point, in units of its scale."""
        x = self.embedding(batch)
        for block in self.blocks:
            x, _ = block(x, batch.elapsed_days, mask=batch.mask)
        queries = self._queries(batch.clock, batch.entity)
        if batch.stop.shape[1] == 1:  # every point sees its row whole
            state = self.readout.absorb(x, batch.elapsed_days, mask=batch.mask)
            read = self.readout.read(queries, state)
        else:
            read = self.readout.read_prefixes(
                queries, x, batch.elapsed_days, mask=batch.mask, stop=batch.stop
            )
        quantiles: Tensor = self.head(self.norm(read), batch.entity)
        return quantiles

    def update(self, batch: Batch, state: NetworkState | None) -> NetworkState:
        """Return the state after the events of `batch` (one row, no padding)."""
        x = self.embedding(batch)
        after: list[State] = []
        for place, block in enumerate(self.blocks):
            before = state.blocks[place] if state else None
            x, block_state = block(x, batch.elapsed_days, state=before)
            after.append(block_state)
        readout = self.readout.absorb(
            x, batch.elapsed_days, state=state.readout if state else None
        )
        return NetworkState(tuple(after), readout)

    def forecast(
        self,
        state: NetworkState,
        *,
        clock: Float[Tensor, "B P F"],
        entity: Int[Tensor, "B P"],
    ) -> Float[Tensor, "B P Q"]:
        """Return the quantiles that a state implies; the state stays as it is."""
        read = self.readout.read(self._queries(clock, entity), state.readout)
        quantiles: Tensor = self.head(self.norm(read), entity)
        return quantiles

    def _queries(
        self, clock: Float[Tensor, "B P F"], entity: Int[Tensor, "B P"]
    ) -> Float[Tensor, "B P D"]:
        queries: Tensor = torch.addcmul(
            self.entity(entity), self.query(clock), self.entity_gain(entity)
        )
        return queries


def _wide(state: State) -> State:
    return state.to(torch.float64) if isinstance(state, LinearState) else state
