"""The comparison as texts, rounded as in the report: for a terminal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .costs import scored_cost
from .inputs import RunContents
from .numbers import count, duration, p_value, percent, plain, signed_percent
from .tables import comparison_frame


def comparison_cells(contents: RunContents) -> pd.DataFrame:
    """Return one row of texts per forecaster, lowest loss first."""
    baseline = contents.baseline
    cost = scored_cost(contents)
    rows = []
    for row in comparison_frame(contents).to_dict("records"):
        cells = {"forecaster": row["forecaster"], "loss (95 % interval)": _loss(row)}
        if baseline is not None:
            is_baseline = row["forecaster"] == baseline
            against = "baseline" if is_baseline else _against(row)
            cells[f"against {baseline} (95 % interval)"] = against
            is_tested = not is_baseline and row["outcome"] != "identical"
            cells["p-value"] = p_value(row["p_value"]) if is_tested else ""
        cells["CRPS"] = plain(row["crps"])
        cells["MAE"] = plain(row["mae"])
        cells["in 90 % band"] = percent(100 * row["coverage_90"])
        note = cost.notes.get(row["forecaster"])
        time = duration(row["forecast_p50_us"])
        cells[cost.heading] = time if note is None else f"{time} ({note})"
        if "num_look_ahead" in row:
            cells["look-ahead"] = look_ahead_share(row)
        rows.append(cells)
    return pd.DataFrame(rows)


def look_ahead_share(row: dict[Any, Any]) -> str:
    """Say how many forecasts were made before an encoder's training ended."""
    return f"{count(row['num_look_ahead'])} of {count(row['num_forecasts'])}"


def _loss(row: dict[Any, Any]) -> str:
    low, high = row["scaled_pinball_low"], row["scaled_pinball_high"]
    return f"{plain(row['scaled_pinball'])} ({plain(low)} to {plain(high)})"


def _against(row: dict[Any, Any]) -> str:
    if row["outcome"] == "identical":
        return "identical"
    low, high = row["percent_low"], row["percent_high"]
    change = signed_percent(row["percent"], 2)
    return f"{change} ({signed_percent(low, 2)} to {signed_percent(high, 2)})"
