"""What a trained network's attention layers are asked on real information sets."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from infoset.data.module import SampleDataset
from infoset.data.sequences import Samples
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.kernels import AttentionKernel, SoftmaxKernel, State
from infoset.models.network import Network


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """Queries, keys and values of one layer, to be answered by any kernel.

    Attributes
    ----------
    layer : str
    q : Tensor of shape [B, H, P, K]
    k, v : Tensor of shape [B, H, T, K]
    mask : bool Tensor of shape [B, T]
        True = a real event.
    decay : Tensor of shape [B, H, T], optional
    causal : bool
        Whether query t reads the rows up to t (then P = T), or each query all rows.
    """

    layer: str
    q: Float[Tensor, "B H P K"]
    k: Float[Tensor, "B H T K"]
    v: Float[Tensor, "B H T V"]
    mask: Bool[Tensor, "B T"]
    decay: Float[Tensor, "B H T"] | None
    causal: bool

    def outputs(self, kernel: AttentionKernel) -> Float[Tensor, "n V"]:
        """Return what a kernel answers to every query of a real row."""
        with torch.inference_mode():
            if self.causal:
                y, _ = kernel.attend(
                    self.q,
                    self.k,
                    self.v,
                    mask=self.mask,
                    decay=self.decay,
                    state=None,
                )
                return y.transpose(1, 2)[self.mask].flatten(0, 1)
            state = kernel.absorb(
                self.k, self.v, mask=self.mask, decay=self.decay, state=None
            )
            return kernel.read(self.q, state).flatten(0, 2)

    def pairs(self) -> Bool[Tensor, "B H P T"]:
        """Return which query reads which key."""
        batch, heads, queries, _ = self.q.shape
        seen = self.mask[:, None, None, :].expand(batch, heads, queries, -1)
        if not self.causal:
            return seen
        return (seen & self.mask[:, None, :, None]).tril()


def attention_calls(
    forecaster: AttentionForecaster, samples: Samples, *, num_sets: int
) -> tuple[AttentionCall, ...]:
    """Run information sets through a softmax network and keep each layer's call.

    Parameters
    ----------
    forecaster : AttentionForecaster
        Fitted, with softmax attention.
    samples : Samples
        Scaled, with `history: last n`: each is a row of its own.
    num_sets : int
        Taken evenly over the samples that are not empty, all if there are fewer.

    Returns
    -------
    tuple of AttentionCall
        One per block, and the readout last.

    Raises
    ------
    ValueError
        If every information set is empty.
    """
    known = np.flatnonzero(samples.num_events > 0)
    if not len(known):
        raise ValueError(
            "an information set must hold an event; got none in "
            f"{len(samples)} forecasts. Lengthen `history`."
        )
    places = np.linspace(0, len(known) - 1, min(num_sets, len(known)))
    taken = samples.take(known[places.round().astype(np.int64)])
    dataset = SampleDataset(taken, forecaster.fitted_on().entities)
    network, recorders = _recording(trained_network(forecaster))
    with torch.inference_mode():
        network(dataset[list(range(len(dataset)))])
    return tuple(recorder.call() for recorder in recorders)


def trained_network(forecaster: AttentionForecaster) -> Network:
    """Return a fitted forecaster's network.

    Raises
    ------
    ValueError
        Before a fit.
    """
    if forecaster.network is None:
        raise ValueError("the forecaster must be fitted first. Call `fit`.")
    return forecaster.network


class _Recorder(SoftmaxKernel):
    """Softmax attention that keeps what it was last asked."""

    def __init__(self, layer: str) -> None:
        super().__init__()
        self.layer = layer
        self._rows: tuple[Tensor, Tensor, Tensor | None, Tensor | None] | None = None
        self._queries: tuple[Tensor, bool] | None = None

    def call(self) -> AttentionCall:
        """Return the last call."""
        if self._rows is None or self._queries is None:
            raise ValueError(f"layer {self.layer} must have run; it has not.")
        (k, v, mask, decay), (q, causal) = self._rows, self._queries
        if mask is None:
            mask = torch.ones_like(k[:, 0, :, 0], dtype=torch.bool)
        return AttentionCall(self.layer, q, k, v, mask, decay, causal)

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
        """Keep all of it."""
        self._rows, self._queries = (k, v, mask, decay), (q, True)
        return super().attend(q, k, v, mask=mask, decay=decay, state=state)

    def absorb(
        self,
        k: Float[Tensor, "B H T K"],
        v: Float[Tensor, "B H T V"],
        *,
        mask: Bool[Tensor, "B T"] | None,
        decay: Float[Tensor, "B H T"] | None,
        state: State | None,
    ) -> State:
        """Keep the rows."""
        self._rows = k, v, mask, decay
        return super().absorb(k, v, mask=mask, decay=decay, state=state)

    def read(
        self, q: Float[Tensor, "B H P K"], state: State
    ) -> Float[Tensor, "B H P V"]:
        """Keep the queries."""
        self._queries = q, False
        return super().read(q, state)


def _recording(network: Network) -> tuple[Network, list[_Recorder]]:
    """Return a copy of a network whose layers keep what they are asked."""
    twin = deepcopy(network).eval()
    recorders = []
    for place, block in enumerate(twin.blocks):
        recorder = _Recorder(f"block {place}")
        block.kernel = recorder
        recorders.append(recorder)
    twin.readout.kernel = _Recorder("readout")
    return twin, [*recorders, twin.readout.kernel]
