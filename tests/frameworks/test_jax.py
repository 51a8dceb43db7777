"""JAX's transformations of what is not a loss; ``tests/jax_functions`` has the losses."""

import jax
import jax.numpy as jnp
import numpy as np

import smmd


def several(mu, at, var):
    mean, spread = smmd.code_normalize(mu, var=var)
    white = smmd.whiten(mu) + smmd.standardize(mu)
    return (
        smmd.mmd2(mean, var=spread) + smmd.witness(white, at).sum() + smmd.mmd2_two_sample(mu, at)
        + smmd.mardia(mu).kurtosis + smmd.outlier_delta(mu) + smmd.effect_size(mu[:, 0], at[:, 0])
        + smmd.cramer_wold(mu)
    )  # fmt: skip


def test_one_compiled_function_with_its_gradient():
    rng = np.random.default_rng(0)
    shapes = ((2, 15, 3), (2, 4, 3), (2, 15, 3))
    arguments = [rng.uniform(0.1, 1.0, shape) for shape in shapes]
    with jax.enable_x64(True):
        given = [jnp.asarray(a) for a in arguments]
        both = jax.jit(jax.vmap(jax.value_and_grad(several)))
        values, slopes = both(*given)
        eager = [several(*(a[i] for a in arguments)) for i in range(2)]
        np.testing.assert_allclose(values, eager, rtol=1e-12, atol=1e-12)
        # A central difference: its own error is about the square of the step.
        step = 1e-5 * rng.standard_normal(shapes[0][1:])
        mu, at, var = (a[0] for a in arguments)
        moved = [several(mu + s * step, at, var) for s in (1, -1)]
        expected = (moved[0] - moved[1]) / 2.0
        np.testing.assert_allclose((slopes[0] * step).sum(), expected, rtol=1e-6)
