"""Is one forecaster better than another, or was it luck? Tests on paired losses."""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from .intervals import (
    ROUNDING,
    Interval,
    is_constant,
    mean_difference_interval,
    refuse_non_finite,
)
from .paired_losses import PairedLosses

__all__ = [
    "Interval",
    "TestResult",
    "compare_pairs",
    "diebold_mariano",
    "mean_difference_interval",
]


@dataclass(frozen=True)
class TestResult:
    """Outcome of a test of equal expected loss.

    Attributes
    ----------
    statistic, p_value : float
        NaN where undefined; the p-value is two-sided.
    kernel : str
        Weights of the autocovariances: "rectangular", or "bartlett" where the
        rectangular variance is not positive.
    lag : int
        Highest autocovariance in the variance.
    num_observations : int
        Forecast times.
    undefined : str or None
        Why there is no statistic.
    mean_difference : float
        Mean of `losses_a - losses_b`, in the unit of the loss.
    """

    __test__: ClassVar[bool] = False  # not a test class, whatever its name tells pytest

    statistic: float
    p_value: float
    kernel: str
    lag: int
    num_observations: int
    undefined: str | None
    mean_difference: float


def diebold_mariano(
    losses_a: Float[np.ndarray, " t"],
    losses_b: Float[np.ndarray, " t"],
    *,
    horizon: int,
) -> TestResult:
    """Test equal expected loss of two forecasters on the same forecast times.

    A positive statistic means that `losses_b` are smaller. Overlapping targets make
    the differences autocorrelated up to lag `horizon - 1`; the long-run variance [1]_
    counts these lags in full (rectangular kernel). That estimate can be negative; then
    Bartlett weights [3]_ over the same lags take its place and the result says so. The
    statistic carries the small-sample factor and is referred to Student's t with
    t - 1 degrees of freedom [2]_.

    Parameters
    ----------
    losses_a, losses_b : ndarray of shape (t,)
        Loss per forecast time, oldest first, averaged over entities. Unit: that of
        the loss.
    horizon : int
        Steps between a forecast and the end of its target, at least 1.

    Returns
    -------
    TestResult
        Statistic, p-value, kernel and lag; `undefined` with a reason where the losses
        do not differ, differ by a constant, or are too few for the lag.

    Raises
    ------
    ValueError
        If lengths differ, a loss is not finite, or `horizon` is less than 1.

    References
    ----------
    .. [1] Diebold, Mariano (1995), JBES 13(3), doi:10.1080/07350015.1995.10524599
    .. [2] Harvey, Leybourne, Newbold (1997), IJF 13(2), eq. (9),
       doi:10.1016/S0169-2070(96)00719-4
    .. [3] Newey, West (1987), Econometrica 55(3), doi:10.2307/1913610
    """
    _refuse_losses(losses_a, losses_b, horizon)
    differences = losses_a - losses_b
    num = len(differences)
    mean = float(differences.mean()) if num else np.nan
    size = float(np.abs([losses_a, losses_b]).max(initial=0.0))
    undefined = _why_undefined(differences, size, horizon)
    if undefined is not None:
        return TestResult(
            np.nan, np.nan, "rectangular", horizon - 1, num, undefined, mean
        )
    variance, kernel = _variance_of_mean(differences, horizon)
    factor = (num + 1 - 2 * horizon + horizon * (horizon - 1) / num) / num
    statistic = mean / np.sqrt(variance) * np.sqrt(factor)
    p_value = 2.0 * stats.t.sf(abs(statistic), num - 1)
    return TestResult(
        float(statistic), float(p_value), kernel, horizon - 1, num, None, mean
    )


def compare_pairs(
    frame: pd.DataFrame,
    *,
    loss: str,
    horizon: int,
    baseline: str | None = None,
    block_size: int | None = None,
    reps: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Test pairs of forecasters that saw the same information.

    Each pair is compared on the forecasts for which both have a loss: averaged over
    seeds, then over the entities of a forecast time, then tested over time. The order
    of rows does not matter.

    Parameters
    ----------
    frame : DataFrame
        One row per forecast: forecaster, entity, forecast_time, fingerprint and the
        loss. Several rows of one forecaster for one key are its seeds.
    loss : str
        Column of losses; NaN where undefined.
    horizon : int
        Forecast times between a forecast and the end of its target, at least 1.
    baseline : str, optional
        Compare every other forecaster with this one alone.
    block_size, reps, seed
        As for `mean_difference_interval`.

    Returns
    -------
    DataFrame
        One row per pair: forecaster, other, mean_difference (loss of `forecaster`
        minus that of `other`: positive where `other` is better), low, high (95 %),
        statistic, p_value, kernel, lag, num_times, num_undefined (forecasts left out
        because a loss is missing), undefined (why there is no statistic and so no
        interval, or no interval alone; or None).

    Raises
    ------
    InformationMismatch
        If the two did not forecast the same keys from the same information.
    ValueError
        If a column is missing or incomplete, or `baseline` has no forecasts.
    """
    losses = PairedLosses.from_frame(frame, loss)
    rows = []
    for one, other in _pairs(losses.forecasters, baseline):
        losses_a, losses_b, num_undefined = losses.per_time(one, other)
        test = diebold_mariano(losses_a, losses_b, horizon=horizon)
        low, high, undefined = np.nan, np.nan, test.undefined
        if undefined is None:
            interval = mean_difference_interval(
                losses_a - losses_b, block_size=block_size, reps=reps, seed=seed
            )
            low, high, undefined = interval.low, interval.high, interval.undefined
        rows.append(
            {
                "forecaster": one,
                "other": other,
                "mean_difference": test.mean_difference,
                "low": low,
                "high": high,
                "statistic": test.statistic,
                "p_value": test.p_value,
                "kernel": test.kernel,
                "lag": test.lag,
                "num_times": test.num_observations,
                "num_undefined": num_undefined,
                "undefined": undefined,
            }
        )
    return pd.DataFrame(rows).astype({"undefined": object})


def _pairs(forecasters: list[str], baseline: str | None) -> list[tuple[str, str]]:
    if len(forecasters) < 2 or (baseline is not None and baseline not in forecasters):
        raise ValueError(
            "a comparison must have two forecasters, and the baseline among them; got"
            f" {', '.join(forecasters) or 'none'} and baseline {baseline!r}."
            " Run the missing one first."
        )
    if baseline is None:
        return list(combinations(forecasters, 2))
    return [(name, baseline) for name in forecasters if name != baseline]


def _why_undefined(
    differences: Float[np.ndarray, " t"], size: float, horizon: int
) -> str | None:
    """Why the test has no statistic; `size` is the largest loss."""
    if len(differences) <= horizon:
        return f"{len(differences)} forecast times are too few for lag {horizon - 1}"
    if np.abs(differences).max() <= ROUNDING * size:
        return "no difference"
    if is_constant(differences, size):
        return "the differences are constant"
    return None


def _variance_of_mean(
    differences: Float[np.ndarray, " t"], horizon: int
) -> tuple[float, str]:
    """Long-run variance of the mean up to lag `horizon - 1`, and its kernel."""
    num = len(differences)
    deviation = differences - differences.mean()
    covariances = [
        float(deviation[lag:] @ deviation[: num - lag]) / num for lag in range(horizon)
    ]
    rectangular = covariances[0] + 2.0 * sum(covariances[1:])
    if rectangular > num * ROUNDING * covariances[0]:
        return rectangular / num, "rectangular"
    weighted = [(1.0 - lag / horizon) * covariances[lag] for lag in range(1, horizon)]
    return (covariances[0] + 2.0 * sum(weighted)) / num, "bartlett"


def _refuse_losses(
    losses_a: Float[np.ndarray, " a"], losses_b: Float[np.ndarray, " b"], horizon: int
) -> None:
    if len(losses_a) != len(losses_b) or horizon < 1:
        raise ValueError(
            "losses must be of equal length and horizon at least 1; got"
            f" {len(losses_a)} and {len(losses_b)} losses, horizon {horizon}."
            " Pair the losses by forecast time."
        )
    refuse_non_finite("losses_a", losses_a)
    refuse_non_finite("losses_b", losses_b)
