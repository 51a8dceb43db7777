"""What the closed form replaces: drawing from N(0, I).  Agreement within four standard errors."""

import numpy as np
import pytest

import smmd

KERNELS = [
    smmd.Gaussian(), smmd.HenzeZirkler(), smmd.MultiScale(), smmd.IMQ(), smmd.Sliced(),
]  # fmt: skip


def agrees(sampled, expected, errors=4.0):
    sampled = np.asarray(sampled)
    return abs(sampled.mean() - expected) < errors * sampled.std() / np.sqrt(len(sampled))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_two_samples_have_the_closed_form_as_their_mean(kernel):
    rng = np.random.default_rng(0)
    z = rng.uniform(-1.0, 2.0, (12, 3))
    references = rng.standard_normal((2000, 12, 3))
    for unbiased in (True, False):
        sampled = smmd.mmd2_two_sample(
            np.broadcast_to(z, references.shape), references, kernel, unbiased=unbiased
        )
        # Against a reference's V-statistic its own diagonal is in, too: (1 − E k)/12.
        extra = 0.0 if unbiased else smmd.null_mean(12, 3, kernel, unbiased=False)
        expected = smmd.mmd2(z, kernel, unbiased=unbiased) + extra
        assert agrees(sampled, expected)


def test_two_samples_by_hand():
    rng = np.random.default_rng(1)
    z, y = rng.standard_normal((5, 2)), rng.standard_normal((7, 2)) + 0.3

    def mean_k(a, b, skip):
        k = np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * 0.25))
        return (k.sum() - len(a) * skip) / (len(a) * (len(b) - skip))

    for unbiased in (True, False):
        by_hand = mean_k(z, z, unbiased) + mean_k(y, y, unbiased) - 2 * mean_k(z, y, 0)
        assert smmd.mmd2_two_sample(z, y, unbiased=unbiased) == pytest.approx(by_hand, abs=1e-15)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_null_mean_and_variance(kernel):
    rng = np.random.default_rng(2)
    z = rng.standard_normal((6_000, 25, 2))
    values = smmd.smmd(z, kernel=kernel)
    assert agrees(values, 0.0)
    assert agrees(values**2, 1.0)
    biased = smmd.mmd2(z, kernel, unbiased=False)
    mean = smmd.null_mean(25, 2, kernel, unbiased=False)
    assert agrees(biased, mean)
    assert agrees((biased - mean) ** 2, smmd.null_variance(25, 2, kernel, unbiased=False))


def test_sliced_is_the_mean_over_random_directions():
    rng = np.random.default_rng(3)
    z = rng.uniform(-2.0, 1.0, (40, 5))
    directions = rng.standard_normal((20_000, 5, 1))
    directions /= np.linalg.norm(directions, axis=-2, keepdims=True)
    for gamma in (0.7, 2.0):
        one_dimensional = smmd.mmd2(z @ directions, smmd.Gaussian(gamma=gamma))
        assert agrees(one_dimensional, smmd.mmd2(z, smmd.Sliced(gamma)))
        assert smmd.cramer_wold(z, gamma) == smmd.mmd2(z, smmd.Sliced(gamma))


def test_witness_is_the_difference_of_two_means():
    rng = np.random.default_rng(4)
    z, at = rng.standard_normal((30, 2)) + 1.0, np.array([[0.0, 0.0], [1.0, 2.0], [-3.0, 0.5]])
    x = rng.standard_normal((200_000, 2))
    for place, got in zip(at, smmd.witness(z, at), strict=True):
        of_normal = np.exp(-((x - place) ** 2).sum(-1) / 0.5)
        of_sample = np.exp(-((z - place) ** 2).sum(-1) / 0.5).mean()
        assert agrees(of_sample - of_normal, got)


def test_witness_integrates_to_mmd2():
    """MMD²_b = mean over the sample of the witness minus its mean under N(0, I)."""
    rng = np.random.default_rng(5)
    z = rng.uniform(-1.5, 1.5, (20, 2))
    x = rng.standard_normal((200_000, 2))
    under_normal = smmd.witness(z, x)
    assert agrees(smmd.witness(z, z).mean() - under_normal, smmd.mmd2(z, unbiased=False))
