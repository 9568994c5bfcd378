"""Associative recall: store pairs, ask for one, and see what a fixed width forgets.

Keys are random directions, drawn anew for every sequence, so nothing about them can be
learned but how to compare them. A value is one of a few symbols.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR

from infoset.models.attention import feature_map
from infoset.models.kernels import AttentionKernel, LinearKernel, SoftmaxKernel

from .kernel_settings import RecallMap, RecallSettings

# Questions about one sequence: more would hardly be independent.
_MOST_ASKED = 16


@dataclass(frozen=True, eq=False)
class Pairs:
    """Stored pairs and questions about them.

    Attributes
    ----------
    keys : Tensor of shape [B, N, K]
    symbols : int Tensor of shape [B, N]
    asked : Tensor of shape [B, P, K]
        Keys that are among those stored.
    answers : int Tensor of shape [B, P]
    """

    keys: Float[Tensor, "B N K"]
    symbols: Int[Tensor, "B N"]
    asked: Float[Tensor, "B P K"]
    answers: Int[Tensor, "B P"]


def draw_pairs(
    generator: torch.Generator,
    *,
    num_sequences: int,
    num_pairs: int,
    width: int,
    num_symbols: int,
) -> Pairs:
    """Draw keys of length sqrt(K), symbols, and different questions per sequence."""
    keys = torch.randn(num_sequences, num_pairs, width, generator=generator)
    keys = functional.normalize(keys, dim=-1) * math.sqrt(width)
    symbols = torch.randint(
        num_symbols, (num_sequences, num_pairs), generator=generator
    )
    order = torch.rand(num_sequences, num_pairs, generator=generator).argsort(dim=1)
    picked = order[:, :_MOST_ASKED]
    asked = keys.gather(1, picked[..., None].expand(-1, -1, width))
    return Pairs(keys, symbols, asked, symbols.gather(1, picked))


class RecallModel(nn.Module):
    """One attention layer between two projections of keys and an embedding of values.

    Parameters
    ----------
    kernel : AttentionKernel
    width : int
        K and V.
    num_symbols : int
    """

    def __init__(
        self, kernel: AttentionKernel, *, width: int, num_symbols: int
    ) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        # A question and the key it asks for start alike.
        self.key.load_state_dict(self.query.state_dict())
        self.value = nn.Embedding(num_symbols, width)
        self.answer = nn.Linear(width, num_symbols)
        self.kernel = kernel

    def forward(self, pairs: Pairs) -> Float[Tensor, "B P C"]:
        """Return the logits of each answer: all pairs into the state, then read it."""
        state = self.kernel.absorb(
            self.key(pairs.keys)[:, None],
            self.value(pairs.symbols)[:, None],
            mask=None,
            decay=None,
            state=None,
        )
        read = self.kernel.read(self.query(pairs.asked)[:, None], state)
        logits: Tensor = self.answer(read[:, 0])
        return logits

    def along(
        self, pairs: Pairs, *, after: int | None = None
    ) -> Float[Tensor, "B P C"]:
        """Return the same from one pass along the sequence, as causal attention does it.

        Questions are rows whose keys are hidden: they read and are never added.

        Parameters
        ----------
        pairs : Pairs
        after : int, optional
            Ask after so many pairs; None = after all of them.
        """
        num_pairs, num_asked = pairs.keys.shape[1], pairs.asked.shape[1]
        at = num_pairs if after is None else after
        rows = torch.cat([pairs.keys[:, :at], pairs.asked, pairs.keys[:, at:]], dim=1)
        values = self.value(pairs.symbols)
        nothing = values.new_zeros(len(values), num_asked, values.shape[-1])
        values = torch.cat([values[:, :at], nothing, values[:, at:]], dim=1)
        is_pair = torch.ones(rows.shape[:2], dtype=torch.bool)
        is_pair[:, at : at + num_asked] = False
        read, _ = self.kernel.attend(
            self.query(rows)[:, None],
            self.key(rows)[:, None],
            values[:, None],
            mask=is_pair,
            decay=None,
            state=None,
        )
        logits: Tensor = self.answer(read[:, 0, at : at + num_asked])
        return logits


@dataclass(frozen=True)
class RecallAccuracy:
    """How often one trained model is right.

    Attributes
    ----------
    name : str
        Of the map.
    num_features : int, optional
        R; None = softmax, which keeps every pair.
    seed : int
    num_pairs, num_questions : int
    accuracy : float
    """

    name: str
    num_features: int | None
    seed: int
    num_pairs: int
    num_questions: int
    accuracy: float


def recall_accuracies(
    name: RecallMap, seed: int, settings: RecallSettings
) -> list[RecallAccuracy]:
    """Train a model on all numbers of pairs in turn, and ask it about new sequences."""
    model = trained_model(name, seed, settings)
    return [
        _accuracy(model, name, seed, num_pairs, settings)
        for num_pairs in settings.num_pairs
    ]


def trained_model(name: RecallMap, seed: int, settings: RecallSettings) -> RecallModel:
    """Return a model trained with Adam and one cycle of the learning rate."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = RecallModel(
            recall_kernel(name, settings.width, seed),
            width=settings.width,
            num_symbols=settings.num_symbols,
        )
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    schedule = OneCycleLR(
        optimiser, settings.learning_rate, total_steps=settings.num_steps
    )
    for step in range(settings.num_steps):
        num_pairs = settings.num_pairs[step % len(settings.num_pairs)]
        pairs = _drawn(generator, settings, settings.batch_size, num_pairs)
        logits = model(pairs).flatten(0, 1)
        loss = functional.cross_entropy(logits, pairs.answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model.eval()


def recall_kernel(name: RecallMap, width: int, seed: int) -> AttentionKernel:
    """Return the attention that a name of the settings stands for."""
    if name == "softmax":
        return SoftmaxKernel()
    if name in {"favor_k", "favor_4k"}:
        number = width if name == "favor_k" else 4 * width
        phi = feature_map("favor", width=width, num_features=number, seed=seed)
        return LinearKernel(phi)
    return LinearKernel(feature_map(name, width=width))


def state_width(name: RecallMap, width: int) -> int | None:
    """Return R: rows of the state; None for softmax, whose cache grows."""
    times: dict[RecallMap, int] = {"favor_4k": 4, "hedgehog": 2}
    return None if name == "softmax" else times.get(name, 1) * width


def recall_table(cells: Sequence[RecallAccuracy]) -> list[dict[str, object]]:
    """Return one record per map and number of pairs: mean, lowest and highest seed."""
    keys = dict.fromkeys(
        (cell.name, cell.num_features, cell.num_pairs) for cell in cells
    )
    records: list[dict[str, object]] = []
    for name, num_features, num_pairs in keys:
        mine = [c for c in cells if (c.name, c.num_pairs) == (name, num_pairs)]
        by_seed = [cell.accuracy for cell in mine]
        records.append(
            {
                "map": name,
                "num_features": num_features,
                "num_pairs": num_pairs,
                "accuracy": float(np.mean(by_seed)),
                "lowest": min(by_seed),
                "highest": max(by_seed),
                "by_seed": by_seed,
                "num_questions": mine[0].num_questions,
            }
        )
    return records


def _accuracy(
    model: RecallModel,
    name: RecallMap,
    seed: int,
    num_pairs: int,
    settings: RecallSettings,
) -> RecallAccuracy:
    """Ask about sequences that are the same for every map of a seed."""
    asked = min(num_pairs, _MOST_ASKED)
    # Of the training's own generator nothing is left over here.
    generator = torch.Generator().manual_seed(2**31 + 1000 * seed + num_pairs)
    num_sequences = math.ceil(settings.num_questions / asked)
    pairs = _drawn(generator, settings, num_sequences, num_pairs)
    with torch.inference_mode():
        is_right = model.along(pairs).argmax(-1) == pairs.answers
    return RecallAccuracy(
        name=name,
        num_features=state_width(name, settings.width),
        seed=seed,
        num_pairs=num_pairs,
        num_questions=is_right.numel(),
        accuracy=float(is_right.double().mean()),
    )


def _drawn(
    generator: torch.Generator,
    settings: RecallSettings,
    num_sequences: int,
    num_pairs: int,
) -> Pairs:
    return draw_pairs(
        generator,
        num_sequences=num_sequences,
        num_pairs=num_pairs,
        width=settings.width,
        num_symbols=settings.num_symbols,
    )
