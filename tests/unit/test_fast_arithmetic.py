"""Arithmetic of the compiled streams against that of NumPy and torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from infoset.data.clock_features import NUM_CLOCK_FEATURES, clock_features
from infoset.models.fast import arithmetic, query_vector

pytestmark = pytest.mark.slow
DAY = 86_400_000_000_000


def nanoseconds(text):
    return int(np.datetime64(text, "ns").astype(np.int64))


@njit
def exponentials(x, out):
    for i in range(len(x)):
        out[i] = arithmetic.exponential(x[i])


@njit
def exponentials32(x, out):
    for i in range(len(x)):
        out[i] = arithmetic.exponential32(x[i])


@njit
def gelus(x):
    arithmetic.gelu_all(x)


@njit
def civil_from_days(days):
    return query_vector.civil_from_days(days)


@njit
def clock(forecast_time, newest, empty, out):
    query_vector.write_clock(forecast_time, newest, empty, out)


@njit
def clocks(forecast_times, age, out):
    for i in range(len(forecast_times)):
        time = forecast_times[i]
        query_vector.write_clock(time, time - age, age < 0, out[i])


@njit
def products(y, x, w, n, m, rows):
    arithmetic.add_products(y, x, w, 0, n, m, rows)


@njit
def normal_row(x, w, out):
    arithmetic.normalise(x, 0, w, 0, out, 0, len(x))


def test_exponentials_are_those_of_numpy():
    x = np.concatenate([np.linspace(-700, 0, 20_001), [-0.0, -1e-300]])
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)
    x32 = np.linspace(-86, 80, 20_001, dtype=np.float32)
    out32 = np.empty_like(x32)
    exponentials32(x32, out32)
    np.testing.assert_allclose(out32, np.exp(x32.astype(np.float64)), rtol=2e-7)


def test_exponentials_of_what_is_far_below_zero_vanish_and_nan_stays():
    out = np.empty(3)
    exponentials(np.array([-1e4, -np.inf, np.nan]), out)
    assert (out[:2] < 1e-300).all()
    assert (out[:2] >= 0).all()
    assert np.isnan(out[2])
    out32 = np.empty(3, np.float32)
    exponentials32(np.array([-1e4, -np.inf, np.nan], np.float32), out32)
    assert (out32[:2] < 1e-37).all()
    assert np.isnan(out32[2])


def test_gelu_is_that_of_torch():
    x = np.linspace(-12, 12, 20_001, dtype=np.float32)
    want = torch.nn.functional.gelu(torch.from_numpy(x).double()).numpy()
    out = x.copy()
    gelus(out)
    # Half of erf's error, times x; torch in float32 is off by as much.
    np.testing.assert_allclose(out, want, rtol=0, atol=2e-6)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_products_are_those_of_numpy(rows):
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 16)).astype(np.float32)
    w = rng.normal(size=(16, 11)).astype(np.float32)
    y = rng.normal(size=(rows, 11)).astype(np.float32)
    want = y + x.astype(np.float64) @ w
    flat = y.reshape(-1).copy()
    products(flat, x.reshape(-1), w.reshape(-1), 16, 11, rows)
    np.testing.assert_allclose(flat.reshape(rows, 11), want, rtol=1e-5, atol=1e-5)


def test_normal_rows_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    x, gain, offset = torch.randn(3, 24, generator=generator)
    w = torch.cat([gain, offset, torch.tensor([1e-5])]).numpy()
    out = np.empty(24, np.float32)
    normal_row(x.numpy(), w, out)
    want = torch.nn.functional.layer_norm(x, (24,), gain, offset)
    np.testing.assert_allclose(out, want.numpy(), rtol=1e-5, atol=1e-6)


def written(forecast_time, newest, number):
    out = np.empty(NUM_CLOCK_FEATURES, np.float32)
    clock(forecast_time, newest, number == 0, out)
    return out


def twin(forecast_time, newest, number):
    return clock_features(
        np.array([forecast_time]), np.array([newest]), np.array([number])
    )[0]


# A phase of float64 is exact to 1e-16 of a turn, so float32 features to one rounding.
ROUNDING = 6e-8


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    time=st.integers(nanoseconds("1890-01-01"), nanoseconds("2200-01-01")),
    age=st.integers(0, 4000 * DAY),
    number=st.integers(0, 2),
)
def test_clock_features_are_those_of_numpys_calendar(time, age, number):
    mine, theirs = (f(time, time - age, number) for f in (written, twin))
    np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)


def test_clock_features_agree_on_both_sides_of_every_midnight_for_decades():
    first, last = nanoseconds("1899-12-25"), nanoseconds("2101-03-05")
    days = np.arange(first, last, DAY)
    edges = np.concatenate([days, days - 1, days + DAY // 2])
    theirs = clock_features(edges, edges - DAY, np.ones(len(edges), np.int64))
    mine = np.empty_like(theirs)
    clocks(edges, DAY, mine)
    np.testing.assert_allclose(mine, theirs, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_array_equal(mine[:, 4:39], theirs[:, 4:39])


@pytest.mark.parametrize(
    ("date", "civil"),
    [
        ("2000-02-29", (2000, 2, 29)),
        ("1900-03-01", (1900, 3, 1)),
        ("2100-02-28", (2100, 2, 28)),
        ("1969-12-31", (1969, 12, 31)),
        ("1600-12-31", (1600, 12, 31)),
    ],
)
def test_days_become_dates(date, civil):
    days = int(np.datetime64(date, "D").astype(np.int64))
    assert civil_from_days(days) == civil
