"""The comparison of a run and its latencies as tables for the terminal."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from .report import comparison_text, latency_text

_INTERVAL = " (95 % interval)"
_LEFT_OUT = ("CRPS", "MAE", "in 90 % band")
_ENDLESS = 10_000


def results_table(folder: Path, *, width: int) -> Table:
    """Return the comparison table of a run; the numbers are those of the report.

    Parameters
    ----------
    folder : Path
    width : int
        Columns of the terminal. Where the whole table is wider than it, intervals of
        the loss and further scores are left to the report.
    """
    text = comparison_text(folder)
    title = f"Forecasters on the same information sets ({folder.name})"
    whole = _table(text, title)
    if Console(width=_ENDLESS).measure(whole).maximum <= width:
        return whole
    text = text.drop(columns=[name for name in _LEFT_OUT if name in text])
    losses = text[f"loss{_INTERVAL}"].str.split(" (", regex=False).str[0]
    text = text.assign(**{f"loss{_INTERVAL}": losses}).rename(
        columns={f"loss{_INTERVAL}": "loss"}
    )
    narrow = _table(text.rename(columns=_in_lines), title)
    narrow.caption = "Intervals of the loss and further scores are in the report."
    return narrow


def latency_results(folder: Path) -> list[Table | str]:
    """Return what a run's forecasts take, as a table and in sentences."""
    text, sentences = latency_text(folder)
    return [_table(text, f"What a forecast takes ({folder.name})"), *sentences]


def _table(text: pd.DataFrame, title: str) -> Table:
    table = Table(title=title)
    for place, name in enumerate(text.columns):
        table.add_column(str(name), justify="left" if place == 0 else "right")
    for row in text.itertuples(index=False):
        table.add_row(*row)
    return table


def _in_lines(heading: str) -> str:
    heading = heading.replace(_INTERVAL, f"\n{_INTERVAL.strip()}")
    return heading.replace(" forecast, ", "\nforecast,\n")
