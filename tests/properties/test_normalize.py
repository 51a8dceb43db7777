"""standardize, whiten, code_normalize: what they make true."""

import numpy as np
import pytest

import smmd


def sample(n=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) * 3.0 + 7.0


def test_standardized_columns_have_mean_zero_and_variance_one():
    z = smmd.standardize(sample())
    assert np.abs(z.mean(axis=0)).max() <= 1e-14
    assert np.abs(z.var(axis=0, ddof=1) - 1.0).max() <= 1e-13


def test_far_from_the_origin_nothing_is_lost():
    z = np.random.default_rng(1).standard_normal((50, 3))
    shifted = np.ldexp(np.round(np.ldexp(z, 20)), -20)  # so that adding 2^20 is exact
    assert np.abs(smmd.standardize(shifted + 2.0**20) - smmd.standardize(shifted)).max() <= 1e-13
    units = np.array([1e-150, 1.0, 1e140])
    assert smmd.standardize(z * units) == pytest.approx(smmd.standardize(z), rel=1e-12)


def test_whitened_covariance_is_the_identity():
    x = sample()
    for data in (x, x * [1e-6, 1.0, 1e6, 3.0]):
        z = smmd.whiten(data)
        assert np.abs(np.cov(z.T) - np.eye(4)).max() <= 1e-12
        assert np.abs(z.mean(axis=0)).max() <= 1e-13


def test_the_statistic_after_whitening_does_not_depend_on_the_root():
    """Any affine map of the data leads to the same statistic."""
    x = sample()
    rng = np.random.default_rng(2)
    value = smmd.smmd(smmd.whiten(x))
    mapped = smmd.smmd(smmd.whiten(x @ rng.standard_normal((4, 4)) + 3.0))
    assert mapped == pytest.approx(value, abs=1e-10)
    cholesky = (x - x.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    assert smmd.smmd(cholesky) == pytest.approx(value, abs=1e-10)


def test_code_normalization_of_codes_is_standardization():
    x = sample()
    assert np.array_equal(smmd.code_normalize(x), smmd.standardize(x))


@pytest.mark.parametrize("each", [True, False])
def test_code_normalization_of_a_random_encoder(each):
    """The mixture Σ N(μ_i, σ_i²) gets mean 0 and variance 1 in each coordinate (appendix A.2)."""
    rng = np.random.default_rng(3)
    mu = sample()
    var = rng.uniform(0.1, 2.0, mu.shape if each else mu.shape[:1])
    mean, spread = smmd.code_normalize(mu, var=var)
    assert mean.shape == spread.shape == mu.shape
    assert np.abs(mean.mean(axis=0)).max() <= 1e-14
    assert np.abs((mean**2 + spread).mean(axis=0) - 1.0).max() <= 1e-13
    full = var if each else var[:, None]
    total = (mu**2 + full).mean(axis=0) - mu.mean(axis=0) ** 2
    assert mean == pytest.approx((mu - mu.mean(0)) / total**0.5, rel=1e-10, abs=1e-12)


def test_one_random_code_is_a_batch():
    mean, spread = smmd.code_normalize(np.array([[3.0, 1.0]]), var=np.array([[4.0, 0.5]]))
    assert mean.tolist() == [[0.0, 0.0]]
    assert spread == pytest.approx(np.ones((1, 2)))


def test_batches_and_types():
    x = np.stack([sample(seed=s) for s in range(3)])
    for function in (smmd.standardize, smmd.whiten):
        together = function(x)
        for one, got in zip(x, together, strict=True):
            assert got == pytest.approx(function(one), abs=1e-12)
        assert function(x.astype(np.float32)).dtype == np.float32
    assert smmd.standardize([[1, 2], [3, 5]]).dtype == np.float64
