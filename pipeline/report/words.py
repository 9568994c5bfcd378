"""The verdict in words: pure functions from numbers to sentences.

A sentence claims a difference only where the test and the interval both see one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .numbers import count, duration, p_text, percent, significant

SIGNIFICANCE = 0.05
_EQUAL_SPEED = 1.05
_INTERVAL = "95\N{NO-BREAK SPACE}% interval"

Outcome = Literal["better", "worse", "disputed", "unclear", "undefined"]
Tone = Literal["good", "bad", "neutral"]


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


@dataclass(frozen=True)
class Timing:
    """Median latency of two forecasters at the same history and workload."""

    history_length: int
    name: str
    other: str
    p50_us: float
    other_p50_us: float


@dataclass(frozen=True)
class Verdict:
    """One question of the run and its answer."""

    question: str
    answer: str
    tone: Tone
    text: str


def outcome(difference: Difference) -> Outcome:
    """Tell what may be claimed about a difference.

    `disputed`: the test and the interval disagree about whether it is luck.
    """
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


def baseline_verdict(
    difference: Difference | None,
    *,
    baseline: str | None,
    num_attention: int,
    leader: str | None = None,
) -> Verdict:
    """Answer whether the best attention forecaster beats the named baseline.

    Parameters
    ----------
    difference : Difference or None
        Of the best attention forecaster to the baseline; None without one.
    baseline : str or None
    num_attention : int
        How many attention forecasters it is the best of.
    leader : str or None
        The forecaster with the lowest loss of all.
    """
    question = "Does attention beat the baseline?"
    if baseline is None:
        text = "The configuration names no baseline."
        return Verdict(question, "No baseline", "neutral", text)
    if difference is None:
        text = f"No attention forecaster was compared with {baseline}."
        return Verdict(question, "Not tried", "neutral", text)
    answers: dict[Outcome, tuple[str, Tone]] = {
        "better": ("Yes", "good"),
        "worse": ("No", "bad"),
        "disputed": ("Not settled", "neutral"),
        "unclear": ("Not shown", "neutral"),
        "undefined": ("Undefined", "neutral"),
    }
    answer, tone = answers[outcome(difference)]
    subject = difference.name
    if num_attention > 1:
        rank = "better of two" if num_attention == 2 else f"best of {num_attention}"
        subject = f"The {rank} attention forecasters, {subject},"
    text = difference_sentence(difference, subject)
    # Of these two the sentence has spoken.
    if leader is not None and leader not in {difference.name, baseline}:
        text += f" The lowest loss of all is that of {leader}."
    return Verdict(question, answer, tone, text)


def attention_verdict(difference: Difference | None) -> Verdict:
    """Answer whether linear attention forecasts as well as softmax attention.

    Parameters
    ----------
    difference : Difference or None
        Of linear to softmax; None unless both took part.
    """
    question = "Does linear attention forecast as well as softmax?"
    if difference is None:
        text = "Linear and softmax attention did not both take part."
        return Verdict(question, "Not compared", "neutral", text)
    answers: dict[Outcome, tuple[str, Tone]] = {
        "better": ("Better", "good"),
        "worse": ("Worse", "bad"),
        "disputed": ("Not settled", "neutral"),
        "unclear": ("No difference shown", "neutral"),
        "undefined": ("Undefined", "neutral"),
    }
    found = outcome(difference)
    answer, tone = answers[found]
    text = difference_sentence(difference)
    room = difference.percent(max(abs(difference.low), abs(difference.high)))
    if found == "unclear" and math.isfinite(room):
        text += f" That is no proof of equality: a gap of {percent(room)} still fits."
    return Verdict(question, answer, tone, text)


def latency_verdict(streaming: Timing | None, fresh: Timing | None) -> Verdict:
    """Answer what a forecast costs, linear against softmax.

    Parameters
    ----------
    streaming, fresh : Timing or None
        Linear and softmax at the longest history measured for both.
    """
    question = "What does a forecast cost?"
    texts = []
    if streaming is not None:
        texts.append(
            f"With {count(streaming.history_length)} events kept in its state, a "
            f"forecast after one more event takes {_costs(streaming)}"
        )
    if fresh is not None:
        texts.append(
            f"With a window of {count(fresh.history_length)} events read anew, it "
            f"takes {_costs(fresh)}"
        )
    first = streaming or fresh
    if first is None:
        text = (
            "The latency of linear and softmax attention was not measured side by side."
        )
        return Verdict(question, "Not measured", "neutral", text)
    _, answer, tone = _speed(first)
    return Verdict(question, answer, tone, " ".join(texts))


def certificate_sentence(
    *, passed: bool | None, num_failed: int, num_checks: int
) -> str:
    """Say what the look-ahead check found; `passed` is None without one."""
    if passed is None:
        return "No certificate was made: this run was not checked for look-ahead."
    if passed and num_checks == 0:
        return "The certificate holds no check: look-ahead was not looked for."
    checks = "1 check" if num_checks == 1 else f"{num_checks} checks"
    if passed:
        return f"Passed: {checks} found no look-ahead."
    found = f"{num_failed} of {checks} found look-ahead" if num_failed else "it says so"
    return f"Failed: {found}. Do not rely on the numbers of this run."


def seed_sentence(name: str, losses: Sequence[float]) -> str:
    """Say how far the score depends on the seed alone."""
    defined = [loss for loss in losses if math.isfinite(loss)]
    if not defined:
        return f"{name}: undefined for every seed."
    low, high = significant(min(defined), 4), significant(max(defined), 4)
    seeds = f"{len(defined)} seed" + ("s" if len(defined) > 1 else "")
    return f"{name}: {low} to {high} over {seeds}."


def listing(names: Sequence[str], most: int = 4) -> str:
    """Join names: ``a, b and c``; the rest is a number."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _has_interval(difference: Difference) -> bool:
    return math.isfinite(difference.low) and math.isfinite(difference.high)


def _amount(difference: Difference, value: float) -> str:
    if value == 0:
        return "equal"
    share = abs(difference.percent(value))
    size = percent(share, 1 if share >= 1 else 2, significant(abs(value), 2))
    return f"{size} {'lower' if value < 0 else 'higher'}"


def _evidence(difference: Difference) -> str:
    p_value = p_text(difference.p_value)
    if not _has_interval(difference):
        reason = f", {difference.undefined}" if difference.undefined else ""
        return f"{_INTERVAL} undefined{reason}; {p_value}"
    low = _amount(difference, difference.low)
    high = _amount(difference, difference.high)
    return f"{_INTERVAL} {low} to {high}; {p_value}"


def _costs(timing: Timing) -> str:
    return (
        f"{timing.name} {duration(timing.p50_us)} and {timing.other} "
        f"{duration(timing.other_p50_us)} (medians): {_speed(timing)[0]}."
    )


def _speed(timing: Timing) -> tuple[str, str, Tone]:
    """Return the ratio as part of a sentence, as an answer, and its tone."""
    ratio = timing.other_p50_us / timing.p50_us
    if 1 / _EQUAL_SPEED <= ratio <= _EQUAL_SPEED:
        return "they are about equally fast", "About equal", "neutral"
    faster, tone = (timing.name, "good") if ratio > 1 else (timing.other, "bad")
    times = f"{significant(max(ratio, 1 / ratio), 2)} times as fast"
    return f"{faster} is {times}", f"{faster} {times}", tone  # type: ignore[return-value]
