"""The bars that linear attention must clear, and whether one run clears them.

A bar that covers several cells is judged by the worst of them. One of a peer that is
not installed is neither passed nor failed, and one whose cells were not run (`--quick`)
is not listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from attention_cells import LENGTHS, WIDTHS, Cell, share_of_floor
from attention_results import Results

PASS, FAIL = "PASS", "FAIL"
# Events, and how many times as fast as the peer, at least.
_SOFTMAX = {
    64: {256: 1.0, 1024: 2.0, 4096: 7.0, 16384: 15.0},
    32: {1024: 3.0, 4096: 10.0},
    16: {1024: 3.0, 4096: 10.0},
}
_TRAINING_STEP = {1024: 1.8, 4096: 3.5, 16384: 8.0}
_FAST_TRANSFORMERS, _PERFORMER = 1.2, 30.0
_SHARES = {False: 0.45, True: 0.40}  # with backward?
_COSTS = {"strict": 1.05, "favor": 2.0, "decay": 2.0}  # in units of elu1
_LONG, _LONGEST, _SLOWDOWN = 4096, 65536, 1.8
_MEMORY, _MEMORY_CELL = 140.0, Cell(64, 16384, backward=True)
_MODES = (False, True)
MANY = 1024  # below, the cost of a call hides that of the sums


@dataclass(frozen=True)
class Bar:
    """One promise, and what was measured of it.

    Attributes
    ----------
    name : str
    need : float
    at_least : bool
        Whether `need` is a lower bound; else an upper one.
    found : dict
        Where it was measured, and what; None = it could not be.
    unknown : str
        Why it could not.
    """

    name: str
    need: float
    at_least: bool
    found: dict[str, float | None]
    unknown: str = "not installed"

    @property
    def worst(self) -> tuple[str, float] | None:
        """Where the bar is nearest to being missed, and the value there."""
        known = [(where, x) for where, x in self.found.items() if x is not None]
        if not known:
            return None
        pick = min if self.at_least else max
        return pick(known, key=lambda pair: pair[1])

    @property
    def verdict(self) -> str:
        """PASS, FAIL or why neither."""
        if self.worst is None:
            return self.unknown
        _, value = self.worst
        cleared = value >= self.need if self.at_least else value <= self.need
        return PASS if cleared else FAIL


def bars(results: Results) -> list[Bar]:
    """Return all bars of which a run has measured something."""
    every = [
        *_against_softmax(results),
        *_against_peers(results),
        *_long_sequences(results),
        *_shares(results),
        *_costs(results),
        *_training_steps(results),
    ]
    return [bar for bar in every if bar.found]


def times_as_fast(
    results: Results, cell: Cell, peer: str, *, ours: str = "elu1"
) -> float | None:
    """Return the peer's time in units of ours; None if there is no such form."""
    seconds = results.cells[cell]
    if peer not in seconds or ours not in seconds:
        return None
    return seconds[peer].median / seconds[ours].median


def _against_softmax(results: Results) -> Iterable[Bar]:
    for width, needs in _SOFTMAX.items():
        for num_events, need in needs.items():
            cells = [Cell(width, num_events, backward) for backward in _MODES]
            name = f"times as fast as SDPA, D = {width}, N = {num_events:,}"
            found = _ratios(results, cells, "sdpa")
            yield Bar(name, need, at_least=True, found=found)


def _against_peers(results: Results) -> Iterable[Bar]:
    for width in WIDTHS:
        cells = [Cell(width, n, backward) for n in _many() for backward in _MODES]
        yield Bar(
            f"times as fast as fast-transformers, D = {width}, N >= {MANY:,}",
            _FAST_TRANSFORMERS,
            at_least=True,
            found=_ratios(results, cells, "fast_transformers"),
        )
    yield Bar(
        f"times as fast as performer-pytorch, D = 64, N = {_LONG:,}",
        _PERFORMER,
        at_least=True,
        found=_ratios(
            results, [Cell(64, _LONG, backward) for backward in _MODES], "performer"
        ),
    )


def _long_sequences(results: Results) -> Iterable[Bar]:
    for width in WIDTHS:
        found: dict[str, float | None] = {}
        for backward in _MODES:
            long = Cell(width, _LONG, backward)
            longest = Cell(width, _LONGEST, backward)
            if long in results.cells and longest in results.cells:
                times = (results.cells[cell]["elu1"].median for cell in (longest, long))
                found[long.mode] = next(times) / next(times) * _LONG / _LONGEST
        name = f"time per token at {_LONGEST:,} over that at {_LONG:,}, D = {width}"
        yield Bar(name, _SLOWDOWN, at_least=False, found=found)
    key = _MEMORY_CELL, "elu1"
    yield Bar(
        f"peak MB above inputs, D = 64, N = {_MEMORY_CELL.num_events:,}",
        _MEMORY,
        at_least=False,
        found={_MEMORY_CELL.mode: results.memory[key]} if key in results.memory else {},
        unknown="not measured",
    )


def _shares(results: Results) -> Iterable[Bar]:
    for backward, need in _SHARES.items():
        cell = Cell(64, _LONG, backward)
        found: dict[str, float | None] = {}
        if cell in results.cells:
            found[cell.mode] = share_of_floor(cell, results.cells[cell], "mapped")
        name = f"share of the FLOP floor, features given, D = 64, N = {_LONG:,}"
        yield Bar(name, need, at_least=True, found=found)


def _costs(results: Results) -> Iterable[Bar]:
    for form, need in _COSTS.items():
        for width in WIDTHS:
            cells = [Cell(width, n, backward) for n in _many() for backward in _MODES]
            yield Bar(
                f"{form} in units of elu1, D = {width}, N >= {MANY:,}",
                need,
                at_least=False,
                found=_ratios(results, cells, form),
            )


def _training_steps(results: Results) -> Iterable[Bar]:
    for num_events, need in _TRAINING_STEP.items():
        found: dict[str, float | None] = {}
        if num_events in results.training_steps:
            seconds = results.training_steps[num_events]
            found["step"] = seconds["softmax"].median / seconds["linear"].median
        name = f"training step, times as fast as SDPA, N = {num_events:,}"
        yield Bar(name, need, at_least=True, found=found)


def _many() -> list[int]:
    return [num_events for num_events in LENGTHS if num_events >= MANY]


def _ratios(
    results: Results, cells: Iterable[Cell], form: str
) -> dict[str, float | None]:
    """Return the time of a form in units of elu1 in those cells that were run."""
    return {
        f"N = {cell.num_events:,} {cell.mode}": times_as_fast(results, cell, form)
        for cell in cells
        if cell in results.cells
    }
