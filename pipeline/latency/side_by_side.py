"""The closed loop in several processes at once, each with its own core and forecaster."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import BrokenBarrierError

import numpy as np

from infoset.models.attention_forecaster import AttentionForecaster
from infoset.models.stream_making import ChosenBackend

from .closed_loop import LoopLimits, closed_loop
from .contention import Contention
from .cores import cores_of_instance
from .filled_streams import Contestant, FilledStreams
from .quiet import quiet_measurement
from .tape import Tape
from .turns import Turns, Workload

_LONGEST_START = 300.0  # seconds until every process must be ready


@dataclass(frozen=True)
class Job:
    """What each process measures; plain data and paths.

    Attributes
    ----------
    models : Mapping[str, Path]
        Folders of fitted networks, by name.
    backends : tuple of {'auto', 'torch', 'numba'}
    tapes : tuple of Tape
        One per stream.
    workload : {'fresh', 'streaming'}
    length, threads : int
    limits : LoopLimits
    cores : tuple of int
        Those that the processes may share out among themselves.
    """

    models: Mapping[str, Path]
    backends: tuple[ChosenBackend, ...]
    tapes: tuple[Tape, ...]
    workload: Workload
    length: int
    threads: int
    limits: LoopLimits
    cores: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Instance:
    """What one process measured.

    Attributes
    ----------
    times_us : Mapping[(str, str), ndarray]
        By name and backend, as the job names them.
    contention : Contention
    cores : str
    """

    times_us: Mapping[tuple[str, ChosenBackend], np.ndarray]
    contention: Contention
    cores: str


def side_by_side(
    networks: Mapping[str, AttentionForecaster],
    num_instances: int,
    *,
    backends: tuple[ChosenBackend, ...],
    tapes: Sequence[Tape],
    workload: Workload,
    length: int,
    threads: int,
    limits: LoopLimits,
    cores: tuple[int, ...],
) -> list[Instance]:
    """Measure in several processes that begin together.

    Each is pinned to some of `cores` for itself, whatever the caller is pinned to; where
    there are more threads than cores, cores are shared, and the contention says so.

    Raises
    ------
    ChildProcessError
        If a process dies or is not ready in five minutes.
    """
    with tempfile.TemporaryDirectory() as place:
        models = {name: Path(place, str(n)) for n, name in enumerate(networks)}
        for name, network in networks.items():
            network.save(models[name])
        job = Job(
            models=models,
            backends=backends,
            tapes=tuple(tapes),
            workload=workload,
            length=length,
            threads=threads,
            limits=limits,
            cores=cores,
        )
        return _together(job, num_instances)


def _together(job: Job, num_instances: int) -> list[Instance]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    barrier = context.Barrier(num_instances)
    started: list[tuple[BaseProcess, Connection]] = []
    try:
        for place in range(num_instances):
            started += [_start(context, job, place, barrier)]
        return _answers([connection for _, connection in started])
    finally:
        for process, connection in started:
            connection.close()
            process.terminate()
            process.join()


def _start(
    context: ForkServerContext, job: Job, place: int, barrier: Barrier
) -> tuple[BaseProcess, Connection]:
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_instance, args=(job, place, barrier, theirs), daemon=True
    )
    process.start()
    theirs.close()
    return process, mine


def _answers(connections: Sequence[Connection]) -> list[Instance]:
    """Return what all have measured, in their order; the first that fails ends it."""
    found: dict[Connection, Instance] = {}
    while len(found) < len(connections):
        # Not one after the other: those before the one that died wait for it.
        ready = wait([each for each in connections if each not in found])
        answers = {each: _answer(each) for each in connections if each in ready}
        failed = [said for said in answers.values() if not isinstance(said, Instance)]
        if failed:
            raise ChildProcessError(_told(failed))
        found |= {k: said for k, said in answers.items() if isinstance(said, Instance)}
    return [found[each] for each in connections]


def _answer(connection: Connection) -> Instance | str | None:
    """Return what an instance measured or why it did not; None if it died."""
    try:
        answer: Instance | str = connection.recv()
    except (EOFError, ConnectionResetError):
        return None
    return answer


def _told(failed: Sequence[str | None]) -> str:
    """Return the message of some failures, of a cause rather than of what followed."""
    causes = [said for said in failed if said is not None]
    own = [said for said in causes if not said.startswith(BrokenBarrierError.__name__)]
    if own or None not in failed:
        said = (own or causes)[0]
        return f"an instance of the latency suite must measure; it ended with {said}"
    return (
        "an instance of the latency suite must not die; one did (killed, or out of "
        "memory). Lower --instances or --lengths."
    )


def _instance(job: Job, place: int, barrier: Barrier, answer: Connection) -> None:
    """Measure in a process of its own, and send what was found."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    try:
        answer.send(_measured(job, place, barrier))
    except Exception as error:  # the parent tells it
        answer.send(f"{type(error).__name__}: {error}")
        barrier.abort()  # after the cause: what the others say then is no cause


def _measured(job: Job, place: int, barrier: Barrier) -> Instance:
    cores = cores_of_instance(place, job.threads, job.cores)
    # Pinned before anything is filled: a child begins on the one core of its parent.
    with quiet_measurement(job.threads, cores=cores) as quiet:
        turns = {
            (name, backend): Turns(
                FilledStreams(
                    Contestant(name, AttentionForecaster.load(folder), backend),
                    job.tapes,
                    job.workload,
                ).of_length(job.length),
                job.workload,
            )
            for name, folder in job.models.items()
            for backend in job.backends
        }
        barrier.wait(_LONGEST_START)
        before = quiet.usage()
        times = closed_loop(turns, job.limits)
        return Instance(times, quiet.usage().since(before), quiet.cores)
