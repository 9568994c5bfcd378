"""How figures look: one colour and marker per forecaster, and SVG for light and dark.

Colours are placeholders while a figure is drawn; in the SVG they are CSS variables, so
that the page decides them for light, dark and print.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .looks import SERIES_PLACEHOLDER, Look, series_variable

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
_LONGEST_LABEL = 24
# What a row of a legend holds, and what one entry's drawing takes of it.
_CHARACTERS, _HANDLE = 60, 6
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "infoset",
    "text.parse_math": False,
    "font.size": 11,
    "font.sans-serif": ["DejaVu Sans"],
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 10.5,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.8,
    "lines.markersize": 6,
}
_VARIABLES = {
    INK: "currentColor",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    PAPER: "var(--paper)",
}


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with the report's settings alone, whatever the user's are."""
    with mpl.rc_context(), warnings.catch_warnings():
        # A glyph that this font lacks is the reader's font's business.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)  # type: ignore[arg-type]
        yield


def label(name: str) -> str:
    """Return a name as a figure can show it: printable, and not too long."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    if len(shown) > _LONGEST_LABEL:
        shown = f"{shown[: _LONGEST_LABEL - 1]}…"
    # Matplotlib leaves labels out of legends that start with an underscore.
    return f"\N{ZERO WIDTH SPACE}{shown}" if shown.startswith("_") else shown


def panel(height: float, width: float = 4.6) -> tuple[Figure, Axes]:
    """Return an empty figure of a size in inches, and its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def points(look: Look, size: float = 6.5) -> dict[str, Any]:
    """Return how a forecaster's points are drawn."""
    return {
        "color": look.placeholder,
        "marker": look.marker,
        "markersize": size,
        "markeredgecolor": PAPER,
        "markeredgewidth": 0.8,
    }


def line(look: Look) -> dict[str, Any]:
    """Return how a forecaster's line is drawn."""
    return {**points(look), "linestyle": look.line}


def legend(figure: Figure, names: Sequence[str], looks: Mapping[str, Look]) -> None:
    """Name the forecasters above the axes."""
    labels = [label(name) for name in names]
    room = _CHARACTERS // (_HANDLE + max(map(len, labels), default=1))
    num_columns = max(1, min(len(labels), room))
    # Matplotlib fills column by column; people read row by row.
    order = [
        place
        for column in range(num_columns)
        for place in range(column, len(labels), num_columns)
    ]
    figure.legend(
        [Line2D([], [], **line(looks[names[place]])) for place in order],
        [labels[place] for place in order],
        loc="outside upper left",
        ncols=num_columns,
        borderpad=0,
    )


class Panel(NamedTuple):
    """A drawing with what stands above it; no heading where a caption says it all."""

    heading: str
    svg: Markup


def svg(figure: Figure, name: str, title: str, description: str) -> Markup:
    """Return a figure as an SVG element to stand in a page.

    Parameters
    ----------
    figure : Figure
    name : str
        Distinguishes its ids from those of other figures of the page.
    title, description : str
        The text alternative: what it is, and what it shows.
    """
    file = StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    # Our own output of a moment ago, not somebody's file.
    root = ET.fromstring(text[text.index("<svg") :])  # noqa: S314
    _strip_namespaces(root)
    _own_ids(root, name)
    _themed(root)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{name}-title {name}-description",
    }
    body = "".join(ET.tostring(child, encoding="unicode") for child in root)
    opening = " ".join(f'{key}="{value}"' for key, value in root.attrib.items())
    return Markup(  # noqa: S704 (text was escaped by matplotlib or is escaped here)
        f"<svg {opening}>"
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
        f"{body}</svg>"
    )


def _strip_namespaces(root: ET.Element) -> None:
    """Leave plain SVG: in a page it needs neither namespaces nor metadata."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.tail = None
        for key in list(element.attrib):
            short = key.rpartition("}")[2]
            element.attrib[short] = element.attrib.pop(key)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {"metadata", "style"}:
                parent.remove(child)


def _own_ids(root: ET.Element, name: str) -> None:
    """Keep the ids that something refers to, and make them the figure's own."""
    text = ET.tostring(root, encoding="unicode")
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in used:
            element.attrib["id"] = f"{name}-{own}"
        for key, value in element.attrib.items():
            if key == "href" and value[1:] in used:
                element.attrib[key] = f"#{name}-{value[1:]}"
            elif "url(#" in value:
                element.attrib[key] = value.replace("url(#", f"url(#{name}-")


def _themed(root: ET.Element) -> None:
    """Put the page's variables where the placeholders stand."""
    for element in root.iter():
        for key, value in element.attrib.items():
            themed = re.sub(
                SERIES_PLACEHOLDER,
                lambda found: series_variable(int(found[1], 16)),
                value,
            )
            for placeholder, variable in _VARIABLES.items():
                themed = themed.replace(placeholder, variable)
            element.attrib[key] = themed
