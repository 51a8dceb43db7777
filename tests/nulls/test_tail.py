"""Tail probabilities of chi-square sums, relative to themselves down to 1e-300."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from smmd.nulls.spectrum import projected_spectrum
from smmd.nulls.tail import ChiSquareSum


def chi_square_tail(k, x):
    """log P(χ²_k > x) in 50 digits; k need not be whole."""
    with mpmath.workdps(50):
        return float(
            mpmath.log(mpmath.gammainc(mpmath.mpf(k) / 2, mpmath.mpf(x) / 2, regularized=True))
        )


@pytest.mark.parametrize("k", [0.3, 1.0, 2.5, 7.0, 60.0, 5000.0])
@pytest.mark.parametrize("z", [-0.6, 0.0, 0.5, 2.0, 10.0, 30.0])
def test_one_eigenvalue_is_a_chi_square_with_any_degrees_of_freedom(k, z):
    law = ChiSquareSum(np.array([1.0]), np.array([k]))
    x = z * math.sqrt(2 * k)
    if k + x <= 0:
        assert law.sf(x) == 1.0
        return
    assert float(law.logsf(x)) == pytest.approx(chi_square_tail(k, k + x), rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("log10_tail", [-1, -10, -100, -300])
def test_far_tails_of_a_hypoexponential(log10_tail):
    """Eigenvalues 1 and 1/3, twice each, are exponentials of mean 2 and 2/3: a closed form."""
    law = ChiSquareSum(np.array([1.0, 1 / 3]), np.array([2.0, 2.0]))
    with mpmath.workdps(60):
        a, b = mpmath.mpf(2), mpmath.mpf(2) / 3
        tail = lambda x: (a * mpmath.exp(-x / a) - b * mpmath.exp(-x / b)) / (a - b)  # noqa: E731
        x = mpmath.findroot(
            lambda x: mpmath.log(tail(x), 10) - log10_tail, -2 * log10_tail * mpmath.log(10) + 1
        )
        exact = float(mpmath.log(tail(x)))
    z = float(x) - float(a + b)
    assert float(law.logsf(z)) == pytest.approx(exact, rel=1e-12)
    if log10_tail > -300:
        assert float(law.sf(z)) == pytest.approx(math.exp(exact), rel=1e-10)
    else:
        assert 0.0 < float(law.sf(z)) < 1e-299


def imhof(a, w, g, z):
    """Imhof 1961: P = 1/2 + (1/π) ∫ sin θ(u) / (u ρ(u)) du, for the centred sum."""

    def integrand(u):
        angle = 0.5 * np.sum(w * (np.arctan(2 * a * u) - 2 * a * u)) - z * u
        size = np.exp(0.25 * np.sum(w * np.log1p(4 * a**2 * u**2)) + 0.5 * g * u**2)
        return np.sin(angle) / (u * size)

    # far enough that the integrand is nothing: every decade on its own, finely
    edges = np.concatenate([[1e-12], np.arange(0.5, 20.5, 0.5)])
    total = sum(
        integrate.quad(integrand, lo, hi, epsabs=1e-13, epsrel=1e-12, limit=200)[0]
        for lo, hi in itertools.pairwise(edges)
    )
    return 0.5 + total / math.pi


@pytest.mark.parametrize("z", [-1.2, -0.3, 0.4, 1.9, 4.0])
def test_against_imhofs_integral(z):
    a, w = np.array([0.5, 0.21, 0.05]), np.array([3.0, 5.4, 20.0])
    law = ChiSquareSum(a, w, normal_variance=0.2)
    assert float(law.sf(z)) == pytest.approx(imhof(a, w, 0.2, z), abs=1e-11)


@pytest.mark.parametrize("z", [-8.0, -1.0, 0.0, 1.5, 9.0])
def test_normal_part_convolved_by_hand(z):
    """Exponential (mean 1, centred) plus N(0, 0.7): ∫ P(E > z − y) φ(y) dy in closed form."""
    law = ChiSquareSum(np.array([0.5]), np.array([2.0]), normal_variance=0.7)
    with mpmath.workdps(40):
        s, x = mpmath.sqrt(mpmath.mpf("0.7")), mpmath.mpf(z) + 1
        tail = mpmath.ncdf(-x / s) + mpmath.exp(s * s / 2 - x) * mpmath.ncdf(x / s - s)
        exact = float(mpmath.log(tail))
    assert float(law.logsf(z)) == pytest.approx(exact, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize(
    ("null", "d", "gamma2"), [("standard", 8, 1.0), ("diagonal", 2, 0.5), ("normal", 16, 4.0)]
)
def test_law_functions_belong_together(null, d, gamma2):
    spectrum = projected_spectrum(null, d, gamma2)
    law = ChiSquareSum(spectrum.eigenvalues, spectrum.multiplicities)
    sd = math.sqrt(law.variance)
    z = np.linspace(-1.5, 8.0, 39).reshape(3, 13) * sd
    assert law.sf(z).shape == z.shape
    np.testing.assert_allclose(law.sf(z) + law.cdf(z), 1.0, atol=1e-14)
    np.testing.assert_allclose(np.exp(law.logsf(z)), law.sf(z), rtol=1e-12)
    np.testing.assert_allclose(np.exp(law.logcdf(z)), law.cdf(z), rtol=1e-12)
    step = 1e-3 * sd
    slope = (law.cdf(z + step) - law.cdf(z - step)) / (2 * step)
    np.testing.assert_allclose(law.pdf(z), slope, rtol=1e-4, atol=1e-7 / sd)
    for alpha in (1e-12, 1e-3, 0.05, 0.5, 0.95, 1 - 1e-9):
        assert float(law.sf(law.isf(alpha))) == pytest.approx(alpha, rel=1e-9)
    # mean 0, variance: by integrating the tails
    upper, _ = integrate.quad(lambda x: x * float(law.sf(x)), 0, 40 * sd, limit=200)
    lower, _ = integrate.quad(lambda x: x * float(law.cdf(-x)), 0, 12 * sd, limit=200)
    assert 2 * (upper + lower) == pytest.approx(law.variance, rel=1e-7)


def test_tails_against_simulated_sums():
    """A million draws of the sum itself, whole multiplicities: within four standard errors."""
    spectrum = projected_spectrum("diagonal", 2, 2.0)
    rng = np.random.default_rng(5)
    total = np.zeros(400_000)
    for a, w in zip(spectrum.eigenvalues, spectrum.multiplicities, strict=True):
        if w >= 0.5:
            total += a * (rng.chisquare(round(float(w)), total.size) - w)
    law = ChiSquareSum(spectrum.eigenvalues, spectrum.multiplicities)
    for alpha in (0.2, 0.05, 0.01, 0.001):
        share = np.mean(total > law.isf(alpha))
        assert abs(share - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / total.size)


def test_edges():
    law = ChiSquareSum(np.array([1.0]), np.array([4.0]))
    assert law.lower_end == -4.0
    np.testing.assert_array_equal(law.sf([-5.0, -4.0, np.inf, -np.inf]), [1, 1, 0, 1])
    np.testing.assert_array_equal(law.pdf([-5.0, np.inf]), [0, 0])
    assert np.isnan(law.sf(np.nan))
    assert law.logsf(np.inf) == -np.inf
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1, got 0"):
        law.isf(0.0)


def test_values_whose_contours_differ_are_split_and_agree_with_single_ones():
    """One narrow value must not set the step (and the memory) of all."""
    law = ChiSquareSum(np.array([2.0, 0.001]), np.array([0.02, 50_000.0]))
    z = np.linspace(-0.5, 60.0, 12)
    together = law.sf(z)
    alone = np.array([float(law.sf(x)) for x in z])
    np.testing.assert_allclose(together, alone, rtol=1e-8)


def test_a_law_too_skewed_to_integrate_says_so():
    law = ChiSquareSum(np.array([1.0, 1e-4]), np.array([1e-12, 1e-3]))
    with pytest.raises(ValueError, match="monte-carlo"):
        law.sf(1e-6)


def test_normal_limit():
    law = ChiSquareSum(np.array([1e-4]), np.array([0.5e8]))
    z = np.array([-3.0, 0.0, 2.0, 5.0])
    np.testing.assert_allclose(law.sf(z), stats.norm.sf(z), rtol=2e-2)
