"""The same numbers from NumPy, PyTorch, JAX and CuPy, of the same kind, type and device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import smmd
from tests.frameworks import standin

RNG = np.random.default_rng(7)
#: Two batch dimensions, then points, then coordinates; the numbers are not centred.
Z = 1.2 * RNG.standard_normal((2, 3, 12, 4)) + 0.1
Y = RNG.uniform(-1.0, 2.0, (3, 9, 4))
VAR = RNG.uniform(0.0, 0.8, Z.shape)

KERNELS = {
    "gaussian": smmd.Gaussian(),
    "wide": smmd.Gaussian(1e6),
    "gamma": smmd.Gaussian(gamma=1.5),
    "henze-zirkler": smmd.HenzeZirkler(),
    "adaptive": smmd.Adaptive(),
    "scales": smmd.MultiScale(),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
    "narrow slices": smmd.Sliced(1e-2),
}
FUNCTIONS = {
    **{f"smmd, {name}": lambda z, y, v, k=k: smmd.smmd(z, kernel=k) for name, k in KERNELS.items()},
    **{
        f"mmd2, biased, {name}": lambda z, y, v, k=k: smmd.mmd2(z, k, unbiased=False)
        for name, k in KERNELS.items()
    },
    "the drop-in": lambda z, y, v: smmd.smmd(z, 1 / 4, True),
    "random encoder": lambda z, y, v: smmd.smmd(z, var=v),
    "biased random encoder": lambda z, y, v: smmd.mmd2(z, var=v[..., 0], unbiased=False),
    "adaptive random encoder": lambda z, y, v: smmd.mmd2(z, smmd.Adaptive(), var=v),
    "sliced random encoder": lambda z, y, v: smmd.mmd2(z, smmd.Sliced(), var=v),
    "cramer_wold": lambda z, y, v: smmd.cramer_wold(z, 2.0),
    "two samples": lambda z, y, v: smmd.mmd2_two_sample(z, y, smmd.IMQ()),
    "witness": lambda z, y, v: smmd.witness(z, y),
    "optimal_shift": lambda z, y, v: smmd.optimal_shift(z, smmd.Gaussian(1.0)),
    "outlier_delta": lambda z, y, v: smmd.outlier_delta(z, index=2, to=y[:, 0]),
    "to infinity": lambda z, y, v: smmd.outlier_delta(z, smmd.Sliced()),
    "skewness": lambda z, y, v: smmd.mardia(z).skewness,
    "kurtosis": lambda z, y, v: smmd.mardia(z).kurtosis,
    "effect_size": lambda z, y, v: smmd.effect_size(z, z * z),
    "standardize": lambda z, y, v: smmd.standardize(z),
    "whiten": lambda z, y, v: smmd.whiten(z),
    "code_normalize": lambda z, y, v: smmd.code_normalize(z),
    "normalized means": lambda z, y, v: smmd.code_normalize(z, var=v)[0],
    "normalized variances": lambda z, y, v: smmd.code_normalize(z, var=v[..., 0])[1],
    "value_and_grad": lambda z, y, v: smmd.value_and_grad(z)[0],
    "gradient": lambda z, y, v: smmd.value_and_grad(z, smmd.MultiScale())[1],
}
FRAMEWORKS = {
    "torch": torch.tensor,
    "jax": jnp.asarray,
    "cupy": lambda a: standin.ndarray(np.array(a)),
}


@pytest.fixture(autouse=True)
def _frameworks(monkeypatch):
    standin.install(monkeypatch)
    with jax.enable_x64(True):
        yield


def values(x):
    return x.get() if isinstance(x, standin.ndarray) else np.asarray(x)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, framework):
    function, make = FUNCTIONS[name], FRAMEWORKS[framework]
    expected = np.asarray(function(Z, Y, VAR))
    sample = make(Z)
    found = function(sample, make(Y), make(VAR))
    assert type(found).__module__ == type(sample).__module__
    assert found.dtype == sample.dtype
    assert found.device == sample.device
    assert tuple(found.shape) == expected.shape
    # optimal_shift stops within rounding of a maximum, which is flat to the root of rounding.
    unit = 1e-8 if name == "optimal_shift" else 1e-12
    np.testing.assert_allclose(values(found), expected, rtol=unit, atol=unit)


@pytest.mark.parametrize(
    "name", ["smmd, gaussian", "mmd2, biased, imq", "random encoder", "witness"]
)
def test_a_batch_is_its_samples(name):
    together = FUNCTIONS[name](Z, Y, VAR)
    for i in range(2):
        for j in range(3):
            alone = FUNCTIONS[name](Z[i, j], Y[j], VAR[i, j])
            np.testing.assert_allclose(together[i, j], alone, rtol=1e-12, atol=1e-12)


TYPES = [
    (np.asarray, np.float16, 2e-3),
    (np.asarray, np.float32, 2e-5),
    (torch.tensor, torch.float16, 2e-3),
    (torch.tensor, torch.bfloat16, 2e-2),
    (torch.tensor, torch.float32, 2e-5),
    (jnp.asarray, jnp.float16, 2e-3),
    (jnp.asarray, jnp.bfloat16, 2e-2),
    (jnp.asarray, jnp.float32, 2e-5),
]


@pytest.mark.parametrize(("make", "dtype", "unit"), TYPES, ids=lambda v: getattr(v, "__name__", v))
def test_the_type_goes_in_and_out(make, dtype, unit):
    """The points are rounded to the type, the answer is rounded to it, nothing between."""
    points = make(Z, dtype=dtype)
    wide = np.asarray(points.double() if isinstance(points, torch.Tensor) else points, np.float64)
    for function in (smmd.smmd, smmd.mmd2, smmd.standardize, lambda z: smmd.witness(z, z)):
        found = function(points)
        assert found.dtype == points.dtype
        got = np.asarray(found.double() if isinstance(found, torch.Tensor) else found, np.float64)
        np.testing.assert_allclose(got, function(wide), rtol=unit, atol=unit)


def test_jax_without_float64_keeps_five_digits():
    with jax.enable_x64(False):
        for kernel in (smmd.Gaussian(), smmd.HenzeZirkler(), smmd.MultiScale(), smmd.IMQ()):
            z = jnp.asarray(Z[0, 0])
            found = smmd.smmd(z, kernel=kernel)
            assert found.dtype == jnp.float32
            expected = smmd.smmd(np.asarray(z, np.float64), kernel=kernel)
            assert abs(float(found) - expected) <= 2e-4 * max(1.0, abs(expected))
