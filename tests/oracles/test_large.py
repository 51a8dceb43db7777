"""Samples too large for 50 digits: against the doubly centred kernel, pair by pair, in float64.

That form cancels nothing; where it serves few points ``test_values`` holds it to 50 digits.
"""

import numpy as np
import pytest
import torch

import smmd
from smmd import measure, sharpen
from smmd.pairs.centred import centred_mean, centred_mean_of_points
from smmd.sharpen import scaled_mixture

KERNELS = (
    smmd.Gaussian(), smmd.Gaussian(30.0), smmd.Gaussian(1e6), smmd.MultiScale((1e-2, 1.0, 1e3)),
    smmd.IMQ(), smmd.IMQ(30.0), smmd.IMQ(1e4), smmd.Sliced(), smmd.Sliced(0.3), smmd.Sliced(30.0),
)  # fmt: skip


def mixture_of(z, kernel):
    terms = measure.terms_for(kernel, measure._take(z, None, True), standardized=True)
    return scaled_mixture(terms.components)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("d", [2, 64])
def test_hundreds_of_ordinary_points_at_the_speed_of_the_plain_sums(d, kernel, monkeypatch):
    """What is meant for far points must not see these: it would take a hundred times as long."""
    z = np.random.default_rng(d).standard_normal((200, d))
    truth = centred_mean_of_points(z, mixture_of(z, kernel))

    def refuse(*_):
        raise AssertionError("an ordinary sample is computed again")

    monkeypatch.setattr(sharpen, "centred_mean_of_points", refuse)
    for sample in (z, torch.tensor(z)):
        value = float(smmd.smmd(sample, kernel=kernel))
        assert abs(value - truth) <= 1e-12 * max(1.0, abs(truth))


@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6])
def test_a_far_point_among_them_costs_no_digits(scale):
    z = np.random.default_rng(0).standard_normal((300, 3))
    z[7] = 1e9
    kernel = smmd.Gaussian(scale)
    value, truth = smmd.smmd(z, kernel=kernel), centred_mean_of_points(z, mixture_of(z, kernel))
    assert abs(value - truth) <= 1e-12 * max(1.0, abs(truth))
    z[7] = 1e12
    assert smmd.smmd(z, kernel=kernel) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("a", [1e-9, 0.3, 40.0, 1e6])
def test_the_centred_mean_of_points_is_that_of_encoders_without_variance(a):
    z = np.random.default_rng(1).standard_normal((30, 3))
    z[0] = z[1] + 1e-9
    together = centred_mean(z, None, [(a, 0.2), (2.0 * a, -1.0)])
    found = centred_mean_of_points(z, [(a, 0.2), (2.0 * a, -1.0)])
    assert found == pytest.approx(float(together), rel=1e-11)
