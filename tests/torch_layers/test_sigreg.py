"""SIGReg values: against SIGReg itself, as its authors define it, computed by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

import smmd
from smmd import sigreg


def reference(z, directions, knots=None):
    """n ∫ |φ_n(t) − e^(−t²/2)|² e^(−t²/2) dt, averaged over directions.

    With ``knots`` by the trapezoidal rule on [0, 3], doubled: LeJEPA's grid has 17.
    """
    last, many = (3.0, knots) if knots else (9.0, 400)
    t = np.linspace(0.0, last, many)
    weights = np.full(many, 2.0 * (t[1] - t[0]))
    weights[[0, -1]] *= 0.5
    target = np.exp(-0.5 * t * t)
    waves = np.exp(1j * (z @ directions.T)[..., None] * t).mean(axis=-3)
    return len(z) * float((np.abs(waves - target) ** 2 @ (weights * target)).mean())


def unit_vectors(count, d, rng):
    w = rng.standard_normal((count, d))
    return w / np.linalg.norm(w, axis=1, keepdims=True)


def test_value_is_the_biased_sliced_mmd2():
    """In two dimensions equally spaced directions integrate over all exactly."""
    angles = np.pi * np.arange(200) / 200
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    z = 1.3 * np.random.default_rng(0).standard_normal((20, 2)) + 0.3
    value = reference(z, directions)
    mmd2 = smmd.mmd2(z, smmd.Sliced(), unbiased=False)
    assert sigreg.from_mmd2(mmd2, 20) == pytest.approx(value, rel=1e-10)
    assert sigreg.to_mmd2(value, 20) == pytest.approx(mmd2, rel=1e-10)


def test_mean_at_convergence():
    assert sigreg.expected() == pytest.approx(math.sqrt(2 * math.pi) * (1 - 3**-0.5), rel=1e-14)
    assert round(sigreg.expected(), 3) == 1.059
    # E|φ_n − φ|² = (1 − e^(−t²))/n at every t, whatever n and d.
    t = np.linspace(0.0, 3.0, 17)
    weights = np.full(17, 2 * 3 / 16)
    weights[[0, -1]] *= 0.5
    grid = float(weights @ (np.exp(-0.5 * t * t) * (1 - np.exp(-t * t))))
    assert sigreg.expected(17) == pytest.approx(grid, rel=1e-14)
    assert round(grid, 3) == 1.052


@pytest.mark.parametrize(("n", "d", "slices"), [(16, 3, 4), (32, 16, 64)])
def test_mean_and_sd_by_simulation(n, d, slices):
    rng, count = np.random.default_rng(1), 2000
    values = np.array(
        [
            reference(rng.standard_normal((n, d)), unit_vectors(slices, d, rng), knots=17)
            for _ in range(count)
        ]
    )
    sd = sigreg.null_sd(n, d, slices)
    assert values.mean() == pytest.approx(sigreg.expected(17), abs=4 * sd / count**0.5)
    # Four standard errors at a kurtosis of 6, and the grid's own 1 %.
    assert values.std() == pytest.approx(sd, rel=4 * (5 / count) ** 0.5 / 2 + 0.01)


@pytest.mark.parametrize(("n", "d", "slices"), [(12, 3, 1), (20, 8, 3)])
def test_sd_of_the_unbiased_estimator_by_simulation(n, d, slices):
    rng, count = np.random.default_rng(4), 3000
    z = rng.standard_normal((count, n, d))
    w = unit_vectors(count * slices, d, rng).reshape(count, slices, d)
    y = np.swapaxes(z @ np.swapaxes(w, 1, 2), 1, 2)  # (count, slices, n)
    pairs = np.exp(-0.5 * (y[..., None] - y[..., None, :]) ** 2).sum((-2, -1)) - n
    cross = np.exp(-0.25 * y**2).mean(-1) / 2**0.5
    values = (pairs / (n * (n - 1)) - 2 * cross + 3**-0.5).mean(-1)
    sd = sigreg.sliced_null_sd(n, d, 1.0, slices)
    assert abs(values.mean()) < 4 * sd / count**0.5
    # Four standard errors at a kurtosis of 15.
    assert values.std() == pytest.approx(sd, rel=4 * (14 / count) ** 0.5 / 2)


def test_conversion_to_smmd():
    rng = np.random.default_rng(2)
    for d, shift in ((8, 0.0), (64, 0.0), (64, 0.2)):
        z = rng.standard_normal((128, d)) + shift
        value = sigreg.from_mmd2(smmd.mmd2(z, smmd.Sliced(), unbiased=False), 128)
        exact = smmd.mmd2(z, smmd.Sliced()) / sigreg.sliced_null_sd(128, d, 1.0)
        assert sigreg.to_smmd(value, 128, d) == pytest.approx(exact, abs=0.1, rel=0.01)
        assert sigreg.from_smmd(sigreg.to_smmd(value, 128, d), 128, d) == pytest.approx(value)
    z = rng.standard_normal((100, 256, 16))
    values = sigreg.from_mmd2(smmd.mmd2(z, smmd.Sliced(), unbiased=False), 256)
    off = sigreg.to_smmd(values, 256, 16) - smmd.mmd2(z, smmd.Sliced()) / sigreg.sliced_null_sd(
        256, 16, 1.0
    )
    assert abs(off.mean()) < 4 * off.std() / 10
    assert off.std() == pytest.approx(0.9 / 16, rel=0.3)  # four standard errors of 100 values
    collapsed = np.zeros((128, 8))
    value = sigreg.from_mmd2(smmd.mmd2(collapsed, smmd.Sliced(), unbiased=False), 128)
    sd = sigreg.sliced_null_sd(128, 8, 1.0)
    low = smmd.mmd2(collapsed, smmd.Sliced()) / sd - sigreg.to_smmd(value, 128, 8)
    assert low == pytest.approx((1 - 3**-0.5) / (128 * sd))


def test_weight_pulls_alike():
    """λ·SIGReg and weight(λ)·SMMD² have the same gradient up to n/(n−1)."""
    n, d, rng = 50, 6, np.random.default_rng(3)
    z = 1.4 * rng.standard_normal((n, d))
    torch = pytest.importorskip("torch")
    leaf = torch.tensor(z, requires_grad=True)
    value = sigreg.from_mmd2(smmd.mmd2(leaf, smmd.Sliced(), unbiased=False), n)
    (theirs,) = torch.autograd.grad(0.05 * value, leaf)
    _, slope = smmd.value_and_grad(z, smmd.Sliced(), standardized=False)
    ours = sigreg.weight(0.05, n, d) / sigreg.sliced_null_sd(n, d, 1.0) * slope
    # The cross terms agree, the pair term is n/(n−1) times as strong.
    assert np.linalg.norm(ours - theirs.numpy()) < 0.1 * np.linalg.norm(ours)
    cosine = (ours * theirs.numpy()).sum() / np.linalg.norm(ours) / np.linalg.norm(theirs)
    assert cosine > 0.995


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sigreg.to_mmd2(1.0, 1), "n must be"),
        (lambda: sigreg.null_sd(10, 3, 0), "n_slices must be"),
        (lambda: sigreg.expected(1), "n_knots must be"),
    ],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
