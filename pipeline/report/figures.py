"""The figures of the report: each a tuple of SVG panels, empty without data.

A panel is about as wide as a telephone's screen; the page puts several side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from .history_figure import history_figure
from .inputs import RunContents
from .looks import Look
from .numbers import (
    count,
    day,
    duration,
    p_text,
    percent,
    plain,
    round_duration,
    signed_percent,
)
from .svg import (
    INK,
    MUTED,
    PAPER,
    Panel,
    drawing,
    label,
    legend,
    line,
    panel,
    points,
    svg,
)
from .tables import (
    calibration,
    comparison_frame,
    recent_forecasts,
    shown_forecasters,
    unit_of,
)

Panels = tuple[Panel, ...]
Looks = Mapping[str, Look]
_WORKLOADS = {
    "fresh": "A fresh window, read anew",
    "streaming": "Streaming: one more event",
}


def all_figures(contents: RunContents, looks: Looks) -> dict[str, Panels]:
    """Draw every figure of the report.

    Parameters
    ----------
    contents : RunContents
    looks : Mapping[str, Look]
    """
    baseline = contents.baseline
    recent = recent_forecasts(contents, shown_forecasters(contents))
    comparison = comparison_frame(contents)
    with drawing():
        return {
            "differences": difference_figure(comparison, baseline or "", looks),
            "history": history_figure(contents.by_history, baseline, looks),
            "latency": latency_figure(contents.latency_alone, looks),
            "forecasts": forecast_figure(recent, unit_of(contents, recent), looks),
            "calibration": calibration_figure(calibration(contents), looks),
        }


def difference_figure(comparison: pd.DataFrame, baseline: str, looks: Looks) -> Panels:
    """Draw the difference of each forecaster to the baseline, with its interval.

    Parameters
    ----------
    comparison : DataFrame
        As `report_tables.comparison_frame` gives it.
    baseline : str
    looks : Mapping[str, Look]
    """
    rows = comparison[comparison["percent"].notna()].to_dict("records")
    if not rows:
        return ()
    figure, axes = panel(0.9 + 0.36 * len(rows), width=5.4)
    axes.axvline(0, color=MUTED, linewidth=1.2)
    places = list(range(len(rows)))[::-1]
    for place, row in zip(places, rows, strict=True):
        look = looks[row["forecaster"]]
        ends = [row["percent_low"], row["percent_high"]]
        axes.plot(ends, [place, place], color=look.placeholder, linewidth=2.4)
        axes.plot(row["percent"], place, **points(look, size=8.5))
    axes.set_yticks(places, [label(row["forecaster"]) for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"loss against {label(baseline)} in %; left of 0 is better")
    texts = [
        f"{row['forecaster']} {signed_percent(row['percent'], 2)} "
        f"(from {signed_percent(row['percent_low'], 2)} to "
        f"{signed_percent(row['percent_high'], 2)}, {p_text(row['p_value'])})"
        for row in rows
    ]
    title = f"Loss of each forecaster against {baseline}, with 95 % intervals"
    return (Panel("", svg(figure, "differences", title, "; ".join(texts))),)


def latency_figure(latency: pd.DataFrame, looks: Looks) -> Panels:
    """Draw median latency against history length, one panel per workload.

    A whisker reaches up to the 95th percentile. Both axes are logarithmic and the
    panels share them. Forecasters without a stream, measured at one length, are drawn only
    where there is no other.

    Parameters
    ----------
    latency : DataFrame
        As `RunContents.latency_alone`.
    looks : Mapping[str, Look]
    """
    known = latency[(latency["p50_us"] > 0) & (latency["history_length"] > 0)]
    if known.empty:
        return ()
    has_stream = known["attention"].notna()
    known = known[has_stream] if has_stream.any() else known
    lowest, highest = known["p50_us"].min(), known[["p50_us", "p95_us"]].max().max()
    panels = []
    for workload, heading in _WORKLOADS.items():
        mine = known[known["workload"] == workload]
        names = [name for name in looks if name in set(mine["forecaster"])]
        if not names:
            continue
        figure, axes = panel(3.4)
        texts = [_latency_line(axes, mine, name, looks[name]) for name in names]
        _log_axes(axes, sorted(set(known["history_length"])))
        axes.set_ylim(lowest / 1.6, highest * 1.6)
        axes.set_ylabel("time per forecast")
        legend(figure, names, looks)
        title = f"Latency against history length. {heading}"
        drawn = svg(figure, f"latency-{workload}", title, "; ".join(texts))
        panels.append(Panel(heading, drawn))
    return tuple(panels)


def _latency_line(axes: Axes, mine: pd.DataFrame, name: str, look: Look) -> str:
    rows = mine[mine["forecaster"] == name].sort_values("history_length")
    at, median = rows["history_length"], rows["p50_us"]
    axes.vlines(at, median, rows["p95_us"], color=look.placeholder, linewidth=1.4)
    axes.plot(at, median, **line(look))
    values = [
        f"{length:.0f} events {duration(value)}"
        for length, value in zip(at, median, strict=True)
    ]
    return f"{name}: {', '.join(values)}"


def forecast_figure(recent: pd.DataFrame, unit: str, looks: Looks) -> Panels:
    """Draw the newest forecasts of one entity as bands, with what happened.

    Parameters
    ----------
    recent : DataFrame
        As `report_tables.recent_forecasts` gives it; the bands need the columns q05,
        q25, q50, q75 and q95.
    unit : str
    looks : Mapping[str, Look]
    """
    needed = {"q05", "q25", "q50", "q75", "q95"}
    if recent.empty or not needed <= set(recent.columns):
        return ()
    shown = recent[["q05", "q95", "target"]].replace([np.inf, -np.inf], np.nan)
    low, high = shown.min().min(), shown.max().max()
    room = 0.05 * (high - low) or 1.0
    panels = []
    names = [name for name in looks if name in set(recent["forecaster"])]
    for place, name in enumerate(names):
        mine = recent[recent["forecaster"] == name]
        figure, axes = panel(3.4)
        text = _bands(axes, mine, looks[name])
        axes.set_ylim(low - room, high + room)
        axes.set_ylabel(unit or "target")
        title = f"Forecasts of {name} and outcomes, {mine['entity'].iloc[0]}"
        panels.append(Panel(name, svg(figure, f"forecasts-{place}", title, text)))
    return tuple(panels)


def _bands(axes: Axes, mine: pd.DataFrame, look: Look) -> str:
    times = pd.DatetimeIndex(mine["forecast_time"]).tz_convert(None).to_numpy()
    for low, high, alpha in (("q05", "q95", 0.22), ("q25", "q75", 0.38)):
        axes.fill_between(
            times,
            mine[low],
            mine[high],
            color=look.placeholder,
            alpha=alpha,
            linewidth=0,
        )
    axes.plot(times, mine["q50"], color=look.placeholder, linewidth=1.4)
    inside = mine["target"].between(mine["q05"], mine["q95"]).to_numpy()
    target = mine["target"].to_numpy()
    axes.plot(times[inside], target[inside], "o", color=INK, markersize=2.6)
    axes.plot(
        times[~inside], target[~inside], "X", color=INK, markersize=6.5, mec=PAPER
    )
    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    ticks = ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ticks)
    axes.set_xlabel(f"forecast time, {day(times[0])} to {day(times[-1])}")
    known = np.isfinite(target)
    share = 100 * inside[known].mean() if known.any() else math.nan
    return (
        f"{len(mine)} forecasts from {day(times[0])} to {day(times[-1])}; "
        f"{percent(share)} of the outcomes lie within the 90 % band."
    )


def calibration_figure(calibration: pd.DataFrame, looks: Looks) -> Panels:
    """Draw the observed share below each quantile, and its gap to the nominal level.

    Parameters
    ----------
    calibration : DataFrame
        As `report_tables.calibration` gives it.
    looks : Mapping[str, Look]
    """
    names = [name for name in looks if name in set(calibration["forecaster"])]
    if not names:
        return ()
    figure, axes = panel(3.9)
    gaps, gap_axes = panel(3.9)
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1.2)
    gap_axes.axhline(0, color=MUTED, linewidth=1.2)
    grid = np.linspace(0.01, 0.99, 99)
    times = calibration.groupby("forecaster")["num_times"].first().min()
    band = 196 * np.sqrt(grid * (1 - grid) / times)
    gap_axes.fill_between(100 * grid, -band, band, color=MUTED, alpha=0.18, linewidth=0)
    texts = []
    for name in names:
        mine = calibration[calibration["forecaster"] == name]
        level, share = 100 * mine["level"], 100 * mine["share"]
        axes.plot(level, share, **line(looks[name]))
        gap_axes.plot(level, share - level, **line(looks[name]))
        pairs = zip(level, share, strict=True)
        values = [f"{plain(x, 0)} % {percent(y)}" for x, y in pairs]
        texts.append(f"{name}: {', '.join(values)}")
    axes.set_ylabel("observed share, %")
    gap_axes.set_ylabel("observed minus nominal, points")
    for drawn, at in ((figure, axes), (gaps, gap_axes)):
        at.set_xlabel("nominal level, %")
        at.set_xticks([5, 25, 50, 75, 95])
        legend(drawn, names, looks)
    text = "; ".join(texts)
    headings = ("Observed share against nominal level", "Observed minus nominal share")
    names_of = ("calibration", "calibration-gap")
    return tuple(
        Panel(heading, svg(drawn, name, heading, f"Nominal and observed: {text}"))
        for heading, name, drawn in zip(headings, names_of, (figure, gaps), strict=True)
    )


def _log_axes(axes: Axes, lengths: Sequence[float]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths, [count(length) for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("events of history")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: round_duration(value))
    )
