"""A function of r² as one short polynomial, for kernels that sum it over pairs in float32.

With w = (1 + r²/c)^(−1/2), which maps [0, ∞) to (0, 1] and decays as r^(−1),

    f(r²) = top − t · P(w − w₀),   t = 1 − w² = (r²/c) w²,
    df/dr² = −w³/(2c) · (2wP − tP′),

keeps its relative accuracy near r = 0 however wide the kernel, costs one reciprocal square root,
and no exponential.  w₀ is where pairs under N(0, I) gather (r² = 2d).  Rounding a number that all
pairs share would shift their sum: w₀ is a short number, the coefficients but the first are float32
numbers, the first makes up for that, and kernels take it as two floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Profile:
    """f(r²) = top − t P(w − middle); see the module."""

    c: float
    middle: float
    top: float
    coefficients: tuple[float, ...]

    def flat(self) -> list[float]:
        """As a plain list of numbers: (c, w₀, top, p₀, p₁, …)."""
        return [self.c, self.middle, self.top, *self.coefficients]


def rational_profile(a: float, *, weight: float = 1.0, base: float = 0.0) -> Profile:
    """weight·(1/(1 + a r²/2) − base): w² itself, so P is a constant."""
    c = 2.0 / a
    return Profile(c, 0.0, weight * (1.0 - base), (weight, 0.0))


@lru_cache(maxsize=256)
def series_profile(
    d: int,
    a: float,
    c: float,
    series: tuple[float, ...],
    *,
    scale: float = 1.0,
    top: float = 1.0,
    tolerance: float = 2e-6,
) -> Profile:
    """top − scale·(1 − w²) Σ p_k T_k(2w − 1), w = (1 + a r²/(2c))^(−1/2), cut as short as it may.

    This is ``radial.SeriesRadial`` with scale = weight·amplitude and top = weight·(amplitude −
    base).  The polynomial's error is below ``tolerance`` times the function's standard deviation
    over pairs of N(0, I_d) points, and has mean zero over them: a mean would shift the statistic
    n times as much.
    """
    given = np.array(series)
    r2, mass = _null_pairs(d)
    exact = _drop(0.5 * a * r2, c, given)
    spread = np.sqrt(mass @ (exact - mass @ exact) ** 2)
    best, best_c = given, c
    for wider in (1.0, 2.0, 4.0, 6.0):  # in few dimensions a slower map needs fewer terms
        largest = a * r2[-1] / (a * r2[-1] + 2.0 * wider * c)  # of t, which multiplies P
        short = _shortest(_refit(given, c, wider * c), tolerance * float(spread / largest))
        if len(short) < len(best):
            best, best_c = short, wider * c

    x = (0.5 * a / best_c) * r2
    w = 1.0 / np.sqrt(1.0 + x)
    t = x * w * w
    # In few dimensions pairs are everywhere, and high powers of u must not cancel.
    middle = short_number(max(1.0 / math.sqrt(1.0 + a * d / best_c), 0.5 / d))
    argument = polynomial.Polynomial([2.0 * middle - 1.0, 2.0])  # 2w − 1 in u = w − middle
    p = scale * np.array(chebyshev.Chebyshev(best)(argument).coef, dtype=np.float64)
    p[1:] = p[1:].astype(np.float32)
    p[0] += mass @ (scale * exact - t * polynomial.polyval(w - middle, p)) / (mass @ t)
    return Profile(2.0 * best_c / a, middle, top, tuple(p.tolist()))


def short_number(x: float) -> float:
    """x > 0 to twelve bits, which float32 numbers up to 2^12 times its size hold.

    A difference from it then loses the other number's last bits only, at random; from a number
    with finer bits, all differences would be rounded the same way.
    """
    part, power = math.frexp(x)
    return math.ldexp(round(4096.0 * part), power - 12)


def _drop(x: Array, c: float, series: Array) -> Array:
    """1 − φ(x) from the series in w = (1 + x/c)^(−1/2)."""
    w = 1.0 / np.sqrt(1.0 + x / c)
    return np.asarray(x / (c + x) * chebyshev.chebval(2.0 * w - 1.0, series))


def _refit(series: Array, old_c: float, c: float) -> Array:
    """The series of the same function for another map."""

    def of_node(s: Array) -> Array:
        w = 0.5 * (1.0 + s)
        x = c * (1.0 - w) * (1.0 + w) / (w * w)
        return _drop(x, old_c, series) / ((1.0 - w) * (1.0 + w))

    return np.asarray(chebyshev.chebinterpolate(of_node, 80))  # type: ignore[type-var]


def _shortest(series: Array, tolerance: float) -> Array:
    """The fewest leading terms (at least three) whose omitted rest is below ``tolerance``."""
    tails = np.append(np.cumsum(np.abs(series[::-1]))[::-1], 0.0)
    return series[: max(3, int(np.argmax(tails <= tolerance)))]


def _null_pairs(d: int) -> tuple[Array, Array]:
    """r² between two N(0, I) points, 2χ²_d: 256 quadrature nodes and their masses."""
    levels, mass = np.polynomial.legendre.leggauss(256)
    return 4.0 * special.gammaincinv(0.5 * d, 0.5 * (levels + 1.0)), 0.5 * mass
