"""What must not change the statistic, and what must add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import smmd

KERNELS = [
    smmd.Gaussian(), smmd.Gaussian(1e5), smmd.HenzeZirkler(), smmd.Adaptive(), smmd.MultiScale(),
    smmd.IMQ(), smmd.Sliced(), smmd.Sliced(20.0),
]  # fmt: skip
#: An orthogonal matrix's own rounding, in null standard deviations of fifty points.
ROUNDING = 1e-11


def rotation(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(2, 40), st.integers(1, 9), st.integers(0, 2**32 - 1), st.sampled_from(KERNELS))
def test_rotations_and_orders(n, d, seed, kernel):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.standard_normal((n, d)) + 0.2
    value = smmd.smmd(z, kernel=kernel)
    unit = ROUNDING * max(1.0, abs(value))
    assert abs(smmd.smmd(z @ rotation(d, rng), kernel=kernel) - value) <= unit
    assert abs(smmd.smmd(rng.permutation(z), kernel=kernel) - value) <= unit
    assert abs(smmd.smmd(z[:, rng.permutation(d)], kernel=kernel) - value) <= unit
    assert abs(smmd.smmd(-z, kernel=kernel) - value) <= unit


def test_gradients_turn_with_the_points():
    rng = np.random.default_rng(0)
    z, turn = rng.standard_normal((30, 4)), rotation(4, rng)
    for kernel in KERNELS:
        _, gradient = smmd.value_and_grad(z, kernel)
        _, turned = smmd.value_and_grad(z @ turn, kernel)
        assert np.abs(turned - gradient @ turn).max() <= 1e-12 * np.abs(gradient).max() * 30


def test_batches_are_samples_one_by_one():
    z = np.random.default_rng(1).standard_normal((2, 3, 20, 4)) * 2.0
    for kernel in KERNELS:
        together = smmd.smmd(z, kernel=kernel)
        assert together.shape == (2, 3)
        for i in range(2):
            for j in range(3):
                one = smmd.smmd(z[i, j], kernel=kernel)
                assert abs(together[i, j] - one) <= 1e-12 * max(1.0, abs(one))


def test_mixtures_are_linear():
    """MMD² of several scales is the weighted sum of each scale's, of both estimators."""
    z = np.random.default_rng(2).uniform(-1.0, 2.0, (50, 6))
    kernel = smmd.MultiScale((1 / 16, 1 / 2, 8.0))
    weights = np.exp(kernel.resolve(50, 6).log_weights)
    for unbiased in (True, False):
        parts = [smmd.mmd2(z, smmd.Gaussian(s), unbiased=unbiased) for s in kernel.scales]
        assert smmd.mmd2(z, kernel, unbiased=unbiased) == pytest.approx(weights @ parts, rel=1e-13)
    parts = [smmd.smmd(z, s) for s in kernel.scales]
    together = smmd.smmd(z, kernel=kernel)
    # Standardized again: the sum of the standardized statistics over the deviation of that sum.
    assert together > 0.0
    assert together / sum(parts) == pytest.approx(
        1.0 / np.sqrt(_variance_of_sum(kernel.scales, 6)), rel=1e-12
    )


def _variance_of_sum(scales, d):
    """Σ of the null correlations between scales, by the covariance formula as printed."""
    a = np.array([1.0 / (s * d) for s in scales])[:, None]
    b = a.T
    c = (
        (1 + 2 * a + 2 * b) ** (-d / 2)
        - 2 * (1 + 2 * a + 2 * b + 3 * a * b) ** (-d / 2)
        + ((1 + 2 * a) * (1 + 2 * b)) ** (-d / 2)
    )
    spread = np.sqrt(np.diag(c))
    return float((c / np.outer(spread, spread)).sum())


def test_one_scale_is_the_plain_kernel():
    z = np.random.default_rng(3).standard_normal((50, 3)) + 0.3
    assert smmd.smmd(z, kernel=smmd.MultiScale((1 / 4,))) == pytest.approx(smmd.smmd(z, 1 / 4))
    assert smmd.mmd2(z, smmd.MultiScale([0.25])) == pytest.approx(smmd.mmd2(z, smmd.Gaussian(0.25)))


def test_an_independent_coordinate_multiplies_nothing_at_the_default_scale():
    """γ² = s·d: the width in d dimensions is that of ``gamma``."""
    z = np.random.default_rng(4).standard_normal((30, 6))
    assert smmd.mmd2(z, smmd.Gaussian(0.5)) == smmd.mmd2(z, smmd.Gaussian(gamma=3**0.5))
    assert smmd.mmd2(z, smmd.IMQ(0.5)) == pytest.approx(smmd.mmd2(z, smmd.IMQ(gamma=3**0.5)))


def test_smmd_is_mmd2_over_its_null_deviation():
    z = np.random.default_rng(5).standard_normal((40, 3)) * 1.2
    for kernel in KERNELS:
        if kernel.adaptive:
            scale = kernel.scale * (z**2).sum(-1).mean() / 3
            deviation = smmd.null_variance(40, 3, smmd.Gaussian(scale)) ** 0.5
        else:
            deviation = smmd.null_variance(40, 3, kernel) ** 0.5
        expected = smmd.mmd2(z, kernel) / deviation
        assert smmd.smmd(z, kernel=kernel) == pytest.approx(expected, rel=1e-9)


def test_arguments_of_the_drop_in():
    z = np.random.default_rng(6).standard_normal((40, 3)) * 1.2
    assert smmd.smmd(z, 0.5) == smmd.smmd(z, kernel=smmd.Gaussian(0.5))
    assert smmd.smmd(z, scale=0.5, adaptive=True) == smmd.smmd(z, kernel=smmd.Adaptive(0.5))
    assert smmd.smmd(z, 1 / 8, True) == smmd.smmd(z, kernel=smmd.Adaptive())
