"""Intervals of the mean of a dependent series, by block bootstrap."""

from dataclasses import dataclass

import numpy as np
from arch.bootstrap import StationaryBootstrap, optimal_block_length
from jaxtyping import Float

# Below this many roundings of the losses, a difference is no difference.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
# The automatic block length needs autocorrelations up to lag sqrt(n) + 5.
_FEWEST_FOR_BLOCKS = 16


@dataclass(frozen=True)
class Interval:
    """Bootstrap interval of a mean.

    Attributes
    ----------
    low, high : float
        Percentiles of the bootstrapped means; NaN where undefined.
    level : float
        Nominal coverage.
    block_size : int
        Mean block length of the stationary bootstrap; 0 where undefined.
    reps : int
        Bootstrap samples.
    num_observations : int
    undefined : str or None
        Why there is no interval.
    """

    low: float
    high: float
    level: float
    block_size: int
    reps: int
    num_observations: int
    undefined: str | None


def mean_difference_interval(
    differences: Float[np.ndarray, " t"],
    *,
    block_size: int | None = None,
    reps: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of the mean of a dependent series, by block bootstrap.

    The stationary bootstrap [1]_ draws blocks of random length, `block_size` on
    average; by default the length is estimated from the series [2]_ and rounded up.

    Parameters
    ----------
    differences : ndarray of shape (t,)
        Loss differences per forecast time, oldest first.
    block_size : int, optional
        Mean block length in forecast times.
    reps : int
        Bootstrap samples.
    seed : int
        Same seed, same interval.
    level : float
        Nominal coverage, inside (0, 1).

    Returns
    -------
    Interval
        `undefined` with a reason where the series is constant or too short.

    Raises
    ------
    ValueError
        If a difference is not finite, or `block_size`, `reps` or `level` is out of
        range.

    References
    ----------
    .. [1] Politis, Romano (1994), JASA 89(428), doi:10.1080/01621459.1994.10476870
    .. [2] Politis, White (2004), Econometric Reviews 23(1), doi:10.1081/ETC-120028836
    """
    _refuse_bootstrap(differences, block_size, reps, level)
    num = len(differences)
    undefined = None
    if num < 2 or (block_size is None and num < _FEWEST_FOR_BLOCKS):
        undefined = f"{num} forecast times are too few for a bootstrap of blocks"
    elif is_constant(differences, float(np.abs(differences).max())):
        undefined = "the differences are constant"
    elif block_size is None:
        block_size = _block_size(differences)
        undefined = None if block_size else "no block size could be estimated"
    if undefined is not None or block_size is None:
        return Interval(np.nan, np.nan, level, 0, reps, num, undefined)
    bootstrap = StationaryBootstrap(block_size, differences, seed=seed)
    ends = bootstrap.conf_int(np.mean, reps, method="percentile", size=level)
    low, high = ends.ravel().tolist()
    return Interval(low, high, level, block_size, reps, num, None)


def is_constant(values: Float[np.ndarray, " t"], size: float) -> bool:
    """Whether values differ by no more than rounding of numbers as large as `size`."""
    return bool(np.ptp(values) <= ROUNDING * size)


def refuse_non_finite(name: str, values: Float[np.ndarray, " t"]) -> None:
    """Raise ValueError for the first value that is NaN or infinite."""
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise ValueError(
            f"{name} must be finite; got {values[wrong[0]]} at position {wrong[0]}."
            " Leave undefined losses out and count them."
        )


def _block_size(differences: Float[np.ndarray, " t"]) -> int | None:
    # Zeros at one end of the series make an autocorrelation 0 / 0 there.
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = float(optimal_block_length(differences)["stationary"].iloc[0])
    return max(1, int(np.ceil(estimate))) if np.isfinite(estimate) else None


def _refuse_bootstrap(
    differences: Float[np.ndarray, " t"],
    block_size: int | None,
    reps: int,
    level: float,
) -> None:
    refuse_non_finite("differences", differences)
    if reps < 1 or not 0.0 < level < 1.0 or (block_size is not None and block_size < 1):
        raise ValueError(
            "reps and block_size must be at least 1 and level inside (0, 1); got"
            f" reps {reps}, block_size {block_size}, level {level}."
            " Correct the setting."
        )
