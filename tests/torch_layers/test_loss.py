"""SMMDLoss against the plain function, the paper's listing and finite differences."""

from __future__ import annotations

import pickle

import pytest
import torch

import smmd
import smmd.torch
from tests import listing

KERNELS = {
    "gaussian": smmd.Gaussian(),
    "henze-zirkler": smmd.HenzeZirkler(),
    "adaptive": smmd.Adaptive(1 / 4),
    "scales": smmd.MultiScale((1 / 16, 1 / 8, 1.0)),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
}


def codes(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (1.2 * torch.randn(*shape, generator=generator, dtype=torch.float64) + 0.2).to(dtype)


@pytest.mark.parametrize("scale", [1 / 8, 1.0])
@pytest.mark.parametrize("adaptive", [False, True])
def test_is_the_papers_listing(scale, adaptive):
    z = codes(40, 5)
    found = smmd.torch.SMMDLoss(scale, adaptive=adaptive)(z)
    # The listing's 1 − 2 + 1 loses about three digits of sixteen at these widths.
    assert found.item() == pytest.approx(listing.smmd(z.numpy(), scale, adaptive), abs=1e-9)


#: Kernels of many components take long as random encoders: ``tests/oracles`` has their gradients.
GRADIENTS = [(name, False) for name in KERNELS if name != "adaptive"]
GRADIENTS += [("gaussian", True), ("henze-zirkler", True), ("scales", True)]


@pytest.mark.parametrize(("name", "encoder"), GRADIENTS)
def test_gradient_is_the_values(name, encoder):
    z, var = codes(7, 3).requires_grad_(), codes(7, 3, seed=1).square().requires_grad_()
    loss = smmd.torch.SMMDLoss(kernel=KERNELS[name])
    assert torch.autograd.gradcheck(loss, (z, var) if encoder else (z,), atol=1e-6)


@pytest.mark.parametrize("encoder", [False, True])
def test_adaptive_width_is_a_constant_to_differentiation(encoder):
    z, var = codes(7, 3).requires_grad_(), codes(7, 3, seed=1).square().requires_grad_()
    inputs = (z, var) if encoder else (z,)
    square = (z.square().sum(-1) + (var.sum(-1) if encoder else 0.0)).mean().item()
    fixed = smmd.torch.SMMDLoss(kernel=smmd.Gaussian(gamma=(square / 4) ** 0.5))
    adaptive = smmd.torch.SMMDLoss(1 / 4, adaptive=True)
    slopes = [torch.autograd.grad(loss(*inputs), inputs) for loss in (adaptive, fixed)]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_float32_keeps_five_digits(name):
    z = codes(200, 16, dtype=torch.float32).requires_grad_()
    loss = smmd.torch.SMMDLoss(kernel=KERNELS[name])
    value, truth = loss(z), loss(z.detach().double())
    assert (value.dtype, value.ndim) == (torch.float32, 0)
    assert value.item() == pytest.approx(truth.item(), rel=1e-5, abs=1e-4)


def test_leading_axes_are_samples():
    z = codes(3, 2, 20, 4)
    loss = smmd.torch.SMMDLoss()
    each = torch.stack([loss(sample) for sample in z.flatten(0, 1)])
    torch.testing.assert_close(loss(z), each.mean())


def test_layouts_of_images():
    z, var = codes(6, 3, 4, 5), codes(6, 3, 4, 5, seed=1).square()
    points = {
        "images": lambda x: x.reshape(6, 60),
        "positions": lambda x: x.permute(0, 2, 3, 1).reshape(120, 3),
    }
    for layout, rows in points.items():
        loss = smmd.torch.SMMDLoss(layout=layout)
        torch.testing.assert_close(loss(z), smmd.smmd(rows(z)))
        torch.testing.assert_close(loss(z, var), smmd.smmd(rows(z), var=rows(var)))


def test_one_variance_per_point():
    z, var = codes(9, 4), codes(9, seed=2).square()
    loss = smmd.torch.SMMDLoss()
    torch.testing.assert_close(loss(z, var), loss(z, var[:, None].expand(9, 4)))


def test_zero_mean_and_unit_variance_on_normal_codes():
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(1500, 32, 6, generator=generator)
    for kernel in (smmd.Gaussian(), smmd.Sliced()):
        values = smmd.smmd(z, kernel=kernel)
        # Four standard errors of a mean and of a variance of 1500 skewed values (kurtosis < 10).
        assert abs(values.mean().item()) < 4 / 1500**0.5
        assert abs(values.var().item() - 1.0) < 4 * (9 / 1500) ** 0.5


def test_is_said_and_pickled():
    loss = smmd.torch.SMMDLoss(1 / 4, group="world", layout="images")
    assert repr(loss) == "SMMDLoss(Gaussian(scale=0.25), group='world', layout='images')"
    again = pickle.loads(pickle.dumps(loss))
    assert torch.equal(again(codes(4, 2)), loss(codes(4, 2)))
    assert not list(loss.parameters())
    assert not loss.state_dict()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: smmd.torch.SMMDLoss(0.0), ValueError, "scale must be positive"),
        (lambda: smmd.torch.SMMDLoss(kernel="imq"), TypeError, "smmd.Gaussian"),
        (lambda: smmd.torch.SMMDLoss(adaptive=True, kernel=smmd.IMQ()), ValueError, "exclude"),
        (lambda: smmd.torch.SMMDLoss(group="all"), ValueError, '"world"'),
        (lambda: smmd.torch.SMMDLoss(layout="nchw"), ValueError, "'positions'"),
        (lambda: smmd.torch.SMMDLoss()(torch.zeros(1, 3)), ValueError, "at least 2"),
        (lambda: smmd.torch.SMMDLoss()(torch.zeros(3)), ValueError, r"\(\.\.\., n, d\)"),
        (
            lambda: smmd.torch.SMMDLoss(layout="images")(torch.zeros(4, 2, 2), torch.zeros(4)),
            ValueError,
            "shape of z",
        ),
        (
            lambda: smmd.torch.SMMDLoss()(torch.zeros(4, 2), -torch.ones(4, 2)),
            ValueError,
            "not its logarithm",
        ),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()
