"""From which history length on linear attention is cheaper, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from infoset.pipeline.latency.crossover import Crossover

from .numbers import count

_INTERVAL = "95\N{NO-BREAK SPACE}% interval"


def crossover_sentence(found: Crossover) -> str:
    """Say where the crossover is, or why there is none."""
    if found.undefined is not None:
        return f"no crossover was found: {found.undefined}."
    return (
        f"{found.forecaster} is cheaper than {found.other} from about "
        f"{count(found.length)} events on ({_interval(found)})."
    )


def crossover_sentences(found: Sequence[Crossover]) -> list[str]:
    """Say it for each workload, with the backend where there are several."""
    backends = {each.backend for each in found}
    return [
        f"{_named(each, with_backend=len(backends) > 1)}: {crossover_sentence(each)}"
        for each in found
    ]


def _named(found: Crossover, *, with_backend: bool) -> str:
    name = found.workload.capitalize()
    return f"{name}, computed by {found.backend}" if with_backend else name


def _interval(found: Crossover) -> str:
    if math.isnan(found.low):
        return f"without a {_INTERVAL}: too few forecasts beside it"
    low = f"below {count(found.shortest)}" if found.low == 0 else count(found.low)
    above = f"above {count(found.longest)}"
    high = above if math.isinf(found.high) else count(found.high)
    return f"{_INTERVAL} {low} to {high}"
