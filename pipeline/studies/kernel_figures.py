"""The two figures of the study, as SVG files that need no page around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any
from xml.sax.saxutils import escape

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from infoset.pipeline.report.looks import Look
from infoset.pipeline.report.numbers import count, round_duration, significant
from infoset.pipeline.report.svg import (
    GRID,
    INK,
    MUTED,
    PAPER,
    drawing,
    line,
    points,
)

Study = Mapping[str, Any]
Number = int | float
Points = Sequence[tuple[Number, Number]]

# The report's colours on white paper; markers and line styles tell them apart in grey.
_BLUE, _ORANGE, _GREY = "#0072b2", "#c95500", "#6a7482"
_GREEN, _PURPLE, _BROWN = "#00835f", "#a3558b", "#8a6a00"
_COLOURS = {INK: "#1a2330", MUTED: "#566171", GRID: "#e7ebef", PAPER: "#ffffff"}
_DASHED, _DOTTED, _MIXED = (
    (0.0, (6.0, 2.0)),
    (0.0, (2.0, 1.5)),
    (0.0, (6.0, 2.0, 1.0, 2.0)),
)


def _look(
    colour: str, marker: str, style: str | tuple[float, tuple[float, ...]]
) -> Look:
    return Look(placeholder=colour, variable="", marker=marker, glyph="", line=style)


_SOFTMAX = _look(_ORANGE, "s", "-")
_FAVOR, _FAVOR_TOO = _look(_BLUE, "o", "-"), _look(_BLUE, "v", _DASHED)
_MAPS = {
    "softmax": _SOFTMAX,
    "favor_4k": _FAVOR,
    "favor_k": _FAVOR_TOO,
    "hedgehog": _look(_GREEN, "^", _MIXED),
    "relu": _look(_PURPLE, "D", _DOTTED),
    "elu1": _look(_BROWN, "P", _DASHED),
    "squared_relu": _look(_GREY, "X", "-"),
}
_WIDTHS = (_look(_BROWN, "P", "-"), _look(_GREEN, "^", _MIXED), _FAVOR)


def replacement_figure(study: Study) -> str:
    """Draw errors, loss change and latency against the number of features."""
    rows = [row for row in study["replacement"] if row["num_features"] is not None]
    sizes = [row["num_features"] for row in rows]
    with drawing():
        figure = Figure(figsize=(13.2, 5.4), layout="constrained")
        errors, losses, times = figure.subplots(1, 3)
        texts = [
            *_errors(errors, rows),
            *_losses(losses, rows),
            *_times(times, study["replacement"]),
        ]
        for axes in (errors, losses, times):
            _doubling_axis(axes, sizes, "random features R")
        title = "Softmax attention replaced by random features"
        return _standalone(figure, title, "; ".join(texts))


def recall_figure(study: Study) -> str:
    """Draw accuracy, and what must be forgotten, against the number of pairs."""
    with drawing():
        figure = Figure(figsize=(11.0, 5.6), layout="constrained")
        accuracy, forgotten = figure.subplots(1, 2)
        texts = [*_recall(accuracy, study), *_forgotten(forgotten, study)]
        for axes in (accuracy, forgotten):
            _doubling_axis(
                axes, study["settings"]["recall"]["num_pairs"], "stored pairs"
            )
            axes.set_ylim(-0.04, 1.04)
        title = "What a state of fixed width forgets"
        return _standalone(figure, title, "; ".join(texts))


def _errors(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw four errors in %, and the slope of one over root R."""
    series = {
        "kernel entry, typical": (
            _look(_GREY, "D", "-"),
            [row["kernel_error"]["typical"] for row in rows],
        ),
        "attention output": (_FAVOR, [row["ratio_error"]["error"] for row in rows]),
        "its bias": (_FAVOR_TOO, [row["ratio_error"]["bias"] for row in rows]),
        "forecast (drift)": (
            _look(_GREEN, "^", _MIXED),
            [row["as_is"]["drift"] for row in rows],
        ),
    }
    texts = []
    for name, (look, values) in series.items():
        pairs = zip([row["num_features"] for row in rows], values, strict=True)
        # A bias that is not clear, and no drift at all, have no place on this axis.
        known = [(x, 100 * y) for x, y in pairs if y]
        texts.append(_drawn(axes, known, look, name, "%"))
    start, first = rows[0]["num_features"], rows[0]["kernel_error"]["typical"]
    axes.plot(
        [row["num_features"] for row in rows],
        [100 * first * (start / row["num_features"]) ** 0.5 for row in rows],
        color=MUTED,
        linewidth=1.0,
        linestyle=":",
        label="slope of 1/√R",
    )
    _log_axis(axes, lambda value: f"{value:g}")
    _finish(axes, "Error, % (logarithmic)")
    return texts


def _losses(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw the change of the loss with its interval, as it is and after tuning."""
    axes.axhline(0, color=MUTED, linewidth=1.2)
    texts = []
    for key, name, look, shift in (
        ("as_is", "weights as they are", _FAVOR, 0.95),
        ("tuned_alike", "both fine-tuned", _look(_BROWN, "P", _DASHED), 1.05),
    ):
        mine = [row for row in rows if row[key] is not None]
        for row in mine:
            low, high = row[key]["percent_low"], row[key]["percent_high"]
            if low is not None and high is not None:
                place = shift * row["num_features"]
                axes.vlines(place, low, high, color=look.placeholder, linewidth=1.4)
        known = [(shift * row["num_features"], row[key]["percent"]) for row in mine]
        texts.append(_drawn(axes, known, look, name, "%"))
    _finish(axes, "Loss against softmax, % (95 % intervals)")
    return [f"loss change, {text}" for text in texts]


def _times(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Draw the time of a fresh forecast; softmax is a level, it has no features."""
    lengths = sorted({one["num_events"] for one in rows[0]["latency"]})
    texts = []
    for length, is_long in zip(lengths, (False, True), strict=False):
        favor = _FAVOR_TOO if is_long else _FAVOR
        known = _known_times(rows, "favor", length)
        name = f"favor, {count(length)} events"
        texts.append(_drawn(axes, known, favor, name, "µs"))
        for _, level in _known_times(rows, "softmax", length):
            style = _DASHED if is_long else "-"
            name = f"softmax, {count(length)} events"
            axes.axhline(level, color=_ORANGE, linestyle=style, label=name)
            texts.append(f"{name}: {significant(level)} µs")
    _log_axis(axes, round_duration)
    _finish(axes, "Time of a fresh forecast, median")
    return [f"time, {text}" for text in texts]


def _known_times(
    rows: Sequence[Mapping[str, Any]], kind: str, length: int
) -> list[tuple[Number, Number]]:
    """Return R and the median microseconds, where there is one (R = 0 for softmax)."""
    return [
        (row["num_features"] or 0, one["p50_us"])
        for row in rows
        if row["name"].startswith(kind)
        for one in row["latency"]
        if one["num_events"] == length and one["p50_us"] is not None
    ]


def _recall(axes: Axes, study: Study) -> list[str]:
    """Draw the accuracy of each map; a whisker spans the seeds."""
    texts = []
    for name in study["settings"]["recall"]["maps"]:
        mine = [c for c in study["recall"]["accuracy"] if c["map"] == name]
        look, width = _MAPS[name], mine[0]["num_features"]
        for cell in mine:
            axes.vlines(
                cell["num_pairs"],
                cell["lowest"],
                cell["highest"],
                color=look.placeholder,
                linewidth=1.2,
            )
        label = "favor" if name.startswith("favor") else name
        label = label if width is None else f"{label}, R = {width}"
        known = [(cell["num_pairs"], cell["accuracy"]) for cell in mine]
        texts.append(_drawn(axes, known, look, label, ""))
    axes.axhline(
        study["recall"]["chance"],
        color=MUTED,
        linewidth=1.2,
        linestyle=":",
        label="guessing",
    )
    _finish(axes, "Right answers after training (whiskers: seeds)", num_columns=3)
    return [f"right answers, {text}" for text in texts]


def _forgotten(axes: Axes, study: Study) -> list[str]:
    """Draw the bound as lines, and what was measured without training as points."""
    records = study["recall"]["forgotten"]
    widths = list(dict.fromkeys(record["num_features"] for record in records))
    texts = []
    for place, width in enumerate(widths):
        mine = [record for record in records if record["num_features"] == width]
        at = [record["num_pairs"] for record in mine]
        if width is None:
            known = [(r["num_pairs"], r["softmax"]) for r in mine]
            texts.append(_drawn(axes, known, _SOFTMAX, "softmax, measured", ""))
            continue
        look, name = _WIDTHS[place % len(_WIDTHS)], f"R = {width}"
        axes.plot(
            at,
            [record["least"] for record in mine],
            color=look.placeholder,
            linestyle=look.line,
        )
        known = [(record["num_pairs"], record["one_hot"]) for record in mine]
        axes.plot(*zip(*known, strict=True), **points(look), linestyle="none")
        axes.plot([], [], **line(look), label=f"{name}: at least 1 - R/n")
        texts.append(f"{name}: {_listed(known, '')}")
    _finish(axes, "Error of values read back, without training")
    return [f"forgotten, {text}" for text in texts]


def _drawn(axes: Axes, known: Points, look: Look, name: str, unit: str) -> str:
    """Draw a line with points, and return it in words."""
    if known:
        axes.plot(*zip(*known, strict=True), **line(look), label=name)
    return f"{name}: {_listed(known, unit)}"


def _listed(known: Points, unit: str) -> str:
    told = [f"{round(x)}: {significant(y)} {unit}".rstrip() for x, y in known]
    return ", ".join(told) or "nothing to draw"


def _log_axis(axes: Axes, words: Any) -> None:  # noqa: ANN401 (float -> str)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5), numticks=12))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))


def _doubling_axis(axes: Axes, numbers: Sequence[int], label: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(numbers), [count(number) for number in numbers])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(label)


def _finish(axes: Axes, title: str, *, num_columns: int = 2) -> None:
    axes.set_title(title)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=num_columns,
        fontsize=9.5,
        borderpad=0,
    )


def _standalone(figure: Figure, title: str, description: str) -> str:
    """Return an SVG file with its own colours and a text alternative."""
    file = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", facecolor=PAPER, metadata=nothing)
    text = file.getvalue()
    for placeholder, colour in _COLOURS.items():
        text = text.replace(placeholder, colour)
    told = f"<title>{escape(title)}</title>\n <desc>{escape(description)}</desc>\n "
    start = text.index("<defs>")
    return text[:start] + told + text[start:]
