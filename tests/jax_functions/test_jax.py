"""The plain functions under JAX: jit, grad, vmap, second derivatives, linear memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import smmd

KERNELS = {
    "gaussian": smmd.Gaussian(),
    "wide": smmd.Gaussian(1e5),
    "adaptive": smmd.Adaptive(),
    "scales": smmd.MultiScale(),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
    "narrow slices": smmd.Sliced(1e-2),  # 300 precisions: written out, XLA would take a minute
}


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def data(shape=(2, 30, 3), seed=0):
    rng = np.random.default_rng(seed)
    return 1.2 * rng.standard_normal(shape) + 0.1


def of_torch(kernel, z, var=None):
    leaves = [torch.tensor(v, requires_grad=True) for v in (z, var) if v is not None]
    value = smmd.smmd(leaves[0], kernel=kernel, var=None if var is None else leaves[1])
    slopes = torch.autograd.grad(value.sum(), leaves)
    return value.detach().numpy(), [s.numpy() for s in slopes]


@pytest.mark.parametrize("name", KERNELS)
def test_jit_of_vmap_of_grad(name):
    z, kernel = data(), KERNELS[name]
    value, (slope,) = of_torch(kernel, z)
    both = jax.jit(jax.vmap(jax.value_and_grad(lambda x: smmd.smmd(x, kernel=kernel))))
    found, gradient = both(jnp.asarray(z))
    # Sums of 870 pairs in another order: 1e-12 of their size is 1e3 roundings.
    np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "imq", "sliced"])
def test_hessian_products_both_ways(name):
    z, u, kernel = *data(seed=1), KERNELS[name]
    leaf = torch.tensor(z, requires_grad=True)
    (slope,) = torch.autograd.grad(smmd.smmd(leaf, kernel=kernel), leaf, create_graph=True)
    (truth,) = torch.autograd.grad((slope * torch.tensor(u)).sum(), leaf)
    gradient = jax.grad(lambda x: smmd.smmd(x, kernel=kernel))

    @jax.jit
    def both(x, along):
        backward = jax.grad(lambda x: jnp.vdot(gradient(x), along))(x)
        return jax.jvp(gradient, (x,), (along,))[1], backward

    for found in both(jnp.asarray(z), jnp.asarray(u)):
        np.testing.assert_allclose(found, truth.numpy(), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "scales"])
def test_random_encoders(name):
    z, var = data(), 0.1 + np.random.default_rng(2).random((2, 30, 3))
    value, slopes = of_torch(KERNELS[name], z, var)

    @jax.jit
    def both(mu, var):
        def of(mu, var):
            return smmd.smmd(mu, kernel=KERNELS[name], var=var).sum()

        return jax.value_and_grad(of, argnums=(0, 1))(mu, var)

    total, gradients = both(jnp.asarray(z), jnp.asarray(var))
    np.testing.assert_allclose(total, value.sum(), rtol=1e-12)
    for found, truth in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(found, truth, rtol=1e-10, atol=1e-12)


def test_many_components_of_an_encoder_compile_in_seconds():
    z, var = data((10, 3)), np.full((10, 3), 0.2)
    value, (slope, _) = of_torch(smmd.IMQ(), z, var)
    function = jax.jit(
        jax.value_and_grad(lambda x: smmd.smmd(x, kernel=smmd.IMQ(), var=jnp.asarray(var)))
    )
    found, gradient = function(jnp.asarray(z))  # written out: 200 s of compilation
    np.testing.assert_allclose(found, value, rtol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "sliced"])
def test_memory_is_linear(name):
    def temporary(n, differentiated):
        shape = jax.ShapeDtypeStruct((n, 8), jnp.float64)
        return jax.jit(differentiated).lower(shape).compile().memory_analysis().temp_size_in_bytes

    def value(z):
        return smmd.smmd(z, kernel=KERNELS[name])

    # One n×n array of 6000 points is 288 MB; a block's arrays have at most 32 MB each.
    assert temporary(6000, jax.grad(value)) < 100e6
    along = jax.jit(lambda z: jax.jvp(jax.grad(value), (z,), (z,))[1])
    assert temporary(6000, along) < 100e6


def test_float32_by_default():
    with jax.enable_x64(False):
        z = jnp.asarray(data((200, 4)), dtype=jnp.float32)
        value, slope = jax.jit(jax.value_and_grad(smmd.smmd))(z)
    truth, (gradient,) = of_torch(smmd.Gaussian(), np.asarray(z, dtype=np.float64))
    assert value.dtype == slope.dtype == jnp.float32
    assert abs(float(value) - truth) < 1e-4 * max(1.0, abs(truth))
    np.testing.assert_allclose(slope, gradient, atol=1e-5 * abs(gradient).max())


def test_constants_inside_jit_are_not_read():
    z = jnp.asarray(data((20, 3)))
    assert np.isclose(jax.jit(lambda: smmd.smmd(z))(), smmd.smmd(z))


def test_third_derivative_is_refused():
    f = jax.grad(lambda s: smmd.smmd(s * jnp.asarray(data((5, 2))), kernel=smmd.Sliced()))
    with pytest.raises(NotImplementedError, match="differentiable twice"):
        jax.grad(jax.grad(f))(1.0)
