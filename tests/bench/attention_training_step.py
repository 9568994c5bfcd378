"""A whole training step of the linear forecaster's layers against softmax ones.

Two causal blocks of width 64 with 4 heads (16 wide) between a linear embedding and a
linear head: forward, backward and a step of AdamW on 2 sequences, so that B*H = 8 as in
the other cells. Both have the same weights and inputs, and differ in the kernel alone.

Forgetting is off and nothing is hidden, so that softmax can run torch's own fused kernel
with `is_causal=True`, the fastest that it has. Dropout is the forecasters' default; it
costs both the same, a third of the linear step, so the steps without it are timed too.
"""

from __future__ import annotations

import time

import torch
from in_turn import Seconds, Timed, in_turn
from torch import Tensor, nn

from infoset.models.attention import feature_map
from infoset.models.blocks import CausalBlock
from infoset.models.kernels import AttentionKernel, LinearKernel, SoftmaxKernel
from infoset.models.settings import NetworkSize

BATCH, WIDTH, NUM_HEADS, NUM_LAYERS = 2, 64, 4, 2
NUM_CHANNELS, NUM_QUANTILES = 8, 7
WITHOUT_DROPOUT = " without dropout"


class Layers(nn.Module):
    """Embedding, causal blocks and head."""

    def __init__(self, kernels: list[AttentionKernel], *, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Linear(NUM_CHANNELS, WIDTH)
        self.blocks = nn.ModuleList(
            CausalBlock(
                kernel,
                width=WIDTH,
                num_heads=NUM_HEADS,
                dropout=dropout,
                forgetting=False,
            )
            for kernel in kernels
        )
        self.head = nn.Linear(WIDTH, NUM_QUANTILES)

    def forward(self, events: Tensor) -> Tensor:
        """Return as many numbers per event as there are quantiles."""
        elapsed = torch.zeros(events.shape[:2])
        x = self.embedding(events)
        for block in self.blocks:
            x, _ = block(x, elapsed)
        quantiles: Tensor = self.head(x)
        return quantiles


def training_step_seconds(num_events: int, *, budget: float) -> dict[str, Seconds]:
    """Return the seconds of a step of `linear` and `softmax`, and without dropout."""
    events = torch.randn(BATCH, num_events, NUM_CHANNELS)
    target = torch.randn(BATCH, num_events, NUM_QUANTILES)
    steps: dict[str, Timed] = {}
    for name, dropout in (("", NetworkSize().dropout), (WITHOUT_DROPOUT, 0.0)):
        linear = [LinearKernel(feature_map("elu1")) for _ in range(NUM_LAYERS)]
        softmax = [SoftmaxKernel() for _ in range(NUM_LAYERS)]
        for kind, kernels in (("linear", linear), ("softmax", softmax)):
            torch.manual_seed(0)
            layers = Layers([*kernels], dropout=dropout)
            steps[kind + name] = _step(layers, events, target)
    return in_turn(steps, budget=budget)


def _step(layers: Layers, events: Tensor, target: Tensor) -> Timed:
    optimiser = torch.optim.AdamW(layers.parameters(), lr=1e-4)

    def step() -> float:
        before = time.perf_counter()
        optimiser.zero_grad()
        loss = (layers(events) - target).abs().mean()
        loss.backward()
        optimiser.step()
        return time.perf_counter() - before

    return step
