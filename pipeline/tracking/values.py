"""What a tracking store can hold truly: short texts and finite numbers.

A long text is replaced by its digest and a number that is not finite by an event, so
that nothing is cut in silence and nothing undefined can win a search for the best run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Measurements", "short_parameters"]

_MAX_PARAMETER_LENGTH = 250
_MAX_EVENTS_NAMED = 20


def short_parameters(
    parameters: Mapping[str, str | int | float | bool],
) -> dict[str, str]:
    """Texts of parameters, each whole or as a digest, never cut.

    Parameters
    ----------
    parameters : mapping
        Plain values.

    Returns
    -------
    dict of str to str
        The value as text; `sha256:` and 16 hexadecimal digits in place of a text of
        more than 250 characters, so that two long values that differ stay different.
    """
    return {name: _short(str(value)) for name, value in parameters.items()}


def _short(text: str) -> str:
    if len(text) <= _MAX_PARAMETER_LENGTH:
        return text
    digest = hashlib.sha256(text.encode("utf-8", errors="backslashreplace"))
    return f"sha256:{digest.hexdigest()[:16]}"


@dataclass(frozen=True)
class Measurements:
    """Measured numbers, with those that are not finite set apart.

    Attributes
    ----------
    points : tuple of (str, int, float)
        Name, step and value of each finite number; a final score has step 0.
    events : mapping of str to tuple of str
        For each name, one text `step, kind` per number that is not finite; the kind is
        nan, inf or -inf, and the step of a final score is `final`.
    """

    points: tuple[tuple[str, int, float], ...]
    events: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(
        cls,
        scores: Mapping[str, float],
        curves: Mapping[str, Sequence[tuple[int, float]]],
    ) -> Measurements:
        """Sort final scores and curves into points and events."""
        points: list[tuple[str, int, float]] = []
        events: dict[str, tuple[str, ...]] = {}
        for name, step, value in _flattened(scores, curves):
            if math.isfinite(value):
                points.append((name, step or 0, value))
            else:
                moment = "final" if step is None else str(step)
                events[name] = (*events.get(name, ()), f"{moment}, {value}")
        return cls(tuple(points), events)

    @property
    def num_non_finite(self) -> int:
        """Count the numbers that are not finite."""
        return sum(map(len, self.events.values()))

    def event_tags(self, num_non_finite: int) -> dict[str, str]:
        """Tags for the events, with the count that the run has reached.

        A tag names the first 20 events and how many follow.
        """
        tags = {
            f"infoset.non_finite.{name}": _listed(e) for name, e in self.events.items()
        }
        return {**tags, "infoset.num_non_finite": str(num_non_finite)}


def _flattened(
    scores: Mapping[str, float], curves: Mapping[str, Sequence[tuple[int, float]]]
) -> Iterator[tuple[str, int | None, float]]:
    for name, value in scores.items():
        yield name, None, float(value)
    for name, curve in curves.items():
        for step, value in curve:
            yield name, int(step), float(value)


def _listed(events: tuple[str, ...]) -> str:
    text = "; ".join(events[:_MAX_EVENTS_NAMED])
    num_more = len(events) - _MAX_EVENTS_NAMED
    return f"{text}; and {num_more} more" if num_more > 0 else text
