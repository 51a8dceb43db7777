"""Many kernels at once give what one call for each gives."""

import numpy as np
import pytest
import torch

import smmd
from smmd.paper import discrimination as experiment
from smmd.paper import many
from smmd.paper.many import Batch

KERNELS = [
    (method.kernel(scale, 3), f"{method.name}, {scale}")
    for method in (experiment.METHODS[0], experiment.METHODS[3], experiment.METHODS[4])
    for scale in method.scales
]


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return rng.standard_normal((4, 100, 3)), rng.standard_normal((4, 100, 3))


@pytest.mark.parametrize("kernel", [k for k, _ in KERNELS], ids=[name for _, name in KERNELS])
def test_closed_form_and_two_samples(kernel, samples):
    z, y = samples
    batch, reference = Batch(z), Batch(y)
    between = batch.mean_of_pairs(kernel)
    # Both sum 4950 values of order one; the differences are rounding.
    ours = batch.closed_form(kernel, between=between)
    np.testing.assert_allclose(ours, smmd.mmd2(z, kernel), rtol=0, atol=1e-13)
    two = many.two_sample(batch, reference, batch.to(reference), kernel, between)
    np.testing.assert_allclose(two, smmd.mmd2_two_sample(z, y, kernel), rtol=0, atol=1e-13)
    standardized = batch.closed_form(kernel, standardized=True)
    by_hand = smmd.mmd2(z, kernel) / smmd.null_variance(100, 3, kernel) ** 0.5
    np.testing.assert_allclose(standardized, by_hand, rtol=0, atol=1e-8)


def test_tensors_give_the_same(samples):
    z, y = samples
    kernel = smmd.IMQ()
    first, second = Batch(torch.from_numpy(z)), Batch(torch.from_numpy(y))
    two = many.two_sample(first, second, first.to(second), kernel)
    np.testing.assert_allclose(two.numpy(), smmd.mmd2_two_sample(z, y, kernel), atol=1e-13)


def test_a_far_point_does_not_spoil_the_distances(samples):
    z = samples[0].copy()
    z[:, 0] = 100.0
    kernel = smmd.Gaussian(1 / 32)
    np.testing.assert_allclose(Batch(z).closed_form(kernel), smmd.mmd2(z, kernel), atol=1e-10)


def test_batches_have_bounds():
    for place in ("cpu", "cuda"):
        assert many.at_once(place, 32, 100) * 100 * 100 <= 1 << 26
    assert many.at_once("cpu", 1, 10_000) == 1
