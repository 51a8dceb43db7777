"""Kernels as mixtures of Gaussians by quadrature, and the series that sum such a mixture at once.

    inverse multiquadric   1/(1 + x)               = E exp(−t x),   t ~ Exp(1)
    exact sliced           ₁F₁(1/2; d/2; −x)       = E exp(−t x),   t ~ Beta(1/2, (d − 1)/2)

The trapezoidal rule in log t (log t/(1−t)), where the integrands decay exponentially on both
sides, converges geometrically and, unlike Gauss nodes of any affordable order, is right for every
x from 0 to infinity.  Nodes are computed in extended precision where the machine has it.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

Series = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]


_STEP = np.longdouble(0.25)
_PI = 4 * np.arctan(np.longdouble(1))


@lru_cache(maxsize=64)
def exponential_rule(smallest: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of t ~ Exp(1).

    A narrow kernel's expectations come from t near ``smallest`` = γ²/d: nodes reach 1e-18 of it.
    """
    smallest = min(1.0, smallest)
    left = math.ceil((42.0 - math.log(smallest)) / float(_STEP))
    u = _STEP * np.arange(-left, 16, dtype=np.longdouble)
    weights = np.exp(u - np.exp(u))
    keep = weights > 1e-18 * smallest
    return np.exp(u[keep]), weights[keep] / weights[keep].sum()


@lru_cache(maxsize=64)
def beta_rule(d: int, smallest: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of t ~ Beta(1/2, (d−1)/2), d ≥ 2; ``smallest`` as above, here γ²."""
    log_smallest = min(0.0, math.log(smallest))
    left = math.ceil((78.0 - log_smallest) / float(_STEP))  # t^(1/2) below 1e-17
    right = math.ceil(min(78.0, 78.0 / (d - 1) + 8.0) / float(_STEP))
    u = _STEP * np.arange(-left, right + 1, dtype=np.longdouble)
    log_t, log_1mt = -np.logaddexp(0, -u), -np.logaddexp(0, u)
    log_w = 0.5 * log_t + 0.5 * (d - 1) * log_1mt
    log_w -= log_w.max()
    keep = log_w > -42.0 + 0.5 * log_smallest
    weights = np.exp(log_w[keep])
    return np.exp(log_t[keep]), weights / weights.sum()


@lru_cache(maxsize=64)
def sliced_series(d: int) -> tuple[float, Series]:
    """The map's constant c and the Chebyshev series of φ_d for ``radial.SeriesRadial``, d ≥ 2."""
    t, weights = beta_rule(d)
    fitted = fit_series(t, weights, 0.5 * d, 3)
    assert fitted is not None
    return 0.5 * d, fitted


def fit_series(t: np.ndarray, weights: np.ndarray, c: float, decay: int) -> Series | None:
    """Chebyshev series for φ(x) = Σ weights·exp(−t x) and its derivatives, Σ weights = 1.

    In w = 1/√(1 + x/c): (1 − φ)/(1 − w²), −φ'/w^m and φ''/w^(m+2) with m = ``decay``.  None where
    they do not converge.
    """
    points = 112
    theta = (np.arange(points, dtype=np.longdouble) + 0.5) * (_PI / points)
    w = 0.5 * (np.cos(theta) + 1)
    drop = (1 - w) * (1 + w)
    tx = np.outer(c * drop / (w * w), t)
    power = np.exp(-tx)
    samples = (
        (-np.expm1(-tx) @ weights) / drop,
        (power @ (weights * t)) / w**decay,
        (power @ (weights * t * t)) / w ** (decay + 2),
    )
    basis = np.cos(np.outer(np.arange(points), theta)) * (np.longdouble(2) / points)
    basis[0] *= 0.5
    trimmed = [_trim(basis @ s) for s in samples]
    if trimmed[0] is None or trimmed[1] is None or trimmed[2] is None:
        return None
    return trimmed[0], trimmed[1], trimmed[2]


def _trim(coefficients: np.ndarray) -> tuple[float, ...] | None:
    """Drop the tail that is noise or that no float64 sum would feel; None if there is no tail."""
    size = np.abs(coefficients) / np.abs(coefficients).max()
    noise = 3.0 * float(size[-8:].max())
    if noise > 1e-13:
        return None
    last = int(np.max(np.nonzero(size > max(3e-17, noise))[0]))
    return tuple(float(v) for v in coefficients[: last + 1])
