"""Kill `infoset ingest` at random moments, and see whether anything is lost.

Fifty ingests of different sources into one store are killed (SIGKILL): some at any time
after their start, most within the few milliseconds in which they write. After each kill
the store must read whole, with every acknowledged ingest, and every earlier ingest must
read as it did before. In the end each ingest is run again and must complete. Exits with
1 if anything is lost: `make faults`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from infoset.data import EventLog
from infoset.data.store import Store

KILLS = 50
WHILE_WRITING = 0.8  # share of the kills
COMMAND = [sys.executable, "-m", "infoset.pipeline.cli", "ingest"]
MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")
SOURCE = """path: {number}.csv
stream: s/{{kind}}
entity: {{column: id}}
event_time: {{column: t, stamp: instant}}
available_at: {{lag: 1h}}
values: {{value: v}}
"""


@dataclass
class Place:
    """A store, its sources, and what is known about it.

    Attributes
    ----------
    folder : Path
    acknowledged : set of int
        Sources whose ingest ended well.
    snapshots : list of str
        Digest of the log as of each ingest, when it was first seen.
    losses : list of str
    """

    folder: Path
    acknowledged: set[int] = field(default_factory=set)
    snapshots: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)

    @property
    def store(self) -> Path:
        """Return where the store is."""
        return self.folder / "store"

    def declare(self, number: int) -> None:
        """Write a source of rows of its own and one that all share."""
        rows = [
            f"{kind},E{number},{month}-05T00:00:00.{number:09d}Z,{number}"
            for kind in "ab"
            for month in MONTHS
        ]
        text = "\n".join(["kind,id,t,v", *rows, "a,shared,2024-01-01T00:00:00Z,0"])
        (self.folder / f"{number}.csv").write_text(text + "\n")
        (self.folder / f"{number}.yaml").write_text(SOURCE.format(number=number))

    def start(self, number: int) -> subprocess.Popen[str]:
        """Start an ingest."""
        source = self.folder / f"{number}.yaml"
        return subprocess.Popen(
            [*COMMAND, str(source), "--into", str(self.store), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def note(self, number: int, ended: subprocess.Popen[str], out: str) -> bool:
        """Note whether an ingest was acknowledged: its account was printed whole."""
        try:
            told = json.loads(out)
        except ValueError:
            return False
        if ended.returncode in (0, -signal.SIGKILL) and told["ingest"]:
            self.acknowledged.add(number)
            return True
        return False

    def check(self) -> set[int]:
        """Return the sources that the store holds; note whatever is lost."""
        if not (self.store / "manifests" / "00000001.json").exists():
            self._require(not self.acknowledged, "the store is gone")
            return set()
        store = Store.open(self.store)
        held = _numbers(store.log())
        self._require(
            self.acknowledged <= held, f"lost {sorted(self.acknowledged - held)}"
        )
        for ingest in range(1, len(store.receipts) + 1):
            digest = _digest(store.log(as_of_ingest=ingest))
            if ingest > len(self.snapshots):
                self.snapshots.append(digest)
            self._require(
                self.snapshots[ingest - 1] == digest, f"ingest {ingest} reads otherwise"
            )
        return held

    def _require(self, holds: object, loss: str) -> None:
        if not holds:
            self.losses.append(loss)


def _numbers(log: EventLog) -> set[int]:
    """Return the sources of a log's rows; a source is whole or not there."""
    rows = [row for stream in log.streams for row in log.table(stream).to_pylist()]
    counted = Counter(int(row["value"]) for row in rows if row["entity"] != "shared")
    torn = [number for number, rows in counted.items() if rows != 2 * len(MONTHS)]
    if torn:
        raise RuntimeError(f"sources must be stored whole; got parts of {torn}")
    return set(counted)


def _digest(log: EventLog) -> str:
    digest = sha256()
    for stream in log.streams:
        sink = pa.BufferOutputStream()
        table = log.table(stream).combine_chunks()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        digest.update(sink.getvalue())
    return digest.hexdigest()


def timed_ingest(place: Place, number: int) -> tuple[float, float]:
    """Ingest undisturbed; return the seconds to the lock, and from it to the manifest."""
    started = time.perf_counter()
    process = place.start(number)
    wait_for_lock(place, process)
    locked = time.perf_counter()
    manifest = place.store / "manifests" / f"{len(place.acknowledged) + 1:08d}.json"
    while process.poll() is None and not manifest.exists():
        time.sleep(0.0005)
    stored = time.perf_counter()
    out, error = process.communicate()
    if not place.note(number, process, out):
        raise RuntimeError(f"an ingest must work undisturbed; got {error}")
    return locked - started, stored - locked


def wait_for_lock(place: Place, process: subprocess.Popen[str]) -> None:
    """Wait until the writer has noted itself in the lock's file, or has ended."""
    lock, note = place.store / ".lock", str(process.pid)
    while process.poll() is None:
        if lock.exists() and note in lock.read_text():
            return
        time.sleep(0.0005)


def main() -> int:
    """Print the table; return 1 if anything is lost."""
    generator = np.random.default_rng(0)
    outcomes: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        for number in range(KILLS + 1):
            place.declare(number)
        before, within = timed_ingest(place, 0)
        for number in range(1, KILLS + 1):
            process = place.start(number)
            if generator.random() < WHILE_WRITING:
                wait_for_lock(place, process)
                time.sleep(generator.uniform(0, 1.5 * within))
                moment = "while it writes"
            else:
                time.sleep(generator.uniform(0, before + within))
                moment = "at any time"
            process.kill()
            out, _ = process.communicate()
            was_told = place.note(number, process, out)
            is_there = number in place.check()
            outcomes[moment, _outcome(is_there=is_there, was_told=was_told)] += 1
        for number in range(1, KILLS + 1):
            process = place.start(number)
            out, error = process.communicate()
            if not place.note(number, process, out):
                place.losses.append(f"source {number} cannot be ingested: {error}")
        held = place.check()
        if held != set(range(KILLS + 1)):
            place.losses.append(f"in the end only {sorted(held)} are there")
        _report(outcomes, place)
    return int(bool(place.losses))


def _outcome(*, is_there: bool, was_told: bool) -> str:
    if was_told:
        return "acknowledged" if is_there else "LOST"
    return "whole, not acknowledged" if is_there else "not there"


def _report(outcomes: Counter[tuple[str, str]], place: Place) -> None:
    table = Table("killed", "the ingest", title=f"{KILLS} killed ingests")
    table.add_column("times", justify="right")
    for (moment, outcome), count in sorted(outcomes.items()):
        table.add_row(moment, outcome, str(count))
    console = Console(width=90)
    console.print(table)
    for loss in place.losses:
        console.print(f"LOST: {loss}")
    if not place.losses:
        console.print("Nothing was lost; all were run again and are there.")


if __name__ == "__main__":
    sys.exit(main())
