"""E exp(-tr(A P) N/2) for a random projection P, A of rank at most three.

P projects R^N on a uniform l-dimensional subspace; in A's eigenbasis only the diagonal p_ii
counts, so with a_i = N q_i/2 the integral is E exp(-sum a_i p_ii). Null "normal" takes l = d;
"diagonal" takes l = 1 to the power d, its columns being independent directions.

    rank 1   F(l/2; N/2; -a1),    F = 1F1
    rank 2   E_t [ e^(-a2 t) F(l/2; N/2; -(a1 - a2 t)) F((l-1)/2; (N-2)/2; -a2 (1-t)) ],
             t ~ Beta(1/2, (N-2)/2)
    rank 3   E_(t,r) [ e^(-a2 t - a3 r) F(l/2; N/2; -(a1 - a2 t - a3 r)) rank2(l-1, N-2; b) ],
             (t, r) ~ Dirichlet(1/2, 1/2, (N-3)/2), and b1 >= b2 the nonzero eigenvalues of
             diag(a2, a3)^(1/2) (I - v v^T) diag(a2, a3)^(1/2), v = (sqrt t, sqrt r).

Why: split the first eigenvector into its parts inside and outside the subspace. Their plane holds
one more direction; the other eigenvectors meet it in v, uniform on the sphere of R^(N-1), and
what is left of them meets a uniform (l-1)-dimensional subspace of R^(N-2).
"""

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

Array = NDArray[np.float64]

_NODES = 20
# Up to this exponent exp(-a t) itself is a polynomial of degree 2 * 20 to rounding.
_SMOOTH = 40.0


def exponential_of_frame(
    null: Literal["diagonal", "normal"], freedom: int, d: int, q: Array
) -> Array:
    """E exp(-tr(Z^T A Z)/2) for every row of q, A's eigenvalues (largest first, at most three).

    N = freedom.
    """
    size, power = (1, d) if null == "diagonal" else (d, 1)
    a = 0.5 * freedom * q
    rank = np.count_nonzero(a, axis=1)
    value = np.empty(rank.size)
    value[rank == 1] = _confluent(size, freedom, a[rank == 1, 0])
    two = a[rank == 2]
    if two.size:
        tilts = np.array([_tilt(x, size, freedom) for x in two[:, 1]])
        value[rank == 2] = _rank_two(size, freedom, two[:, 0], two[:, 1], tilts)
    for i in np.flatnonzero(rank == 3):
        value[i] = _rank_three(size, freedom, *a[i])
    return value**power


def _rank_two(size: int, freedom: int, a1: Array, a2: Array, tilts: Array) -> Array:
    """Vectorized over a1 >= a2; ``tilts`` may be one for all."""
    rules = [_tilted_beta(0.5 * (freedom - 2), float(tilt)) for tilt in tilts]
    t, weight = (np.stack(part) for part in zip(*rules, strict=True))
    a1, a2, tilts = a1[..., None], a2[..., None], tilts[:, None]
    value = weight * np.exp(tilts * _excess(t) - (a2 - tilts) * t)
    value = value * _confluent(size, freedom, a1 - a2 * t)
    if size > 1:
        value *= _confluent(size - 1, freedom - 2, a2 * (1.0 - t))
    return np.asarray(value.sum(axis=-1))


def _rank_three(size: int, freedom: int, a1: float, a2: float, a3: float) -> float:
    tilt_t, tilt_x = _tilt(a2, size, freedom), _tilt(a3, size, freedom)
    # t, then the share of the rest: (t, r) = (t, (1-t) x)
    t, weight_t = _tilted_beta(0.5 * (freedom - 2), tilt_t)
    x, weight_x = _tilted_beta(0.5 * (freedom - 3), tilt_x)
    t, x = t[:, None], x[None, :]
    r = (1.0 - t) * x
    log_value = tilt_t * (_excess(t) + t) + tilt_x * (_excess(x) + x) - a2 * t - a3 * r
    value = weight_t[:, None] * weight_x[None, :] * np.exp(log_value)
    value = value * _confluent(size, freedom, a1 - a2 * t - a3 * r)
    if size > 1:
        # eigenvalues of [[a2 (1-t), -sqrt(a2 a3 t r)], [., a3 (1-r)]]
        middle = 0.5 * (a2 * (1.0 - t) + a3 * (1.0 - r))
        radius = np.hypot(0.5 * (a2 * (1.0 - t) - a3 * (1.0 - r)), np.sqrt(a2 * a3 * t * r))
        low = middle - radius
        tilt = np.array([_tilt(float(np.mean(low)), size - 1, freedom - 2)])
        value = value * _rank_two(size - 1, freedom - 2, middle + radius, low, tilt)
    return float(value.sum())


def _confluent(size: int, freedom: int, x: Array) -> Array:
    """1F1(size/2; freedom/2; -x), x >= 0: E exp(-x t), t ~ Beta(size/2, (freedom - size)/2).

    SciPy's is wrong by up to 1e-12 for large x, of which a third cumulant would be left as noise.
    With s = (freedom - size)/2 - 1 and y = (x + s) t, what (1-t)^s has more than exp(-s t) is
    smooth under the Laguerre weight y^(size/2-1) exp(-y), if that has ended before t = 1.
    """
    a, s = 0.5 * size, 0.5 * (freedom - size) - 1.0
    c = x + s
    ends = c > 30.0 + 4.0 * a
    value = np.empty(x.shape)
    value[~ends] = special.hyp1f1(a, 0.5 * freedom, -x[~ends])
    c = c[ends]
    y, weight = _laguerre(size)
    t = np.minimum(y / c[:, None], 1.0 - 1e-12)
    mean = np.exp(s * (np.log1p(-t) + t)) @ weight
    # Gamma(freedom/2)/Gamma(freedom/2 - a)
    steps = 0.5 * freedom - np.arange(1.0, size // 2 + 1.0)
    ratio = float(np.prod(steps)) * (_half_step(s + 1.0) if size % 2 else 1.0)
    value[ends] = ratio * c**-a * mean
    return value


@lru_cache(maxsize=128)
def _laguerre(size: int) -> tuple[Array, Array]:
    nodes, weights = special.roots_genlaguerre(_NODES, 0.5 * size - 1.0)
    return nodes, weights / weights.sum()


def _tilt(a: float, size: int, freedom: int) -> float:
    """How fast the integrand falls in t: exp(-a t), less what the other factors give back."""
    return a * max(0.0, 1.0 - 2.0 * size / freedom) if a > _SMOOTH else 0.0


def _excess(t: Array) -> Array:
    """-log(1-t) - t: what exp(-t) leaves when (1-t) is taken into the weight."""
    return np.asarray(-np.log1p(-t) - t)


@lru_cache(maxsize=4096)
def _tilted_beta(second: float, tilt: float) -> tuple[Array, Array]:
    """Nodes and weights for E f(t) (1-t)^tilt, t ~ Beta(1/2, second).

    exp(-a t) varies on the scale 1/a; for large a, (1-t)^a is nearly the same and belongs to a
    Jacobi weight, after which few nodes are exact to rounding. (Golub and Welsch, with the
    recurrence written for t itself so that nodes near 0 keep their relative accuracy.)
    """
    alpha, beta = second - 1.0 + tilt, -0.5  # weight (1-t)^alpha t^beta on [0, 1]
    k = np.arange(1, _NODES, dtype=float)
    total = 2.0 * k + alpha + beta
    diagonal = np.empty(_NODES)
    diagonal[0] = (beta + 1.0) / (alpha + beta + 2.0)
    diagonal[1:] = 2.0 * k * (k + alpha + beta + 1.0) + (alpha + beta) * (beta + 1.0)
    diagonal[1:] /= total * (total + 2.0)
    square = k * (k + alpha) * (k + beta) / (total**2 * (total + 1.0))
    # at k = 1 the factor (k + alpha + beta)/(total - 1) is 1
    square[1:] *= (k[1:] + alpha + beta) / (total[1:] - 1.0)
    nodes, vectors = linalg.eigh_tridiagonal(diagonal, np.sqrt(square))
    mass = _half_step(second) / _half_step(second + tilt)
    return np.asarray(nodes), np.asarray(mass * vectors[0] ** 2)


def _half_step(x: float) -> float:
    """Gamma(x + 1/2)/Gamma(x) to rounding (differences of gammaln lose three digits)."""
    factor = 1.0
    while x < 32.0:  # Gamma(x+1/2)/Gamma(x) = x/(x+1/2) Gamma(x+3/2)/Gamma(x+1)
        factor *= x / (x + 0.5)
        x += 1.0
    w = 1.0 / (x - 0.25) ** 2
    series = 1.0 + w * (1 / 64 + w * (-19 / 8192 + w * (631 / 524288 - w * 174317 / 134217728)))
    return float(factor * np.sqrt(x - 0.25) * series)
