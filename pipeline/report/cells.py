"""The comparison as texts, rounded as in the report: for a terminal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .inputs import RunContents
from .numbers import duration, p_value, percent, plain, signed_percent
from .tables import comparison_frame, streaming_medians


def comparison_cells(contents: RunContents) -> pd.DataFrame:
    """Return one row of texts per forecaster, lowest loss first."""
    baseline = contents.baseline
    length, _ = streaming_medians(contents)
    streamed = "streamed forecast" + (f", {length:,} events" if length else "")
    rows = []
    for row in comparison_frame(contents).to_dict("records"):
        cells = {"forecaster": row["forecaster"], "loss (95 % interval)": _loss(row)}
        if baseline is not None:
            is_baseline = row["forecaster"] == baseline
            against = "baseline" if is_baseline else _against(row)
            cells[f"against {baseline} (95 % interval)"] = against
            cells["p-value"] = "" if is_baseline else p_value(row["p_value"])
        cells["CRPS"] = plain(row["crps"])
        cells["MAE"] = plain(row["mae"])
        cells["in 90 % band"] = percent(100 * row["coverage_90"])
        cells[streamed] = duration(row["streaming_p50_us"])
        rows.append(cells)
    return pd.DataFrame(rows)


def _loss(row: dict[Any, Any]) -> str:
    low, high = row["scaled_pinball_low"], row["scaled_pinball_high"]
    return f"{plain(row['scaled_pinball'])} ({plain(low)} to {plain(high)})"


def _against(row: dict[Any, Any]) -> str:
    low, high = row["percent_low"], row["percent_high"]
    change = signed_percent(row["percent"], 2)
    return f"{change} ({signed_percent(low, 2)} to {signed_percent(high, 2)})"
