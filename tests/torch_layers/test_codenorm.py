"""CodeNorm and GaussianCodeNorm against the paper's definition and against BatchNorm1d."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import smmd
from smmd.torch import CodeNorm, GaussianCodeNorm

D = 3


def codes(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return (2.5 * torch.randn(*shape, generator=generator, dtype=torch.float64) - 4.0).to(dtype)


def trained(layer, steps=4):
    for seed in range(steps):
        layer(codes(10, D, seed=seed))
    return layer


def test_training_is_n_minus_1_standardization():
    z = codes(12, D)
    found = CodeNorm(D).double()(z)
    expected = (z - z.mean(0)) / z.std(0, correction=1)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found, smmd.standardize(z), rtol=1e-13, atol=1e-14)


def test_far_from_the_origin_float32_loses_nothing_it_has():
    z = codes(500, D, dtype=torch.float32) + 1e4
    expected = CodeNorm(D).double()(z.double())
    # float32 holds such z to 5e-4; the result is exact for the z that it holds.
    torch.testing.assert_close(CodeNorm(D)(z).double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_running_statistics_are_those_of_batch_norm(momentum):
    ours = trained(CodeNorm(D, momentum=momentum).double())
    theirs = trained(nn.BatchNorm1d(D, momentum=momentum, affine=False).double())
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=1e-12, atol=1e-12)


def test_evaluation_uses_running_statistics_and_changes_nothing():
    layer = trained(CodeNorm(D).double()).eval()
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    z = codes(1, D, seed=9)  # one row will do
    expected = (z - before["running_mean"]) / before["running_var"].sqrt()
    torch.testing.assert_close(layer(z), expected, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)


def test_state_goes_into_a_new_layer():
    layer = trained(CodeNorm(D))
    again = CodeNorm(D)
    again.load_state_dict(layer.state_dict())
    z = codes(5, D, dtype=torch.float32)
    assert torch.equal(again.eval()(z), layer.eval()(z))
    layer.reset_running_stats()
    assert layer.state_dict().keys() == nn.BatchNorm1d(D, affine=False).state_dict().keys()
    assert torch.equal(layer.running_var, torch.ones(D))


@pytest.mark.parametrize("floored", [False, True])
def test_gradients_once_and_twice(floored):
    z = codes(5, D)
    if floored:
        z[:, 1] = 1e-7 * z[:, 1] + 3.0  # below the floor its deviation is a constant
    layer = CodeNorm(D).double()
    z.requires_grad_()
    # A column of deviation 1e-7 divided by 1e-5 has slopes of 1e5: differences of 1e-9.
    step = 1e-9 if floored else 1e-6
    assert torch.autograd.gradcheck(layer, z, eps=step, atol=2.0 if floored else 1e-6, rtol=1e-4)
    if not floored:
        assert torch.autograd.gradgradcheck(layer, z)


def test_gradient_is_that_of_the_formula_where_a_column_is_constant():
    z = codes(6, D)
    z[:, 2] = 5.0
    leaves = [z.clone().requires_grad_() for _ in range(2)]
    centred = leaves[1] - leaves[1].mean(0)
    variance = centred.square().sum(0) / 5
    weights = codes(6, D, seed=4)
    slopes = []
    for leaf, out in zip(
        leaves,
        (CodeNorm(D).double()(leaves[0]), centred * variance.clamp_min(1e-10).rsqrt()),
        strict=True,
    ):
        slopes.append(torch.autograd.grad((out * weights).sum(), leaf)[0])
    assert bool(slopes[0].isfinite().all())
    torch.testing.assert_close(slopes[0], slopes[1], rtol=1e-11, atol=1e-11)


def test_recorded_operators_give_what_the_written_out_node_gives():
    z, u, layer = codes(8, D), codes(8, D, seed=1), CodeNorm(D).double()
    leaf = z.clone().requires_grad_()
    (eager,) = torch.autograd.grad((layer(leaf) * u).sum(), leaf)

    def pulled(x, buffers):  # as for BatchNorm, what is changed must be an argument
        return (torch.func.functional_call(layer, buffers, x) * u).sum()

    recorded = torch.func.grad(pulled)(z, {k: v.clone() for k, v in layer.named_buffers()})
    torch.testing.assert_close(recorded, eager, rtol=1e-12, atol=1e-12)


def test_result_may_be_changed_in_place():
    z, layer = codes(6, D).requires_grad_(), CodeNorm(D).double()
    (expected,) = torch.autograd.grad((layer(z) + 1.0).pow(3).sum(), z)
    (found,) = torch.autograd.grad(layer(z).add_(1.0).pow(3).sum(), z)
    torch.testing.assert_close(found, expected)


def test_leading_axes_are_normalized_each_by_itself():
    z = codes(4, 7, D)
    layer = CodeNorm(D, momentum=1.0).double()
    found = layer(z)
    for part, sample in zip(found, z, strict=True):
        torch.testing.assert_close(part, smmd.standardize(sample), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(layer.running_mean, z.mean((0, 1)))
    torch.testing.assert_close(layer.running_var, z.var(1).mean(0))


def test_layouts_of_images():
    z = codes(6, D, 4, 5)
    found = CodeNorm(D, layout="positions").double()(z)
    theirs = nn.BatchNorm2d(D, eps=1e-30, affine=False).double()(z)
    torch.testing.assert_close(found, theirs * (119 / 120) ** 0.5, rtol=1e-12, atol=1e-12)
    whole = CodeNorm(D * 20, layout="images").double()(z)
    assert whole.shape == z.shape
    torch.testing.assert_close(whole.flatten(1), smmd.standardize(z.flatten(1)))


def test_from_batch_norm_and_back():
    norm = trained(nn.BatchNorm1d(D, eps=1e-3, affine=False).double()).eval()
    z = codes(4, D, seed=7)
    layer = CodeNorm.from_batch_norm(norm)
    assert not layer.training
    torch.testing.assert_close(layer(z), norm(z), rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(layer.to_batch_norm()(z), norm(z), rtol=1e-12, atol=1e-12)
    assert layer.num_batches_tracked.item() == 4
    affine = nn.BatchNorm1d(D)
    assert CodeNorm.from_batch_norm(affine).training  # weight 1 and bias 0: nothing is lost
    with torch.no_grad():
        affine.weight.fill_(2.0)
    with pytest.raises(ValueError, match="drop_affine"):
        CodeNorm.from_batch_norm(affine)
    CodeNorm.from_batch_norm(affine, drop_affine=True)
    with pytest.raises(ValueError, match="nothing to convert"):
        CodeNorm.from_batch_norm(nn.BatchNorm1d(D, track_running_stats=False, affine=False))


@pytest.mark.parametrize("bias", [True, False])
def test_folds_into_the_linear_layer_before_it(bias):
    torch.manual_seed(0)
    linear = nn.Linear(5, D, bias=bias).double()
    layer = CodeNorm(D).double()
    x = codes(9, 5)
    layer(linear(x))
    layer.eval()
    folded = layer.folded_into(linear)
    torch.testing.assert_close(folded(x), layer(linear(x)), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="gives 4 features"):
        layer.folded_into(nn.Linear(5, 4))


def test_random_encoders_mixture_has_mean_0_and_variance_1():
    mu, var = codes(8, D), codes(8, D, seed=1).square()
    layer = GaussianCodeNorm(D, momentum=1.0).double()
    means, variances = layer(mu, var)
    spread = (mu.square() + var).mean(0) - mu.mean(0).square()  # paper, appendix A.2
    torch.testing.assert_close(means, (mu - mu.mean(0)) / spread.sqrt(), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(variances, var / spread, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(layer.running_var, spread, rtol=1e-11, atol=1e-12)
    layer.eval()
    for found, expected in zip(layer(mu, var), (means, variances), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    one = GaussianCodeNorm(D).double()(mu[:1], var[:1])  # a Gaussian alone has a variance
    torch.testing.assert_close(one[1], torch.ones(1, D, dtype=torch.float64))


def test_random_encoders_gradients():
    mu, var = codes(5, D).requires_grad_(), codes(5, D, seed=1).square().requires_grad_()
    assert torch.autograd.gradcheck(GaussianCodeNorm(D).double(), (mu, var))
    with pytest.raises(ValueError, match="shape of mu"):
        GaussianCodeNorm(D).double()(mu, var[:, :1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: CodeNorm(0), ValueError, "d must be a whole number"),
        (lambda: CodeNorm(D, momentum=1.5), ValueError, "momentum must be in"),
        (lambda: CodeNorm(D, eps=0.0), ValueError, "eps must be positive"),
        (lambda: CodeNorm(D)(torch.zeros(1, D)), ValueError, r"call \.eval\(\)"),
        (lambda: CodeNorm(D)(torch.zeros(4, 2)), ValueError, r"\(\.\.\., n, 3\)"),
        (lambda: CodeNorm(D)(torch.zeros(4, D, dtype=torch.int64)), TypeError, "floating-point"),
        (lambda: CodeNorm(D, layout="images").to_batch_norm(), ValueError, "takes rows"),
        (lambda: CodeNorm(D, layout="rows")(torch.zeros(4, D, 2)), ValueError, "layout='rows'"),
    ],
)
def test_errors_name_the_argument(call, error, words):
    with pytest.raises(error, match=words):
        call()
