"""The open loop: requests come when they come, whether or not the server is free."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from .turns import NS_PER_US, Turns

US_PER_SECOND = 1e6


@dataclass(frozen=True, eq=False)
class Served:
    """How requests of an open loop fared, in the order in which they came.

    Attributes
    ----------
    service_us : ndarray of shape (n,)
        From the start of the work to its end.
    response_us : ndarray of shape (n,)
        From the instant at which the request was to start to the end of the work: the
        time for which it stood behind others is part of it.
    seconds : float
        From the first intended start to the last end.
    """

    service_us: Float64[np.ndarray, " n"]
    response_us: Float64[np.ndarray, " n"]
    seconds: float


def poisson(rate_hz: float, num: int, *, seed: int = 0) -> Float64[np.ndarray, " n"]:
    """Return intended starts (microseconds) that come independently of each other.

    The gaps of one seed are the same at every rate, but for their unit.
    """
    gaps = np.random.default_rng(seed).exponential(size=num)
    starts: np.ndarray = np.cumsum(gaps) * (US_PER_SECOND / rate_hz)
    return starts


def recorded(
    instants_ns: Int64[np.ndarray, " n"], *, factor: float
) -> Float64[np.ndarray, " n"]:
    """Return intended starts (microseconds) with the gaps of a tape, `factor` faster.

    Parameters
    ----------
    instants_ns : ndarray of shape (n,)
        Nanoseconds, ascending: events that came together stay together.
    factor : float
        How many seconds of the tape pass in one.
    """
    starts: np.ndarray = (instants_ns - instants_ns[0]) / (NS_PER_US * factor)
    return starts


def factor_for_rate(instants_ns: Int64[np.ndarray, " n"], rate_hz: float) -> float:
    """Return the factor at which a tape brings so many events a second, on average.

    Raises
    ------
    ValueError
        If all events come at one instant.
    """
    seconds = float(instants_ns[-1] - instants_ns[0]) / 1e9
    if seconds <= 0:
        raise ValueError(
            "recorded arrivals must spread over time; got "
            f"{len(instants_ns)} at one instant. Record a longer tape."
        )
    return rate_hz * seconds / (len(instants_ns) - 1)


def response_times(
    intended: Float64[np.ndarray, " n"], service: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Return response times of one server that takes requests in order of arrival.

    A request starts at its intended instant or when the server is free, whichever is
    later; its response time counts from the intended instant [1]_.

    Parameters
    ----------
    intended, service : ndarray of shape (n,)
        Intended starts, ascending, and service times, in one unit.

    References
    ----------
    .. [1] Lindley (1952), Proc. Cambridge Phil. Soc. 48(2), eq. (1)
    """
    response = np.empty(len(intended))
    free = -np.inf
    pairs = zip(intended.tolist(), service.tolist(), strict=True)
    for place, (start, work) in enumerate(pairs):
        free = max(start, free) + work
        response[place] = free - start
    return response


def open_loop(
    turns: Turns,
    intended_us: Float64[np.ndarray, " n"],
    *,
    num_warm_up: int = 0,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Served:
    """Serve requests at their intended starts, or as soon after as possible.

    Between requests the server reads the clock, so that nothing has to wake it up. While
    a stream is made ready, which no server would do, the loop's clock stands still.

    Parameters
    ----------
    turns : Turns
    intended_us : ndarray of shape (n,)
        Ascending, from a common start.
    num_warm_up : int
        Requests before the first, thrown away.
    clock : callable
        Nanoseconds.
    """
    for _ in range(num_warm_up):
        stream, event = turns.ready()
        stream.update(event)
        stream.forecast(event.available_at)
    service, response = np.empty(len(intended_us)), np.empty(len(intended_us))
    offsets = np.rint(intended_us * NS_PER_US).astype(np.int64).tolist()
    end = origin = clock()
    for place, offset in enumerate(offsets):
        before = clock()
        stream, event = turns.ready()
        origin += clock() - before
        intended = origin + offset
        begin = clock()
        while begin < intended:
            begin = clock()
        stream.update(event)
        stream.forecast(event.available_at)
        end = clock()
        service[place] = (end - begin) / NS_PER_US
        response[place] = (end - intended) / NS_PER_US
    seconds = (end - origin - offsets[0]) / 1e9
    return Served(service, response, seconds)
