"""How figures look: one colour and marker per forecaster, and SVG for light and dark.

Colours are placeholders while a figure is drawn; in the SVG they are CSS variables, so
that the page decides them for light, dark and print.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from xml.etree import ElementTree as ET

import matplotlib as mpl
from markupsafe import Markup, escape
from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#010101", "#020202", "#030303", "#040404"
_LONGEST_LABEL = 24
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


@dataclass(frozen=True)
class Look:
    """How one forecaster appears in every figure and table.

    Attributes
    ----------
    colour : str
        Placeholder while drawing.
    variable : str
        The CSS variable that takes its place.
    marker, glyph : str
        For matplotlib, and as a character.
    line : str or tuple
        Line style of matplotlib.
    """

    colour: str
    variable: str
    marker: str
    glyph: str
    line: str | tuple[float, tuple[float, ...]]


_MARKERS = (
    ("o", "●"),
    ("s", "■"),
    ("^", "▲"),
    ("D", "◆"),
    ("v", "▼"),
    ("P", "✚"),
    ("X", "✖"),
)
_LINES: tuple[str | tuple[float, tuple[float, ...]], ...] = (
    "-",
    (0, (6, 2)),
    (0, (2, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (1, 1)),
)
# The first three are kept for the linear, the softmax and the baseline forecaster.
_NUM_COLOURS, _NUM_RESERVED = 6, 3


def looks(names: Sequence[str], kinds: Mapping[str, str], baseline: str | None) -> dict[str, Look]:
    """Give each forecaster its look.

    Parameters
    ----------
    names : sequence of str
        Lowest loss first: the best linear and softmax forecasters get the colours that
        are theirs in every report.
    kinds : mapping of str to str
    baseline : str or None
    """
    reserved = {
        next((name for name in names if kinds.get(name) == kind), None): place
        for place, kind in enumerate(("linear", "softmax"))
    }
    reserved[baseline] = 2
    others = iter(range(_NUM_RESERVED, _NUM_RESERVED + len(names)))
    return {
        name: _look(reserved[name] if name in reserved else next(others))
        for name in sorted(names)
    }


def _look(place: int) -> Look:
    colour = place
    if place >= _NUM_COLOURS:  # the reserved ones do not come again
        free = _NUM_COLOURS - _NUM_RESERVED
        colour = _NUM_RESERVED + (place - _NUM_RESERVED) % free
    marker, glyph = _MARKERS[place % len(_MARKERS)]
    return Look(
        colour=f"#0501{colour:02x}",
        variable=f"var(--series-{colour})",
        marker=marker,
        glyph=glyph,
        line=_LINES[place % len(_LINES)],
    )


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with the report's settings alone, whatever the user's are."""
    with mpl.rc_context(), warnings.catch_warnings():
        # A glyph that this font lacks is the reader's font's business.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def label(name: str) -> str:
    """Return a name as a figure can show it: printable, and not too long."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    if len(shown) > _LONGEST_LABEL:
        shown = f"{shown[: _LONGEST_LABEL - 1]}…"
    # Matplotlib leaves labels out of legends that start with an underscore.
    return f"\N{ZERO WIDTH SPACE}{shown}" if shown.startswith("_") else shown


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
    return Markup(
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
                r"#0501([0-9a-f]{2})",
                lambda found: f"var(--series-{int(found[1], 16)})",
                value,
            )
            for placeholder, variable in _VARIABLES.items():
                themed = themed.replace(placeholder, variable)
            element.attrib[key] = themed
