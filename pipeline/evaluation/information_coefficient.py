"""Rank information coefficient: how the order of forecasts matches the outcomes'."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

# Forecasts come from float32 arithmetic: what differs by less has no order.
_RESOLUTION = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class MeanIC:
    """Mean information coefficient over the forecast times where it is defined.

    Attributes
    ----------
    mean, t_statistic : float
        NaN where undefined.
    kernel : str
        "none" for independent times, else "bartlett".
    lag : int
        Highest autocovariance in the variance of the mean.
    num_defined, num_undefined : int
        Forecast times with and without a coefficient.
    undefined : str or None
        Why the t-statistic is missing.
    """

    mean: float
    t_statistic: float
    kernel: str
    lag: int
    num_defined: int
    num_undefined: int
    undefined: str | None


def rank_ic(
    forecast: Float[np.ndarray, " rows"] | pd.Series,
    target: Float[np.ndarray, " rows"] | pd.Series,
    time: pd.Series | pd.DatetimeIndex,
) -> pd.DataFrame:
    """Spearman correlation of forecasts and targets at each forecast time.

    Ties share their average rank. Values of one time that all lie within the
    resolution of float32 count as constant; the coefficient is then undefined, and so
    it is with fewer than two pairs or an infinite value. Row order does not matter.

    Parameters
    ----------
    forecast, target : ndarray or Series of length rows
        NaN where missing: the pair is left out and counted.
    time : Series or DatetimeIndex of length rows
        Forecast times. All three are paired by position, whatever their index.

    Returns
    -------
    DataFrame
        One row per forecast time, oldest first: forecast_time, rank_ic (NaN where
        undefined), num_pairs, num_missing, undefined (the reason, or None).

    Raises
    ------
    ValueError
        If lengths differ or a forecast time is missing.

    References
    ----------
    .. [1] Spearman (1904), American Journal of Psychology 15(1), doi:10.2307/1412159
    """
    code, times = pd.factorize(pd.Index(time), sort=True)
    if not len(forecast) == len(target) == len(code) or (code < 0).any():
        raise ValueError(
            "forecast, target and time must have one entry per row and no missing time;"
            f" got lengths {len(forecast)}, {len(target)}, {len(code)} and"
            f" {(code < 0).sum()} missing times. Take all three from one frame."
        )
    columns = {"forecast": np.asarray(forecast), "target": np.asarray(target)}
    pairs = pd.DataFrame({"time": code} | columns)
    missing = pairs.isna().any(axis=1).to_numpy()
    num = len(times)
    pairs = pairs[~missing]
    num_pairs = np.bincount(pairs["time"], minlength=num)
    reasons = _reasons(pairs, num_pairs)
    values = _correlations(pairs, num_pairs)
    defined = np.array([reason is None for reason in reasons], dtype=bool)
    return pd.DataFrame(
        {
            "forecast_time": times,
            "rank_ic": np.where(defined, values, np.nan),
            "num_pairs": num_pairs,
            "num_missing": np.bincount(code[missing], minlength=num),
            "undefined": pd.Series(reasons, dtype=object),
        }
    )


def mean_ic(table: pd.DataFrame, *, horizon: int = 1) -> MeanIC:
    """Average a `rank_ic` table over the times where it is defined.

    Overlapping targets make the coefficients autocorrelated up to lag `horizon - 1`;
    the variance of the mean then uses Bartlett weights [1]_ over that many steps of
    the table, undefined times included as gaps. With `horizon` 1 it is the sample
    variance (n - 1) over n.

    Parameters
    ----------
    table : DataFrame
        Answer of `rank_ic`.
    horizon : int
        Steps between a forecast and the end of its target, at least 1.

    Raises
    ------
    ValueError
        If `horizon` is less than 1.

    References
    ----------
    .. [1] Newey, West (1987), Econometrica 55(3), doi:10.2307/1913610
    """
    if horizon < 1:
        raise ValueError(
            f"horizon must be at least 1; got {horizon}."
            " Count the steps from forecast to the end of the target."
        )
    values = table["rank_ic"].to_numpy(dtype=np.float64)
    num = int(np.isfinite(values).sum())
    mean = float(np.nanmean(values)) if num else np.nan
    variance = _variance_of_mean(values - mean, num, horizon) if num > horizon else 0.0
    undefined = None
    if num <= horizon:
        undefined = f"{num} forecast times are too few for lag {horizon - 1}"
    elif variance <= np.finfo(np.float64).eps:
        undefined = "the coefficients do not vary"
    return MeanIC(
        mean=mean,
        t_statistic=np.nan if undefined else mean / float(np.sqrt(variance)),
        kernel="none" if horizon == 1 else "bartlett",
        lag=horizon - 1,
        num_defined=num,
        num_undefined=len(values) - num,
        undefined=undefined,
    )


def _variance_of_mean(
    deviation: Float[np.ndarray, " times"], num: int, horizon: int
) -> float:
    """Bartlett-weighted variance of the mean over `num` defined times."""
    filled = np.nan_to_num(deviation, nan=0.0)
    total = float(filled @ filled)
    for lag in range(1, min(horizon, len(filled))):
        weight = 1.0 - lag / horizon
        total += 2.0 * weight * float(filled[lag:] @ filled[:-lag])
    return total / (num * (num - 1))


def _correlations(
    pairs: pd.DataFrame, num_pairs: Int64[np.ndarray, " times"]
) -> Float[np.ndarray, " times"]:
    """Pearson correlation of the average ranks; 0 where there is nothing to divide."""
    code = pairs["time"].to_numpy()
    ranks = pairs.groupby("time")[["forecast", "target"]].rank().to_numpy()
    ranks = ranks - ((num_pairs + 1) / 2.0)[code, None]
    moments = [
        np.bincount(code, ranks[:, a] * ranks[:, b], minlength=len(num_pairs))
        for a, b in ((0, 1), (0, 0), (1, 1))
    ]
    scale = np.sqrt(moments[1] * moments[2])
    values: Float[np.ndarray, " times"] = np.zeros_like(scale)
    np.divide(moments[0], scale, out=values, where=scale > 0.0)
    return values


def _reasons(
    pairs: pd.DataFrame, num_pairs: Int64[np.ndarray, " times"]
) -> list[str | None]:
    """Why a time has no coefficient, the first reason that applies; or None."""
    columns = pairs[["forecast", "target"]]
    infinite = np.isinf(columns.to_numpy()).any(axis=1)
    num_infinite = np.bincount(pairs["time"], infinite, minlength=len(num_pairs))
    finite = columns[~infinite].groupby(pairs["time"][~infinite])
    times = np.arange(len(num_pairs))
    low = finite.min().reindex(times).to_numpy()
    high = finite.max().reindex(times).to_numpy()
    constant = high - low <= _RESOLUTION * np.maximum(np.abs(low), np.abs(high))
    reasons = [
        (num_infinite > 0, "a value is infinite"),
        (num_pairs < 2, "fewer than two pairs"),
        (constant[:, 0], "the forecast is constant"),
        (constant[:, 1], "the target is constant"),
    ]
    chosen: list[str | None] = [None] * len(num_pairs)
    for applies, reason in reversed(reasons):
        for time in np.flatnonzero(applies):
            chosen[time] = reason
    return chosen
