"""Single and batched streams against their bars, side by side in one run.

`make bench-stream`: two layers, width 64, four heads, feed-forward 256; an update and the
forecast after it are timed together, in Python, as they would be used, on one thread and
without the garbage collector. Streams take turns, so that a machine that slows down
slows each; medians and their ratios count. Prints PASS or FAIL for each bar and exits
with 1 if one is missed. Softmax against linear is no bar: a better softmax stream makes
those ratios smaller, so they are shown beside what was expected, and nothing fails.

Takes about two minutes; `--long` also streams ten million events, in six minutes more.
Run it on an idle machine: neighbours that read memory slow the caches of softmax and
the states of a batch far more than a single linear stream.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from stream_precision import relative_errors
from stream_timing import (
    Contestant,
    batch_microseconds,
    contestants,
    in_turns,
    one_thread,
)

from infoset.models.fast.entries import linear_stream, linear_streams, softmax_stream

_LENGTH, _LONGEST, _SOFTMAX_LENGTH = 1_000, 1_000_000, 10_000
_ENTITIES, _THREADS, _TICKS = 1_000, 2, 1_000
_MILLION = 1_000_000


@dataclass(frozen=True)
class Bar:
    """One promise, and what was measured of it."""

    name: str
    found: float
    need: float
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the bar is cleared."""
        return self.found >= self.need if self.at_least else self.found <= self.need


def main() -> int:
    """Measure, print and judge; return 1 if a bar is missed."""
    long = _asked_for_long()
    console = Console(width=110)
    one_thread()
    console.print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, compile_now in (
        ("one stream, linear", linear_stream),
        ("one stream, softmax", softmax_stream),
        ("many streams", linear_streams),
    ):
        before = time.perf_counter()
        compile_now()
        console.print(f"{name}: ready after {time.perf_counter() - before:.1f} s")
    streams = contestants(_LENGTH, _LONGEST, _SOFTMAX_LENGTH)
    gc.disable()
    in_turns(list(streams.values()))
    console.print(_times_table(streams))
    batch = batch_microseconds(_ENTITIES, _THREADS, _TICKS)
    console.print(_batch_table(batch))
    gc.enable()
    bars = [*_time_bars(streams), *_state_bars(streams), _batch_bar(batch)]
    bars += _precision_bars(console, long=long)
    for line in _softmax_ratios(streams):
        console.print(line)
    console.print(_bars_table(bars))
    console.print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return int(not all(bar.passed for bar in bars))


def _asked_for_long() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="ten million events too")
    return bool(parser.parse_args().long)


def _time_bars(streams: dict[str, Contestant]) -> list[Bar]:
    p50 = {name: each.percentile(50) for name, each in streams.items()}
    fast = p50["linear"]
    return [
        Bar("linear: p50 of an update and a forecast, us", fast, 14),
        Bar("linear: p99 / p50", streams["linear"].percentile(99) / fast, 2),
        Bar(
            "linear: times as fast as torch",
            p50["linear, torch"] / fast,
            10,
            at_least=True,
        ),
        Bar("linear: p50 at 1,000,000 / at 1,000", p50["linear, long"] / fast, 1.05),
    ]


def _softmax_ratios(streams: dict[str, Contestant]) -> list[str]:
    """Say how much longer softmax takes, each in its best backend and both in torch."""
    p50 = {name: each.percentile(50) for name, each in streams.items()}
    ours = p50["softmax"] / p50["linear"]
    plain = p50["softmax, torch"] / p50["linear, torch"]
    about = f"softmax at {_SOFTMAX_LENGTH:,} events / linear"
    return [
        f"{about}, each in machine code: {ours:.1f} (expected above 40)",
        f"{about}, both in torch: {plain:.2f} (expected above 4)",
    ]


def _state_bars(streams: dict[str, Contestant]) -> list[Bar]:
    kilobytes = [
        streams[n].stream.state_bytes / 1e3 for n in ("linear", "linear, long")
    ]
    return [
        Bar("linear: state at 1,000, KB", kilobytes[0], 40),
        Bar("linear: state at 1,000,000 / at 1,000", kilobytes[1] / kilobytes[0], 1),
    ]


def _batch_bar(batch: dict[str, list[float]]) -> Bar:
    name = f"{_ENTITIES:,} entities, {_THREADS} threads: us per entity and event"
    return Bar(name, statistics.median(batch["update"]), 4)


def _precision_bars(console: Console, *, long: bool) -> list[Bar]:
    counts = [_LENGTH, _MILLION, *([10 * _MILLION] if long else [])]
    bars = []
    for forgetting in (True, False):
        errors = relative_errors(counts, forgetting=forgetting)
        shown = ", ".join(f"{errors[n]:.1e} after {n:,}" for n in counts)
        kind = "forgetting" if forgetting else "sums that grow for ever"
        console.print(f"relative error, {kind}: {shown}")
        bars.append(Bar(f"error after 1,000,000, {kind}", errors[_MILLION], 1e-5))
        if long:
            last = errors[10 * _MILLION]
            bars.append(Bar(f"error after 10,000,000, {kind}", last, errors[_MILLION]))
    return bars


def _times_table(streams: dict[str, Contestant]) -> Table:
    table = Table(title="Update and forecast, one thread, microseconds")
    for name in ("stream", "backend", "events", "p50", "p90", "p99", "KB", "samples"):
        table.add_column(name, justify="left" if name == "stream" else "right")
    for name, each in streams.items():
        table.add_row(
            name,
            each.stream.backend,
            f"{each.length:,}",
            *(f"{each.percentile(share):.1f}" for share in (50, 90, 99)),
            f"{each.stream.state_bytes / 1e3:,.0f}",
            f"{len(each.times_us):,}",
        )
    return table


def _batch_table(batch: dict[str, list[float]]) -> Table:
    title = f"{_ENTITIES:,} entities per tick, {_THREADS} threads, us per entity"
    table = Table("", "p50", "least", title=title)
    for name, times in batch.items():
        table.add_row(name, f"{statistics.median(times):.2f}", f"{min(times):.2f}")
    return table


def _bars_table(bars: list[Bar]) -> Table:
    table = Table("bar", "found", "needed", "", title="Bars")
    for bar in bars:
        sign = ">=" if bar.at_least else "<="
        verdict = "PASS" if bar.passed else "FAIL"
        table.add_row(bar.name, f"{bar.found:.3g}", f"{sign} {bar.need:.3g}", verdict)
    return table


if __name__ == "__main__":
    sys.exit(main())
