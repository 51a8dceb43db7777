"""The rules that make mixtures of kernels, and expectations by quadrature of another kind."""

import numpy as np
import pytest
from scipy import integrate

import smmd
from smmd import closed_form, quadrature
from tests import cases, exact

#: r²/(2γ²) from points in one place to points a world apart.
DISTANCES = np.array([0.0, 1e-12, 1e-3, 0.5, 3.0, 40.0, 1e3, 1e6, 1e12])


def test_the_inverse_multiquadric_is_its_mixture():
    for smallest in (1.0, 1e-3, 1e-6):
        t, weights = quadrature.exponential_rule(smallest)
        got = np.exp(-np.outer(DISTANCES, t)) @ weights
        assert np.max(np.abs(got - 1.0 / (1.0 + DISTANCES))) <= 1e-15


@pytest.mark.parametrize("d", [2, 3, 8, 64, 512])
def test_the_sliced_kernel_is_its_mixture_and_its_series(d):
    truth = np.array([float(exact.mp.hyp1f1(0.5, exact.mpf(d) / 2, -exact.mpf(x)))
                      for x in DISTANCES])  # fmt: skip
    t, weights = quadrature.beta_rule(d)
    assert np.max(np.abs(np.exp(-np.outer(DISTANCES, t)) @ weights - truth)) <= 1e-15
    radial = closed_form.terms(smmd.Sliced().resolve(2, d), d).pair
    assert np.max(np.abs(radial.value(np, 2.0 * DISTANCES) - truth + 1.0 * radial.base)) <= 4e-16


@pytest.mark.parametrize("case", [cases.sliced(1.0), cases.sliced(30.0), cases.imq(1.0)], ids=str)
@pytest.mark.parametrize("d", [2, 16])
def test_slopes_and_curvatures_of_the_series(case, d):
    """To rounding relative to themselves, however far out."""
    oracle = case.oracle(np.zeros((2, d)))
    terms = closed_form.terms(case.kernel.resolve(2, d), d)
    with exact.mp.workdps(50):
        for r2 in (0.0, 1e-6, 0.7, 30.0, 1e4, 1e10):
            for radial, slope in ((terms.pair, oracle.slope), (terms.cross, oracle.cross_slope)):
                truth, step = slope(exact.mpf(r2)), exact.mpf("1e-18") * max(1, r2)
                assert float(radial.slope(np, np.array(r2))) == pytest.approx(
                    float(truth), rel=1e-12
                )
                bend = (slope(r2 + step) - slope(r2 - step)) / (2 * step)
                got = float(radial.curvature(np, np.array(r2)))
                assert got == pytest.approx(float(bend), rel=1e-9)


KERNELS = [
    smmd.Gaussian(1 / 8), smmd.Gaussian(2.0), smmd.HenzeZirkler(), smmd.MultiScale(), smmd.IMQ(),
    smmd.Sliced(),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_expectations_by_numerical_integration(kernel):
    """MMD² of one point in one dimension: k(0) − 2 E k(x, z) + E k(x, x'), integrated."""
    n, z = 1, 0.7
    radial = closed_form.terms(kernel.resolve(n, 1), 1).pair
    base = float(radial.value(np, np.array(0.0)))

    def k(r2):
        return 1.0 + float(radial.value(np, np.array(r2))) - base

    def normal(x, variance):
        return np.exp(-x * x / (2 * variance)) / np.sqrt(2 * np.pi * variance)

    cross, _ = integrate.quad(
        lambda x: k((x - z) ** 2) * normal(x, 1), -12, 12, epsabs=1e-13, limit=400
    )
    both, _ = integrate.quad(
        lambda x: k(x * x) * normal(x, 2), -17, 17, epsabs=1e-13, points=[0.0], limit=400
    )
    got = smmd.mmd2(np.array([[z]]), kernel, unbiased=False)
    assert got == pytest.approx(1.0 - 2.0 * cross + both, abs=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_null_variance_by_numerical_integration(kernel):
    """E h² in one dimension by the trapezoidal rule, exact for such analytic integrands."""
    x = np.linspace(-10.0, 10.0, 1001)
    w = np.exp(-0.5 * x * x)
    w = w / w.sum()
    n = 5
    radial = closed_form.terms(kernel.resolve(n, 1), 1).pair
    k = radial.value(np, (x[:, None] - x[None, :]) ** 2)
    row = k @ w
    h = k - row[:, None] - row[None, :] + w @ row
    expected = 2.0 / (n * (n - 1)) * (w @ h**2 @ w)
    assert smmd.null_variance(n, 1, kernel) == pytest.approx(expected, rel=1e-11)


def test_weights_of_several_scales_are_equal_in_null_standard_deviations():
    d, scales = 6, (1 / 16, 1 / 8, 4.0)
    mixture = smmd.MultiScale(scales).resolve(50, d)
    single = [smmd.null_variance(50, d, smmd.Gaussian(s)) ** 0.5 for s in scales]
    shares = np.exp(mixture.log_weights) * single
    assert np.exp(mixture.log_weights).sum() == pytest.approx(1.0, rel=1e-14)
    assert shares == pytest.approx(np.full(3, shares[0]), rel=1e-12)
