"""MMD² pair by pair from the doubly centred kernel, where sums over points and over pairs cancel.

The sums over points and over pairs of a wide kernel are small, with two exceptions.  Where a point
lies far out its kernel values and its expectation both vanish, that is, k − E k is −E k in each,
and where one point does so the statistic does not feel it (paper, section 3.2) but its rounding
would.  And in a random encoder's variances the two sums' slopes, of order a each, cancel to a².
So take the kernel centred on both sides, with p = log E_x k(x, z_i), q = log E_x k(x, z_j),
c = E k:

    h_ij = k_ij − e^p − e^q + c = (e^(p+q)/c)·(e^δ − 1) + c·(e^p/c − 1)(e^q/c − 1)
    MMD²_u = mean over i ≠ j of h_ij,   MMD²_b = mean over all i, j

where δ = log k_ij − p − q + log c is simplified by hand, so that nothing cancels:

    δ = Σ_k  a x y/A − a²((1−t)x²/B_s + (1−s)y²/B_t)/(2A) − ½ log(1 − a²(1−s)(1−t)/(B_s B_t))

for means x, y and variances s, t of the two points, A = 1 + a(s+t), B_s = 1 + a(1+s).
Quadratic in n with d-fold work for each pair: meant for the few samples that need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from smmd import closed_form
from smmd.arrays import Array, Namespace, kind, namespace
from smmd.pairs.dense import block_rows, by_row_blocks, pick, without_self
from smmd.radial import expm1


def centred_mean(
    z: Array, var: Array | None, mixture: Iterable[tuple[float, float]], *, unbiased: bool = True
) -> Array:
    """The mean over pairs of Σ_q e^(log w_q) h_q(z_i, z_j), shape (…), for pairs (a_q, log w_q)."""
    xp, n = namespace(z), z.shape[-2]
    spread = xp.zeros_like(z) if var is None else var
    sums = None
    if kind(z) == "jax":
        from smmd.pairs.jax import sum_over

        # Written out, many terms would take XLA minutes to compile.
        sums = sum_over(lambda a, log_w: _row_sums(xp, z, spread, a, log_w, not unbiased), mixture)
        mixture = ()
    for a, log_w in mixture:
        part = _row_sums(xp, z, spread, a, log_w, not unbiased)
        sums = part if sums is None else sums + part
    return xp.sum(sums, axis=-1) / (n * (n - 1) if unbiased else n * n)


def centred_mean_of_points(z: np.ndarray, mixture: Iterable[tuple[float, float]]) -> float:
    """The unbiased one of one sample (n, d) in NumPy, without variances: n² work for each term.

    With s = t = 0, δ depends on x·y and the norms alone.
    """
    n, d = z.shape
    norms, total, mixture = np.sum(z * z, axis=-1), 0.0, list(mixture)
    size = block_rows(z, z)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        r2 = np.sum((z[rows, None, :] - z) ** 2, axis=-1)
        dots = np.sum(z[rows, None, :] * z, axis=-1)
        itself = np.arange(start, start + len(r2))
        for a, log_w in mixture:
            log_c = -0.5 * d * math.log1p(2.0 * a)
            cross = -0.5 * d * math.log1p(a) - (0.5 * a / (1.0 + a)) * norms
            below = np.expm1(cross - log_c)
            log_pair = cross[rows, None] + cross - log_c
            squares = (0.5 * a * a / (1.0 + a)) * (norms[rows, None] + norms)
            delta = a * dots - squares - 0.5 * d * math.log1p(-((a / (1.0 + a)) ** 2))
            near = delta < 1.0
            small = np.exp(log_pair + log_w) * np.expm1(np.where(near, delta, 0.0))
            apart = np.exp(log_w - 0.5 * a * r2) - np.exp(log_pair + log_w)
            h = np.where(near, small, apart)
            h += math.exp(log_c + log_w) * below[rows, None] * below
            h[np.arange(len(h)), itself] = 0.0
            total += float(h.sum())
    return total / (n * (n - 1))


def _row_sums(
    xp: Namespace, z: Array, spread: Array, a: Any, log_w: Any, self_pairs: bool
) -> Array:
    """Σ_j e^(log w) h(z_i, z_j) for each i."""
    scalar = math if isinstance(a, float) else xp
    log_c = -0.5 * z.shape[-1] * scalar.log1p(2.0 * a)
    cross = closed_form.log_overlap(xp, a, z * z, 1.0 + spread)
    below = expm1(xp, cross - log_c)
    weight = scalar.exp(log_c + log_w)

    def block(index: Array) -> Array:
        x, s = (pick(xp, v, index)[..., :, None, :] for v in (z, spread))
        y, t = z[..., None, :, :], spread[..., None, :, :]
        log_k = closed_form.log_overlap(xp, a, (x - y) ** 2, s + t)
        own = xp.take(cross, index, axis=-1)[..., :, None]
        log_pair = own + cross[..., None, :] - log_c
        delta = _log_ratio(xp, a, x, y, s, t)
        # Where k is far above e^p e^q / c the two may be subtracted as they are.
        near = delta < 1.0
        small = xp.exp(log_pair + log_w) * xp.expm1(xp.where(near, delta, xp.zeros_like(delta)))
        h = xp.where(near, small, xp.exp(log_k + log_w) - xp.exp(log_pair + log_w))
        h = h + weight * xp.take(below, index, axis=-1)[..., :, None] * below[..., None, :]
        return xp.sum(without_self(xp, h, index, self_pairs), axis=-1)

    return by_row_blocks(block, z, z, z)


def _log_ratio(xp: Namespace, a: Any, x: Array, y: Array, s: Array, t: Array) -> Array:
    """δ of the module; the last axis is summed."""
    both, first, second = a * (s + t), 1.0 + a * (1.0 + s), 1.0 + a * (1.0 + t)
    squares = (1.0 - t) * x * x / first + (1.0 - s) * y * y / second
    # 1 − a²(1−s)(1−t)/(B_s B_t) = (1+2a) A/(B_s B_t), which is small where variances are large.
    large = both > 1.0
    inside = xp.where(large, xp.zeros_like(both), -(a * a) * (1.0 - s) * (1.0 - t))
    apart = (
        (math if isinstance(a, float) else xp).log1p(2.0 * a)
        + xp.log1p(both)
        - xp.log(first * second)
    )
    logs = xp.where(large, apart, xp.log1p(inside / (first * second)))
    return xp.sum((a * x * y - 0.5 * a * a * squares) / (1.0 + both) - 0.5 * logs, axis=-1)
