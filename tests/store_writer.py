"""Real processes that write to a store, to be killed or to meet one another.

Run as a script this is a server: it imports everything once and forks a writer for
each job, so that a writer starts in milliseconds. `Writers` talks to it.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NUM_STREAMS = 2
MONTHS = ("2024-01", "2024-02")


class Writers:
    """Start writers, kill them, wait for them.

    A job has `store`, `report` (a file for what is acknowledged) and `number` (which
    rows); optionally `die_at` (the step at which the writer kills itself), `max_bytes`
    (of a file), `careless` (writes in place, a planted fault), `wait` (seconds for another writer) and `hold` (seconds with the lock
    instead of an ingest).
    """

    def __enter__(self) -> Writers:
        folder = Path(__file__).parent
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()

    def start(self, **job: object) -> int:
        """Return the process id of a new writer."""
        return self._ask({"start": job})

    def wait(self, pid: int) -> int:
        """Wait for the end of a writer; return its exit code, negative if killed."""
        return self._ask({"wait": pid})

    def run(self, **job: object) -> int:
        """Start a writer and wait for its end."""
        return self.wait(self.start(**job))

    def _ask(self, request: dict[str, object]) -> int:
        if self._server.stdin is None or self._server.stdout is None:
            raise RuntimeError("the server must have pipes")
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


def reported(path: Path) -> list[dict[str, Any]]:
    """Return what the writers of a report have acknowledged or failed with."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def rows_of(number: int) -> list[tuple[str, str, float]]:
    """Return the rows of a job: one per month, and one that all jobs share."""
    own = [
        (f"E{number}", f"{month}-05T00:00:00.{number:09d}Z", float(number))
        for month in MONTHS
    ]
    return [*own, ("shared", "2024-01-01T00:00Z", 0.0)]


def _work(job: dict[str, Any]) -> None:
    from store_logs import log_of, origin  # noqa: PLC0415 (the server has it ready)

    from infoset.data.store import Store  # noqa: PLC0415
    from infoset.data.store.local_storage import LocalStorage  # noqa: PLC0415

    if "max_bytes" in job:
        limit = (job["max_bytes"], resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    if job.get("careless"):
        LocalStorage._aside = lambda self, path: self.folder / path  # type: ignore[method-assign]
        LocalStorage.publish = lambda *_: None  # type: ignore[method-assign]
    steps = _count_steps(job.get("die_at"))
    store = Store.open(job["store"], create=True)
    if job.get("hold"):
        with store._storage.locked(wait_seconds=0):
            _report(job, {"held": True})
            time.sleep(job["hold"])
        return
    log = log_of(*rows_of(job["number"]), stream="s0")
    for name in range(1, NUM_STREAMS):
        log = log.append(log_of(*rows_of(job["number"]), stream=f"s{name}"))
    receipt = store.append(
        log, origin=origin(f"job {job['number']}"), wait_seconds=job.get("wait", 60)
    )
    acknowledged = {"number": job["number"], "ingest": receipt.ingest}
    _report(job, acknowledged | {"is_new": receipt.is_new, "steps": next(steps)})


def _count_steps(die_at: int | None) -> Any:
    """Count what touches the disk; kill this process before the step `die_at`.

    A write that is cut off leaves half of its bytes.
    """
    steps, lock = itertools.count(), threading.Lock()

    def is_last() -> bool:
        with lock:
            return next(steps) == die_at

    def watched(module: Any, name: str) -> None:
        original = getattr(module, name)

        def step(*arguments: Any, **options: Any) -> Any:
            if is_last():
                if name == "write_bytes":
                    content = arguments[1]
                    original(arguments[0], content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        setattr(module, name, step)

    for name in ("fsync", "rename", "ftruncate"):
        watched(os, name)
    for name in ("write_bytes", "mkdir"):
        watched(Path, name)
    return steps


def _report(job: dict[str, Any], content: dict[str, object]) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    with Path(job["report"]).open("ab", buffering=0) as file:
        file.write(json.dumps(content).encode() + b"\n")


def _serve() -> None:
    import store_logs  # noqa: F401, PLC0415 (imported once, for all writers)

    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                _end_with(request["start"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _end_with(job: dict[str, Any]) -> None:
    try:
        _work(job)
    except BaseException as error:
        _report(job, {"error": str(error), "kind": type(error).__name__})
        os._exit(2)
    os._exit(0)


if __name__ == "__main__":
    _serve()
