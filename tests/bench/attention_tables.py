"""The results of the attention benchmark as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from attention_bars import Bar
from attention_cells import (
    HEADS,
    THREADS,
    Cell,
    gemm_flops_per_second,
    share_of_floor,
)
from attention_results import Results
from attention_training_step import WITHOUT_DROPOUT
from in_turn import Seconds
from rich.table import Table

_PEERS = {
    "sdpa": "SDPA",
    "fast_transformers": "fast-t.",
    "fast_transformers_module": "its module",
    "performer": "performer",
}
_COSTS = ("strict", "favor", "decay")


def cells_table(results: Results, cells: Iterable[Cell]) -> Table:
    """Return the cells of one width and mode: ours in ms, the others in units of elu1."""
    chosen = list(cells)
    table = Table(
        title=f"D = {chosen[0].width}, {chosen[0].mode}, B*H = {HEADS}, "
        f"{THREADS} threads: median ms (share of the FLOP floor); others / elu1",
    )
    names = ("events", "elu1", "features given", *_COSTS, *_PEERS.values(), "GEMM/s")
    for name in names:
        table.add_column(name, justify="right")
    for cell in chosen:
        seconds = results.cells[cell]
        table.add_row(
            f"{cell.num_events:,}",
            *(_with_share(cell, seconds, form) for form in ("elu1", "mapped")),
            *(_relative(seconds, form) for form in (*_COSTS, *_PEERS)),
            f"{gemm_flops_per_second(seconds['gemm']) / 1e9:.0f} G",
        )
    return table


def memory_table(results: Results) -> Table:
    """Return the peaks above inputs."""
    table = Table(title="Peak memory above inputs and their gradients, MB")
    for name in ("D", "events", "mode", "form", "MB"):
        table.add_column(name, justify="right")
    for (cell, form), peak in results.memory.items():
        shown = "not measured" if peak is None else f"{peak:.0f}"
        size = (str(cell.width), f"{cell.num_events:,}")
        table.add_row(*size, cell.mode, _PEERS.get(form, form), shown)
    return table


def training_step_table(results: Results) -> Table:
    """Return the training steps."""
    table = Table(title="Training step, 2 layers of width 64, 4 heads: median ms")
    for name in ("events", "linear", "softmax", "times as fast", ""):
        table.add_column(name, justify="right")
    for num_events, seconds in results.training_steps.items():
        for kind in ("", WITHOUT_DROPOUT):
            linear, softmax = (seconds[x + kind].median for x in ("linear", "softmax"))
            times = (f"{1e3 * linear:.1f}", f"{1e3 * softmax:.1f}")
            table.add_row(
                f"{num_events:,}", *times, f"{softmax / linear:.2f}", kind.strip()
            )
    return table


def bars_table(bars: Iterable[Bar]) -> Table:
    """Return one line for each bar."""
    table = Table(title="Bars, each judged where it is nearest to being missed")
    for name in ("what", "bar", "measured", "where", ""):
        table.add_column(name)
    for bar in bars:
        where, value = ("", "") if bar.worst is None else _shown(*bar.worst)
        sign = ">=" if bar.at_least else "<="
        table.add_row(bar.name, f"{sign} {bar.need:g}", value, where, bar.verdict)
    return table


def _shown(where: str, value: float) -> tuple[str, str]:
    return where, f"{value:.2f}"


def _with_share(cell: Cell, seconds: dict[str, Seconds], form: str) -> str:
    share = share_of_floor(cell, seconds, form)
    return f"{1e3 * seconds[form].median:.2f} ({share:.0%})"


def _relative(seconds: dict[str, Seconds], form: str) -> str:
    if form not in seconds:
        return "-"
    return f"{seconds[form].median / seconds['elu1'].median:.2f}"
