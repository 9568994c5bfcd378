"""Who else used the processor while something was timed."""

from __future__ import annotations

import math
import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path

# More than one forecast in a hundred would move p99.
_MANY = 0.01


@dataclass(frozen=True)
class Contention:
    """What a stretch of time lost to others.

    Attributes
    ----------
    num_switches : int
        How often the system took the processor away (involuntary context switches).
    waited_percent : float
        Share of the time in which the measuring thread did not run; NaN with several
        threads.
    stolen_percent : float
        Share of all processor time that the hypervisor gave to others; NaN where the
        system does not say.
    load : float
        Load average of the last minute at the end, this process included.
    """

    num_switches: int
    waited_percent: float
    stolen_percent: float
    load: float

    def reason(self, num_forecasts: int) -> str | None:
        """Say how one forecast in a hundred could have been disturbed; None if not."""
        found = []
        if self.num_switches > _MANY * num_forecasts:
            found.append(
                f"{self.num_switches:,} involuntary switches in {num_forecasts:,} "
                "forecasts"
            )
        if self.waited_percent > 100 * _MANY:
            found.append(f"{self.waited_percent:.1f} % of the time without a processor")
        if self.stolen_percent > 100 * _MANY:
            found.append(f"{self.stolen_percent:.1f} % of processor time stolen")
        return "; ".join(found) or None

    def columns(self, num_forecasts: int) -> dict[str, object]:
        """Return the columns of the table; `num_forecasts` were made meanwhile."""
        return {**asdict(self), "contention": self.reason(num_forecasts)}


@dataclass(frozen=True)
class Usage:
    """What has been used of the processor up to one moment.

    Attributes
    ----------
    wall, own : float
        Seconds of the clock, and those in which the calling thread ran; `own` is NaN
        with several threads.
    num_switches : int
        Involuntary ones of the thread, or with several of the process.
    stolen, total : float
        Ticks of all processors; NaN where the system does not say.
    """

    wall: float
    own: float
    num_switches: int
    stolen: float
    total: float

    @classmethod
    def now(cls, *, threads: int = 1) -> Usage:
        """Read the counters."""
        whose = resource.RUSAGE_SELF
        if threads == 1:
            whose = getattr(resource, "RUSAGE_THREAD", whose)  # of Linux
        stolen, total = _ticks()
        return cls(
            wall=time.perf_counter(),
            own=time.thread_time() if threads == 1 else math.nan,
            num_switches=resource.getrusage(whose).ru_nivcsw,
            stolen=stolen,
            total=total,
        )

    def since(self, before: Usage) -> Contention:
        """Return what happened between two moments."""
        wall, total = self.wall - before.wall, self.total - before.total
        waited = wall - (self.own - before.own)
        return Contention(
            num_switches=self.num_switches - before.num_switches,
            waited_percent=100 * (0.0 if waited < 0 else waited) / wall,
            stolen_percent=(
                100 * (self.stolen - before.stolen) / total if total else math.nan
            ),
            load=os.getloadavg()[0],
        )


def _ticks() -> tuple[float, float]:
    """Return the stolen ticks and all ticks of all processors."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    except OSError:
        return math.nan, math.nan
    ticks = [float(number) for number in first.split()[1:9]]
    return ticks[7], sum(ticks)
