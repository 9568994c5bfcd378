"""Where the parts of a study run: here, one after the other, or in worker processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import torch

from infoset.pipeline.config import ExecutorOptions

P = ParamSpec("P")
T = TypeVar("T")

# As in a run: one thread each, so that numbers do not depend on the executor.
_THREADS = 1


class Here(Executor):
    """Runs what is submitted at once, in this process."""

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run `fn` and return its result as a future."""
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@contextmanager
def workers(options: ExecutorOptions, *, preload: Sequence[str]) -> Iterator[Executor]:
    """Give an executor, and one torch thread to whoever works meanwhile.

    Parameters
    ----------
    options : ExecutorOptions
    preload : sequence of str
        Modules that worker processes import once, for all of them.

    Raises
    ------
    ChildProcessError
        If a worker process dies.
    """
    with one_thread():
        if options.kind == "serial":
            yield Here()
            return
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(preload))
        others = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(options.num_workers, context, _start_worker)
        is_done = False
        try:
            with _interrupts_blocked():
                pool.submit(_nothing)  # the first task starts the processes
            yield pool
            is_done = True
        except BrokenProcessPool as error:
            raise ChildProcessError(
                "a worker process must not die; one did (killed, or out of memory). "
                "`--set executor.kind=serial` shows the error itself."
            ) from error
        finally:
            if not is_done:  # nobody waits for what still runs
                for worker in set(multiprocessing.active_children()) - others:
                    worker.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, and as many as before afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(_THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Hold Ctrl-C back; processes that start meanwhile never get it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    torch.set_num_threads(_THREADS)


def _nothing() -> None:
    """Do nothing; see `workers`."""
