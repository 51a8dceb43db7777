"""Null variances and means against 50 digits, and against simulation where that is possible."""

import numpy as np
import pytest

import smmd
from tests import cases, exact

FAST = [c for c in cases.KERNELS if not c.label.startswith("IMQ") and not c.kernel.adaptive]


def relative(got, truth):
    return float(abs(exact.mpf(got) - truth) / abs(truth))


@pytest.mark.parametrize("d", [1, 2, 8, 64, 512])
@pytest.mark.parametrize("case", FAST, ids=str)
def test_variance_and_mean(case, d):
    for n in (2, 100):
        oracle = case.oracle(np.zeros((n, d)))
        for unbiased in (True, False):
            truth = exact.null_variance(oracle, n, unbiased=unbiased)
            if truth < exact.mpf("1e-300"):
                if truth < exact.mpf("1e-310"):
                    with pytest.raises(ValueError, match="too narrow"):
                        smmd.null_variance(n, d, case.kernel, unbiased=unbiased)
                continue
            got = smmd.null_variance(n, d, case.kernel, unbiased=unbiased)
            # A relative error of the logarithm, which reaches −700, times the logarithm.
            assert relative(got, truth) <= 1e-13 * max(1.0, abs(np.log(got)))
        mean = smmd.null_mean(n, d, case.kernel, unbiased=False)
        assert relative(mean, exact.null_mean(oracle, n)) <= 1e-13
        assert smmd.null_mean(n, d, case.kernel) == 0.0


@pytest.mark.parametrize("case", [cases.imq(1 / 8), cases.imq(1e3)], ids=str)
def test_inverse_multiquadric(case):
    oracle = case.oracle(np.zeros((10, 3)))
    for unbiased in (True, False):
        truth = exact.null_variance(oracle, 10, unbiased=unbiased)
        assert relative(smmd.null_variance(10, 3, case.kernel, unbiased=unbiased), truth) <= 1e-12
    mean = smmd.null_mean(10, 3, case.kernel, unbiased=False)
    assert relative(mean, exact.null_mean(oracle, 10)) <= 1e-12


def test_the_paper_s_printed_variance():
    """Section 2: Var(γ, d, n) as printed, where it does not cancel."""
    for n, d, scale in ((100, 8, 1 / 8), (20, 2, 1.0), (1000, 32, 1 / 4)):
        g = scale * d
        printed = 2.0 / (n * (n - 1)) * (
            (g / (2 + g)) ** d
            + (g / (4 + g)) ** (d / 2)
            - 2 * (g**2 / ((1 + g) * (3 + g))) ** (d / 2)
        )  # fmt: skip
        assert smmd.null_variance(n, d, smmd.Gaussian(scale)) == pytest.approx(printed, rel=1e-9)


def test_biased_moments_of_the_formula_sheet():
    """n² MMD²_b = n(n−1) MMD²_u + Σ h(z_i, z_i): mean (1−c)/n, variance as for two parts."""
    n, d, u = 50, 3, 1.0 / (3 / 8)
    c = (1 + 2 * u) ** (-d / 2)
    q = ((1 + u) * (1 + 3 * u)) ** (-d / 2)
    second = c**2 + (1 + 4 * u) ** (-d / 2) - 2 * q
    variance = 2 * (n - 1) / n**3 * second + 4 / n**3 * (q - c**2)
    assert smmd.null_mean(n, d, unbiased=False) == pytest.approx((1 - c) / n, rel=1e-13)
    assert smmd.null_variance(n, d, unbiased=False) == pytest.approx(variance, rel=1e-12)


def test_one_point_has_a_biased_variance():
    """n = 1: MMD²_b is h(z, z) = 1 + c − 2 E_x k(x, z)."""
    z = np.random.default_rng(0).standard_normal((200_000, 1, 2))
    values = smmd.mmd2(z, unbiased=False)
    assert abs(values.mean() / smmd.null_mean(1, 2, unbiased=False) - 1.0) < 0.01
    assert abs(values.var() / smmd.null_variance(1, 2, unbiased=False) - 1.0) < 0.02
