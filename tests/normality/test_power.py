"""Power by simulation: the level under the null, more with more rows, fitted alternatives."""

import numpy as np
import pytest

import smmd
from smmd.normality.alternatives import NAMED, smoothed


def test_of_the_null_it_is_the_level():
    r = smmd.power("normal", n=50, d=3, alpha=0.1, n_simulations=1000)
    assert abs(r.power - 0.1) < 4 * np.sqrt(0.09 / 1000)
    assert r.standard_error == pytest.approx(np.sqrt(0.09 / 1000), rel=0.3)


def test_grows_with_rows_and_is_what_the_test_does():
    few, many = (smmd.power("skewed", n=n, d=2, n_simulations=300) for n in (30, 120))
    assert few.power + 3 * few.standard_error < many.power
    rng = np.random.default_rng(7)
    sampler = NAMED["skewed"][1]
    rejected = [smmd.normality_test(sampler(rng, (120, 2))).rejected for _ in range(40)]
    error = np.sqrt(0.25 / 40 + many.standard_error**2)
    assert abs(np.mean(rejected) - many.power) < 4 * error


@pytest.mark.parametrize("name", NAMED)
def test_every_named_alternative_samples(name):
    x = NAMED[name][1](np.random.default_rng(0), (4000, 3))
    assert x.shape == (4000, 3)
    assert np.all(np.isfinite(x))
    if name in ("clayton", "signs"):  # normal columns: mean 0, variance 1, within 5 errors
        assert np.all(np.abs(x.mean(axis=0)) < 5 / 4000**0.5)
        assert np.all(np.abs(x.var(axis=0) - 1) < 5 * (2 / 4000) ** 0.5)
    if name == "signs":
        assert np.all(np.prod(x, axis=1) > 0)
        assert np.max(np.abs(np.corrcoef(x.T) - np.eye(3))) < 5 / 4000**0.5


@pytest.mark.parametrize(
    ("statistic", "null"),
    [("smmd", "standard"), ("smmd", "diagonal"), ("bhep", "normal"), ("henze-zirkler", "normal"),
     ("mardia-skewness", "normal"), ("mardia-kurtosis", "normal")],
)  # fmt: skip
def test_every_statistic(statistic, null):
    r = smmd.power("student", 40, 2, statistic=statistic, null=null, n_simulations=50)
    assert 0.0 < r.power <= 1.0
    assert str(r).startswith("Power 0." if r.power < 1 else "Power 1.")
    assert float(r) == r.power


def test_a_fitted_alternative_keeps_moments_and_departure():
    data = np.random.default_rng(1).exponential(size=(200, 2)) * [1.0, 10.0]
    drawn = smoothed(data)(np.random.default_rng(2), 40_000)
    np.testing.assert_allclose(drawn.mean(axis=0), data.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(data.T), rtol=0.05, atol=0.5)
    assert len(np.unique(drawn[:, 0])) == 40_000
    r = smmd.power(data, n=100, n_simulations=50)
    assert r.d == 2
    assert r.power > 0.8
    assert "fitted to 200 rows" in str(r)


def test_a_sampler_of_ones_own():
    def coin(rng, n):
        return rng.standard_normal((n, 2)) * np.where(rng.random((n, 1)) < 0.5, 0.1, 1.0)

    r = smmd.power(coin, n=60, n_simulations=50, rng=1)
    assert r.power == smmd.power(coin, n=60, n_simulations=50, rng=1).power > 0.5
    assert "coin" in str(r)


@pytest.mark.parametrize(
    ("alternative", "options", "error", "message"),
    [
        ("nonsense", {"d": 2}, ValueError, "one of 'normal', 'uniform'"),
        ("uniform", {}, ValueError, "needs d"),
        ("signs", {"d": 2}, ValueError, "d of at least 3"),
        (np.ones((3, 2)), {}, ValueError, "too few to fit"),
        (np.full((30, 2), np.nan), {}, ValueError, "NaN or infinite"),
        (np.ones((30, 2)), {"d": 3}, ValueError, "has 2 columns"),
        (lambda rng, n: rng.standard_normal(n), {}, ValueError, r"samples of shape \(50, d\)"),
        (lambda rng, n: np.full((n, 2), np.nan), {}, ValueError, "gave NaN"),
        ("uniform", {"d": 60}, ValueError, "at least d"),
        ("uniform", {"d": 2, "n_simulations": 3}, ValueError, "n_simulations"),
        ("uniform", {"d": 2, "null": "x"}, ValueError, "null must be"),
    ],
)
def test_nonsense_is_refused(alternative, options, error, message):
    with pytest.raises(error, match=message):
        smmd.power(alternative, n=50, **options)
