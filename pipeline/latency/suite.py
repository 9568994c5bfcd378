"""The latency suite: every combination of what is asked for, as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from infoset.data.sequences import Samples
from infoset.models.attention_forecaster import AttentionForecaster
from infoset.pipeline.config import LatencyOptions

from .cells import Cell, Entry, closed_rows, instance_rows
from .filled_streams import Contestant, FilledStreams
from .open_rows import open_rows, throughput_rows
from .plan import LatencyPlan, short_plan
from .quiet import Quiet, quiet_measurement
from .table import Row, latency_table, measured_on
from .tape import MOST_ENTITIES, Tape, longest_tapes
from .turns import WORKLOADS, longest_run

Tell = Callable[[str], None]


def measure_latency(
    networks: Mapping[str, AttentionForecaster],
    samples: Samples,
    options: LatencyOptions,
) -> pd.DataFrame:
    """Time single forecasts in the short form of the suite, part of every run.

    Parameters
    ----------
    networks : Mapping[str, AttentionForecaster]
        Fitted, by name.
    samples : Samples
        The main history's; its own length is timed beside the configured ones.
    options : LatencyOptions

    Returns
    -------
    DataFrame
        See `measure_suite`.
    """
    if not networks:
        return latency_table([])
    sizes = samples.num_events
    plan = short_plan(
        options.history_lengths,
        scored_length=scored_length(
            samples.history.last, sizes, options.history_lengths
        ),
        num_forecasts=options.num_forecasts,
        num_warm_up=options.num_warm_up,
    )
    return measure_suite(networks, fitted_tapes(networks, samples, most=1), plan)


def fitted_tapes(
    networks: Mapping[str, AttentionForecaster],
    samples: Samples,
    *,
    most: int = MOST_ENTITIES,
) -> list[Tape]:
    """Return the longest tapes of entities that every network was fitted for."""
    known = set(samples.entities)
    for network in networks.values():
        known &= set(network.fitted_on().entities)
    return longest_tapes(samples, known, most=most)


def scored_length(
    last: int | None, num_events: np.ndarray, lengths: Sequence[int]
) -> int:
    """Return the length at which scores were made, or the measured one nearest to it.

    Parameters
    ----------
    last : int or None
        The history's, where it counts events.
    num_events : ndarray of shape (n,)
        Sizes of the information sets.
    lengths : sequence of int
        Measured ones.
    """
    if last is not None:
        return last
    usual = max(float(np.median(num_events)), 1.0) if len(num_events) else 1.0
    return min(lengths, key=lambda length: abs(np.log(length / usual)))


def measure_suite(
    networks: Mapping[str, AttentionForecaster],
    tapes: Sequence[Tape],
    plan: LatencyPlan,
    *,
    tell: Tell = lambda _: None,
) -> pd.DataFrame:
    """Time forecasts of every network, at every combination of the plan's factors.

    `fresh`: a new window of `length` events is encoded and read, nothing reused.
    `streaming`: a state that holds `length` events takes in one more and is read.
    The path from the raw event to the quantiles is inside both.

    Parameters
    ----------
    networks : Mapping[str, AttentionForecaster]
        Fitted, by name.
    tapes : sequence of Tape
        One per entity; more streams than tapes use them again.
    plan : LatencyPlan
    tell : callable
        Is told what is measured next.

    Returns
    -------
    DataFrame
        `COLUMNS`: `times_us` holds the single times in the order in which they were
        taken; `undefined` says why there are none.
    """
    about: Row = {"form": plan.form} | measured_on()
    contestants = [
        Contestant(name, network, backend)
        for name, network in networks.items()
        for backend in plan.backends
    ]
    rows: list[Row] = []
    for threads in plan.threads:
        with quiet_measurement(threads) as quiet:
            for entities, workload in product(plan.entities, WORKLOADS):
                cell = Cell(workload, 0, threads=threads, entities=entities)
                rows += _along_lengths(
                    contestants, tapes, cell, plan=plan, quiet=quiet, tell=tell
                )
    return latency_table([about | row for row in rows])


def _along_lengths(
    contestants: Sequence[Contestant],
    tapes: Sequence[Tape],
    cell: Cell,
    *,
    plan: LatencyPlan,
    quiet: Quiet,
    tell: Tell,
) -> list[Row]:
    """Measure one workload at all lengths, the shortest first."""
    used = (
        [tapes[place % len(tapes)] for place in range(cell.entities)] if tapes else []
    )
    shelves = {c: FilledStreams(c, used, cell.workload) for c in contestants}
    rows: list[Row] = []
    for length in plan.lengths:
        here = replace(cell, history_length=length)
        tell(_named(here))
        reason = _why_not(used, length, plan)
        if reason is not None:
            rows += [_unmeasured(c, here, reason) for c in contestants]
            continue
        entries: list[Entry] = []
        for contestant, shelf in shelves.items():
            try:
                entries.append(Entry(contestant, shelf.of_length(length)))
            except ValueError as error:  # a backend that does not know this network
                rows.append(_unmeasured(contestant, here, str(error)))
        if entries:
            continued = {"synthetic_continuation": _is_continued(used, here, plan)}
            # A backend by itself: torch would empty the caches that numba lives on.
            for backend in dict.fromkeys(entry.backend for entry in entries):
                group = [entry for entry in entries if entry.backend == backend]
                found = _measured(group, here, plan, quiet)
                rows += [row | continued for row in found]
    return rows


def _is_continued(tapes: Sequence[Tape], cell: Cell, plan: LatencyPlan) -> bool:
    """Whether forecasts at this length reach beyond the end of a tape."""
    fresh, length = cell.workload == "fresh", cell.history_length
    reach = length + (plan.num_turns if fresh else longest_run(length))
    return any(reach > len(tape) for tape in tapes)


def _measured(
    entries: Sequence[Entry], cell: Cell, plan: LatencyPlan, quiet: Quiet
) -> list[Row]:
    """Measure every loop that the plan wants of a cell, for one backend."""
    rows, means = closed_rows(entries, cell, plan, quiet)
    for instances in plan.instances:
        if instances > 1:
            beside = replace(cell, instances=instances)
            rows += instance_rows(entries, beside, plan, quiet)
    is_base = (cell.threads, cell.entities) == (plan.threads[0], plan.entities[0])
    if is_base and cell.history_length == plan.scored_length:
        rows += open_rows(entries, cell, plan, quiet, means)
        rows += throughput_rows(entries, cell, plan, quiet, means)
    return rows


def _why_not(tapes: Sequence[Tape], length: int, plan: LatencyPlan) -> str | None:
    """Say why a length cannot be measured; None if it can."""
    if not tapes:
        return "no entity has events and is known to every forecaster"
    shortest = min(len(tape) for tape in tapes)
    if not plan.continues and length >= shortest:
        return f"the longest timeline holds {shortest} events"
    found = [tape.why_too_short(length + plan.num_turns) for tape in tapes]
    return next((reason for reason in found if reason), None)


def _unmeasured(contestant: Contestant, cell: Cell, reason: str) -> Row:
    return cell.columns() | {
        "forecaster": contestant.name,
        "attention": contestant.network.attention,
        "backend": contestant.backend,
        "undefined": reason,
    }


def _named(cell: Cell) -> str:
    several = [
        f", {number} {what}"
        for number, what in ((cell.threads, "threads"), (cell.entities, "streams"))
        if number > 1
    ]
    events = f"{cell.history_length:,} events"
    return f"Measuring {cell.workload} forecasts after {events}{''.join(several)}"
