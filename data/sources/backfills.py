"""Values that were first published long after their period, and are no revisions.

The 30-year Treasury rate was not published from February 2002 to February 2006; a file
of today has a value for each of those days. In a log with vintages such values are known
only from the vintage that brought them, and nothing leaks: this module says which they
are. In one file without vintages nothing tells them from the others.

The rule: a first print is a backfill

- if a later period had been published more than 366 days before it, or
- if it came more than 366 days after its period, and more than ten times later than
  first prints of its entity and stream usually do.

What came with the first availability of an entity and stream is left out: a file begins
there, and its values were published some time before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Bool, Int64

from infoset.data.events import EventLog
from infoset.data.instants import NS_PER_DAY, instants

_LATE = 366 * NS_PER_DAY
_TIMES_USUAL = 10
_SHOWN = 10


@dataclass(frozen=True)
class Backfill:
    """Successive periods of a stream and entity that were published afterwards.

    Attributes
    ----------
    stream, entity : str
    first, last : int
        Event times of the first and the last period (UTC nanoseconds since 1970).
    num_periods : int
    available_from, available_to : int
        When the first and the last of them became available (UTC nanoseconds).
    usual_lag : int
        Median lag of the first prints of the stream and entity that were published in
        turn (nanoseconds).
    """

    stream: str
    entity: str
    first: int
    last: int
    num_periods: int
    available_from: int
    available_to: int
    usual_lag: int


def backfills(log: EventLog) -> list[Backfill]:
    """Return the backfilled runs of periods of a log, by stream, entity and time."""
    found: list[Backfill] = []
    for stream in log.streams:
        table = log.table(stream)
        found += _stream_backfills(stream, table.filter(pc.equal(table["revision"], 0)))
    return found


def backfill_notices(log: EventLog) -> tuple[str, ...]:
    """Return a sentence for each of the longest backfilled runs of a log."""
    found = backfills(log)
    longest = sorted(found, key=lambda run: -run.num_periods)[:_SHOWN]
    notices = [_sentence(run) for run in found if run in longest]
    others = [run for run in found if run not in longest]
    if others:
        periods = sum(run.num_periods for run in others)
        notices.append(
            f"{len(others):,} shorter runs of late first prints, of {periods:,} periods "
            "in all, are in the log as well."
        )
    return tuple(notices)


def _stream_backfills(stream: str, first_prints: pa.Table) -> Iterator[Backfill]:
    event = _nanoseconds(first_prints["event_time"])
    available = _nanoseconds(first_prints["available_at"])
    if not (available - event > _LATE).any():
        return
    # A log is ordered by entity, then by availability.
    entity = first_prints["entity"].combine_chunks().dictionary_encode()
    codes = entity.indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        name = entity.dictionary[int(codes[start])].as_py()
        yield from _runs(stream, name, event[start:end], available[start:end])


def _runs(
    stream: str,
    entity: str,
    event: Int64[np.ndarray, " n"],
    available: Int64[np.ndarray, " n"],
) -> Iterator[Backfill]:
    """Yield the runs of late periods that follow each other without another between."""
    lag, is_later = available - event, available > available[0]
    if not (is_later & (lag > _LATE)).any():
        return
    is_overtaken = is_later & _is_overtaken(event, available)
    in_turn = lag[is_later & ~is_overtaken]
    usual = int(np.median(in_turn if len(in_turn) else lag[is_later]))
    is_late = is_overtaken | (is_later & (lag > max(_LATE, _TIMES_USUAL * usual)))
    order = np.argsort(event, kind="stable")
    edges = np.diff(is_late[order].astype(np.int8), prepend=0, append=0)
    for first, after in zip(
        np.flatnonzero(edges == 1), np.flatnonzero(edges == -1), strict=True
    ):
        run = order[first:after]
        yield Backfill(
            stream=stream,
            entity=entity,
            first=int(event[run[0]]),
            last=int(event[run[-1]]),
            num_periods=len(run),
            available_from=int(available[run].min()),
            available_to=int(available[run].max()),
            usual_lag=usual,
        )


def _is_overtaken(
    event: Int64[np.ndarray, " n"], available: Int64[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return where a later period had been published more than 366 days before."""
    num_before = np.searchsorted(available, available - _LATE, side="left")
    newest = np.maximum.accumulate(event)[np.maximum(num_before - 1, 0)]
    return (num_before > 0) & (newest > event)


def _nanoseconds(clock: pa.ChunkedArray) -> Int64[np.ndarray, " n"]:
    nanos: np.ndarray = clock.cast(pa.int64()).to_numpy()
    return nanos


def _sentence(run: Backfill) -> str:
    days = [_day(time) for time in (run.first, run.last)]
    known = [_day(time) for time in (run.available_from, run.available_to)]
    periods = days[0] if run.num_periods == 1 else f"{days[0]} to {days[1]}"
    since = known[0] if known[0] == known[1] else f"{known[0]} to {known[1]}"
    usual = run.usual_lag / NS_PER_DAY
    return (
        f"Stream {run.stream}, entity {run.entity}: {run.num_periods:,} "
        f"{'period' if run.num_periods == 1 else 'periods'} ({periods}) became known for "
        f"the first time on {since}, long after they ended (usual lag: {usual:,.0f} d). "
        "They were filled in afterwards, or vintages between are not in the source; "
        "before that availability nothing sees them."
    )


def _day(time: int) -> str:
    return f"{instants(np.array([time]))[0]:%Y-%m-%d}"
