"""Random encoders (paper, appendix A) against 50 digits and against their own definition."""

import numpy as np
import pytest
import torch

import smmd
from tests import cases, exact

KERNELS = (
    *map(cases.gaussian, cases.SCALES),
    cases.HENZE_ZIRKLER,
    cases.multi_scale(1e-3, 1.0, 1e6),
)
SHAPES = [(6, 1), (5, 3), (2, 2), (3, 64)]


def encoder(n, d, size, seed=0):
    rng = np.random.default_rng((seed, n, d))
    return rng.standard_normal((n, d)), size * rng.uniform(0.0, 2.0, (n, d))


@pytest.mark.parametrize("case", KERNELS, ids=str)
@pytest.mark.parametrize("size", [1e-8, 0.3, 1e4])
def test_values(case, size):
    for shape in SHAPES:
        mu, var = encoder(*shape, size)
        if not cases.worth_trying(case, mu):
            continue
        oracle = case.oracle(mu)
        unit = exact.mp.sqrt(exact.null_variance(oracle, len(mu)))
        for unbiased in (True, False):
            truth = exact.mmd2(oracle, mu, var=var, unbiased=unbiased)
            for x, s in ((mu, var), (torch.tensor(mu), torch.tensor(var))):
                got = smmd.mmd2(x, case.kernel, var=s, unbiased=unbiased)
                assert cases.error(got, truth) <= cases.DOUBLE
                if unbiased:
                    value = smmd.smmd(x, kernel=case.kernel, var=s)
                    assert cases.error(value, truth / unit) <= cases.DOUBLE
        single = [v.astype(np.float32) for v in (mu, var)]
        truth = exact.mmd2(oracle, *(v.astype(np.float64) for v in single[:1]), var=single[1])
        got = smmd.smmd(single[0], kernel=case.kernel, var=single[1])
        assert got.dtype == np.float32
        if abs(truth / unit) < 1e38:
            assert cases.error(got, truth / unit) <= cases.SINGLE


@pytest.mark.parametrize(
    "case", [cases.imq(1 / 8), cases.imq(1e3), cases.sliced(1.0), cases.sliced(30.0)], ids=str
)
def test_values_of_kernels_without_a_closed_sum(case):
    mu, var = encoder(3, 2, 0.3)
    for unbiased in (True, False):
        truth = exact.mmd2(case.oracle(mu), mu, var=var, unbiased=unbiased)
        got = smmd.mmd2(mu, case.kernel, var=var, unbiased=unbiased)
        assert cases.error(got, truth) <= cases.DOUBLE


@pytest.mark.parametrize("place", [1e6, -40.0])
def test_far_from_the_origin(place):
    mu, var = encoder(5, 3, 0.3)
    mu[0] = place
    for scale in (1 / 8, 1e4, 1e9):
        case = cases.gaussian(scale)
        oracle = case.oracle(mu)
        truth = exact.mmd2(oracle, mu, var=var) / exact.mp.sqrt(exact.null_variance(oracle, 5))
        for x, s in ((mu, var), (torch.tensor(mu), torch.tensor(var))):
            assert cases.error(smmd.smmd(x, kernel=case.kernel, var=s), truth) <= cases.DOUBLE


def test_no_variance_is_a_deterministic_encoder():
    mu, _ = encoder(40, 3, 0.0)
    for kernel in (smmd.Gaussian(), smmd.Gaussian(1e6), smmd.IMQ(), smmd.Sliced()):
        for unbiased in (True, False):
            plain = smmd.mmd2(mu, kernel, unbiased=unbiased)
            for zero in (np.zeros((40, 3)), np.zeros(40)):
                got = smmd.mmd2(mu, kernel, var=zero, unbiased=unbiased)
                assert abs(got - plain) <= 1e-14


def test_unit_variance_at_the_origin_is_the_target_itself():
    """Every N(0, I): MMD² is zero, both ways, and so is its slope in the means."""
    mu, var = np.zeros((7, 4)), np.ones(7)
    for kernel in (smmd.Gaussian(), smmd.Gaussian(1e5), smmd.HenzeZirkler(), smmd.MultiScale()):
        for unbiased in (True, False):
            assert abs(smmd.mmd2(mu, kernel, var=var, unbiased=unbiased)) <= 1e-16


def test_one_variance_per_point_is_that_of_each_coordinate():
    mu, _ = encoder(20, 3, 0.0)
    var = np.random.default_rng(1).uniform(0.1, 0.5, 20)
    wide = np.repeat(var[:, None], 3, axis=1)
    assert smmd.smmd(mu, var=var) == smmd.smmd(mu, var=wide)


def test_sampling_from_the_encoder_has_the_closed_form_as_its_mean():
    """Unbiased: averaging MMD²_u over codes z_i ~ N(mu_i, var_i).  The printed, biased formula

    is that of the whole mixture, so that its mean over codes is off by (1 − own term)/n."""
    rng = np.random.default_rng(2)
    mu, var = rng.standard_normal((6, 2)), rng.uniform(0.1, 0.6, (6, 2))
    codes = mu + np.sqrt(var) * rng.standard_normal((40_000, 6, 2))
    sampled = smmd.mmd2(codes)
    error = sampled.std() / len(codes) ** 0.5
    assert abs(sampled.mean() - smmd.mmd2(mu, var=var)) < 4.0 * error

    sampled = smmd.mmd2(codes, unbiased=False)
    own = np.prod(1.0 + 4.0 * 2.0 * var, axis=-1) ** -0.5  # γ² = 1/4
    expected = smmd.mmd2(mu, var=var, unbiased=False) + (1.0 - own).mean() / 6
    assert abs(sampled.mean() - expected) < 4.0 * sampled.std() / len(codes) ** 0.5


def test_the_null_variance_of_an_encoder_is_below_one():
    """Half of the variance between the means, half within: still N(0, I) on the whole."""
    rng = np.random.default_rng(6)
    mu = 0.5**0.5 * rng.standard_normal((4000, 50, 2))
    values = smmd.smmd(mu, var=np.full((4000, 50), 0.5))
    assert abs(values.mean()) < 4.0 * values.std() / 4000**0.5
    assert values.std() < 0.9
