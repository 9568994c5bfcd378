"""The verdict of a run and its limits, from the run's files."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .costs import longest_timing, scored_timing, scored_workload
from .crossover_words import crossover_sentence
from .differences import Difference, outcome
from .inputs import RunContents
from .speed import latency_verdict
from .tables import difference
from .training import trainings
from .words import (
    Verdict,
    attention_verdict,
    baseline_verdict,
    certificate_sentence,
    listing,
)

_ATTENTION = ("linear", "softmax")


def verdicts(contents: RunContents) -> list[Verdict]:
    """Answer the run's questions: baseline, linear against softmax, latency."""
    baseline = contents.baseline
    best = contents.best(*_ATTENTION)
    linear, softmax = contents.best("linear"), contents.best("softmax")
    to_baseline = None
    if baseline is not None and best is not None and best != baseline:
        to_baseline = difference(contents, best, baseline)
    both = None if linear is None or softmax is None else (linear, softmax)
    known = [
        training
        for training in trainings(contents.record, contents.history)
        if contents.kinds.get(training.name) in _ATTENTION
    ]
    return [
        baseline_verdict(
            to_baseline,
            baseline=baseline,
            num_attention=sum(kind in _ATTENTION for kind in contents.kinds.values()),
            trainings=known,
            leader=_leader(contents, best),
        ),
        attention_verdict(
            difference(contents, *both) if both else None,
            [training for training in known if training.name in (both or ())],
        ),
        latency_verdict(
            scored_timing(contents, *both) if both else None,
            longest_timing(contents, *both) if both else None,
            _crossover(contents, *both) if both else "",
        ),
    ]


def look_ahead(contents: RunContents) -> tuple[bool | None, str]:
    """Return whether the look-ahead check passed (None without one), and say so."""
    if contents.certificate is None:
        return None, certificate_sentence(passed=None, num_failed=0, num_checks=0)
    failed = int((contents.checks["num_failures"] > 0).sum())
    passed = contents.certificate.get("passed") is True and failed == 0
    num_checks = len(contents.checks)
    text = certificate_sentence(passed=passed, num_failed=failed, num_checks=num_checks)
    return None if passed and num_checks == 0 else passed, text


def limits(contents: RunContents) -> list[str]:
    """Say what the run does not show."""
    found = [*_limits_of_tests(contents), *_limits_of_fits(contents)]
    if contents.latency.empty:
        found.append("What a forecast costs: no latency was measured.")
    else:
        found.append(
            "Latency elsewhere: it was measured on one machine, one thread and one "
            "forecast at a time. Other hardware, and many forecasts at once, can turn "
            "the order round."
        )
    if look_ahead(contents)[0] is None:
        found.append("That no future information was used: this was not checked.")
    else:
        found.append(
            "That the sources' own clocks are right: the certificate checks what the "
            "program did with them, at a sample of forecast times."
        )
    return found


def _crossover(contents: RunContents, linear: str, softmax: str) -> str:
    """Say where linear becomes cheaper in the workload of the scores; empty if unknown."""
    workload, _ = scored_workload(contents)
    found = [
        each
        for each in contents.crossovers
        if (each.forecaster, each.other, each.workload) == (linear, softmax, workload)
    ]
    # The usual backend, as in the medians beside it, also if it has no crossover.
    usual = max(found, key=lambda each: each.backend == "numba", default=None)
    if usual is None or usual.undefined is not None:
        return ""
    return f"Computed by {usual.backend}, {crossover_sentence(usual)}"


def _leader(contents: RunContents, best: str | None) -> Difference | None:
    """Return what sets the lowest loss off from the baseline, if it is a third one's."""
    baseline = contents.baseline
    if not contents.names or baseline is None:
        return None
    first = contents.names[0]
    if first in {best, baseline} or math.isnan(contents.loss_of(first)):
        return None
    found = difference(contents, first, baseline)
    return None if outcome(found) == "identical" else found


def _limits_of_tests(contents: RunContents) -> list[str]:
    found = [
        "Money: nothing here is a strategy. Costs, turnover, capacity and a backtest "
        "are not part of it.",
        "The future: these are the test spans above, and one way that history went.",
    ]
    num_pairs = len(contents.pairs)
    if num_pairs > 1:
        found.append(
            f"A discovery by search: p-values are not corrected for the {num_pairs} "
            "comparisons made, or for earlier runs with other settings."
        )
    if sum(kind in _ATTENTION for kind in contents.kinds.values()) > 1:
        found.append(
            "How a forecaster chosen beforehand would have done: the best attention "
            "forecaster was picked on the very test spans that judge it, which "
            "flatters it."
        )
    return found


def _limits_of_fits(contents: RunContents) -> list[str]:
    attention = [n for n, kind in contents.kinds.items() if kind in _ATTENTION]
    if not attention:
        return []
    found = [
        f"The best that {listing(attention)} can do: one size and one training "
        "schedule, the same for all, and no search over them."
    ]
    seeds: Sequence[object] = contents.config.get("seeds") or ()
    if len(seeds) == 1:
        found.append(
            "How much depends on the random start: each network was fitted with one "
            "seed."
        )
    return found
