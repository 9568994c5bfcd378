"""The loss of two forecasters on the same information: what may be said of it.

A sentence claims a difference only where the test and the interval both see one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .numbers import p_text, percent, significant

SIGNIFICANCE = 0.05
# Of the loss: float32 networks that do the same differ by less.
IDENTICAL = 1e-6
_INTERVAL = "95\N{NO-BREAK SPACE}% interval"

Outcome = Literal["better", "worse", "disputed", "unclear", "identical", "undefined"]


@dataclass(frozen=True)
class Difference:
    """Loss of one forecaster minus that of another, on the same information.

    Attributes
    ----------
    name, other : str
    mean, low, high : float
        Mean difference and its 95 % interval, in the unit of the loss; negative where
        `name` is better; NaN where undefined.
    p_value : float
        Two-sided; NaN where undefined.
    other_loss : float
        Mean loss of `other`, for percentages.
    undefined : str or None
        Why a number above is NaN.
    """

    name: str
    other: str
    mean: float
    low: float
    high: float
    p_value: float
    other_loss: float
    undefined: str | None = None

    def percent(self, value: float) -> float:
        """Return a difference in percent of the loss of `other`, NaN if that is none."""
        return 100 * value / self.other_loss if self.other_loss > 0 else math.nan


def outcome(difference: Difference) -> Outcome:
    """Tell what may be claimed about a difference.

    `disputed`: the test and the interval disagree about whether it is luck.
    `identical`: it is rounding, in the mean and at both ends of the interval.
    """
    if _is_rounding(difference):
        return "identical"
    if math.isnan(difference.mean) or math.isnan(difference.p_value):
        return "undefined"
    seen_by_test = difference.p_value < SIGNIFICANCE
    seen_by_interval = seen_by_test
    if _has_interval(difference):
        seen_by_interval = difference.low > 0 or difference.high < 0
    if seen_by_test and seen_by_interval:
        return "better" if difference.mean < 0 else "worse"
    return "disputed" if seen_by_test or seen_by_interval else "unclear"


def difference_sentence(difference: Difference, subject: str | None = None) -> str:
    """Say who is better, by how much, and whether it is luck.

    Parameters
    ----------
    difference : Difference
    subject : str, optional
        How to call the first forecaster; its name by default.
    """
    name, other = subject or difference.name, difference.other
    size = _amount(difference, difference.mean)
    evidence = _evidence(difference)
    match outcome(difference):
        case "better":
            return (
                f"{name} beats {other}: its loss is {size} ({evidence}), "
                "more than luck explains."
            )
        case "worse":
            return (
                f"{name} loses to {other}: its loss is {size} ({evidence}), "
                "more than luck explains."
            )
        case "disputed":
            return (
                f"{name} against {other} is at the edge of luck: its loss is {size} "
                f"({evidence}), but the test and the interval disagree on whether "
                "that is luck."
            )
        case "identical":
            return (
                f"{name} is identical to {other}: their losses differ by less than a "
                "millionth, which is rounding."
            )
        case "unclear":
            return (
                f"{name} cannot be told from {other}: its loss is {size} ({evidence}), "
                "within what luck explains."
            )
        case _:
            reason = difference.undefined or "no test was made"
            return (
                f"{difference.name} and {other} cannot be tested against each other: "
                f"{reason}."
            )


def _has_interval(difference: Difference) -> bool:
    return math.isfinite(difference.low) and math.isfinite(difference.high)


def _is_rounding(difference: Difference) -> bool:
    numbers = (difference.mean, difference.low, difference.high)
    known = [abs(number) for number in numbers if math.isfinite(number)]
    allowed = IDENTICAL * difference.other_loss
    return math.isfinite(difference.mean) and max(known) <= allowed


def _amount(difference: Difference, value: float) -> str:
    if value == 0:
        return "equal"
    size = share_text(abs(difference.percent(value)), significant(abs(value), 2))
    return f"{size} {'lower' if value < 0 else 'higher'}"


def share_text(share: float, absent: str = "") -> str:
    """Write percent points of a difference that is not zero."""
    if share < 0.005:
        return f"less than {percent(0.01, 2)}"
    return percent(share, 1 if share >= 1 else 2, absent)


def _evidence(difference: Difference) -> str:
    p_value = p_text(difference.p_value)
    if not _has_interval(difference):
        reason = f", {difference.undefined}" if difference.undefined else ""
        return f"{_INTERVAL} undefined{reason}; {p_value}"
    low = _amount(difference, difference.low)
    high = _amount(difference, difference.high)
    return f"{_INTERVAL} {low} to {high}; {p_value}"
