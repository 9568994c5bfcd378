"""How much memory the timelines of 1, 10 and 100 million events take to build, and how long.

`make bench-memory`: each size is built in a process of its own, whose largest resident
memory is shown. DuckDB may use 1 GB and sorts on disk beyond that; 100 million events
need about 15 GB of disk for the file, the spill and the result.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from made_events import write_events
from rich.console import Console
from rich.table import Table

from infoset.data.event_files import EventFiles
from infoset.data.timeline_files import build_timelines

SIZES = (1_000_000, 10_000_000, 100_000_000)
LIMIT_GB = 4.0
_KB_PER_GB = 2**20


def main() -> int:
    """Print the table; return 1 if the largest build takes more memory than allowed."""
    table = Table(title="Timelines of unsorted events, DuckDB limited to 1 GB")
    for name in ("events", "seconds", "resident GB", "seconds / (n log2 n) x 1e9"):
        table.add_column(name, justify="right")
    largest = 0.0
    for size in SIZES:
        folder = Path(tempfile.mkdtemp())
        try:
            write_events(folder / "events.parquet", size)
            report = subprocess.run(
                [sys.executable, __file__, str(folder)],
                check=True,
                capture_output=True,
                text=True,
            )
        finally:
            shutil.rmtree(folder)
        seconds, gigabytes = json.loads(report.stdout.splitlines()[-1])
        largest = max(largest, gigabytes)
        cost = 1e9 * seconds / (size * math.log2(size))
        table.add_row(f"{size:,}", f"{seconds:.1f}", f"{gigabytes:.2f}", f"{cost:.1f}")
    Console(width=90).print(table)
    return int(largest > LIMIT_GB)


def build(folder: Path) -> None:
    """Build in this process, and print seconds and the largest resident memory."""
    files = [EventFiles((folder / "events.parquet",), ("value",))]
    before = time.perf_counter()
    build_timelines(files, folder / "timelines", memory_limit="1GB")
    seconds = time.perf_counter() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KB_PER_GB
    sys.stdout.write(json.dumps([seconds, peak]) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        build(Path(sys.argv[1]))
    else:
        sys.exit(main())
