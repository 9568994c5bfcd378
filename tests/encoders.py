"""Encoders of texts for tests: they count what they are asked, and some misbehave."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
import pandas as pd


@dataclass
class CountingEncoder:
    """Numbers drawn from a text's own hash; keeps every text that it was asked for."""

    name: str = "tiny"
    digest: str = "tiny-1"
    training_cutoff: pd.Timestamp | None = None
    num_features: int = 3
    asked: list[str] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        seeds = [int.from_bytes(sha256(t.encode()).digest()[:4], "big") for t in texts]
        rows = [np.random.default_rng(s).normal(size=self.num_features) for s in seeds]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.num_features)


class CentringEncoder(CountingEncoder):
    """Subtracts the mean of all texts it is given, later ones among them: a leak."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        numbers = super().encode(texts)
        centred: np.ndarray = numbers - numbers.mean(axis=0)
        return centred


def installed() -> CountingEncoder:
    """Stand in for the object that an installed package offers."""
    return CountingEncoder(name="offered", digest="offered-1")
