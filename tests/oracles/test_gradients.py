"""Gradients to 1e-11 of their norm, and second derivatives, against 50 digits."""

import numpy as np
import pytest
import torch

import smmd
from tests import cases, exact
from tests.exact_derivatives import encoder_gradient, hessian_product, relative_error

#: Below this a gradient's own squares leave float64; the norm is then no measure of anything.
SMALLEST = exact.mpf("1e-290")

KERNELS = [c for c in cases.KERNELS if not c.label.startswith("IMQ")]
FIXED = [c for c in KERNELS if not c.kernel.adaptive]  # the oracle's width moves with the points


def scaled(rows, factor):
    return [[v * factor for v in row] for row in rows]


def norm(rows):
    return exact.mp.sqrt(exact.mp.fsum(v * v for row in rows for v in row))


@pytest.mark.parametrize("name", [name for _, name, _ in cases.samples()])
def test_gradients_in_the_points(name):
    z = cases.sample(name)
    for case in KERNELS:
        if not cases.worth_trying(case, z):
            continue
        oracle = case.oracle(z)
        unit = 1 / exact.mp.sqrt(exact.null_variance(oracle, len(z)))
        truth = scaled(exact.gradient(oracle, z), unit)
        point = torch.tensor(z, requires_grad=True)
        smmd.smmd(point, kernel=case.kernel).backward()
        value, gradient = smmd.value_and_grad(z, case.kernel)
        if norm(truth) < SMALLEST:
            assert np.abs(gradient).max() < SMALLEST
            assert float(point.grad.abs().max()) < SMALLEST
            continue
        assert relative_error(point.grad.tolist(), truth) <= cases.GRADIENT, case
        assert relative_error(gradient.tolist(), truth) <= cases.GRADIENT, case
        assert cases.error(value, exact.mmd2(oracle, z) * unit) <= cases.DOUBLE, case


@pytest.mark.parametrize("scale", [1 / 8, 1e3])
@pytest.mark.parametrize("name", ["normal 8x2", "spread over 1e6, 6x8"])
def test_gradients_of_the_inverse_multiquadric(name, scale):
    z = cases.sample(name)
    case = cases.imq(scale)
    truth = exact.gradient(case.oracle(z), z)
    point = torch.tensor(z, requires_grad=True)
    smmd.mmd2(point, case.kernel).backward()
    _, gradient = smmd.value_and_grad(z, case.kernel, standardized=False)
    assert relative_error(point.grad.tolist(), truth) <= cases.GRADIENT
    assert relative_error(gradient.tolist(), truth) <= cases.GRADIENT


@pytest.mark.parametrize("case", FIXED, ids=str)
def test_second_derivatives(case):
    rng = np.random.default_rng(3)
    z, u = rng.standard_normal((2, 6, 3))
    oracle = case.oracle(z)
    truth = hessian_product(oracle, z, u)
    point = torch.tensor(z, requires_grad=True)
    value = smmd.mmd2(point, case.kernel)
    (slope,) = torch.autograd.grad(value, point, create_graph=True)
    (bend,) = torch.autograd.grad(slope, point, torch.tensor(u))
    assert relative_error(bend.tolist(), truth) <= 1e-9


@pytest.mark.parametrize("case", [*map(cases.gaussian, cases.SCALES), cases.KERNELS[12]], ids=str)
@pytest.mark.parametrize("unbiased", [True, False])
def test_gradients_in_an_encoder_s_means_and_variances(case, unbiased):
    rng = np.random.default_rng(4)
    mu, var = rng.standard_normal((5, 3)), rng.uniform(0.05, 0.9, (5, 3))
    truths = encoder_gradient(case.oracle(mu), mu, var, unbiased=unbiased)
    arguments = [torch.tensor(v, requires_grad=True) for v in (mu, var)]
    smmd.mmd2(arguments[0], case.kernel, var=arguments[1], unbiased=unbiased).backward()
    for argument, truth in zip(arguments, truths, strict=True):
        assert relative_error(argument.grad.tolist(), truth) <= cases.GRADIENT


@pytest.mark.parametrize("case", [cases.gaussian(1 / 8), cases.gaussian(1e4)], ids=str)
def test_gradients_of_isotropic_encoders(case):
    rng = np.random.default_rng(5)
    mu, var = rng.standard_normal((4, 2)), rng.uniform(0.05, 0.9, 4)
    _, by_var = encoder_gradient(case.oracle(mu), mu, np.repeat(var[:, None], 2, 1))
    truth = [[exact.mp.fsum(row)] for row in by_var]
    argument = torch.tensor(var, requires_grad=True)
    smmd.mmd2(torch.tensor(mu), case.kernel, var=argument).backward()
    assert relative_error(argument.grad[:, None].tolist(), truth) <= cases.GRADIENT
