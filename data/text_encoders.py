"""Encoders of texts: numbers from a trained model, which may know the future.

A model that was trained on later texts knows the future of earlier ones. An encoder
therefore says until when it was trained, and every forecast before that is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from .errors import LookAheadError

ENTRY_POINTS = "infoset.encoders"
# Of the largest number of a text: what padding and half precision may change.
_TOLERANCE = 0.01


@runtime_checkable
class TextEncoder(Protocol):
    """What turns a text into numbers, each text alone.

    Attributes
    ----------
    name : str
        What declarations call it.
    digest : str
        Changes whenever the numbers may change: weights, tokens, pooling.
    training_cutoff : Timestamp or None
        No text from after this instant was part of its training; None for an encoder
        that learned from no text. Timezone-aware.
    num_features : int
        Numbers per text.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 (see the class)

    @property
    def digest(self) -> str: ...  # noqa: D102

    @property
    def training_cutoff(self) -> pd.Timestamp | None: ...  # noqa: D102

    @property
    def num_features(self) -> int: ...  # noqa: D102

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return floats of shape (len(texts), num_features)."""
        ...


def text_names(num_features: int) -> list[str]:
    """Return how the numbers of a text are called: `text_00`, `text_01` ..."""
    digits = max(2, len(str(num_features - 1)))
    return [f"text_{place:0{digits}d}" for place in range(num_features)]


def find_encoder(name: str, given: Mapping[str, TextEncoder]) -> TextEncoder:
    """Return an encoder by name: one that was given, or an installed one.

    Raises
    ------
    ValueError
        If there is none of that name, or what it says about itself cannot be.
    TypeError
        If it is no encoder.
    """
    if name in given:
        return checked_encoder(given[name], name)
    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        known = ", ".join(sorted({*given, *offered})) or "none is"
        raise ValueError(
            f"encoder must be given by `run(config, encoders=...)` or installed under "
            f"{ENTRY_POINTS!r} ({known}); got {name!r}. Correct the declaration, or "
            "give the encoder."
        )
    return checked_encoder(offered[name].load()(), name)


def checked_encoder(encoder: object, name: str) -> TextEncoder:
    """Return the encoder if it says about itself what an encoder must.

    Raises
    ------
    ValueError, TypeError
        See `find_encoder`.
    """
    if not isinstance(encoder, TextEncoder):
        raise TypeError(
            f"encoder {name!r} must have name, digest, training_cutoff, num_features "
            f"and encode(texts); got {type(encoder).__name__}."
        )
    if encoder.name != name:
        raise ValueError(
            f"an encoder must be declared by its own name; got {encoder.name!r} as "
            f"{name!r}. Rename one of them."
        )
    digest: object = encoder.digest
    if not isinstance(digest, str) or not digest:
        raise ValueError(
            f"digest of encoder {name!r} must be text that changes with its numbers; "
            f"got {digest!r}."
        )
    if not _is_count(encoder.num_features):
        raise ValueError(
            f"num_features of encoder {name!r} must be a whole number from 1; got "
            f"{encoder.num_features!r}."
        )
    cutoff = encoder.training_cutoff
    if cutoff is not None and not _is_instant(cutoff):
        raise ValueError(
            f"training_cutoff of encoder {name!r} must be a timezone-aware Timestamp, or "
            f"None if it learned from no text; got {cutoff!r}."
        )
    return encoder


def encoded(encoder: TextEncoder, texts: Sequence[str]) -> np.ndarray:
    """Return the encoder's numbers of some texts, in float32 or float64.

    Every text is encoded a second time among others (every second text, backwards), the
    first and the last also alone: what changes there depends on other texts, later ones
    among them. Bits may change: whoever pads texts to the longest of a batch adds up in
    another order. Only a change above 1 % of a text's largest number is noticed.

    Raises
    ------
    ValueError
        If the numbers are of another shape, or not finite.
    TypeError
        If they are no floats.
    LookAheadError
        If a text has other numbers beside other texts.
    """
    numbers = _encode(encoder, texts)
    for places in _other_batches(len(texts)):
        again = _encode(encoder, [texts[place] for place in places])
        change = np.abs(again - numbers[places]).max(axis=1)
        wrong = change > _TOLERANCE * np.abs(again).max(axis=1).clip(1e-12)
        if wrong.any():
            row = int(wrong.argmax())
            raise LookAheadError(
                f"encoder {encoder.name!r} must give a text the same numbers whatever is "
                f"beside it; got a change of {change[row]:.3g} for "
                f"{_shown(texts[places[row]])}. An encoder that learns from the texts it "
                "is given looks ahead; one that draws at random cannot be repeated."
            )
    return numbers


def _other_batches(num_texts: int) -> list[list[int]]:
    """Return batches in which each text of one has other company."""
    if num_texts < 2:
        return []
    # Every second one, not halves: those keep an encoder's own small batches together.
    back = list(range(num_texts))[::-1]
    batches = [back[::2], back[1::2]]
    return batches + [[place] for place in (0, num_texts - 1) if [place] not in batches]


def _encode(encoder: TextEncoder, texts: Sequence[str]) -> np.ndarray:
    numbers = np.asarray(encoder.encode(list(texts)))
    wanted = (len(texts), encoder.num_features)
    if numbers.shape != wanted:
        raise ValueError(
            f"encoder {encoder.name!r} must give an array of shape {wanted} for "
            f"{len(texts)} texts; got {numbers.shape}."
        )
    if not np.issubdtype(numbers.dtype, np.floating) or numbers.dtype.itemsize > 8:
        raise TypeError(
            f"encoder {encoder.name!r} must give floats of 64 bits at most; got "
            f"{numbers.dtype}."
        )
    wrong = ~np.isfinite(numbers).all(axis=1)
    if wrong.any():
        raise ValueError(
            f"encoder {encoder.name!r} must give finite numbers; got others for "
            f"{_shown(texts[int(wrong.argmax())])}."
        )
    # Half precision fits into single exactly.
    kind = np.float32 if numbers.dtype.itemsize <= 4 else np.float64
    return np.ascontiguousarray(numbers, dtype=kind)


def _is_instant(given: object) -> bool:
    # A missing time is no Timestamp, for all that pandas makes it look like one.
    return isinstance(given, pd.Timestamp) and given.tzinfo is not None


def _is_count(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and given >= 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
