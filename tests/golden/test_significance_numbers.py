"""Diebold-Mariano numbers from elsewhere: worked by hand, statsmodels, scipy.

Tolerances: half a unit of the last digit given, or 1e-12 relative where two programs
compute the same formula in float64.
"""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from infoset.pipeline.evaluation.significance import (
    diebold_mariano,
    mean_difference_interval,
)

# Squared errors of a model and a benchmark at 24 forecast times: the difference
# alternates between 0.3 and -0.26. Worked by hand and with statsmodels 0.14.
MODEL = np.tile(np.square([1.140175425099, 0.860232526704]), 12)
BENCHMARK = np.ones(24)


def test_one_step_ahead() -> None:
    result = diebold_mariano(MODEL, BENCHMARK, horizon=1)
    assert result.statistic == pytest.approx(0.342559, abs=5e-7)
    assert result.p_value == pytest.approx(0.735041, abs=5e-7)
    assert result.mean_difference == pytest.approx(0.02, abs=1e-9)
    assert (result.kernel, result.lag, result.num_observations) == (
        "rectangular",
        0,
        24,
    )


def test_a_negative_rectangular_variance_gives_way_to_bartlett_weights() -> None:
    differences = MODEL - BENCHMARK
    deviation = differences - differences.mean()
    covariances = [deviation @ deviation / 24, deviation[1:] @ deviation[:-1] / 24]
    rectangular = (covariances[0] + 2 * covariances[1]) / 24
    # Six significant digits given.
    assert rectangular == pytest.approx(-0.00299444, abs=5e-9)

    result = diebold_mariano(MODEL, BENCHMARK, horizon=2)
    factor = (24 + 1 - 4 + 2 / 24) / 24
    assert result.statistic == pytest.approx(1.606746, abs=5e-7)
    assert result.statistic / np.sqrt(factor) == pytest.approx(1.714286, abs=5e-7)
    assert result.p_value == pytest.approx(0.121753, abs=5e-7)
    assert (result.kernel, result.lag) == ("bartlett", 1)


@pytest.mark.parametrize("horizon", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_bartlett_weights_equal_those_of_statsmodels(horizon: int, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(scale=0.05, size=60)
    losses = 1.5 + 0.3 * (-1.0) ** np.arange(60) + noise
    result = diebold_mariano(losses, np.ones(60), horizon=horizon)
    assert result.kernel == "bartlett"
    fit = sm.OLS(losses - 1.0, np.ones(60)).fit(
        cov_type="HAC", cov_kwds={"maxlags": horizon - 1, "use_correction": False}
    )
    factor = (60 + 1 - 2 * horizon + horizon * (horizon - 1) / 60) / 60
    statistic = float(fit.tvalues[0]) * np.sqrt(factor)
    assert result.statistic == pytest.approx(statistic, rel=1e-12)


@pytest.mark.parametrize("horizon", [2, 5])
def test_rectangular_weights_equal_those_of_statsmodels(horizon: int) -> None:
    def ones(num_lags: int) -> np.ndarray:
        return np.ones(num_lags + 1)

    walk = np.random.default_rng(7).normal(size=(204,))
    losses = np.convolve(walk, np.ones(5), mode="valid") + 0.4
    result = diebold_mariano(losses, np.zeros(200), horizon=horizon)
    assert result.kernel == "rectangular"
    fit = sm.OLS(losses, np.ones(200)).fit(
        cov_type="HAC",
        cov_kwds={
            "maxlags": horizon - 1,
            "kernel": ones,
            "use_correction": False,
        },
    )
    factor = (200 + 1 - 2 * horizon + horizon * (horizon - 1) / 200) / 200
    statistic = float(fit.tvalues[0]) * np.sqrt(factor)
    assert result.statistic == pytest.approx(statistic, rel=1e-12)


def test_one_step_ahead_is_the_paired_t_test() -> None:
    # With one step the small-sample factor is (n - 1) / n, which turns the variance
    # over n into the sample variance: scipy's paired t-test.
    random = np.random.default_rng(3)
    losses_a, losses_b = random.exponential(size=40), random.exponential(size=40)
    result = diebold_mariano(losses_a, losses_b, horizon=1)
    paired = stats.ttest_rel(losses_a, losses_b)
    assert result.statistic == pytest.approx(paired.statistic, rel=1e-12)
    assert result.p_value == pytest.approx(paired.pvalue, rel=1e-12)


def test_bootstrap_interval_of_independent_differences_is_near_the_normal_one() -> None:
    # Monte Carlo error of a percentile with 4000 samples is about 4 % of the width.
    differences = np.random.default_rng(11).normal(0.3, 1.0, size=400)
    interval = mean_difference_interval(differences, block_size=1, reps=4000)
    half = 1.96 * differences.std() / 20
    assert interval.low == pytest.approx(differences.mean() - half, abs=0.1 * half)
    assert interval.high == pytest.approx(differences.mean() + half, abs=0.1 * half)
