"""Quiet while something is timed, and an account of what disturbed it all the same."""

from __future__ import annotations

import gc
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import torch

from .contention import Usage
from .cores import allowed_cores, idlest_cores, pinned

_READS = 2_000
_NS_PER_US = 1_000.0


@dataclass(frozen=True)
class Quiet:
    """Under what conditions something is timed.

    Attributes
    ----------
    threads : int
        Of torch.
    cores : str
        The cores that they are pinned to, ``1`` or ``0, 1``; empty where the system
        does not let itself be told.
    clock_step_ns : int
        Smallest difference of two readings of the clock.
    allowed : tuple of int
        All cores that there were before the threads were pinned, ascending.
    """

    threads: int
    cores: str
    clock_step_ns: int
    allowed: tuple[int, ...]

    def usage(self) -> Usage:
        """Return what has been used of the processor so far."""
        return Usage.now(threads=self.threads)

    def too_coarse(self, median_us: float) -> str | None:
        """Say that the clock's step is more than 1 % of a median; None if it is not."""
        if self.clock_step_ns <= 0.01 * _NS_PER_US * median_us:
            return None
        return (
            f"the clock steps by {self.clock_step_ns} ns, more than 1 % of the median "
            f"of {median_us:.3g} µs"
        )


@contextmanager
def quiet_measurement(
    threads: int = 1, *, cores: Collection[int] | None = None
) -> Iterator[Quiet]:
    """Pin the threads and leave the garbage alone; both as before afterwards.

    Collecting what there is takes as long as hundreds of forecasts: once for a table.

    Parameters
    ----------
    threads : int
        Of torch.
    cores : collection of int, optional
        Where they are to run; default: the idlest ones, as many as there are threads.
    """
    threads_before = torch.get_num_threads()
    was_enabled = gc.isenabled()
    allowed = allowed_cores()
    chosen = idlest_cores(threads) if cores is None else tuple(sorted(cores))
    with pinned(chosen):
        torch.set_num_threads(threads)
        gc.collect()
        gc.disable()
        try:
            told = ", ".join(map(str, chosen))
            yield Quiet(threads, told, clock_step_ns(), allowed)
        finally:
            torch.set_num_threads(threads_before)
            if was_enabled:
                gc.enable()


def clock_step_ns() -> int:
    """Return the smallest step that the clock was seen to make, in nanoseconds."""
    read = [time.perf_counter_ns() for _ in range(_READS)]
    steps = {after - before for before, after in pairwise(read)}
    stated = round(1e9 * time.get_clock_info("perf_counter").resolution)
    return max(stated, min((step for step in steps if step > 0), default=stated))
