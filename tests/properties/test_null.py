"""Under normality: mean 0, variance 1, whatever the dimension and the width; what power means."""

import numpy as np
import pytest
from scipy.special import hyp1f1

import smmd


@pytest.mark.parametrize("scale", [1 / 32, 1 / 8, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (10, 3), (100, 8)])
def test_mean_zero_and_variance_one(n, d, scale):
    """Within four standard errors of each, from the sample's own fourth moment."""
    z = np.random.default_rng((n, d)).standard_normal((200_000 // n, n, d))
    values = smmd.smmd(z, scale)
    repeats = len(values) ** 0.5
    assert abs(values.mean()) < 4.0 * values.std() / repeats
    assert abs((values**2).mean() - 1.0) < 4.0 * (values**2).std() / repeats


def test_the_rule_of_thumb_has_the_level_that_the_readme_says():
    values = smmd.smmd(np.random.default_rng(0).standard_normal((10_000, 100, 8)))
    level = (values > 2.0).mean()
    error = (level * (1 - level) / len(values)) ** 0.5
    assert 0.031 - 4 * error < level < 0.049 + 4 * error


def test_independent_batches_are_uncorrelated():
    values = smmd.smmd(np.random.default_rng(1).standard_normal((4000, 2, 20, 2)))
    assert abs(np.corrcoef(values.T)[0, 1]) < 4.0 / 4000**0.5


def test_far_from_normality_it_grows_like_n():
    rng = np.random.default_rng(2)
    few, many = (smmd.smmd(rng.uniform(-(3**0.5), 3**0.5, (40, n, 4))).mean() for n in (100, 800))
    assert 6.0 < many / few < 10.0


def test_code_normalized_batches_lie_lower():
    z = np.random.default_rng(3).standard_normal((2000, 100, 8))
    own = smmd.smmd(smmd.code_normalize(z))
    # The mean of MMD²_u after code normalization, exactly (u = 1/γ² = 1 here).
    n, d, u = 100, 8, 1.0

    def factor(x):
        return hyp1f1(0.5, (n - 1) / 2, x) ** d

    mean = (
        (1 + 2 * u) ** (-d / 2)
        - 2 * (1 + u) ** (-d / 2) * factor(-((n - 1) ** 2) / (2 * n * (1 + 1 / u)))
        + factor(-(n - 1) * u)
    ) / smmd.null_variance(n, d) ** 0.5
    assert abs(own.mean() - mean) < 4.0 * own.std() / 2000**0.5
    assert mean < -0.9
    assert own.std() < 0.8
