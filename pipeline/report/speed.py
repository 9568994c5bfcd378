"""What a forecast costs, in words: no speed-up that the noise could explain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from infoset.pipeline.latency.percentiles import SHORTEST_BLOCK, block_draws

from .numbers import count, duration, significant
from .words import Tone, Verdict

_EQUAL_SPEED = 1.05
_INTERVAL = "95\N{NO-BREAK SPACE}% interval"


@dataclass(frozen=True)
class Timing:
    """Median latency of two forecasters at the same history and workload.

    Attributes
    ----------
    history_length : int
    workload : str
        ``fresh`` or ``streaming``.
    name, other : str
    p50_us, other_p50_us : float
    low, high : float
        95 % interval of ``other_p50_us / p50_us``; NaN where no times were stored.
    """

    history_length: int
    workload: str
    name: str
    other: str
    p50_us: float
    other_p50_us: float
    low: float
    high: float


def ratio_interval(
    times: Float64[np.ndarray, " n"], other_times: Float64[np.ndarray, " m"]
) -> tuple[float, float]:
    """Return the 95 % interval of median(`other_times`) / median(`times`).

    Both were taken in turns. Blocks of ten successive turns are drawn, the same ones
    for both, so that slow stretches of the machine stay together and meet both; NaN
    with fewer than two blocks, or where the numbers differ.
    """
    num = len(times)
    if num != len(other_times) or num < 2 * SHORTEST_BLOCK:
        return math.nan, math.nan
    ratios = [
        np.median(other_times[drawn], axis=1) / np.median(times[drawn], axis=1)
        for drawn in block_draws(num, block=SHORTEST_BLOCK)
    ]
    low, high = np.percentile(np.concatenate(ratios), [2.5, 97.5])
    return float(low), float(high)


def latency_verdict(
    scored: Timing | None, longest: Timing | None, crossover: str = ""
) -> Verdict:
    """Answer what a forecast costs, linear against softmax.

    Parameters
    ----------
    scored : Timing or None
        At the history that the scores were made with.
    longest : Timing or None
        At the longest history measured, if that is another one.
    crossover : str
        A sentence on where the one becomes cheaper than the other.
    """
    question = "What does a forecast cost?"
    timings = [timing for timing in (scored, longest) if timing is not None]
    if not timings:
        text = (
            "The latency of linear and softmax attention was not measured side by side."
        )
        return Verdict(question, "Not measured", "neutral", text)
    texts = []
    if scored is not None:
        texts.append(f"With the scored history, {_work(scored)}, {_costs(scored)}")
    if longest is not None:
        texts.append(f"With {_work(longest)} {_costs(longest)}")
    texts += [crossover] if crossover else []
    answers = "; ".join(_answer(timing) for timing in timings)
    tone, *others = dict.fromkeys(_tone(timing) for timing in timings)
    return Verdict(
        question,
        f"A{answers[1:]}",  # it starts with "at"
        "neutral" if others else tone,
        " ".join(texts),
    )


def _work(timing: Timing) -> str:
    events = f"{count(timing.history_length)} events"
    if timing.workload == "fresh":
        return f"{events} read anew"
    return f"{events} in a state that takes in one more"


def _costs(timing: Timing) -> str:
    return (
        f"a forecast takes {timing.name} {duration(timing.p50_us)} and {timing.other} "
        f"{duration(timing.other_p50_us)} (medians): {_finding(timing)}."
    )


def _finding(timing: Timing) -> str:
    if math.isnan(timing.low):
        return "whether that is more than noise was not measured"
    if timing.low <= 1 <= timing.high:
        ends = f"{significant(timing.low)} to {significant(timing.high)}"
        return (
            "they cannot be told apart, for the "
            f"{_INTERVAL} of their ratio, {ends}, contains 1"
        )
    if _is_small(timing):
        return "they are about equally fast"
    faster, ratio, low, high = _faster(timing)
    ends = f"{significant(low, 2)} to {significant(high, 2)}"
    return f"{faster} is {significant(ratio, 2)} times as fast ({_INTERVAL} {ends})"


def _answer(timing: Timing) -> str:
    at = f"at {count(timing.history_length)} events"
    if math.isnan(timing.low):
        return f"{at} not tested"
    if timing.low <= 1 <= timing.high:
        return f"{at} no difference shown"
    if _is_small(timing):
        return f"{at} about equal"
    faster, ratio, _, _ = _faster(timing)
    return f"{at} {faster} {significant(ratio, 2)} times as fast"


def _tone(timing: Timing) -> Tone:
    if not (timing.low > 1 or timing.high < 1) or _is_small(timing):
        return "neutral"
    return "good" if timing.low > 1 else "bad"


def _faster(timing: Timing) -> tuple[str, float, float, float]:
    """Return the faster one, and how many times as fast it is with its interval."""
    ratio = timing.other_p50_us / timing.p50_us
    if ratio > 1:
        return timing.name, ratio, timing.low, timing.high
    return timing.other, 1 / ratio, 1 / timing.high, 1 / timing.low


def _is_small(timing: Timing) -> bool:
    return 1 / _EQUAL_SPEED <= timing.other_p50_us / timing.p50_us <= _EQUAL_SPEED
