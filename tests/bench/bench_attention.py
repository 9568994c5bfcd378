"""Linear attention against softmax and other packages, side by side in one run.

`make bench-attention`: widths 16, 32 and 64, up to 65,536 events, B*H = 8, 2 threads,
feature maps included, forward and forward with backward; peak memory; whole training
steps. All forms of a cell are timed in turn, so that a machine that slows down slows
each; medians and their ratios count. Prints PASS or FAIL for each bar and exits with 1
if one is missed. Takes about ten minutes; run it on an idle machine. `--quick` leaves
out the other widths and the long sequences. `README.md` says how to install the peers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from attention_bars import FAIL, PASS, Bar, bars
from attention_cells import HEADS, LENGTHS, THREADS, WIDTHS, Cell, measured
from attention_cells import prepare_process as prepare
from attention_memory import peak_megabytes
from attention_results import Results
from attention_tables import bars_table, cells_table, memory_table, training_step_table
from attention_training_step import training_step_seconds
from rich.console import Console
from rich.table import Table

_QUICK_WIDTH, _QUICK_EVENTS = 64, 4096
_TRAINING_EVENTS = (1024, 4096, 16384)
_SECONDS_PER_CELL = 8.0
_UNREST = 1.25
_MEMORY = (
    *(
        (Cell(64, 16384, backward), form)
        for form in ("elu1", "sdpa", "fast_transformers")
        for backward in (False, True)
    ),
    (Cell(64, 4096, backward=True), "elu1"),
    (Cell(64, 65536, backward=True), "elu1"),
    (Cell(32, 16384, backward=True), "elu1"),
    (Cell(16, 16384, backward=True), "elu1"),
)


def main() -> int:
    """Measure, print and judge; return 1 if a bar is missed."""
    options = _options()
    console = Console(width=120)
    prepare()
    results = Results()
    judged: list[Bar] = []
    for table in _tables(results, quick=options.quick):
        console.print(table)
        judged = bars(results)
        if options.json is not None:  # also what an interrupted run has measured
            _write(options.json, results, judged)
    console.print(bars_table(judged))
    _print_summary(console, judged, results.unrest)
    return int(any(bar.verdict == FAIL for bar in judged))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="D = 64, N <= 4096 only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures")
    return parser.parse_args()


def _tables(results: Results, *, quick: bool) -> Iterator[Table]:
    """Fill in the results, and return a table of each part as soon as it is there."""
    longest = _QUICK_EVENTS if quick else max(LENGTHS)
    lengths = [num_events for num_events in LENGTHS if num_events <= longest]
    for width in (_QUICK_WIDTH,) if quick else WIDTHS:
        for backward in (False, True):
            cells = [Cell(width, num_events, backward) for num_events in lengths]
            for cell in cells:
                results.cells[cell] = measured(cell, budget=_SECONDS_PER_CELL)
            yield cells_table(results, cells)
    if not quick:
        for cell, form in _MEMORY:
            results.memory[cell, form] = peak_megabytes(cell, form)
        yield memory_table(results)
    for num_events in _TRAINING_EVENTS:
        if num_events <= longest:
            results.training_steps[num_events] = training_step_seconds(
                num_events, budget=_SECONDS_PER_CELL
            )
    yield training_step_table(results)


def _print_summary(console: Console, judged: list[Bar], unrest: float) -> None:
    verdicts = [bar.verdict for bar in judged]
    passed, missed = verdicts.count(PASS), verdicts.count(FAIL)
    console.print(
        f"{passed} of {len(judged)} bars passed, {missed} missed, "
        f"{len(judged) - passed - missed} not judged."
    )
    if unrest > _UNREST:
        console.print(
            f"The machine was not idle: the same matrix product took {unrest:.1f} times "
            "its least time in the median of one cell. Run it again."
        )


def _write(path: Path, results: Results, judged: list[Bar]) -> None:
    content = {
        "torch": torch.__version__,
        "threads": THREADS,
        "batch_times_heads": HEADS,
        **results.as_json(),
        "bars": [
            {
                "name": bar.name,
                "need": bar.need,
                "at_least": bar.at_least,
                "found": bar.found,
                "verdict": bar.verdict,
            }
            for bar in judged
        ],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
