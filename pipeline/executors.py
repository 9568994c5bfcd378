"""Where tasks run: one after the other here, or in worker processes."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from pathlib import Path

import torch

from infoset.data.events import EventLog
from infoset.models.forecasts import Forecaster

from .config import Experiment
from .plan import Task
from .preparation import Prepared, prepare
from .task_store import StoredTask, TaskStore
from .walk_forward import run_task

# One thread each: small matrices gain nothing from more, and the order of additions,
# so the last bit of every number, is then the same in every executor.
THREADS_PER_TASK = 1


def execute(
    experiment: Experiment,
    prepared: Prepared,
    tasks: Sequence[Task],
    store: TaskStore,
    own: Mapping[str, Forecaster],
) -> Iterator[StoredTask]:
    """Run tasks and yield each one when its result is on disk.

    The user's own forecaster objects always run in this process.

    Raises
    ------
    ChildProcessError
        If a worker process dies.
    """
    here = [task for task in tasks if task.forecaster in own]
    away = [task for task in tasks if task.forecaster not in own]
    if experiment.executor.kind == "serial" or len(away) < 2:
        here, away = list(tasks), []
    yield from _in_processes(experiment, prepared.log, away, store)
    yield from _serially(experiment, prepared, here, store, own)


def _serially(
    experiment: Experiment,
    prepared: Prepared,
    tasks: Sequence[Task],
    store: TaskStore,
    own: Mapping[str, Forecaster],
) -> Iterator[StoredTask]:
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS_PER_TASK)
    try:
        for task in tasks:
            yield store.write(run_task(experiment, prepared, task, own))
    finally:
        torch.set_num_threads(threads)


def _in_processes(
    experiment: Experiment, log: EventLog, tasks: Sequence[Task], store: TaskStore
) -> Iterator[StoredTask]:
    if not tasks:
        return
    pool = ProcessPoolExecutor(
        max_workers=min(experiment.executor.num_workers, len(tasks)),
        mp_context=_context(),
        initializer=_start_worker,
        initargs=(experiment, log, store.folder),
    )
    others = multiprocessing.active_children()
    pending: set[Future[StoredTask]] = set()
    try:
        with _interrupts_held():
            pending |= {pool.submit(_work, task) for task in tasks}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise ChildProcessError(
            "a worker process must not die; one did (killed, out of memory, or started "
            "by a script without `if __name__ == '__main__':`). Run again: finished "
            "tasks are kept. `--set executor.kind=serial` shows the error itself."
        ) from error
    finally:
        if pending:  # after Ctrl-C or an error nobody waits for what still runs
            for worker in set(multiprocessing.active_children()) - set(others):
                worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Return how workers start: as copies of a process that has imported all of this.

    That process has run nothing, so a copy of it is as good as a new one, and importing
    takes seconds.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes start, and keep it away from them for good.

    Starting one takes seconds, and half a start leaves a process that nobody knows.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # where Ctrl-C never arrives
        return
    held: list[int] = []
    # The processes inherit the mask; here another thread may take the signal.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if held:
        raise KeyboardInterrupt


class _Worker:
    """What a worker process holds between tasks."""

    experiment: Experiment
    prepared: Prepared
    store: TaskStore


def _start_worker(experiment: Experiment, log: EventLog, folder: Path) -> None:
    torch.set_num_threads(THREADS_PER_TASK)
    _Worker.experiment = experiment
    _Worker.prepared = prepare(experiment, log)
    _Worker.store = TaskStore(folder)


def _work(task: Task) -> StoredTask:
    result = run_task(_Worker.experiment, _Worker.prepared, task, {})
    return _Worker.store.write(result)
