"""What each kind of forecaster is, in a sentence."""

from __future__ import annotations

from .inputs import RunContents

_WORDS = {
    "historical": "The quantiles of the entity's past targets, the same at every "
    "forecast time: what one knows without any news.",
    "ewma": "Scaled quantiles: those of past targets in units of their volatility, "
    "times the volatility known at the forecast time (EWMA, as in RiskMetrics).",
    "ridge": "Ridge regression of the scaled target on the newest values, their ages "
    "and recent changes; the residuals' quantiles give the spread.",
    "boosting": "Gradient-boosted trees on what ridge reads, one model for each "
    "quantile.",
    "linear": "Causal linear attention over the events of the information set; training "
    "starts from the scaled quantiles.",
    "softmax": "Causal softmax attention over the same events: the same network but for "
    "the attention, from the same start.",
    "installed": "From an installed package.",
    "own": "Given from Python.",
}


def kind_words(contents: RunContents) -> list[tuple[str, str]]:
    """Return each forecaster with what it is, lowest loss first."""
    declared = contents.config.get("forecasters") or {}
    found = []
    for name, kind in contents.kinds.items():
        words = _WORDS.get(kind, "")
        if kind == "installed":
            entry = (declared.get(name) or {}).get("name")
            words = f"From an installed package, as {entry}."
        found.append((name, words))
    return found
