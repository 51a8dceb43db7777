"""E h(x, y)^3 of the projected kernel h, x and y independent N(0, I_d).

With P the projection on the polynomials that the null estimates,

    h = k - A(x, y) - A(y, x) + G(x, y),      A = P_x k,   G = P_x P_y k,

and A, G are a polynomial times a Gaussian (u = 1/gamma^2, rho = u/(1+u), v = u/(1+2u),
a(y) = (1+u)^(-d/2) exp(-rho |y|^2/2), c = (1+2u)^(-d/2)):

    standard   A = a(y)                               G = c
    diagonal   A = a(y) [1 + sum_k b(x_k, y_k)]
               G = c [1 + sum_k t(x_k, y_k) + v^2/2 S(x) S(y)]
               b(x, y) = rho x y + (x^2-1)(rho^2 y^2 - rho)/2,   e(x) = (x^2-1)/sqrt 2,
               t(x, y) = v x y - v (e(x) + e(y))/sqrt 2 + v^2 e(x) e(y),   S(x) = sum_k e(x_k)
    normal     A = a(y) [1 + rho x.y + ((rho x.y)^2 - rho |x|^2 - rho^2 |y|^2 + d rho)/2]
               G = c [1 + v x.y - v (|x|^2+|y|^2-2d)/2 + v^2 ((x.y)^2 - |x|^2 - |y|^2 + d)/2
                        + v^2 (|x|^2-d)(|y|^2-d)/4]

h^3 is a sum over (i, j, l, m), i + j + l + m = 3, of k^i A(x,y)^j A(y,x)^l G^m. Each term is a
polynomial under a tilted Gaussian, for which a small Gauss rule is exact.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from math import comb, exp, factorial, log1p

import numpy as np
from numpy.typing import NDArray
from scipy import special

from smmd.nulls.spectrum import Null, check_kernel, check_null

Array = NDArray[np.float64]

# Degree 2 in x and in y for each of three factors: 8 nodes are exact to degree 15.
_NODES = 8


@lru_cache(maxsize=256)
def projected_cube(null: Null, d: int, gamma2: float) -> float:
    """E h^3. Absolute error about 1e-15; h^3 itself shrinks like u^9 for wide kernels."""
    check_null(null)
    check_kernel(d, gamma2)
    polynomial = {"standard": _one, "diagonal": _diagonal, "normal": _normal}[null]
    terms = [
        multiplicity * weight * polynomial(d, 1.0 / gamma2, covariance, powers)
        for multiplicity, powers, weight, covariance in _tilted_terms(d, 1.0 / gamma2)
    ]
    return float(np.sum(np.sort(terms)))


def _tilted_terms(d: int, u: float) -> Iterator[tuple[int, tuple[int, int, int], float, Array]]:
    """(coefficient, powers of A(x,y), A(y,x), G, Gaussian weight, covariance of (x_k, y_k))."""
    rho = u / (1.0 + u)
    for i, j, k in product(range(4), repeat=3):
        m = 3 - i - j - k
        if m < 0:
            continue
        # exp(-(x, y) precision (x, y)^T / 2) from i kernels, j factors a(y), k factors a(x)
        precision = i * u * np.array([[1.0, -1.0], [-1.0, 1.0]]) + rho * np.diag([k, j])
        tilted = np.eye(2) + precision
        log_det = log1p(float(np.trace(precision) + np.linalg.det(precision)))
        log_weight = -0.5 * d * (log_det + (j + k) * log1p(u) + m * log1p(2.0 * u))
        count = factorial(3) // (factorial(i) * factorial(j) * factorial(k) * factorial(m))
        covariance = np.asarray(np.linalg.inv(tilted), dtype=np.float64)
        yield (-1) ** (j + k) * count, (j, k, m), exp(log_weight), covariance


def _one(d: int, u: float, covariance: Array, powers: tuple[int, int, int]) -> float:
    return 1.0


def _normal(d: int, u: float, covariance: Array, powers: tuple[int, int, int]) -> float:
    """By Bartlett: |x|^2 = s chi2_d, y = slope x + independent part along and across x."""
    rho, v = u / (1.0 + u), u / (1.0 + 2.0 * u)
    p, q, r, weight = _bartlett_rule(d, covariance)
    a_xy = 1.0 + rho * q + 0.5 * ((rho * q) ** 2 - rho * p - rho**2 * r + d * rho)
    a_yx = 1.0 + rho * q + 0.5 * ((rho * q) ** 2 - rho * r - rho**2 * p + d * rho)
    g = 1.0 + v * q - 0.5 * v * (p + r - 2.0 * d) + 0.5 * v**2 * (q**2 - p - r + d)
    g = g + 0.25 * v**2 * (p - d) * (r - d)
    j, k, m = powers
    return float(np.sum(weight * a_xy**j * a_yx**k * g**m))


def _bartlett_rule(d: int, covariance: Array) -> tuple[Array, Array, Array, Array]:
    """Nodes of |x|^2, x.y, |y|^2 and weights, exact for even polynomials in (x, y)."""
    t, wt = _chi_square_rule(d)
    z, wz = special.roots_hermitenorm(_NODES)
    wz = wz / wz.sum()
    e, we = _chi_square_rule(d - 1)
    variance_x = covariance[0, 0]
    slope = covariance[0, 1] / variance_x
    rest = np.sqrt(covariance[1, 1] - slope * covariance[0, 1])
    t3, z3, e3 = t[:, None, None], z[None, :, None], e[None, None, :]
    p = variance_x * t3
    along = slope * np.sqrt(p) + rest * z3  # component of y along x
    q = np.sqrt(p) * along
    r = along**2 + rest**2 * e3
    return p, q, r, wt[:, None, None] * wz[None, :, None] * we[None, None, :]


def _chi_square_rule(freedom: int) -> tuple[Array, Array]:
    if freedom == 0:
        return np.zeros(1), np.ones(1)
    nodes, weights = special.roots_genlaguerre(_NODES, freedom / 2.0 - 1.0)
    return 2.0 * nodes, weights / weights.sum()


def _diagonal(d: int, u: float, covariance: Array, powers: tuple[int, int, int]) -> float:
    """Sums over coordinates: Taylor coefficients of [E exp(t1 b + t2 b' + ...)]^d.

    E (1 + sum b)^j (1 + sum b')^k (1 + sum t + v^2/2 S S')^m is expanded in powers of the five
    sums, and E of a product of powers of sums of independent terms is read off the generating
    function's d-th power.
    """
    j, k, m = powers
    shape = (j + 1, k + 1, m + 1, m + 1, m + 1)
    series = _power_series_power(_coordinate_series(u, covariance, shape), d)
    coupling = 0.5 * (u / (1.0 + 2.0 * u)) ** 2
    total = 0.0
    for i1, i2, i3 in product(range(j + 1), range(k + 1), range(m + 1)):
        for i4 in range(m - i3 + 1):
            count = comb(j, i1) * comb(k, i2) * comb(m, i3) * comb(m - i3, i4)
            derivative = factorial(i1) * factorial(i2) * factorial(i3) * factorial(i4) ** 2
            total += count * coupling**i4 * derivative * series[i1, i2, i3, i4, i4]
    return float(total)


def _coordinate_series(u: float, covariance: Array, shape: tuple[int, ...]) -> Array:
    """Taylor coefficients of E exp(t1 b + t2 b' + t3 t + t4 e(x) + t5 e(y)) in one coordinate."""
    rho, v = u / (1.0 + u), u / (1.0 + 2.0 * u)
    z, wz = special.roots_hermitenorm(_NODES)
    wz = wz / wz.sum()
    factor = np.linalg.cholesky(covariance)
    x = (factor[0, 0] * z)[:, None] + 0.0 * z[None, :]
    y = factor[1, 0] * z[:, None] + factor[1, 1] * z[None, :]
    weight = wz[:, None] * wz[None, :]
    ex, ey = (x * x - 1.0) / np.sqrt(2.0), (y * y - 1.0) / np.sqrt(2.0)
    b_xy = rho * x * y + 0.5 * (x * x - 1.0) * (rho**2 * y * y - rho)
    b_yx = rho * x * y + 0.5 * (y * y - 1.0) * (rho**2 * x * x - rho)
    t = v * x * y - v * (ex + ey) / np.sqrt(2.0) + v**2 * ex * ey
    out = np.zeros(shape)
    for index in np.ndindex(*shape):
        value = weight
        for function, power in zip((b_xy, b_yx, t, ex, ey), index, strict=True):
            value = value * function**power / factorial(power)
        out[index] = value.sum()
    return out


def _power_series_power(series: Array, d: int) -> Array:
    """(1 + delta)^d = sum_k C(d, k) delta^k for a truncated power series 1 + delta."""
    delta = series.copy()
    delta.flat[0] = 0.0
    result = np.zeros_like(series)
    power = np.zeros_like(series)
    power.flat[0] = 1.0
    for k in range(sum(n - 1 for n in series.shape) + 1):
        result += special.binom(d, k) * power
        power = _multiply_series(power, delta)
    return result


def _multiply_series(first: Array, second: Array) -> Array:
    out = np.zeros_like(first)
    for index in np.ndindex(*first.shape):
        if first[index] != 0.0:
            target = tuple(slice(i, None) for i in index)
            source = tuple(slice(0, n - i) for i, n in zip(index, first.shape, strict=True))
            out[target] += first[index] * second[source]
    return out
