"""Where one statistic becomes another."""

import numpy as np
import pytest

import smmd
from smmd.cli import tables

Z = np.random.default_rng(0).uniform(-1.5, 2.0, (60, 3))


def test_a_vanishing_encoder_variance_gives_the_biased_and_the_unbiased_estimator():
    for size in (1e-6, 1e-9, 0.0):
        var = np.full(Z.shape, size)
        for unbiased in (True, False):
            plain = smmd.mmd2(Z, unbiased=unbiased)
            assert abs(smmd.mmd2(Z, var=var, unbiased=unbiased) - plain) <= 2.0 * size + 1e-15


def test_sliced_in_one_dimension_is_gaussian():
    for gamma in (0.1, 1.0, 30.0):
        for unbiased in (True, False):
            one = smmd.mmd2(Z[:, :1], smmd.Sliced(gamma), unbiased=unbiased)
            assert one == smmd.mmd2(Z[:, :1], smmd.Gaussian(gamma=gamma), unbiased=unbiased)
        assert smmd.null_variance(60, 1, smmd.Sliced(gamma)) == smmd.null_variance(
            60, 1, smmd.Gaussian(gamma=gamma)
        )


def test_adaptive_on_points_of_mean_square_d_is_the_default():
    z = Z * (3.0 / (Z**2).sum(-1).mean()) ** 0.5
    assert smmd.smmd(z, adaptive=True) == pytest.approx(smmd.smmd(z), rel=1e-12)


def test_adaptive_does_not_change_with_units_beyond_the_target():
    """Its width follows the data: on a sample collapsed on the origin it has a value, too."""
    for size in (1e-3, 1e-100, 0.0):
        assert np.isfinite(smmd.smmd(size * Z, adaptive=True))


def test_biased_exceeds_unbiased_by_the_diagonal():
    """MMD²_b = MMD²_u + (k(0) − mean pair)/n, so that it is never negative."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        z = rng.standard_normal((10, 2))
        r2 = ((z[:, None] - z) ** 2).sum(-1)[~np.eye(10, dtype=bool)]
        extra = -np.expm1(-r2 / 0.5).mean() / 10
        biased = smmd.mmd2(z, unbiased=False)
        assert biased == pytest.approx(smmd.mmd2(z) + extra, abs=1e-15)
        assert biased > 0.0


def test_very_wide_kernels_see_the_mean_only():
    """γ → ∞: γ²·MMD²_b → ‖mean‖², so that SMMD² is the mean's test statistic."""
    for scale in (1e6, 1e9):
        value = smmd.mmd2(Z, smmd.Gaussian(scale), unbiased=False) * scale * 3
        assert value == pytest.approx((Z.mean(axis=0) ** 2).sum(), rel=10.0 / scale)
    n, d = Z.shape
    means = (Z.sum(axis=0) ** 2).sum() - (Z**2).sum()
    assert smmd.smmd(Z, 1e9) == pytest.approx(means / (2.0 * d * n * (n - 1)) ** 0.5, rel=1e-6)


def test_very_narrow_kernels_see_near_duplicates_only():
    """s → 0: SMMD² → its value without any close pair, −0, and counts those there are."""
    z = np.random.default_rng(2).standard_normal((20, 2))
    alone = smmd.smmd(z, 1e-12)
    assert abs(alone) < 1e-3
    doubled = np.concatenate([z, z[:1]])
    deviation = smmd.null_variance(21, 2, smmd.Gaussian(1e-12)) ** 0.5
    assert smmd.smmd(doubled, 1e-12) == pytest.approx(2 / (21 * 20) / deviation, rel=1e-3)


def test_a_far_point_leaves_a_constant():
    far = Z.copy()
    values = []
    for distance in (1e3, 1e5, 1e7):
        far[0] = distance
        values.append(smmd.smmd(far))
    assert values[0] == pytest.approx(values[2], abs=1e-12)
    assert values[1] == pytest.approx(values[2], abs=1e-12)


def test_henze_zirkler_s_width():
    """γ = √2·((2d+1)n/4)^(−1/(d+4)), squared once; the paper's tables forgot the square."""
    n, d = Z.shape
    gamma = 2**0.5 * ((2 * d + 1) * n / 4) ** (-1 / (d + 4))
    assert smmd.HenzeZirkler.gamma(n, d) == pytest.approx(gamma, rel=1e-15)
    value = smmd.smmd(Z, kernel=smmd.HenzeZirkler())
    assert value == pytest.approx(smmd.smmd(Z, kernel=smmd.Gaussian(gamma=gamma)), rel=1e-12)


def test_bhep_of_iris_setosa_as_r_computes_it():
    """R's BHEP at a = 0.5, 1, 2 is n·MMD²_b, γ = 1/a, of the sample whitened with 1/n.

    R's printed digits hold to 1e-11; the other column was computed with 40 digits.
    """
    x = tables.read(None).table.values[:50]
    white = smmd.whiten(x) * (50 / 49) ** 0.5
    for a, of_r, exact in (
        (0.5, 0.157003881742, 0.1570038817343135),
        (1.0, 0.782843341644, 0.7828433416315171),
        (2.0, 1.06018579859, 1.060185798587096),
    ):
        got = 50 * smmd.mmd2(white, smmd.Gaussian(gamma=1 / a), unbiased=False)
        assert got == pytest.approx(of_r, abs=2e-11)
        assert got == pytest.approx(exact, abs=1e-14)
