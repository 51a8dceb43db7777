"""The optimal translation by exhaustive search, and the outlier's ΔMMD² by definition."""

import numpy as np
import pytest

import smmd


def test_the_best_of_all_translations_in_one_dimension():
    rng = np.random.default_rng(0)
    for kernel in (smmd.Gaussian(), smmd.Gaussian(0.01), smmd.IMQ(), smmd.Sliced(0.3),
                   smmd.MultiScale()):  # fmt: skip
        z = np.concatenate([rng.normal(-3, 0.3, 12), rng.normal(2, 0.9, 20)])[:, None]
        grid = np.linspace(-5, 5, 2001)
        values = smmd.mmd2(z + grid[:, None, None], kernel)
        shift = smmd.optimal_shift(z, kernel)
        assert shift.shape == (1,)
        assert abs(shift[0] - grid[np.argmin(values)]) <= 0.0051
        assert smmd.mmd2(z + shift, kernel) <= values.min() + 1e-15


def test_two_modes_the_higher_is_taken_whatever_the_order():
    """The objective has several minima: 11 points on one side, 9 on the other."""
    left, right = np.full((11, 2), -6.0), np.full((9, 2), 6.0)
    spread = 0.1 * np.random.default_rng(1).standard_normal((20, 2))
    for z in (np.concatenate([left, right]), np.concatenate([right, left])):
        shift = smmd.optimal_shift(z + spread)
        assert np.abs(shift - 6.0).max() < 0.1


def test_the_gradient_vanishes_there():
    rng = np.random.default_rng(2)
    for d in (1, 3, 8):
        z = rng.exponential(size=(100, d)) - 1.0
        shift = smmd.optimal_shift(z)
        _, gradient = smmd.value_and_grad(z + shift, standardized=False)
        assert np.abs(gradient.sum(axis=0)).max() <= 1e-14


def test_mean_is_not_the_answer_for_a_skewed_sample():
    z = np.random.default_rng(3).exponential(size=(500, 1)) - 1.0
    best = smmd.mmd2(z + smmd.optimal_shift(z))
    assert best < smmd.mmd2(z - z.mean()) - 1e-3


def test_batches_one_by_one():
    z = np.random.default_rng(4).standard_normal((3, 30, 2)) + 1.5
    together = smmd.optimal_shift(z)
    assert together.shape == (3, 2)
    for one, shift in zip(z, together, strict=True):
        assert smmd.optimal_shift(one) == pytest.approx(shift, abs=1e-12)


@pytest.mark.parametrize("kernel", [smmd.Gaussian(), smmd.IMQ(), smmd.Gaussian(1e4)], ids=repr)
def test_outlier_delta_is_the_difference(kernel):
    z = np.random.default_rng(5).standard_normal((15, 3))
    moved = z.copy()
    moved[4] = [3.0, -1.0, 0.5]
    change = smmd.mmd2(moved, kernel) - smmd.mmd2(z, kernel)
    got = smmd.outlier_delta(z, kernel, index=4, to=moved[4])
    assert got == pytest.approx(change, abs=1e-15)
    assert smmd.outlier_delta(z, kernel, index=-11, to=moved[4]) == pytest.approx(got)


def test_to_infinity():
    z = np.random.default_rng(6).standard_normal((15, 3))
    far = z.copy()
    far[0] = 1e5
    change = smmd.mmd2(far) - smmd.mmd2(z)
    assert smmd.outlier_delta(z) == pytest.approx(change, abs=1e-15)


def test_a_far_outlier_does_not_change_the_mean():
    """Section 3.2: under normality ΔMMD² has mean zero."""
    z = np.random.default_rng(7).standard_normal((20_000, 20, 2))
    changes = smmd.outlier_delta(z)
    assert abs(changes.mean()) < 4.0 * changes.std() / len(changes) ** 0.5
