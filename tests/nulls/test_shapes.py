"""Standardized shapes against SciPy and against their own cumulants."""

import math

import numpy as np
import pytest
from scipy import stats

from smmd.nulls.shapes import LogNormal, Normal, fractional_power, pearson3
from smmd.nulls.spectrum import projected_spectrum

Z = np.array([-2.5, -0.9, -0.2, 0.0, 0.7, 2.0, 6.0])


@pytest.mark.parametrize("skewness", [0.1, 0.7, 2.0, 4.0])
def test_pearson3_is_scipys(skewness):
    ours, theirs = pearson3(skewness), stats.pearson3(skewness)
    np.testing.assert_allclose(ours.sf(Z), theirs.sf(Z), rtol=1e-9)
    np.testing.assert_allclose(ours.pdf(Z), theirs.pdf(Z), rtol=1e-8, atol=1e-12)
    assert ours.isf(0.01) == pytest.approx(theirs.isf(0.01), rel=1e-9)


@pytest.mark.parametrize("cv", [1e-4, 0.05, 0.4])
def test_lognormal_is_scipys(cv):
    sigma = math.sqrt(math.log1p(cv**2))
    theirs = stats.lognorm(s=sigma, scale=math.exp(-(sigma**2) / 2))
    ours = LogNormal(cv)
    x = 1 + cv * Z
    np.testing.assert_allclose(ours.sf(Z), theirs.sf(x), rtol=1e-6)
    np.testing.assert_allclose(ours.cdf(Z), theirs.cdf(x), rtol=1e-6)
    np.testing.assert_allclose(ours.logsf(Z), theirs.logsf(x), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.pdf(Z), cv * theirs.pdf(x), rtol=1e-6)
    for alpha in (0.001, 0.05, 0.7):
        assert 1 + cv * ours.isf(alpha) == pytest.approx(theirs.isf(alpha), rel=1e-9)


def test_normal_is_scipys():
    ours = Normal()
    for name in ("sf", "cdf", "pdf", "logsf"):
        np.testing.assert_allclose(getattr(ours, name)(Z), getattr(stats.norm, name)(Z), rtol=1e-12)
    assert ours.isf(0.05) == pytest.approx(1.6448536269514722, rel=1e-12)


def cumulants(shape):
    """Variance, skewness and excess kurtosis of a shape with mean 0, from its density."""
    low = max(getattr(shape, "lower_end", -12.0), -12.0)
    nodes, weights = np.polynomial.legendre.leggauss(160)
    m = np.zeros(5)
    for start, end in ((low, 6.0), (6.0, 40.0)):
        x = start + 0.5 * (end - start) * (nodes + 1)
        density = 0.5 * (end - start) * weights * shape.pdf(x)
        m += [np.sum(density * x**k) for k in range(5)]
    assert m[0] == pytest.approx(1.0, abs=1e-6)
    assert m[1] == pytest.approx(0.0, abs=1e-6)
    return m[2], m[3], m[4] - 3.0


@pytest.mark.parametrize("skewness", [0.3, 0.9])
def test_fractional_power_has_the_skewness_asked_for(skewness):
    spectrum = projected_spectrum("diagonal", 4, 1.0)
    variance, third, _ = cumulants(fractional_power(spectrum, skewness))
    assert variance == pytest.approx(1.0, abs=1e-6)
    assert third == pytest.approx(skewness, abs=1e-5)


def test_a_normal_part_raises_the_kurtosis_and_nothing_else():
    spectrum = projected_spectrum("standard", 4, 1.0)
    own = cumulants(fractional_power(spectrum, 0.8))[2]
    law = fractional_power(spectrum, 0.8, kurtosis=1.3 * own)
    variance, third, fourth = cumulants(law)
    assert law.normal_variance == pytest.approx(1 - 1 / 1.3)
    assert variance == pytest.approx(1.0, abs=1e-6)
    assert third == pytest.approx(0.8, abs=1e-5)
    assert fourth == pytest.approx(1.3 * own, rel=1e-4)
    # a kurtosis below its own cannot be had: the shape is left alone
    assert fractional_power(spectrum, 0.8, kurtosis=0.5 * own).normal_variance == 0.0


def test_shapes_refuse_what_they_are_not():
    spectrum = projected_spectrum("standard", 4, 1.0)
    for make in (pearson3, lambda s: fractional_power(spectrum, s)):
        with pytest.raises(ValueError, match="skewness must be positive, got -1"):
            make(-1.0)
    with pytest.raises(ValueError, match="cv must be positive, got 0"):
        LogNormal(0.0)
    for shape in (LogNormal(0.1), Normal()):
        with pytest.raises(ValueError, match="alpha must lie strictly between"):
            shape.isf(1.0)
