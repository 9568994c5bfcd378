"""The figures of the report: each a tuple of SVG panels, empty without data.

Panels are drawn about as wide as a telephone's screen; a page puts them side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .report_numbers import (
    day,
    duration,
    p_text,
    percent,
    signed_percent,
    significant,
)
from .report_svg import GRID, INK, MUTED, PAPER, Look, label, svg

Panels = tuple[Markup, ...]
Looks = Mapping[str, Look]
_WIDTH = 4.6


def difference_figure(comparison: pd.DataFrame, baseline: str, looks: Looks) -> Panels:
    """Draw the difference of each forecaster to the baseline, with its interval.

    Parameters
    ----------
    comparison : DataFrame
        As `report_tables.comparison_frame` gives it.
    baseline : str
    looks : Mapping[str, Look]
    """
    shown = comparison[comparison["percent"].notna()]
    if shown.empty:
        return ()
    figure, axes = _panel(1.1 + 0.36 * len(shown), width=6.4)
    axes.axvline(0, color=MUTED, linewidth=1.2)
    places = np.arange(len(shown))[::-1]
    for place, row in zip(places, shown.to_dict("records"), strict=True):
        look = looks[row["forecaster"]]
        axes.plot(
            [row["percent_low"], row["percent_high"]],
            [place, place],
            color=look.colour,
            linewidth=2.4,
            solid_capstyle="butt",
        )
        axes.plot(row["percent"], place, **_dot(look, size=8))
    axes.set_yticks(places, [label(name) for name in shown["forecaster"]])
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"loss against {label(baseline)}, % (left of 0 is better)")
    texts = [
        f"{row['forecaster']} {signed_percent(row['percent'], 2)} ("
        f"{signed_percent(row['percent_low'], 2)} to "
        f"{signed_percent(row['percent_high'], 2)}, {p_text(row['p_value'])})"
        for row in shown.to_dict("records")
    ]
    return (
        svg(
            figure,
            "differences",
            f"Loss of each forecaster against {baseline}, with 95 % intervals",
            "; ".join(texts),
        ),
    )
