"""Scores of forecast tables: one loss per row first, then means over rows and times.

A row whose target or forecast is missing or infinite has no loss (NaN); tables count
such rows and never drop them silently.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from .information_coefficient import MeanIC, mean_ic, rank_ic
from .losses import (
    absolute_error,
    coverage,
    crps_from_quantiles,
    mean_from_quantiles,
    median_from_quantiles,
    pinball_by_level,
    pinball_loss,
    scaled_loss,
    squared_error,
)

__all__ = [
    "MeanIC",
    "absolute_error",
    "coverage",
    "crps_from_quantiles",
    "levels_from_columns",
    "mean_from_quantiles",
    "mean_ic",
    "median_from_quantiles",
    "pinball_by_level",
    "pinball_loss",
    "rank_ic",
    "row_scores",
    "scaled_loss",
    "score_table",
    "squared_error",
]

_QUANTILE_NAME = re.compile(r"q(\d{2,})")


def levels_from_columns(
    columns: Iterable[str],
) -> tuple[list[str], Float[np.ndarray, " levels"]]:
    """Find the quantile columns and their levels, lowest first.

    The digits are decimals: q05 is the level 0.05, q50 is 0.5, q975 is 0.975.

    Parameters
    ----------
    columns : iterable of str
        Column names of a forecast table; others are passed over.

    Returns
    -------
    names : list of str
    levels : ndarray of shape (levels,)

    Raises
    ------
    ValueError
        If there is no quantile column, or two have the same level.
    """
    found = {name: _QUANTILE_NAME.fullmatch(str(name)) for name in columns}
    levels = {name: float(f"0.{match[1]}") for name, match in found.items() if match}
    names = sorted(levels, key=lambda name: levels[name])
    values = np.array([levels[name] for name in names])
    if not names or len(set(values)) < len(names) or values[0] == 0.0:
        raise ValueError(
            "forecasts must have quantile columns of distinct levels above 0; got"
            f" {', '.join(names) or 'none'}. Name them q05, q50, q95 and so on."
        )
    return names, values


def row_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Every loss of every row.

    Parameters
    ----------
    frame : DataFrame
        Columns target, mean, the quantiles (see `levels_from_columns`), and
        target_scale if losses are to be scaled as well.

    Returns
    -------
    DataFrame
        With the index of `frame`: pinball, crps, mae (of the median), mse (of the
        mean), coverage_90 and, given target_scale, scaled_pinball, scaled_crps,
        scaled_mae. NaN in rows without a finite target and forecast; coverage_90 is
        NaN throughout unless q05 and q95 are there.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    _refuse_missing(frame, ["target", "mean"])
    names, levels = levels_from_columns(frame.columns)
    values = frame[["target", "mean", *names]].to_numpy(dtype=np.float64, copy=True)
    values[~np.isfinite(values).all(axis=1)] = np.nan
    target, mean, quantiles = values[:, 0], values[:, 1], values[:, 2:]
    scores = {
        "pinball": pinball_loss(target, quantiles, levels),
        "crps": crps_from_quantiles(target, quantiles, levels),
        "mae": absolute_error(target, median_from_quantiles(quantiles, levels)),
        "mse": squared_error(target, mean),
        "coverage_90": np.full(len(target), np.nan),
    }
    if {0.05, 0.95} <= set(levels):
        scores["coverage_90"] = coverage(target, quantiles, levels, 0.05, 0.95)
    if "target_scale" in frame.columns:
        scale = frame["target_scale"].to_numpy(dtype=np.float64)
        for name in ("pinball", "crps", "mae"):
            scores[f"scaled_{name}"] = scaled_loss(scores[name], scale)
    return pd.DataFrame(scores, index=frame.index)


def score_table(
    frame: pd.DataFrame, by: str | Sequence[str] = ("forecaster",)
) -> pd.DataFrame:
    """Mean scores per group: over entities and seeds per forecast time, then over time.

    Scores are averaged, not forecasts: two seeds are two forecasters with one name.
    Every forecast time weighs the same, however many entities it has.

    Parameters
    ----------
    frame : DataFrame
        One row per forecast: forecaster, fold, seed, entity, forecast_time, target,
        mean, the quantiles (see `levels_from_columns`), and target_scale if wanted.
    by : str or sequence of str
        Columns that make a group.

    Returns
    -------
    DataFrame
        The columns `by`, then those of `row_scores`, num_forecasts, num_undefined
        (rows without a finite target and forecast; num_unscaled, those without a
        usable target_scale) and undefined: why a score is NaN, or None.

    Raises
    ------
    ValueError
        If a column is missing.
    """
    keys = [by] if isinstance(by, str) else list(by)
    _refuse_missing(frame, [*keys, "forecast_time"])
    scores = row_scores(frame)
    columns = list(scores.columns)
    both = list(dict.fromkeys([*keys, "forecast_time"]))
    counts = _counts(scores)
    table = pd.concat([frame[both], scores, counts], axis=1)
    # A missing key is a group too: nothing is dropped.
    per_time = table.groupby(both, dropna=False, observed=True)[columns].mean()
    per_time = per_time.reset_index()
    answer = per_time.groupby(keys, dropna=False, observed=True)[columns].mean()
    groups = table.groupby(keys, dropna=False, observed=True)
    for name in counts.columns:
        answer[name] = groups[name].sum().to_numpy()
    answer["undefined"] = _reasons(answer)
    return answer.reset_index()


def _counts(scores: pd.DataFrame) -> pd.DataFrame:
    undefined = scores["pinball"].isna()
    counts = {"num_forecasts": 1, "num_undefined": undefined.astype("int64")}
    if "scaled_pinball" in scores.columns:
        unscaled = scores["scaled_pinball"].isna() & ~undefined
        counts["num_unscaled"] = unscaled.astype("int64")
    return pd.DataFrame(counts, index=scores.index)


def _reasons(answer: pd.DataFrame) -> pd.Series:
    """Why a mean score of a group is NaN, or None."""
    reasons = {
        "pinball": "no row has a finite target and forecast",
        "coverage_90": "coverage_90 needs q05 and q95",
        "scaled_pinball": "no row has a positive target_scale",
    }
    undefined = pd.Series([None] * len(answer), answer.index, dtype=object)
    for name in reversed(list(reasons)):
        if name in answer.columns:
            undefined[answer[name].isna()] = reasons[name]
    return undefined


def _refuse_missing(frame: pd.DataFrame, names: list[str]) -> None:
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise ValueError(
            f"forecasts must have the columns {', '.join(names)}; got none named"
            f" {', '.join(absent)}. Add them, or group by others."
        )
