"""Which cores a measurement runs on, and keeping it there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_LOOK_SECONDS = 0.1
_IDLE = 4  # place in a line of /proc/stat, its name included


def idlest_cores(num: int) -> tuple[int, ...]:
    """Return the cores that did least in the last tenth of a second, ascending.

    Of equally idle ones the highest-numbered are taken, as the first one serves most
    interrupts. There may be fewer than asked for; none where the system cannot pin.
    """
    allowed = allowed_cores()
    if len(allowed) <= num:
        return allowed
    before = _idle_ticks()
    time.sleep(_LOOK_SECONDS)
    after = _idle_ticks()
    idle = {core: after.get(core, 0) - before.get(core, 0) for core in allowed}
    ranked = sorted(allowed, key=lambda core: (-idle[core], -core))
    return tuple(sorted(ranked[:num]))


def cores_of_instance(place: int, num: int, allowed: Sequence[int]) -> tuple[int, ...]:
    """Return cores for one of several processes: other ones as long as there are any.

    Parameters
    ----------
    place : int
        Number of the process.
    num : int
        Cores that each is to have.
    allowed : sequence of int
        The cores that there are, ascending; none where nothing can be pinned.
    """
    if not allowed:
        return ()
    wanted = {allowed[-1 - (place * num + n) % len(allowed)] for n in range(num)}
    return tuple(sorted(wanted))


def allowed_cores() -> tuple[int, ...]:
    """Return the cores that this thread may use, ascending; none where it cannot pin."""
    if not hasattr(os, "sched_getaffinity"):  # macOS
        return ()
    return tuple(sorted(os.sched_getaffinity(0)))


@contextmanager
def pinned(cores: Collection[int]) -> Iterator[None]:
    """Keep the calling thread, and with several cores all threads, on some cores.

    Where there are none nothing is pinned.
    """
    if not cores:
        yield
        return
    # Threads of a pool that exists already must move too; with one, torch uses no pool.
    numbers = _all_threads() if len(cores) > 1 else [threading.get_native_id()]
    before = {number: os.sched_getaffinity(number) for number in numbers}
    try:
        _move({number: set(cores) for number in numbers})
        yield
    finally:
        _move(before)


def _all_threads() -> list[int]:
    return [int(path.name) for path in Path("/proc/self/task").iterdir()]


def _move(cores: dict[int, set[int]]) -> None:
    for number, chosen in cores.items():
        try:
            os.sched_setaffinity(number, chosen)
        except ProcessLookupError:  # the thread has ended meanwhile
            continue


def _idle_ticks() -> dict[int, int]:
    """Return how long each core has been idle, in ticks."""
    found = {}
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *_ = fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            found[int(name[3:])] = int(fields[_IDLE])
    return found
