"""One loss per forecast: plain arrays in, plain arrays out.

Losses are in the unit of the target (squared error: in its square) and smaller is
better. A missing target or forecast gives NaN.
"""

import numpy as np
from jaxtyping import Float


def pinball_by_level(
    target: Float[np.ndarray, " rows"],
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
) -> Float[np.ndarray, "rows levels"]:
    """Pinball (quantile) loss of each quantile, without a factor 2.

    The loss is `(level - 1{target < quantile}) * (target - quantile)`.

    Parameters
    ----------
    target : ndarray of shape (rows,)
    quantiles : ndarray of shape (rows, levels)
    levels : ndarray of shape (levels,)
        Strictly increasing, inside (0, 1).

    Raises
    ------
    ValueError
        If shapes do not agree or `levels` are not increasing in (0, 1).

    References
    ----------
    .. [1] Koenker, Bassett (1978), Econometrica 46(1), doi:10.2307/1913643
    """
    _refuse_levels(quantiles, levels)
    error = target[:, None] - quantiles
    loss: Float[np.ndarray, "rows levels"]
    loss = np.maximum(levels * error, (levels - 1.0) * error)
    return loss


def pinball_loss(
    target: Float[np.ndarray, " rows"],
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
) -> Float[np.ndarray, " rows"]:
    """Mean of `pinball_by_level` over the levels, each with the same weight."""
    mean: Float[np.ndarray, " rows"]
    mean = pinball_by_level(target, quantiles, levels).mean(axis=1)
    return mean


def crps_from_quantiles(
    target: Float[np.ndarray, " rows"],
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
) -> Float[np.ndarray, " rows"]:
    """Continuous ranked probability score of a forecast given by quantiles.

    Twice the integral of the pinball loss over the level from 0 to 1 [1]_. Convention
    "trapezoid, flat tails": the quantile function is held at the outer quantiles
    beyond the outer levels, where the loss is linear in the level, and the loss is
    integrated by trapezoids between the levels. A forecast of a single value scores
    its absolute error exactly.

    Parameters and errors are those of `pinball_by_level`.

    References
    ----------
    .. [1] Gneiting, Ranjan (2011), JBES 29(3), eq. (4) and (7),
       doi:10.1198/jbes.2010.08110
    """
    loss = pinball_by_level(target, quantiles, levels)
    at_zero = np.maximum(quantiles[:, 0] - target, 0.0)
    at_one = np.maximum(target - quantiles[:, -1], 0.0)
    ends = np.column_stack([at_zero, loss, at_one])
    crps: Float[np.ndarray, " rows"] = 2.0 * ends @ _trapezoid_weights(levels)
    return crps


def mean_from_quantiles(
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
) -> Float[np.ndarray, " rows"]:
    """Mean of the distribution given by quantiles.

    Convention "piecewise linear, flat tails": the quantile function is linear between
    the levels and held at the outer quantiles beyond them; the mean is its integral.

    Parameters and errors are those of `pinball_by_level`.
    """
    _refuse_levels(quantiles, levels)
    ends = np.column_stack([quantiles[:, 0], quantiles, quantiles[:, -1]])
    mean: Float[np.ndarray, " rows"] = ends @ _trapezoid_weights(levels)
    return mean


def median_from_quantiles(
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
) -> Float[np.ndarray, " rows"]:
    """Quantile at level 0.5, linear between its neighbours where it is not given."""
    _refuse_levels(quantiles, levels)
    place = float(np.interp(0.5, levels, np.arange(len(levels))))
    low, weight = int(place), place % 1.0
    high = min(low + 1, len(levels) - 1)
    median: Float[np.ndarray, " rows"]
    median = (1.0 - weight) * quantiles[:, low] + weight * quantiles[:, high]
    return median


def absolute_error(
    target: Float[np.ndarray, " rows"], forecast: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """Absolute error; the median minimises its expectation."""
    error: Float[np.ndarray, " rows"] = np.abs(target - forecast)
    return error


def squared_error(
    target: Float[np.ndarray, " rows"], forecast: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """Squared error, in the squared unit; the mean minimises its expectation."""
    error: Float[np.ndarray, " rows"] = np.square(target - forecast)
    return error


def coverage(
    target: Float[np.ndarray, " rows"],
    quantiles: Float[np.ndarray, "rows levels"],
    levels: Float[np.ndarray, " levels"],
    lower: float,
    upper: float,
) -> Float[np.ndarray, " rows"]:
    """Whether the target lies in the closed interval between two quantiles.

    Parameters
    ----------
    target, quantiles, levels
        As for `pinball_by_level`.
    lower, upper : float
        Levels of the interval's ends, among `levels`.

    Returns
    -------
    ndarray of shape (rows,)
        1.0 inside, 0.0 outside, NaN where the target or an end is missing.

    Raises
    ------
    ValueError
        As `pinball_by_level`, or if a level is not among `levels`.
    """
    _refuse_levels(quantiles, levels)
    low = quantiles[:, _level_position(levels, lower)]
    high = quantiles[:, _level_position(levels, upper)]
    inside = ((low <= target) & (target <= high)).astype(np.float64)
    return np.where(np.isnan(target + low + high), np.nan, inside)


def scaled_loss(
    loss: Float[np.ndarray, " rows"], target_scale: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """Loss in units of the entity's own target, so that a panel can mix units.

    Convention: divided by the standard deviation of that entity's training targets in
    that fold. Only for losses in the target's unit, not for squared ones.

    Parameters
    ----------
    loss : ndarray of shape (rows,)
    target_scale : ndarray of shape (rows,)
        In the target's unit.

    Returns
    -------
    ndarray of shape (rows,)
        NaN where the scale is missing, infinite or not positive.
    """
    usable = np.isfinite(target_scale) & (target_scale > 0.0)
    return np.where(usable, loss, np.nan) / np.where(usable, target_scale, 1.0)


def _trapezoid_weights(levels: Float[np.ndarray, " levels"]) -> Float[np.ndarray, " n"]:
    """Weights of an integral from 0 to 1 over the points 0, `levels`, 1."""
    steps = np.diff(levels, prepend=0.0, append=1.0)
    weights: Float[np.ndarray, " n"]
    weights = (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2.0
    return weights


def _level_position(levels: Float[np.ndarray, " levels"], level: float) -> int:
    near = np.flatnonzero(np.isclose(levels, level, rtol=0.0, atol=1e-9))
    if not len(near):
        raise ValueError(
            f"level must be among the forecast's {levels.tolist()}; got {level}."
            " Forecast that quantile too."
        )
    return int(near[0])


def _refuse_levels(
    quantiles: Float[np.ndarray, "rows columns"], levels: Float[np.ndarray, " levels"]
) -> None:
    steps = np.diff(levels, prepend=0.0, append=1.0)
    if quantiles.shape[1:] != levels.shape or not (steps > 0.0).all():
        raise ValueError(
            "levels must be increasing inside (0, 1), one per column of quantiles; got"
            f" {levels.tolist()} for shape {quantiles.shape}. Sort the columns by level."
        )
