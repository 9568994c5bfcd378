"""The comparison of a run as a table for the terminal."""

from __future__ import annotations

import math
from pathlib import Path

from rich.table import Table

from .report import comparison_table


def results_table(folder: Path) -> Table:
    """Return the comparison table of a run; the numbers are those of the report."""
    frame = comparison_table(folder)
    table = Table(title=f"Forecasters on the same information sets ({folder.name})")
    for place, name in enumerate(frame.columns):
        table.add_column(str(name), justify="left" if place == 0 else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*(_shown(cell) for cell in row))
    return table


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return "undefined" if math.isnan(cell) else f"{cell:.4g}"
    return "" if cell is None else str(cell)
