"""The closed loop of one combination of factors, as rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.stream_making import ChosenBackend

from .closed_loop import closed_loop
from .contention import Contention
from .filled_streams import Contestant
from .open_loop import US_PER_SECOND
from .plan import LatencyPlan
from .quiet import Quiet
from .reference_error import Float64Reference, reference_error
from .side_by_side import Instance, side_by_side
from .table import Row, times_row
from .turns import FilledStream, Turns, Workload

# Softmax over more events in float64 takes minutes a forecast.
_LONGEST_CHECKED = 16_384


@dataclass(frozen=True)
class Cell:
    """One combination of factors.

    Attributes
    ----------
    workload : {'fresh', 'streaming'}
    history_length, threads, entities, instances : int
    """

    workload: Workload
    history_length: int
    threads: int = 1
    entities: int = 1
    instances: int = 1

    def columns(self) -> Row:
        """Return the columns of the table."""
        return dict(asdict(self))


@dataclass(frozen=True, eq=False)
class Entry:
    """A contestant whose streams hold the history of a cell.

    Attributes
    ----------
    contestant : Contestant
    filled : sequence of FilledStream
    """

    contestant: Contestant
    filled: Sequence[FilledStream]

    def turns(self, workload: Workload) -> Turns:
        """Return its requests, from the first one on."""
        return Turns(self.filled, workload)

    @property
    def backend(self) -> str:
        """What computes its streams, where `auto` has decided."""
        return self.filled[0].stream.backend

    def columns(self) -> Row:
        """Return what the table says of it whatever is measured."""
        return {
            "forecaster": self.contestant.name,
            "attention": self.contestant.network.attention,
            "backend": self.backend,
            "state_bytes": sum(each.stream.state_bytes for each in self.filled),
        }


def closed_rows(
    entries: Sequence[Entry], cell: Cell, plan: LatencyPlan, quiet: Quiet
) -> tuple[list[Row], dict[Contestant, float]]:
    """Measure the closed loop; return a row each, and mean service times (µs)."""
    turns = {entry.contestant: entry.turns(cell.workload) for entry in entries}
    before = quiet.usage()
    times = closed_loop(turns, plan.limits)
    seen = quiet.usage().since(before)
    num = sum(map(len, times.values()))
    means = {name: float(taken.mean()) for name, taken in times.items()}
    rows = []
    for entry in entries:
        taken = times[entry.contestant]
        rows.append(
            cell.columns()
            | entry.columns()
            | times_row(taken, seen, num, quiet)
            | {"throughput_hz": US_PER_SECOND / means[entry.contestant]}
            | {"reference_error": _error(entry, cell, plan.num_checked)}
        )
    return rows, means


def instance_rows(
    entries: Sequence[Entry], cell: Cell, plan: LatencyPlan, quiet: Quiet
) -> list[Row]:
    """Measure the closed loop in `cell.instances` processes; a row per contestant.

    Where one of them fails the rows are undefined and say why: what was measured before
    is not lost.
    """
    networks: dict[str, AttentionForecaster] = {
        entry.contestant.name: entry.contestant.network for entry in entries
    }
    backends = tuple(dict.fromkeys(entry.contestant.backend for entry in entries))
    about = [cell.columns() | entry.columns() for entry in entries]
    try:
        found = side_by_side(
            networks,
            cell.instances,
            backends=backends,
            tapes=[each.tape for each in entries[0].filled],
            workload=cell.workload,
            length=cell.history_length,
            threads=cell.threads,
            limits=plan.limits,
            cores=quiet.allowed,
        )
    except ChildProcessError as error:
        return [row | {"undefined": str(error)} for row in about]
    return [
        row | _pooled(found, entry.contestant, quiet)
        for row, entry in zip(about, entries, strict=True)
    ]


def _pooled(found: Sequence[Instance], contestant: Contestant, quiet: Quiet) -> Row:
    """Return one row of all instances: their times one after the other."""
    key: tuple[str, ChosenBackend] = (contestant.name, contestant.backend)
    parts = [instance.times_us[key] for instance in found]
    seen = _worst([instance.contention for instance in found])
    num = sum(len(t) for instance in found for t in instance.times_us.values())
    where = replace(quiet, cores=" | ".join(instance.cores for instance in found))
    rate = sum(US_PER_SECOND / float(part.mean()) for part in parts)
    return times_row(np.concatenate(parts), seen, num, where) | {"throughput_hz": rate}


def _worst(seen: Sequence[Contention]) -> Contention:
    """Return the switches of all instances, and the worst share of any."""
    return Contention(
        num_switches=sum(each.num_switches for each in seen),
        waited_percent=float(np.max([each.waited_percent for each in seen])),
        stolen_percent=float(np.max([each.stolen_percent for each in seen])),
        load=max(each.load for each in seen),
    )


def _error(entry: Entry, cell: Cell, num: int) -> float:
    """Return the error against float64; NaN where that would take minutes."""
    network, length = entry.contestant.network, cell.history_length
    if network.attention == "softmax" and length > _LONGEST_CHECKED:
        return float("nan")
    reference = Float64Reference(network)
    return reference_error(reference, entry.filled[0], cell.workload, num=num)
