"""SMMD² pair by pair from the doubly centred kernel, for samples in which large terms cancel.

The sums over points and over pairs of a wide kernel are small, except where a point lies far out:
its kernel values and its expectation both vanish, that is, k − E k is −E k in each, and where one
point does so the statistic does not feel it (paper, section 3.2) but its rounding would.  So take
the kernel centred on both sides, with p = log E_x k(x, z_i), q = log E_x k(x, z_j), c = E k:

    h_ij = k_ij − e^p − e^q + c = (e^(p+q)/c)·(e^δ − 1) + c·(e^p/c − 1)(e^q/c − 1)
    MMD²_u = mean over i ≠ j of h_ij

where δ = log k_ij − p − q + log c is simplified by hand, so that nothing cancels:

    δ = Σ_k  a x y/A − a²((1−t)x²/B_s + (1−s)y²/B_t)/(2A) − ½ log(1 − a²(1−s)(1−t)/(B_s B_t))

for means x, y and variances s, t of the two points, A = 1 + a(s+t), B_s = 1 + a(1+s).
NumPy, quadratic in n and slow: meant for the few samples that need it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from smmd import closed_form

#: How many numbers one block of rows may hold.
_BLOCK_NUMBERS = 1 << 20


def centred_mean(
    z: np.ndarray, var: np.ndarray | None, mixture: Iterable[tuple[float, float]]
) -> float:
    """mean_{i≠j} Σ_q e^(log w_q) h_q(z_i, z_j) for z (n, d) and pairs (a_q, log w_q)."""
    n, d = z.shape
    spread = np.zeros_like(z) if var is None else var
    step = max(1, _BLOCK_NUMBERS // (n * d))
    total = 0.0
    for a, log_w in mixture:
        log_c = -0.5 * d * np.log1p(2.0 * a)
        cross = closed_form.log_overlap(np, a, z * z, 1.0 + spread)
        below = np.expm1(cross - log_c)
        for i in range(0, n, step):
            rows = slice(i, i + step)
            delta2 = (z[rows, None, :] - z) ** 2
            log_k = closed_form.log_overlap(np, a, delta2, spread[rows, None, :] + spread)
            log_pair = cross[rows, None] + cross - log_c
            delta = _log_ratio(a, z[rows, None, :], z, spread[rows, None, :], spread)
            # Where k is far above e^p e^q / c the two may be subtracted as they are.
            near = delta < 1.0
            small = np.exp(log_pair + log_w) * np.expm1(np.where(near, delta, 0.0))
            large = np.exp(log_k + log_w) - np.exp(log_pair + log_w)
            h = np.where(near, small, large)
            h += np.exp(log_c + log_w) * below[rows, None] * below
            h[np.arange(len(h)), np.arange(i, i + len(h))] = 0.0
            total += float(h.sum())
    return total / (n * (n - 1))


def _log_ratio(a: float, x: np.ndarray, y: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """δ of the module; the last axis is summed."""
    both, first, second = 1.0 + a * (s + t), 1.0 + a * (1.0 + s), 1.0 + a * (1.0 + t)
    squares = (1.0 - t) * x * x / first + (1.0 - s) * y * y / second
    logs = np.log1p(-(a * a) * (1.0 - s) * (1.0 - t) / (first * second))
    return np.asarray(np.sum((a * x * y - 0.5 * a * a * squares) / both - 0.5 * logs, axis=-1))
