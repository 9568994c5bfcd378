"""The comparison of a run as a table for the terminal."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from .report import comparison_text


def results_table(folder: Path) -> Table:
    """Return the comparison table of a run; the numbers are those of the report."""
    text = comparison_text(folder)
    table = Table(title=f"Forecasters on the same information sets ({folder.name})")
    for place, name in enumerate(text.columns):
        table.add_column(str(name), justify="left" if place == 0 else "right")
    for row in text.itertuples(index=False):
        table.add_row(*row)
    return table
