"""The figure of the report that shows what older events add."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from .looks import Look
from .numbers import count, plain, signed_percent
from .svg import Panel, label, legend, line, panel, svg

Looks = Mapping[str, Look]


def history_figure(
    by_history: pd.DataFrame, baseline: str | None, looks: Looks
) -> tuple[Panel, ...]:
    """Draw the loss against the history length, and close up against the baseline.

    Parameters
    ----------
    by_history : DataFrame
        forecaster, history, length (NaN for one without a length), scaled_pinball,
        low and high.
    baseline : str or None
    looks : Mapping[str, Look]
    """
    known = by_history[by_history["scaled_pinball"].notna()]
    several = known.groupby("forecaster")["history"].nunique() > 1
    names = [name for name in looks if several.get(name, False)]
    if not names:
        return ()
    ticks = _history_places(known[known["forecaster"].isin(names)])
    base = known.loc[known["forecaster"] == baseline, "scaled_pinball"]
    reference = float(base.iloc[0]) if len(base) else math.nan
    panels = [_history_panel(known, names, ticks, looks, (baseline, reference))]
    if reference > 0:
        panels.append(_close_up(known, names, ticks, looks, (str(baseline), reference)))
    return tuple(panels)


def _history_panel(
    known: pd.DataFrame,
    names: Sequence[str],
    ticks: Mapping[str, float],
    looks: Looks,
    base: tuple[str | None, float],
) -> Panel:
    figure, axes = panel(3.4)
    # A little beside each other, so that no interval hides another.
    apart = 0.02 * (max(ticks.values()) - min(ticks.values()))
    shifts = np.linspace(-apart, apart, len(names)) if len(names) > 1 else [0.0]
    texts = []
    for shift, name in zip(shifts, names, strict=True):
        mine = _in_order(known, name, ticks)
        at = np.array([ticks[history] for history in mine["history"]]) + shift
        look = looks[name]
        axes.vlines(
            at, mine["low"], mine["high"], color=look.placeholder, linewidth=1.4
        )
        axes.plot(at, mine["scaled_pinball"], **line(look))
        values = [
            f"{history} {plain(value)}"
            for history, value in zip(
                mine["history"], mine["scaled_pinball"], strict=True
            )
        ]
        texts.append(f"{name}: {', '.join(values)}")
    _baseline_line(axes, base, looks)
    _history_axis(axes, ticks)
    axes.set_ylabel("scaled pinball loss")
    legend(figure, [*names, *_drawn(base)], looks)
    title = "Loss against history length, with 95 % intervals"
    drawn = svg(figure, "history", title, "; ".join(texts))
    return Panel("Loss, with 95 % intervals", drawn)


def _close_up(
    known: pd.DataFrame,
    names: Sequence[str],
    ticks: Mapping[str, float],
    looks: Looks,
    base: tuple[str, float],
) -> Panel:
    figure, axes = panel(3.4)
    baseline, reference = base
    texts = []
    for name in names:
        mine = _in_order(known, name, ticks)
        change = 100 * (mine["scaled_pinball"] / reference - 1)
        at = [ticks[history] for history in mine["history"]]
        axes.plot(at, change, **line(looks[name]))
        values = [
            f"{history} {signed_percent(value, 2)}"
            for history, value in zip(mine["history"], change, strict=True)
        ]
        texts.append(f"{name}: {', '.join(values)}")
    _baseline_line(axes, (baseline, 0.0), looks)
    _history_axis(axes, ticks)
    axes.set_ylabel(f"loss against {label(baseline)} in %")
    legend(figure, [*names, *_drawn(base)], looks)
    title = f"Close-up: loss against {baseline} by history length, without intervals"
    drawn = svg(figure, "history-close-up", title, "; ".join(texts))
    return Panel(f"Close-up: against {baseline}", drawn)


def _drawn(base: tuple[str | None, float]) -> list[str]:
    return [base[0]] if base[0] is not None and math.isfinite(base[1]) else []


def _baseline_line(axes: Axes, base: tuple[str | None, float], looks: Looks) -> None:
    for name in _drawn(base):
        look = looks[name]
        axes.axhline(
            base[1], color=look.placeholder, linestyle=look.line, linewidth=1.6
        )


def _history_places(known: pd.DataFrame) -> dict[str, float]:
    """Where each history stands: by its length in doublings, those without one last."""
    lengths = known.groupby("history")["length"].first()
    counted = lengths.dropna().sort_values(kind="stable")
    places = {str(name): math.log2(max(n, 1)) for name, n in counted.items()}
    last = max(places.values(), default=0.0)
    for step, name in enumerate(sorted(lengths[lengths.isna()].index), start=1):
        places[str(name)] = last + step
    return places


def _in_order(
    known: pd.DataFrame, name: str, ticks: Mapping[str, float]
) -> pd.DataFrame:
    mine = known[known["forecaster"] == name]
    return mine.sort_values("history", key=lambda histories: histories.map(ticks))


def _history_axis(axes: Axes, ticks: Mapping[str, float]) -> None:
    names = [_tick(name) for name in ticks]
    axes.set_xticks(list(ticks.values()), names)
    axes.set_xlabel("newest events in the information set")


def _tick(history: str) -> str:
    """Write ``last 1024`` as ``1,024``, and any other history as it is."""
    number = history.removeprefix("last ")
    return count(int(number)) if number.isdecimal() else history
