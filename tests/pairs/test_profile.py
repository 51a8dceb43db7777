"""Polynomials that GPU kernels sum in place of special functions."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.polynomial import polynomial
from scipy import stats

from smmd import quadrature
from smmd.pairs.profile import rational_profile, series_profile


def evaluated(profile, r2):
    """f and df/dr² from the numbers that a kernel is given, as the module defines them."""
    c, middle, top, *p = profile.flat()
    w = 1.0 / np.sqrt(1.0 + r2 / c)
    t, u = r2 / c * w * w, w - middle
    value = polynomial.polyval(u, p)
    slope = polynomial.polyval(u, polynomial.polyder(np.array(p)))
    return top - t * value, -(w**3) / (2.0 * c) * (2.0 * w * value - t * slope)


def sliced(d, r2):
    """₁F₁(1/2; d/2; −r²/2) and its derivative in r²."""
    half = mpmath.mpf(d) / 2
    with mpmath.workdps(40):
        value = [mpmath.hyp1f1(0.5, half, -x / 2) for x in r2]
        slope = [-mpmath.hyp1f1(1.5, half + 1, -x / 2) / (4 * half) for x in r2]
    return np.array(value, dtype=float), np.array(slope, dtype=float)


@pytest.mark.parametrize("d", [2, 3, 8, 64, 512])
def test_sliced_kernel(d):
    c, (series, _, _) = quadrature.sliced_series(d)
    profile = series_profile(d, 1.0, c, series)
    # What all pairs share is not rounded when kernels read it as float32.
    for number in (profile.middle, *profile.coefficients[1:]):
        assert number == np.float32(number)
    # Pairs of N(0, I) have r² = 2χ²; equal levels stand for the mean over them.
    r2 = 2.0 * stats.chi2(d).ppf((np.arange(400) + 0.5) / 400)
    value, slope = evaluated(profile, r2)
    exact, exact_slope = sliced(d, r2)
    spread = exact.std()
    assert np.abs(value - exact).max() < 1e-5 * spread
    # A mean would be amplified about n times: over 400 levels it is zero but for their coarseness.
    assert abs(np.mean(value - exact)) < 3e-7 * spread
    assert np.abs(slope - exact_slope).max() < 1e-3 * np.abs(exact_slope).max()
    near, _ = evaluated(profile, np.array([0.0, 1e-12]))
    assert near == pytest.approx(sliced(d, [0.0, 1e-12])[0], abs=1e-15)


def test_inverse_multiquadric_is_exact():
    r2 = np.array([0.0, 1e-9, 0.3, 7.0, 1e4])
    value, slope = evaluated(rational_profile(0.7, weight=2.0, base=1.0), r2)
    np.testing.assert_allclose(value, 2.0 / (1.0 + 0.35 * r2) - 2.0, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(slope, -0.7 / (1.0 + 0.35 * r2) ** 2, rtol=1e-14)


def test_a_short_polynomial_will_do():
    """What a pair costs: one step for each coefficient."""
    for d, most in ((2, 20), (8, 12), (64, 12), (512, 12)):
        c, (series, _, _) = quadrature.sliced_series(d)
        for width in (1.0, 1e3, 1e8):
            assert len(series_profile(d, 1.0 / width, c, series).coefficients) <= most
