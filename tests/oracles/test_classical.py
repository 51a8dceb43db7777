"""Mardia's moments and τ by their definitions."""

import numpy as np
import pytest

import smmd
from smmd import classical
from tests import exact


def by_hand(x):
    rows, n, d = [[exact.mpf(float(v)) for v in r] for r in x], *x.shape
    dots = [[exact.mp.fsum(a * b for a, b in zip(r, s, strict=True)) for s in rows] for r in rows]
    skewness = exact.mp.fsum(v**3 for row in dots for v in row) / n**2
    kurtosis = exact.mp.fsum(dots[i][i] ** 2 for i in range(n)) / n - d * (d + 2)
    return float(skewness), float(kurtosis)


@pytest.mark.parametrize("shape", [(30, 3), (5, 8), (12, 1), (2, 2)])
def test_mardia_by_its_double_sum(shape):
    x = np.random.default_rng(0).exponential(size=shape) - 0.5
    result = smmd.mardia(x)
    skewness, kurtosis = by_hand(x)
    assert result.skewness == pytest.approx(skewness, rel=1e-12)
    assert result.kurtosis == pytest.approx(kurtosis, rel=1e-12, abs=1e-12)


def test_both_ways_of_the_skewness_agree(monkeypatch):
    x = np.random.default_rng(1).exponential(size=(3, 40, 5)) - 0.5
    monkeypatch.setattr(classical, "_BLOCK_NUMBERS", 200)  # several blocks
    assert classical._third_moment_norm(np, x) == pytest.approx(classical._sum_of_cubes(np, x))


def test_mardia_under_normality():
    """Mean skewness d(d+2)(d+4)/n, mean kurtosis 0."""
    x = np.random.default_rng(2).standard_normal((4000, 50, 3))
    skewness, kurtosis = smmd.mardia(x)
    assert abs(skewness.mean() - 3 * 5 * 7 / 50) < 4 * skewness.std() / 4000**0.5
    assert abs(kurtosis.mean()) < 4 * kurtosis.std() / 4000**0.5


def test_effect_size():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 6.0, 10.0])
    assert smmd.effect_size(a, b) == pytest.approx(4.0 / 2.5)
    assert smmd.effect_size(b, a) == smmd.effect_size(a, b)
    assert smmd.effect_size(a + 1e9, b + 1e9) == pytest.approx(1.6)
    near = np.array([1.0, 2.0, 4.0]) / 2**30, np.array([2.0, 3.0, 6.0]) / 2**30
    far = [x + 2.0**20 for x in near]  # exactly
    assert smmd.effect_size(*far) == pytest.approx(smmd.effect_size(*near), rel=1e-14)
    many = np.random.default_rng(3).standard_normal((2, 4, 100))
    assert smmd.effect_size(many[0], many[1]).shape == (4,)


def test_effect_size_of_one_constant_and_of_two():
    assert smmd.effect_size(np.ones(3), np.array([0.0, 1.0, 2.0])) == 0.0
    with pytest.raises(ValueError, match="a and b are both constant"):
        smmd.effect_size(np.ones(3), np.zeros(3))
