"""The open loops at one history length, as rows of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .cells import Cell, Entry
from .filled_streams import Contestant
from .open_loop import (
    US_PER_SECOND,
    Served,
    factor_for_rate,
    open_loop,
    poisson,
    recorded,
)
from .plan import Arrivals, LatencyPlan
from .quiet import Quiet
from .table import Row, times_row
from .tape import Tape
from .throughput import BUSIEST, stays_under, throughput_at_limit
from .turns import Turns

_HALF_BUSY = 0.5
_FEWEST = 10
# A trial has so many requests and lasts so many limits, but no longer than this.
_TRIAL, _TRIAL_LIMITS, _TRIAL_SECONDS = 5000, 100, 5.0
# It has so many in any case; a rate at which they take longer than this is not tried.
_FEWEST_OF_TRIAL, _LONGEST_TRIAL = 1000, 20.0


def open_rows(
    entries: Sequence[Entry],
    cell: Cell,
    plan: LatencyPlan,
    quiet: Quiet,
    means_us: Mapping[Contestant, float],
) -> list[Row]:
    """Measure service and response at one rate, the same for all.

    Parameters
    ----------
    entries : sequence of Entry
        Of one backend.
    cell : Cell
    plan : LatencyPlan
    quiet : Quiet
    means_us : Mapping[Contestant, float]
        Mean service times of the closed loop. Without a rate in the plan, the slowest
        forecaster is busy for half of the time.
    """
    slowest = max(means_us.values())
    rate = plan.rate_hz or _HALF_BUSY * US_PER_SECOND / slowest
    rows = []
    for entry in entries:
        turns = entry.turns(cell.workload)
        for arrivals in plan.arrivals:
            about = cell.columns() | entry.columns()
            about |= {"loop": arrivals, "rate_hz": rate}
            try:
                intended = _intended(arrivals, entry.filled[0].tape, rate, plan)
            except ValueError as error:
                rows.append(about | {"time": "response", "undefined": str(error)})
                continue
            rows += _served_rows(turns, intended, about, plan, quiet)
    return rows


def throughput_rows(
    entries: Sequence[Entry],
    cell: Cell,
    plan: LatencyPlan,
    quiet: Quiet,
    means_us: Mapping[Contestant, float],
) -> list[Row]:
    """Search each forecaster's largest rate of Poisson arrivals under the limit."""
    if plan.limit_us is None:
        return []
    return [
        cell.columns()
        | entry.columns()
        | {"loop": "poisson", "time": "response", "limit_us": plan.limit_us}
        | _largest_rate(
            entry.turns(cell.workload), plan, quiet, means_us[entry.contestant]
        )
        for entry in entries
    ]


def _intended(
    arrivals: Arrivals, tape: Tape, rate_hz: float, plan: LatencyPlan
) -> np.ndarray:
    num = _affordable(plan.limits.num_forecasts, rate_hz, plan.limits.seconds)
    if arrivals == "poisson":
        return poisson(rate_hz, num)
    instants = tape.arrivals[-num:]
    return recorded(instants, factor=factor_for_rate(instants, rate_hz))


def _affordable(num: int, rate_hz: float, seconds: float) -> int:
    """Return how many requests come in the time, but ten at least."""
    return max(_FEWEST, min(num, int(rate_hz * seconds)))


def _served_rows(
    turns: Turns, intended: np.ndarray, about: Row, plan: LatencyPlan, quiet: Quiet
) -> list[Row]:
    turns.rewind()
    before = quiet.usage()
    served = open_loop(turns, intended, num_warm_up=plan.limits.num_warm_up)
    seen = quiet.usage().since(before)
    times = {"service": served.service_us, "response": served.response_us}
    return [
        about
        | times_row(taken, seen, len(taken), quiet)
        | {"time": time, "throughput_hz": len(taken) / served.seconds}
        for time, taken in times.items()
    ]


def _largest_rate(turns: Turns, plan: LatencyPlan, quiet: Quiet, mean_us: float) -> Row:
    """Return the largest rate under the limit, with what was measured at it."""
    limit = float(plan.limit_us or 0)
    trials = _Trials(turns, plan, limit)
    capacity, lowest = US_PER_SECOND / mean_us, _FEWEST_OF_TRIAL / _LONGEST_TRIAL
    if BUSIEST * capacity < lowest:
        return {
            "undefined": f"a trial of {_LONGEST_TRIAL:g} s has fewer than "
            f"{_FEWEST_OF_TRIAL:,} requests, too few for a p99"
        }
    before = quiet.usage()
    found = throughput_at_limit(
        trials.hold, limit_us=limit, capacity_hz=capacity, lowest_hz=lowest
    )
    seen = quiet.usage().since(before)
    if found.undefined is not None or trials.last is None:
        return {"undefined": found.undefined}
    # The last trial is the one that confirmed the rate.
    return times_row(trials.last.response_us, seen, trials.num, quiet) | {
        "rate_hz": found.rate_hz,
        "throughput_hz": found.rate_hz,
    }


@dataclass
class _Trials:
    """Trials of rates; `last` is the newest, `num` the requests of all."""

    turns: Turns
    plan: LatencyPlan
    limit_us: float
    last: Served | None = field(default=None, init=False)
    num: int = field(default=0, init=False)

    def hold(self, rate_hz: float, draw: int) -> bool:
        """Return whether the limit holds at a rate with a draw of the arrivals."""
        limits = self.plan.limits
        # A queue needs time to grow to the limit.
        enough = max(
            _TRIAL, int(_TRIAL_LIMITS * self.limit_us / US_PER_SECOND * rate_hz)
        )
        affordable = int(min(_TRIAL_SECONDS, limits.seconds) * rate_hz)
        num = max(_FEWEST_OF_TRIAL, min(enough, affordable))
        self.turns.rewind()
        self.last = open_loop(
            self.turns,
            poisson(rate_hz, num, seed=draw),
            num_warm_up=limits.num_warm_up,
        )
        self.num += num
        return stays_under(self.last.response_us, self.limit_us)
