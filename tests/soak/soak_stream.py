"""Feed events through `infoset stream`, kill it again and again, and see what is lost.

The same lines go through it twice: once undisturbed, from a file; once through a pipe,
with SIGKILLs at random moments, after each of which it is started again and fed from the
line after the last one that it says is durable. Nothing that was acknowledged may be
lost, the forecasts must be the same bytes, and memory must stay flat. Exits with 1
otherwise: `make soak`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import numpy as np
from live_run import feed_lines, make_stream_run
from rich.console import Console
from rich.table import Table
from stream_server import StreamProcess, StreamServer

from infoset.pipeline.config import load_experiment

MEMORY_BAR = 0.05
_RECENT = 400_000  # forecasts that may be said again after a kill
_LATEST_KILL = 0.02  # seconds after a random line was acknowledged
_ACK = re.compile(rb'\{"ack": (\d+)\}')
_LINE = re.compile(rb'"line": (\d+)')


@dataclass
class Feed:
    """A file of lines, and where each begins."""

    path: Path
    starts: np.ndarray

    @classmethod
    def written(cls, path: Path, *, num_lines: int, num_entities: int) -> Feed:
        """Write the lines."""
        starts, place = np.zeros(num_lines + 1, dtype=np.int64), 0
        with path.open("wb") as file:
            lines = feed_lines(num_lines=num_lines, num_entities=num_entities)
            for number, line in enumerate(lines, start=1):
                place += file.write(line + b"\n")
                starts[number] = place
        return cls(path, starts)

    def push(self, process: StreamProcess, done: int) -> None:
        """Write the lines after the first `done`, until the end or the process's."""
        with suppress(BrokenPipeError), self.path.open("rb") as file:
            file.seek(int(self.starts[done]))
            while content := file.read(1 << 16):
                process.send(content)
        process.close()


@dataclass
class Outcome:
    """What one way through the feed has shown."""

    forecasts: Path
    num_forecasts: int = 0
    num_again: int = 0
    num_lost: int = 0
    acknowledged: int = 0
    kills: int = 0
    seconds: float = 0.0
    restart_seconds: list[float] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)

    @property
    def memory_change(self) -> float:
        """Growth of resident memory after a tenth of the feed, relative."""
        end = self.memory[-1][0]
        late = [size for line, size in self.memory if line > end / 10]
        return max(late) / late[0] - 1


class Listener:
    """Keeps forecasts once each, and how far a process says it is."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._known: set[int] = set()

    def listen(self, process: StreamProcess) -> Iterator[tuple[bool, int]]:
        """Keep all that a process says; yield whether it is an `ack`, and its line."""
        outcome = self.outcome
        with outcome.forecasts.open("ab") as file, process.stdout:
            for line in process.stdout:
                if not line.endswith(b"\n"):
                    return  # it was killed within the line
                if ack := _ACK.match(line):
                    yield True, int(ack[1])
                    continue
                self._keep(line, file)
                if said := _LINE.search(line):
                    yield False, int(said[1])

    def _keep(self, line: bytes, file: BinaryIO) -> None:
        mark = hash(line)
        if mark in self._known:
            self.outcome.num_again += 1
            return
        if len(self._recent) == _RECENT:
            self._known.discard(self._recent[0])
        self._recent.append(mark)
        self._known.add(mark)
        self.outcome.num_forecasts += 1
        file.write(line)


def undisturbed(server: StreamServer, run: Path, feed: Feed, folder: Path) -> Outcome:
    """Feed the file to one process; note its memory."""
    outcome = Outcome(folder / "undisturbed.jsonl")
    started = time.monotonic()
    process = server.start(
        *("stream", run, "--events", feed.path, "--state", folder / "undisturbed"),
        folder=folder,
    )
    step = max(1, (len(feed.starts) - 1) // 200)
    for _, done in Listener(outcome).listen(process):
        outcome.acknowledged = max(outcome.acknowledged, done)
        if not outcome.memory or done >= outcome.memory[-1][0] + step:
            outcome.memory.append((done, _resident_bytes(process.pid)))
    process.close()
    if process.wait() != 0:
        raise RuntimeError(process.notices.read_text()[-2000:])
    outcome.seconds = time.monotonic() - started
    return outcome


def killed(
    server: StreamServer, run: Path, feed: Feed, folder: Path, kills: int
) -> Outcome:
    """Feed a pipe; kill the process at random lines, and start it again."""
    rng = np.random.default_rng(1)
    num_lines = len(feed.starts) - 1
    # Not in the last tenth, which may be done before the kill comes.
    moments = sorted(rng.integers(1, 9 * num_lines // 10, kills).tolist())
    outcome = Outcome(folder / "killed.jsonl")
    listener = Listener(outcome)
    started = time.monotonic()
    code = 1
    while code:
        begun = time.monotonic()
        process = server.start(
            *("stream", run, "--events", "-", "--state", folder / "killed"),
            *("--settle", "3600"),  # a feeder that is slow has not ended an instant
            folder=folder,
        )
        code = _fed(process, feed, listener, moments, rng, begun)
    outcome.seconds = time.monotonic() - started
    return outcome


def _fed(
    process: StreamProcess,
    feed: Feed,
    listener: Listener,
    moments: list[int],
    rng: np.random.Generator,
    begun: float,
) -> int:
    """Feed one process until it ends or is killed; return its exit code."""
    outcome = listener.outcome
    feeder: threading.Thread | None = None
    killer: threading.Timer | None = None
    for is_ack, done in listener.listen(process):
        if feeder is None:
            if not is_ack:
                continue  # said again: where to go on comes after it
            outcome.num_lost += max(0, outcome.acknowledged - done)
            outcome.restart_seconds.append(time.monotonic() - begun)
            feeder = threading.Thread(target=feed.push, args=(process, done))
            feeder.start()
        outcome.acknowledged = max(outcome.acknowledged, done)
        if killer is None and moments and done >= moments[0]:
            moments.pop(0)
            killer = threading.Timer(
                rng.uniform(0, _LATEST_KILL), process.kill, [signal.SIGKILL]
            )
            killer.start()
    if killer is not None:
        killer.join()
    code = process.wait()
    if feeder is not None:
        feeder.join()
    if code not in (0, -signal.SIGKILL):
        raise RuntimeError(process.notices.read_text()[-2000:])
    outcome.kills += code != 0
    return code


def mismatches(one: Path, other: Path) -> int:
    """Return how many lines of two files differ."""
    with one.open("rb") as first, other.open("rb") as second:
        return sum(a != b for a, b in zip_longest(first, second))


def _resident_bytes(pid: int) -> int:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def soak(
    server: StreamServer, run: Path, folder: Path, *, num_lines: int, kills: int
) -> tuple[Outcome, Outcome, int]:
    """Return both ways, and how many forecasts differ."""
    num_entities = len(load_experiment(run / "config.yaml")[0].entities)
    feed = Feed.written(
        folder / "feed.jsonl", num_lines=num_lines, num_entities=num_entities
    )
    whole = undisturbed(server, run, feed, folder)
    torn = killed(server, run, feed, folder, kills)
    return whole, torn, mismatches(whole.forecasts, torn.forecasts)


def main() -> int:
    """Print the figures; return 1 if anything was lost, differs or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--entities", type=int, default=500)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, StreamServer() as server:
        folder = Path(name)
        run = make_stream_run(folder / "runs", num_entities=given.entities)
        whole, torn, differing = soak(
            server, run, folder, num_lines=given.events, kills=given.kills
        )
    _report(whole, torn, differing)
    failed = torn.num_lost or differing or whole.memory_change > MEMORY_BAR
    # A feed that was refused as a whole would lose nothing either.
    tried = (
        torn.kills == given.kills
        and torn.acknowledged == whole.acknowledged == given.events
        and min(torn.num_forecasts, whole.num_forecasts) >= given.events / 2
    )
    if not tried:
        sys.stderr.write(
            "the soak must take in every line and kill as often as asked\n"
        )
    return int(bool(failed) or not tried)


def _report(whole: Outcome, torn: Outcome, differing: int) -> None:
    sizes = [size / 2**20 for _, size in whole.memory]
    restarts = torn.restart_seconds
    rows = {
        "lines": f"{whole.acknowledged:,}",
        "forecasts, undisturbed": f"{whole.num_forecasts:,} in {whole.seconds:,.0f} s",
        "forecasts, killed": f"{torn.num_forecasts:,} in {torn.seconds:,.0f} s",
        "kills": f"{torn.kills}",
        "events lost after acknowledgement": f"{torn.num_lost}",
        "forecasts that differ": f"{differing}",
        "forecasts said twice": f"{torn.num_again:,}",
        "seconds to go on after a kill": f"{max(restarts):.1f} at most, "
        f"{np.median(restarts):.1f} in the median",
        "resident memory": f"{sizes[0]:.0f} MiB at first, {sizes[-1]:.0f} MiB in the end",
        "its growth after a tenth of the feed": f"{whole.memory_change:+.1%} "
        f"(bar {MEMORY_BAR:.0%})",
    }
    table = Table("what", "figure", title="infoset stream, killed and restored")
    for what, figure in rows.items():
        table.add_row(what, figure)
    Console(width=100).print(table)
    sys.stdout.write(json.dumps(rows) + "\n")


if __name__ == "__main__":
    sys.exit(main())
