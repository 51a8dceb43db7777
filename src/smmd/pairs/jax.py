"""The sum over pairs under JAX, with derivatives of its own.

``jax.grad`` of a plain sum over pairs would keep what n² pairs have computed.  Here the derivative
is the closed formula, a block of rows at a time: nothing is kept but the (n, d) gradient, and a
second derivative is a Hessian–vector product, computed again where it is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from smmd import closed_form
from smmd.arrays import Array
from smmd.pairs import dense
from smmd.radial import Exponentials, Radial, is_fixed


def pair_sum(z: Array, radial: Radial) -> Array:
    """Σ_{i≠j} f(‖z_i − z_j‖²) for z (…, n, d): differentiable twice, linear memory."""
    if isinstance(radial, Exponentials) and not is_fixed(radial):
        # Widths that follow the data are arrays, through which no gradient flows.
        return _sum(z, tuple(map(jax.lax.stop_gradient, radial.parameters())), None)
    return _sum(z, (), radial)


def _function(widths: tuple[Array, ...], fixed: Radial | None) -> Radial:
    return Exponentials(*widths) if fixed is None else fixed


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _sum(z: Array, widths: tuple[Array, ...], fixed: Radial | None) -> Array:
    return dense.pair_sum(z, _function(widths, fixed))


@_sum.defjvp  # type: ignore[untyped-decorator]
def _sum_jvp(fixed: Radial | None, primals: Any, tangents: Any) -> tuple[Array, Array]:
    z, widths = primals
    along = jnp.sum(_gradient(z, widths, fixed) * tangents[0], axis=(-2, -1))
    return _sum(z, widths, fixed), along


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _gradient(z: Array, widths: tuple[Array, ...], fixed: Radial | None) -> Array:
    """4 Σ_j f'(r²_ij)(z_i − z_j), as ``dense.pair_gradient``."""
    radial = _function(widths, fixed)

    def block(index: Array) -> Array:
        diff = jnp.take(z, index, axis=-2)[..., :, None, :] - z[..., None, :, :]
        slope = radial.slope(jnp, jnp.sum(diff * diff, axis=-1))
        return 4.0 * jnp.sum(slope[..., None] * diff, axis=-2)

    return _by_blocks(block, z)


@_gradient.defjvp  # type: ignore[untyped-decorator]
def _gradient_jvp(fixed: Radial | None, primals: Any, tangents: Any) -> tuple[Array, Array]:
    z, widths = primals

    bend = _hessian_product(z, widths, tangents[0], fixed)
    return _gradient(z, widths, fixed), bend


def _hessian_product(z: Array, widths: tuple[Array, ...], u: Array, fixed: Radial | None) -> Array:
    """The derivative of ``_gradient`` along u, as ``dense.pair_hessian_product``."""
    radial = _function(widths, fixed)

    def block(index: Array) -> Array:
        diff = jnp.take(z, index, axis=-2)[..., :, None, :] - z[..., None, :, :]
        along = jnp.take(u, index, axis=-2)[..., :, None, :] - u[..., None, :, :]
        r2 = jnp.sum(diff * diff, axis=-1)
        bend = 2.0 * radial.curvature(jnp, r2) * jnp.sum(diff * along, axis=-1)
        slope = radial.slope(jnp, r2)
        return 4.0 * jnp.sum(slope[..., None] * along + bend[..., None] * diff, axis=-2)

    return _by_blocks(block, z)


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def radial_value(r2: Array, radial: Radial, order: int = 0) -> Array:
    """f(r²), or its derivative of an order up to 2, element by element.

    To differentiate a recurrence again and again takes compilers minutes; its derivatives are
    known.
    """
    return (radial.value, radial.slope, radial.curvature)[order](jnp, r2)


@radial_value.defjvp  # type: ignore[untyped-decorator]
def _radial_jvp(radial: Radial, order: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    if order == 2:
        raise NotImplementedError("smmd is differentiable twice; a third derivative was asked for")
    (r2,), (along,) = primals, tangents
    return radial_value(r2, radial, order), radial_value(r2, radial, order + 1) * along


def overlap_terms(delta2: Array, v: Array, components: Exponentials) -> Array:
    """``dense.overlap_terms`` of many fixed components: a loop, since unrolled it would take
    minutes to compile, whose derivative computes each term again.
    """

    def term(a: Array, offset: Array, weight: Array, base: Array) -> Array:
        power = offset + closed_form.log_overlap(jnp, a, delta2, v)
        return weight * components.exponential(jnp, power, base)

    return sum_over(term, zip(*components.parameters(), strict=True))


def sum_over(term: Callable[..., Array], parameters: Iterable[tuple[float, ...]]) -> Array:
    """Σ term(*numbers) over the tuples of numbers, as one compiled loop."""
    rows = [tuple(map(jnp.asarray, row)) for row in parameters]
    first = term(*rows[0])
    if len(rows) == 1:
        return first

    def add(total: Array, row: tuple[Array, ...]) -> tuple[Array, None]:
        return total + term(*row), None

    held = tuple(jnp.stack(column).astype(first.dtype) for column in zip(*rows[1:], strict=True))
    total, _ = jax.lax.scan(jax.checkpoint(add), first, held)
    return total


def _by_blocks(block: Callable[[Array], Array], z: Array) -> Array:
    """``block(indices)``, shape (…, len(indices), d), over all rows: one compiled loop."""
    m, size = z.shape[-2], dense.block_rows(z, z)
    again = jax.checkpoint(block)
    if size >= m:
        return again(jnp.arange(m))
    index = jnp.arange(-(-m // size) * size).reshape(-1, size)
    parts = jnp.moveaxis(jax.lax.map(lambda i: again(jnp.minimum(i, m - 1)), index), 0, -3)
    return parts.reshape(*parts.shape[:-3], -1, z.shape[-1])[..., :m, :]
