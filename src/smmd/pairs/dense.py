"""Sums over pairs as the formulas read, in any array framework, a block of rows at a time.

This is the readable truth that the faster paths are checked against.  Distances are taken by
differences, so nothing is lost far from the origin; a block's differences are the largest array.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from smmd import closed_form
from smmd.arrays import Array, kind, namespace
from smmd.radial import Exponentials, Radial, is_fixed

#: How many numbers one block's differences may hold (32 MB in float64).
BLOCK_NUMBERS = 1 << 22


def block_rows(rows: Array, cols: Array) -> int:
    """How many rows a block may have so that its differences stay within bounds."""
    per_row = max(1, int(_size(cols.shape[:-2])) * cols.shape[-2] * cols.shape[-1])
    return int(max(1, min(rows.shape[-2], BLOCK_NUMBERS // per_row)))


def _size(shape: Any) -> int:
    total = 1
    for length in shape:
        total *= int(length)
    return total


def by_row_blocks(block: Callable[[Array], Array], like: Array, rows: Array, cols: Array) -> Array:
    """``block(indices)``, shape (…, len(indices)), over all rows of ``rows``, put together.

    Under JAX this is one compiled loop, rematerialized in the backward pass; elsewhere a Python
    loop, checkpointed under PyTorch.  Either way derivatives need no memory beyond a block's.
    """
    xp = namespace(like)
    m, size = rows.shape[-2], block_rows(rows, cols)
    if size >= m:
        return block(_arange(xp, like, m))
    if kind(like) == "jax":
        import jax

        count = -(-m // size)
        index = xp.arange(count * size).reshape(count, size)
        parts = jax.lax.map(jax.checkpoint(lambda i: block(xp.minimum(i, m - 1))), index)
        parts = xp.moveaxis(parts, 0, -2)
        return parts.reshape(*parts.shape[:-2], count * size)[..., :m]
    run = block
    if kind(like) == "torch" and like.requires_grad:
        from torch.utils.checkpoint import checkpoint

        # Arrays beyond 32 MB go back to the system at once; smaller ones would leave holes in the
        # C library's heap between nodes of the graph, which adds up to n² numbers.
        size = 2 * size
        run = partial(checkpoint, block, use_reentrant=False)
    index = _arange(xp, like, m)
    return xp.concat([run(index[i : i + size]) for i in range(0, m, size)], axis=-1)


def _arange(xp: Any, like: Array, m: int) -> Array:
    return xp.arange(m, device=like.device) if kind(like) == "torch" else xp.arange(m)


def pick(xp: Any, values: Array, index: Array) -> Array:
    """Rows ``index`` of axis −2."""
    return xp.take(values, index, axis=-2)


def without_self(xp: Any, values: Array, index: Array, self_pairs: bool) -> Array:
    """``values`` (…, rows, columns) with zero where row ``index`` meets itself."""
    if self_pairs:
        return values
    columns = _arange(xp, index, values.shape[-1])
    return xp.where(index[:, None] == columns[None, :], xp.zeros_like(values), values)


def row_sums(rows: Array, cols: Array, radial: Radial, *, self_pairs: bool = True) -> Array:
    """Σ_j f(‖rows_i − cols_j‖²) for each i, shape (…, m); j = i left out if not self_pairs."""
    xp = namespace(rows)

    def block(index: Array) -> Array:
        diff = pick(xp, rows, index)[..., :, None, :] - cols[..., None, :, :]
        values = radial.value(xp, xp.sum(diff * diff, axis=-1))
        return xp.sum(without_self(xp, values, index, self_pairs), axis=-1)

    return by_row_blocks(block, rows, rows, cols)


def pair_sum(z: Array, radial: Radial) -> Array:
    """Σ_{i≠j} f(‖z_i − z_j‖²), shape (…)."""
    return namespace(z).sum(row_sums(z, z, radial, self_pairs=False), axis=-1)


def pair_gradient(z: Array, radial: Radial) -> Array:
    """∂/∂z_i of ``pair_sum``: 4 Σ_j f'(r²_ij)(z_i − z_j)."""
    return 2.0 * row_gradient(z, z, radial)


def row_gradient(rows: Array, cols: Array, radial: Radial) -> Array:
    """∂/∂rows_i of Σ_ij f(‖rows_i − cols_j‖²): 2 Σ_j f'(r²_ij)(rows_i − cols_j)."""
    xp = namespace(rows)
    size, m = block_rows(rows, cols), rows.shape[-2]
    parts = []
    for start in range(0, max(m, 1), size):
        diff = rows[..., start : start + size, None, :] - cols[..., None, :, :]
        slope = radial.slope(xp, xp.sum(diff * diff, axis=-1))
        parts.append(2.0 * xp.sum(slope[..., None] * diff, axis=-2))
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)


def pair_hessian_product(z: Array, u: Array, radial: Radial) -> Array:
    """The derivative of ``pair_gradient`` along u:

    4 Σ_j [ f'(r²_ij)(u_i − u_j) + 2 f''(r²_ij) ((z_i − z_j)·(u_i − u_j)) (z_i − z_j) ].
    """
    xp = namespace(z)
    size, m = max(1, block_rows(z, z) // 2), z.shape[-2]
    parts = []
    for start in range(0, m, size):
        diff = z[..., start : start + size, None, :] - z[..., None, :, :]
        along = u[..., start : start + size, None, :] - u[..., None, :, :]
        r2 = xp.sum(diff * diff, axis=-1)
        bend = 2.0 * radial.curvature(xp, r2) * xp.sum(diff * along, axis=-1)
        slope = radial.slope(xp, r2)
        parts.append(4.0 * xp.sum(slope[..., None] * along + bend[..., None] * diff, axis=-2))
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-2)


def overlap_sum(mu: Array, var: Array, components: Exponentials) -> Array:
    """Σ_{i≠j} of the overlap of N(mu_i, diag var_i) and N(mu_j, diag var_j), shape (…)."""
    return overlap_row_sum(mu, var, mu, var, components)


def overlap_row_sum(
    mu: Array, var: Array, cols_mu: Array, cols_var: Array, components: Exponentials, start: int = 0
) -> Array:
    """The same sum of these rows against the columns, of which row i is column start + i."""
    xp = namespace(mu)

    def block(index: Array) -> Array:
        diff = pick(xp, mu, index)[..., :, None, :] - cols_mu[..., None, :, :]
        summed = pick(xp, var, index)[..., :, None, :] + cols_var[..., None, :, :]
        values = overlap_terms(xp, diff * diff, summed, components)
        return xp.sum(without_self(xp, values, index + start, False), axis=-1)

    return xp.sum(by_row_blocks(block, mu, mu, cols_mu), axis=-1)


def overlap_terms(xp: Any, delta2: Array, v: Array, components: Exponentials) -> Array:
    """Σ_q weight_q (overlap_q · e^offset_q − base_q) from Δ² and v, whose last axis is summed."""
    if kind(delta2) == "jax" and len(components) > 8 and is_fixed(components):
        from smmd.pairs import jax as jax_pairs

        return jax_pairs.overlap_terms(delta2, v, components)
    total = None
    ndim = delta2.ndim - 1
    for q in range(len(components)):
        a, offset, weight, base = components.component(q, ndim)
        power = offset + closed_form.log_overlap(xp, _unsqueeze(a), delta2, v)
        term = weight * components.exponential(xp, power, base)
        total = term if total is None else total + term
    return total


def _unsqueeze(a: Any) -> Any:
    return a if isinstance(a, float) else a[..., None]
