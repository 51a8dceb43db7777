"""Exact moments of MMD^2 when mean and covariance are estimated from the sample.

After centring and standardizing with the n-1 variance (null "diagonal") the columns are sqrt(N)
times independent uniform points of a sphere in R^N, N = n - 1; after whitening (null "normal")
the d columns are sqrt(N) times a uniform orthonormal frame of R^N. With u = 1/gamma^2,
rho = u/(1+u), e(z) = exp(-rho |z|^2/2), c0 = (1+2u)^(-d/2), c1 = (1+u)^(-d/2),

    MMD^2_u = c0 - 2 c1 mean_i e(z_i) + mean_{i != j} k(z_i, z_j),

so a moment of order p needs E of products of p factors e and k, for every way in which their
points may coincide. Such a product is exp(-tr(Z^T A Z)/2); A, restricted to the hyperplane
orthogonal to (1, ..., 1), has at most p nonzero eigenvalues, and `frame_integrals.py` does the
rest.
"""

from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smmd.nulls.frame_integrals import exponential_of_frame
from smmd.nulls.spectrum import check_kernel

Array = NDArray[np.float64]
Estimated = Literal["diagonal", "normal"]
Factor = Literal["e", "k"]


def least_sample_size(null: str, d: int) -> int:
    """The integrals over frames need d directions and three more."""
    return max(6, d + 4) if null == "normal" else 6


def check_sample_size(null: str, n: int, d: int) -> None:
    least = least_sample_size(null, d)
    if n < least:
        raise ValueError(
            f"n must be at least {least} for null {null!r} with d = {d}, got {n}; "
            "collect more rows or use fewer columns"
        )


@lru_cache(maxsize=1024)
def raw_moment(
    order: int,
    null: Estimated,
    n: int,
    d: int,
    gamma2: float,
    biased: bool = False,
    stretch: float = 1.0,
) -> float:
    """E (MMD^2 - constant)^order, order 1 to 3, where MMD^2 - constant is the random part.

    The constant is c0 for MMD^2_u; for MMD^2_b it is c0 + 1/n, the diagonal of the pair sum.
    ``stretch`` multiplies every squared length of the normalized points: n/(n-1) turns the n-1
    (co)variance into the 1/n one of published tests.
    """
    check_sample_size(null, n, d)
    check_kernel(d, gamma2)
    u = 1.0 / gamma2
    pair_weight = 1.0 - 1.0 / n if biased else 1.0
    weight = {"e": -2.0 * np.exp(-0.5 * d * np.log1p(u)), "k": pair_weight}
    known: dict[tuple[float, ...], float] = {}
    total = 0.0
    choices: tuple[Factor, Factor] = ("e", "k")
    for factors in product(choices, repeat=order):
        if list(factors) != sorted(factors):
            continue  # the order of factors does not matter: count it once, with its multiplicity
        times = {0: 1.0, order: 1.0}.get(factors.count("e"), float(order))
        coefficient = times * float(np.prod([weight[f] for f in factors]))
        total += coefficient * _mean_product(factors, null, n, d, u, known, stretch)
    return total


def mean_and_variance(
    null: Estimated, n: int, d: int, gamma2: float, biased: bool = False
) -> tuple[float, float]:
    """Mean and variance of MMD^2_u (or MMD^2_b), exact up to rounding.

    The variance comes from terms of order 1 and is itself of order T_2/n^2, so its relative
    error is about 1e-16 n^2/T_2 (see `moments.py` for what is done about that).
    """
    first, second = (raw_moment(p, null, n, d, gamma2, biased) for p in (1, 2))
    constant = np.exp(-0.5 * d * np.log1p(2.0 / gamma2)) + (1.0 / n if biased else 0.0)
    return float(constant + first), second - first**2


def third_cumulant(null: Estimated, n: int, d: int, gamma2: float) -> float:
    """Third cumulant of MMD^2_u, exact up to an absolute error of about 1e-16."""
    first, second, third = (raw_moment(p, null, n, d, gamma2) for p in (1, 2, 3))
    return third - 3.0 * first * second + 2.0 * first**3


def variance_of_mixture(
    null: Estimated, n: int, d: int, precisions: list[float], weights: list[float]
) -> float:
    """Variance of MMD^2_u with the kernel sum_q w_q k_q, exact up to rounding, as above."""
    check_sample_size(null, n, d)
    pairs = n * (n - 1.0)
    factors = []  # coefficient, eigenvalue of the factor alone, u or rho, and which of the two
    for u, weight in zip(precisions, weights, strict=True):
        rho, c1 = u / (1.0 + u), np.exp(-0.5 * d * np.log1p(u))
        factors += [(-2.0 * c1 * weight, rho * (1.0 - 1.0 / n), rho, "e")]
        factors += [(weight, 2.0 * u, u, "k")]
    means = [exponential_of_frame(null, n - 1, d, (q,)) for _, q, _, _ in factors]
    total = 0.0
    for i, (first, p, x, kind) in enumerate(factors):
        for j, (second, q, y, other) in enumerate(factors[: i + 1]):
            # how often the two share points, and the scalar product of their vectors then
            if kind == other == "e":
                ways = [(1.0 / n, 1.0 - 1.0 / n), (1.0 - 1.0 / n, -1.0 / n)]
            elif kind == other:
                apart = (n - 2.0) * (n - 3.0)
                ways = [(2.0, 2.0), (4.0 * (n - 2.0), 1.0), (apart, 0.0)]
                ways = [(count / pairs, inner) for count, inner in ways]
            else:
                ways = [(2.0 / n, 1.0), (1.0 - 2.0 / n, 0.0)]
            mean = 0.0
            for share, inner in ways:
                middle = 0.5 * (p + q)
                radius = np.hypot(0.5 * (p - q), inner * np.sqrt(x * y))
                low = middle - radius
                low = low if low > 1e-13 * middle else 0.0
                mean += share * exponential_of_frame(null, n - 1, d, (middle + radius, low))
            covariance = mean - means[i] * means[j]
            total += (1.0 if i == j else 2.0) * first * second * covariance
    return float(total)


def _mean_product(
    factors: tuple[Factor, ...],
    null: Estimated,
    n: int,
    d: int,
    u: float,
    known: dict[tuple[float, ...], float],
    stretch: float,
) -> float:
    """E of a product of means over points ("e") and over pairs ("k")."""
    rho = u / (1.0 + u)
    slots = sum(1 if f == "e" else 2 for f in factors)
    average = float(n) ** factors.count("e") * (n * (n - 1.0)) ** factors.count("k")
    total = 0.0
    for labels in _coincidences(slots):
        rows = np.zeros((len(factors), slots))  # one vector per factor, coordinates = points
        lone = np.zeros(len(factors))  # its component along (1, ..., 1), times sqrt n
        slot = 0
        for row, factor in enumerate(factors):
            if factor == "e":
                rows[row, labels[slot]] = lone[row] = np.sqrt(rho)
                slot += 1
            else:
                if labels[slot] == labels[slot + 1]:
                    break  # a pair has two different points
                rows[row, labels[slot]] = np.sqrt(u)
                rows[row, labels[slot + 1]] = -np.sqrt(u)
                slot += 2
        else:
            distinct = max(labels) + 1
            ways = float(np.prod(n - np.arange(distinct, dtype=float)))  # n (n-1) (n-2) ...
            gram = rows @ rows.T - np.outer(lone, lone) / n
            q = stretch * np.linalg.eigvalsh(gram)[::-1]
            q = np.where(q > 1e-13 * q[0], q, 0.0)
            key = tuple(float(f"{x:.10e}") for x in q)  # equal up to rounding: the same integral
            if key not in known:
                known[key] = exponential_of_frame(null, n - 1, d, tuple(q.tolist()))
            total += ways / average * known[key]
    return total


@lru_cache(maxsize=8)
def _coincidences(slots: int) -> tuple[tuple[int, ...], ...]:
    """Every way in which slots may hold equal points: labels 0, 1, ... in order of appearance."""
    out: list[tuple[int, ...]] = [()]
    for _ in range(slots):
        out = [(*old, new) for old in out for new in range(max(old, default=-1) + 2)]
    return tuple(out)
