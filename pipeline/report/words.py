"""The verdict in words: pure functions from numbers to sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .differences import (
    Difference,
    Outcome,
    difference_sentence,
    outcome,
    share_text,
)
from .numbers import significant
from .training import Training, all_untrained

Tone = Literal["good", "bad", "neutral"]


@dataclass(frozen=True)
class Verdict:
    """One question of the run and its answer."""

    question: str
    answer: str
    tone: Tone
    text: str


_ANSWERS: dict[Outcome, tuple[str, Tone]] = {
    "better": ("Yes", "good"),
    "worse": ("No", "bad"),
    "disputed": ("Not settled", "neutral"),
    "unclear": ("Not shown", "neutral"),
    "identical": ("Identical", "neutral"),
    "undefined": ("Undefined", "neutral"),
}
_OF_ATTENTION: dict[Outcome, tuple[str, Tone]] = {
    **_ANSWERS,
    "better": ("Better", "good"),
    "worse": ("Worse", "bad"),
    "unclear": ("No difference shown", "neutral"),
}
_UNTRAINED: tuple[str, Tone] = ("Untrained", "neutral")


def baseline_verdict(
    difference: Difference | None,
    *,
    baseline: str | None,
    num_attention: int,
    trainings: Sequence[Training] = (),
    leader: Difference | None = None,
) -> Verdict:
    """Answer whether the best attention forecaster beats the named baseline.

    Parameters
    ----------
    difference : Difference or None
        Of the best attention forecaster to the baseline; None without one.
    baseline : str or None
    num_attention : int
        How many attention forecasters it is the best of.
    trainings : sequence of Training
        Of all attention forecasters, as far as they are known.
    leader : Difference or None
        Of the forecaster with the lowest loss of all to the baseline, if it is another
        one than these two.
    """
    question = "Does attention beat the baseline?"
    if baseline is None:
        text = "The configuration names no baseline."
        return Verdict(question, "No baseline", "neutral", text)
    if difference is None:
        text = f"No attention forecaster was compared with {baseline}."
        return Verdict(question, "Not tried", "neutral", text)
    found = outcome(difference)
    subject = difference.name
    if num_attention > 1 and found != "identical":  # which nobody is the better of
        rank = "better of two" if num_attention == 2 else f"best of {num_attention}"
        subject = f"The {rank} attention forecasters, {subject},"
    answer, tone = _ANSWERS[found]
    text = difference_sentence(difference, subject)
    training = next((t for t in trainings if t.name == difference.name), None)
    if training is not None and training.is_untrained:
        answer, tone = _UNTRAINED
        untrained = trainings if all_untrained(trainings) else (training,)
        text = f"{_nothing_learned(untrained)} {difference_sentence(difference)}"
    elif training is not None and training.num_untrained:
        text += f" {training.sentence}"
    if leader is not None:
        told = outcome(leader) in {"better", "worse"}
        doubt = "" if told else f", which cannot be told from {baseline} either"
        text += f" The lowest loss of all is that of {leader.name}{doubt}."
    return Verdict(question, answer, tone, text)


def attention_verdict(
    difference: Difference | None, trainings: Sequence[Training] = ()
) -> Verdict:
    """Answer whether linear attention forecasts as well as softmax attention.

    Parameters
    ----------
    difference : Difference or None
        Of linear to softmax; None unless both took part.
    trainings : sequence of Training
        Of the two, as far as they are known.
    """
    question = "Does linear attention forecast as well as softmax?"
    if difference is None:
        text = "Linear and softmax attention did not both take part."
        return Verdict(question, "Not compared", "neutral", text)
    found = outcome(difference)
    answer, tone = _OF_ATTENTION[found]
    text = difference_sentence(difference)
    room = difference.percent(max(abs(difference.low), abs(difference.high)))
    if found == "unclear" and math.isfinite(room):
        text += (
            " That is no proof of equality: by the interval their losses can still "
            f"differ by {share_text(room)}."
        )
    untrained = [training for training in trainings if training.is_untrained]
    if untrained:
        answer, tone = _UNTRAINED
        text = f"{_nothing_learned(untrained)} {text}"
    return Verdict(question, answer, tone, text)


def _nothing_learned(untrained: Sequence[Training]) -> str:
    if len(untrained) == 1:
        return untrained[0].sentence
    names = listing([training.name for training in untrained], most=len(untrained))
    return (
        f"In no fold did a training step of {names} improve the validation loss: their "
        "forecasts are those they started from, the scaled quantiles."
    )


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


def overlap_sentence(horizon: int) -> str:
    """Say why the test allows for neighbouring errors to be alike.

    Parameters
    ----------
    horizon : int
        Forecast times until the slowest target is known.
    """
    if horizon <= 1:
        return (
            "Each target is known by the next forecast time, so neighbouring errors "
            "share nothing unknown and the test needs no lag."
        )
    lags = "1 lag" if horizon == 2 else f"{horizon - 1} lags"
    return (
        f"The outcome of a forecast is published up to {horizon} forecast times later "
        "(median of the slowest entity). Forecasts made meanwhile share what is not "
        f"known yet, so neighbouring errors are alike; the test allows for {lags} of "
        "that."
    )


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
