"""Moments of the statistic at finite n, in the units of X = sqrt(n(n-1)) MMD^2_u.

With T_j the traces of the projected kernel (`spectrum.py`), h the projected kernel and M = n(n-1):

    standard           mean 0, variance 2 T_2,
                       third cumulant [8 (n-2) T_3 + 4 E h^3] / sqrt M,
                       fourth cumulant 16 [p (E h^4 - 3 T_2^2) + 6 q (E h12^2 h13^2 - T_2^2)
                           + 36 t E h12^2 h23 h31 + 72 f T_4] / M^2,
                       p = M/2 pairs, t = M(n-2)/6 triples, q = 3t pairs of pairs that share one
                       point, f = t(n-3)/4 quadruples;
    diagonal, normal   mean, variance and third cumulant exact (`estimated.py`).

Accuracy for "diagonal" and "normal". The variance (third cumulant) of MMD^2_u is a difference of
terms of order 1 while it is itself of order T_2/n^2 (T_2^(3/2)/n^3): rounding leaves an error of
1e-15 n^2/(2 T_2) in the variance's ratio to its limit and of 1e-15 n^3/(2 T_2)^(3/2) in the
skewness (for "diagonal", whose integrals are d-th powers, up to d/2 times as much). Where that is
too much (wide kernels, large n) the exact value at smaller n fixes a and b in "limiting formula +
a/n + b/n^2"; the limiting formula is 2 T_2 for the variance, and for the skewness that of a
U-statistic with kernel h. Where no smaller n will do either, the limiting formula is used alone
and `exact` is False. At scale 1 that happens from d = 24 for "normal"; at scale 1e4 everywhere.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from smmd.nulls import graph_moments as graphs
from smmd.nulls.estimated import (
    Estimated,
    Widths,
    check_sample_size,
    least_sample_size,
    mean,
    third_cumulant,
    variance,
)
from smmd.nulls.projected_cube import projected_cube
from smmd.nulls.spectrum import Null, check_kernel, check_null, projected_spectrum

_ROUNDING = 1e-15
_VARIANCE_TOLERANCE = 2e-3  # relative
_SKEWNESS_TOLERANCE = 5e-3  # absolute
_LARGEST_N = 1000  # from there on two terms in 1/n are as good as the exact value
_SMALLEST_T2 = 1e-6  # below it E h^3 and E h^4 are lost in rounding


@dataclass(frozen=True)
class NullMoments:
    """Mean and variance of X, its skewness, and its excess kurtosis where that is known."""

    mean: float
    variance: float
    skewness: float
    kurtosis: float | None
    exact: bool


@lru_cache(maxsize=1024)
def null_moments(null: Null, n: int, d: int, gamma2: float) -> NullMoments:
    """Moments of X = sqrt(n(n-1)) MMD^2_u; X / sqrt(simple_variance) is SMMD^2."""
    check_null(null)
    check_kernel(d, gamma2)
    limit_variance = 2.0 * projected_spectrum(null, d, gamma2).trace(2)
    if null == "standard":
        if n < 4:
            raise ValueError(f"n must be at least 4, got {n}; collect more rows")
        return NullMoments(
            mean=0.0,
            variance=limit_variance,
            skewness=degenerate_skewness(null, n, d, gamma2),
            kurtosis=_standard_kurtosis(n, d, gamma2),
            exact=True,
        )
    check_sample_size(null, n, d)
    ratio, ratio_exact = variance_ratio(limit_variance, null, n, d, gamma2)
    skewness, skewness_exact = _estimated_skewness(null, n, d, gamma2)
    return NullMoments(
        mean=null_mean(null, n, d, gamma2),
        variance=limit_variance * ratio,
        skewness=skewness,
        kurtosis=None,
        exact=ratio_exact and skewness_exact,
    )


def null_mean(
    null: Null, n: int, d: int, gamma2: Widths, weights: tuple[float, ...] = (1.0,)
) -> float:
    """Mean of X, to rounding: 1e-8 of its standard deviation at n = 10^8."""
    if null == "standard":
        return 0.0
    return sqrt(n * (n - 1.0)) * mean(null, n, d, gamma2, weights=weights)


def simple_variance(d: int, gamma2: float) -> float:
    """2 T_2 of the null "standard": the variance by which SMMD^2 is standardized."""
    return 2.0 * projected_spectrum("standard", d, gamma2).trace(2)


def degenerate_skewness(null: Null, n: int, d: int, gamma2: float) -> float:
    """Skewness of the U-statistic with kernel h: exact for "standard", to O(1/n) otherwise.

    [8 (n-2) T_3 + 4 E h^3] / sqrt(n(n-1)) / (2 T_2)^(3/2)
    """
    spectrum = projected_spectrum(null, d, gamma2)
    limit = 8.0 * spectrum.trace(3) / (2.0 * spectrum.trace(2)) ** 1.5
    cube = standardized_cube(null, d, gamma2)
    return ((n - 2.0) * limit + 4.0 * cube) / sqrt(n * (n - 1.0))


@lru_cache(maxsize=512)
def standardized_cube(null: Null, d: int, gamma2: float) -> float:
    """E h^3 / (2 T_2)^(3/2), extrapolated in 1/gamma^2 where E h^3 is lost in rounding."""

    def direct(g: float) -> float:
        return projected_cube(null, d, g) / (2.0 * projected_spectrum(null, d, g).trace(2)) ** 1.5

    width = _widest_without_cancellation(null, d, gamma2)
    if width == gamma2:
        return direct(gamma2)
    # parabola in 1/gamma^2 (in which the ratio is smooth down to 0) through three narrower ones
    x = width / gamma2
    nodes = (1.0, 4.0 / 3.0, 5.0 / 3.0)
    total = 0.0
    for i, node in enumerate(nodes):
        value = direct(width / node)
        for j, other in enumerate(nodes):
            if j != i:
                value *= (x - other) / (node - other)
        total += value
    return total


def _widest_without_cancellation(null: Null, d: int, gamma2: float) -> float:
    """gamma2, or the nearest narrower width at which T_2 is large enough."""
    while gamma2 > d and projected_spectrum(null, d, gamma2).trace(2) < _SMALLEST_T2:
        gamma2 *= 0.8
    return gamma2


def _standard_kurtosis(n: int, d: int, gamma2: float) -> float:
    spectrum = projected_spectrum("standard", d, gamma2)
    m = n * (n - 1.0)
    triples = m * (n - 2.0) / 6.0
    quadruples = triples * (n - 3.0) / 4.0
    fourth, doubles, triangle = _standard_fourth(d, gamma2)
    # everything divided by T_2^2; the variance squared is 4 T_2^2
    return (4.0 / m**2) * (
        0.5 * m * (fourth - 3.0)
        + 18.0 * triples * (doubles - 1.0)
        + 36.0 * triples * triangle
        + 72.0 * quadruples * spectrum.trace(4) / spectrum.trace(2) ** 2
    )


@lru_cache(maxsize=512)
def _standard_fourth(d: int, gamma2: float) -> tuple[float, float, float]:
    """E h^4, E h12^2 h13^2 and E h12^2 h23 h31, each divided by T_2^2.

    Where they are lost in rounding they are taken at the widest kernel where they are not: they
    have limits for gamma^2 -> infinity and enter the kurtosis with a factor 1/n.
    """
    width = _widest_without_cancellation("standard", d, gamma2)
    scale = projected_spectrum("standard", d, width).trace(2) ** 2
    patterns = (
        graphs.SAME_EDGE_FOUR_TIMES,
        graphs.TWO_DOUBLE_EDGES,
        graphs.TRIANGLE_WITH_DOUBLE_EDGE,
    )
    first, second, third = (graphs.centred_edge_product(p, d, width) / scale for p in patterns)
    return first, second, third


def variance_ratio(
    limit: float,
    null: Estimated,
    n: int,
    d: int,
    gamma2: Widths,
    weights: tuple[float, ...] = (1.0,),
) -> tuple[float, bool]:
    """Variance of X divided by its limit 2 T_2."""

    def excess(size: int) -> float:
        exact = variance(null, size, d, gamma2, weights=weights)
        return size * (size - 1.0) * exact / limit - 1.0

    reliable = sqrt(_VARIANCE_TOLERANCE * limit / _ROUNDING)
    value, exact = exact_or_extrapolated(excess, n, reliable, null, d)
    return 1.0 + value, exact


def _estimated_skewness(null: Estimated, n: int, d: int, gamma2: float) -> tuple[float, bool]:
    limit = 2.0 * projected_spectrum(null, d, gamma2).trace(2)

    def excess(size: int) -> float:
        second = variance(null, size, d, gamma2)
        exact = third_cumulant(null, size, d, gamma2) / second**1.5
        return exact - degenerate_skewness(null, size, d, gamma2)

    reliable = sqrt(limit) * (_SKEWNESS_TOLERANCE / _ROUNDING) ** (1 / 3)
    value, exact = exact_or_extrapolated(excess, n, reliable, null, d)
    return degenerate_skewness(null, n, d, gamma2) + value, exact


def exact_or_extrapolated(
    excess: Callable[[int], float], n: int, reliable: float, null: Estimated, d: int
) -> tuple[float, bool]:
    """excess(n), or a/n + b/n^2 fitted to it at `reliable` and half of that, or 0 (not exact)."""
    reliable_n = int(min(reliable, _LARGEST_N))
    if n <= reliable_n:
        return excess(n), True
    half = reliable_n // 2
    if half < 2 * least_sample_size(null, d):
        return 0.0, False
    first, second = half * excess(half), 2 * half * excess(2 * half)
    b = (first - second) * 2.0 * half
    a = second - b / (2.0 * half)
    return a / n + b / n**2, True
