"""One colour, marker and line per forecaster, in every figure and table of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Colours while drawing: the page's CSS variables take their place.
SERIES_PLACEHOLDER = r"#0501([0-9a-f]{2})"


@dataclass(frozen=True)
class Look:
    """How one forecaster appears in every figure and table.

    Attributes
    ----------
    placeholder : str
        The colour while drawing.
    variable : str
        The CSS variable that takes its place.
    marker, glyph : str
        For matplotlib, and as a character.
    line : str or tuple
        Line style of matplotlib.
    """

    placeholder: str
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
    (0.0, (6.0, 2.0)),
    (0.0, (2.0, 1.5)),
    (0.0, (6.0, 2.0, 1.0, 2.0)),
    (0.0, (1.0, 1.0)),
)
# The first three are kept for the linear, the softmax and the baseline forecaster.
_NUM_COLOURS, _NUM_RESERVED = 6, 3


def looks(
    names: Sequence[str], kinds: Mapping[str, str], baseline: str | None
) -> dict[str, Look]:
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
    # By name, so that a change of rank does not change the others' colours.
    others = sorted(name for name in names if name not in reserved)
    places = {name: place for place, name in enumerate(others, start=_NUM_RESERVED)}
    return {
        name: _look(reserved[name] if name in reserved else places[name])
        for name in names
    }


def _look(place: int) -> Look:
    colour = place
    if place >= _NUM_COLOURS:  # the reserved ones do not come again
        free = _NUM_COLOURS - _NUM_RESERVED
        colour = _NUM_RESERVED + (place - _NUM_RESERVED) % free
    marker, glyph = _MARKERS[place % len(_MARKERS)]
    return Look(
        placeholder=f"#0501{colour:02x}",
        variable=series_variable(colour),
        marker=marker,
        glyph=glyph,
        line=_LINES[place % len(_LINES)],
    )


def series_variable(colour: int) -> str:
    """Return the CSS value of a colour of the palette."""
    return f"var(--series-{colour})"
