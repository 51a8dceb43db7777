"""SlicedLoss: its directions, its null law, and what it estimates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import smmd
from smmd.torch import SlicedLoss
from smmd.torch.slices import cosines, random_directions


def codes(n, d, seed=0, scale=1.2):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(n, d, generator=generator, dtype=torch.float64)


def brute_force(z, directions, gamma):
    """The one-dimensional unbiased MMD² of every projection, pair by pair, averaged."""
    y = z @ directions.T
    n, total = len(y), 0.0
    for column in y.T:
        kernel = torch.exp(-0.5 * ((column[:, None] - column[None]) / gamma) ** 2)
        a = 1.0 / gamma**2
        cross = (1 + a) ** -0.5 * torch.exp(-0.5 * a / (1 + a) * column**2)
        pairs = (kernel.sum() - n) / (n * (n - 1))
        total += pairs - 2.0 * cross.mean() + (1 + 2 * a) ** -0.5
    return total / y.shape[1]


@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0, 3.0])
def test_value_is_the_mean_over_its_directions(gamma):
    z, loss = codes(30, 4), SlicedLoss(16, gamma=gamma, seed=3).double()
    directions = random_directions(3, loss.step, 16, 4)
    expected = brute_force(z, directions, gamma)
    expected = expected / smmd.sigreg.sliced_null_sd(30, 4, gamma, 16)
    assert loss(z).item() == pytest.approx(expected.item(), abs=2e-6)


def test_gradient():
    z = codes(6, 3).requires_grad_()
    assert torch.autograd.gradcheck(SlicedLoss(8, resample=False), z)


def test_many_directions_give_the_exact_sliced_kernel():
    z = codes(100, 5)
    found = SlicedLoss(4000)(z).item() * smmd.sigreg.sliced_null_sd(100, 5, 1.0, 4000)
    # Directions' values scatter as much as their mean is large: 1/√4000 = 1.6 %.
    assert found == pytest.approx(smmd.mmd2(z, smmd.Sliced()).item(), rel=0.05)


def test_directions_are_uniform_unit_vectors_and_differ_by_step_and_seed():
    zero, one = torch.tensor(0), torch.tensor(1)
    found = random_directions(0, zero, 20_000, 3)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(20_000, dtype=torch.float64))
    # E w = 0 and E w wᵀ = I/3, within four standard errors.
    assert found.mean(0).abs().max() < 4 * (1 / 3 / 20_000) ** 0.5
    assert (found.T @ found / 20_000 - torch.eye(3) / 3).abs().max() < 4 * (0.1 / 20_000) ** 0.5
    assert torch.equal(found, random_directions(0, zero, 20_000, 3))
    for other in (random_directions(0, one, 20_000, 3), random_directions(1, zero, 20_000, 3)):
        assert abs((found * other).sum(1).mean().item()) < 4 * (1 / 3 / 20_000) ** 0.5


@pytest.mark.parametrize("gamma", [0.05, 0.3, 1.0, 2.0])
def test_frequencies_are_the_gaussian_kernel(gamma):
    t, p = (v.numpy() for v in cosines(gamma))
    r = np.linspace(0.0, 11.0 * max(1.0, gamma), 301)
    expected = np.exp(-0.5 * (r / gamma) ** 2)
    np.testing.assert_allclose(np.cos(np.outer(r, t)) @ p, expected, atol=1e-7)


def test_resumed_training_sees_the_same_directions():
    z, loss, again = codes(10, 3), SlicedLoss(4), SlicedLoss(4)
    first = [loss(z).item() for _ in range(3)]
    assert len(set(first)) == 3
    again.load_state_dict(loss.state_dict())
    assert again(z).item() == loss(z).item()
    loss.eval()
    assert loss(z).item() == loss(z).item()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SlicedLoss(0), "n_slices must be"),
        (lambda: SlicedLoss(gamma=-1.0), "gamma must be positive"),
        (lambda: SlicedLoss(gamma=0.01), "too narrow for random slices"),
        (lambda: SlicedLoss()(torch.zeros(1, 3)), "at least 2"),
        (lambda: SlicedLoss()(torch.zeros(4, 3, device="meta")), r"\.to\(z\.device\)"),
        (lambda: SlicedLoss()(torch.zeros(3)), r"\(\.\.\., n, d\)"),
    ],
)
def test_errors_name_the_argument(call, words):
    with pytest.raises(ValueError, match=words):
        call()
