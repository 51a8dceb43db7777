"""PyTorch's transformations: compilation, functional gradients, second derivatives."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import smmd
from smmd.pairs import torch as torch_pairs

KERNELS = {
    "gaussian": smmd.Gaussian(),
    "wide": smmd.Gaussian(1e4),
    "adaptive": smmd.Adaptive(),
    "scales": smmd.MultiScale(),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
}


def sample(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return torch.tensor(1.2 * rng.standard_normal(shape) + 0.1)


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "sliced"])
def test_one_graph_with_its_gradient(name):
    z, kernel = sample(2, 20, 3), KERNELS[name]

    def both(z):
        return smmd.smmd(z, kernel=kernel).sum() + smmd.mmd2(z * 2.0, kernel, unbiased=False).sum()

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    answers = []
    for function in (both, compiled):
        leaf = z.clone().requires_grad_()
        value = function(leaf)
        answers.append((value, *torch.autograd.grad(value, leaf)))
    for got, expected in zip(answers[1], answers[0], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-13)


def test_other_functions_are_one_graph_too():
    mu, at, var = sample(15, 3), sample(4, 3, seed=1), sample(15, 3, seed=2).abs()

    def several(mu, at, var):
        mean, spread = smmd.code_normalize(mu, var=var)
        white = smmd.whiten(mu) + smmd.standardize(mu)
        return (
            smmd.smmd(mean, var=spread) + smmd.witness(white, at).sum()
            + smmd.mmd2_two_sample(mu, at) + smmd.mardia(mu).kurtosis + smmd.outlier_delta(mu)
        )  # fmt: skip

    compiled = torch.compile(several, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(mu, at, var), several(mu, at, var), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_second_derivatives(name):
    """Against differences, which an adaptive width must not follow; ``tests/oracles`` is exact."""
    z, kernel = sample(5, 2).requires_grad_(), KERNELS[name]
    if name == "adaptive":
        kernel = smmd.Gaussian(float(z.detach().square().sum(-1).mean()) / 8 / 2)
    assert gradcheck(lambda z: smmd.smmd(z, kernel=kernel), z)
    assert gradgradcheck(lambda z: smmd.smmd(z, kernel=kernel), z)


def test_second_derivatives_of_random_encoders():
    mu, var = sample(4, 2).requires_grad_(), sample(4, 2, seed=3).abs().requires_grad_()
    assert gradgradcheck(lambda m, v: smmd.smmd(m, 1.0, var=v), (mu, var))


def test_third_derivatives_are_refused():
    z = sample(4, 2).requires_grad_()
    slope = smmd.smmd(z, kernel=smmd.Sliced())
    for _ in range(2):
        (slope,) = torch.autograd.grad(slope.sum(), z, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiable twice"):
        torch.autograd.grad(slope.sum(), z)


# PyTorch compiles its own forward derivatives with torch.jit.script on first use.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", ["gaussian", "adaptive", "imq", "sliced"])
def test_functional_transformations(name):
    z, u, kernel = sample(3, 8, 2), sample(3, 8, 2, seed=4), KERNELS[name]

    def value(z):
        return smmd.smmd(z, kernel=kernel)

    leaf = z.clone().requires_grad_()
    (slope,) = torch.autograd.grad(value(leaf).sum(), leaf, create_graph=True)
    (bend,) = torch.autograd.grad(slope, leaf, u)
    gradient = torch.func.grad(value)
    close = {"rtol": 1e-11, "atol": 1e-11}
    torch.testing.assert_close(torch.func.vmap(value)(z), value(z), **close)
    torch.testing.assert_close(torch.func.vmap(gradient)(z), slope.detach(), **close)
    along = torch.func.jvp(torch.func.vmap(gradient), (z,), (u,))[1]
    torch.testing.assert_close(along, bend, **close)
    along = torch.func.jvp(value, (z[0],), (u[0],))[1]
    torch.testing.assert_close(along, (slope[0] * u[0]).sum().detach(), **close)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_operator_keeps_the_registry_s_rules(dtype):
    z = sample(2, 6, 3).to(dtype).requires_grad_()
    radial = ("exponentials", [2.0, 0.0, 1.0, 0.0], None)
    for gradient in (True, False):
        tests = None if gradient else ("test_schema", "test_faketensor")
        chosen = {} if tests is None else {"test_utils": tests}
        torch.library.opcheck(torch_pairs.pair_sum_operator, (z, *radial, gradient), **chosen)
    torch.library.opcheck(
        torch_pairs.pair_hessian_product,
        (z.detach(), z.detach(), *radial),
        test_utils="test_schema",
    )


def test_layouts_and_views():
    z = sample(20, 6)
    expected = smmd.smmd(z[:, ::2].contiguous())
    assert smmd.smmd(z[:, ::2]) == expected
    for same in (z.T.contiguous().T, torch.nn.Parameter(z), z.clone().requires_grad_()):
        torch.testing.assert_close(smmd.smmd(same).detach(), smmd.smmd(z), rtol=0, atol=1e-13)
    leaf = z.clone().requires_grad_()
    smmd.smmd(leaf[:, ::2]).backward()
    assert (leaf.grad[:, 1::2] == 0).all()
    assert (leaf.grad[:, ::2] != 0).all()


def test_no_gradient_is_kept_where_none_is_wanted():
    z = sample(10, 2).requires_grad_()
    with torch.no_grad():
        assert not smmd.smmd(z).requires_grad
    with torch.inference_mode():
        assert smmd.smmd(z) == smmd.smmd(z.detach())


def test_shapes_without_data():
    """The meta device knows shapes alone."""
    z = torch.empty(2, 9, 3, device="meta")
    for kernel in (smmd.Gaussian(), smmd.Adaptive(), smmd.Sliced()):
        value = smmd.smmd(z, kernel=kernel)
        assert (value.shape, value.device.type, value.dtype) == ((2,), "meta", torch.float32)
