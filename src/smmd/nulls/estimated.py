"""Exact moments of MMD^2 at finite n, whatever the null estimates.

After centring and standardizing with the n-1 variance (null "diagonal") the columns are sqrt(N)
times independent uniform points of a sphere in R^N, N = n - 1; after whitening (null "normal")
the d columns are sqrt(N) times a uniform orthonormal frame of R^N; nothing estimated (null
"standard"), they are normal in R^n. With u = 1/gamma^2, rho = u/(1+u), e(z) = exp(-rho |z|^2/2),
c0 = (1+2u)^(-d/2), c1 = (1+u)^(-d/2), and weights w that sum to one,

    MMD^2_u = sum_q w_q [c0 - 2 c1 mean_i e(z_i) + mean_{i != j} k(z_i, z_j)],

so a moment of order p needs E of products of p factors e and k, for every way in which their
points may coincide. Such a product is exp(-tr(Z^T A Z)/2); A, restricted to the hyperplane
orthogonal to (1, ..., 1) where a mean is estimated, has at most p nonzero eigenvalues.
`frame_integrals.py` does the rest; E is det(I + A)^(-d/2) where nothing is estimated.
"""

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from smmd.nulls.frame_integrals import exponential_of_frame
from smmd.nulls.spectrum import Null, check_kernel

Array = NDArray[np.float64]
Estimated = Literal["diagonal", "normal"]
#: A squared width, or those of a mixture.
Widths = float | tuple[float, ...]


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
    null: Null,
    n: int,
    d: int,
    gamma2: Widths,
    biased: bool = False,
    stretch: float = 1.0,
    weights: tuple[float, ...] = (1.0,),
) -> float:
    """E (MMD^2 - constant)^order, order 1 to 3, where MMD^2 - constant is the random part.

    ``gamma2`` and ``weights`` are a mixture's if they are tuples. The constant is c0 (its mean)
    for MMD^2_u; for MMD^2_b it is c0 + 1/n, the diagonal of the pair sum.
    ``stretch`` multiplies every squared length of the normalized points: n/(n-1) turns the n-1
    (co)variance into the 1/n one of published tests.
    """
    check_sample_size(null, n, d)
    u, w = _precisions(d, gamma2), np.array(weights)
    precision = {"e": u / (1.0 + u), "k": u}
    coefficient = {
        "e": -2.0 * w * np.exp(-0.5 * d * np.log1p(u)),
        "k": w * (1.0 - 1.0 / n if biased else 1.0),
    }
    choices = np.indices((u.size,) * order).reshape(order, -1)  # a width for every factor
    shares, eigenvalues = [], []
    for kinds in combinations_with_replacement("ek", order):
        # the order of factors does not matter: counted once, with its multiplicity
        pairs = list(zip(kinds, choices, strict=True))
        share = comb(order, kinds.count("e")) * np.prod([coefficient[f][c] for f, c in pairs], 0)
        root = np.sqrt(np.stack([precision[f][c] for f, c in pairs], axis=-1))
        inner, ways = _overlaps("".join(kinds), n)
        if null != "standard":  # without the components along (1, ..., 1), which only e has
            lone = np.array([f == "e" for f in kinds], dtype=float)
            inner = inner - np.outer(lone, lone) / n
        gram = inner[:, None] * root[:, :, None] * root[:, None, :]
        shares.append(np.outer(ways, share).ravel())
        eigenvalues.append(np.linalg.eigvalsh(gram)[..., ::-1].reshape(-1, order))
    q = stretch * np.concatenate(eigenvalues)
    q = np.where(q > 1e-13 * q[:, :1], q, 0.0)
    # Many coincidences, and factors in another order, have the same eigenvalues up to rounding.
    with np.errstate(divide="ignore"):
        _, first, group = np.unique(
            np.log(q).round(12), axis=0, return_index=True, return_inverse=True
        )
    share = np.bincount(group.ravel(), weights=np.concatenate(shares))
    if null == "standard":
        values = np.exp(-0.5 * d * np.log1p(q[first]).sum(axis=1))
    else:
        values = exponential_of_frame(null, n - 1, d, q[first])
    return float(share @ values)


def mean(
    null: Null,
    n: int,
    d: int,
    gamma2: Widths,
    biased: bool = False,
    weights: tuple[float, ...] = (1.0,),
) -> float:
    """Mean of MMD^2_u (or MMD^2_b), exact up to rounding."""
    constant = np.exp(-0.5 * d * np.log1p(2.0 * _precisions(d, gamma2))) @ np.array(weights)
    first = raw_moment(1, null, n, d, gamma2, biased, weights=weights)
    return float(constant) + first + (1.0 / n if biased else 0.0)


def variance(
    null: Null,
    n: int,
    d: int,
    gamma2: Widths,
    biased: bool = False,
    weights: tuple[float, ...] = (1.0,),
) -> float:
    """Variance of MMD^2_u (or MMD^2_b), exact up to rounding.

    It comes from terms of order 1 and is itself of order T_2/n^2, so its relative error is about
    1e-16 n^2/T_2 (see `moments.py` for what is done about that).
    """
    first, second = (raw_moment(p, null, n, d, gamma2, biased, weights=weights) for p in (1, 2))
    return second - first**2


def third_cumulant(null: Null, n: int, d: int, gamma2: float) -> float:
    """Third cumulant of MMD^2_u, exact up to an absolute error of about 1e-16."""
    first, second, third = (raw_moment(p, null, n, d, gamma2) for p in (1, 2, 3))
    return third - 3.0 * first * second + 2.0 * first**3


def _precisions(d: int, gamma2: Widths) -> Array:
    widths = gamma2 if isinstance(gamma2, tuple) else (gamma2,)
    for width in widths:
        check_kernel(d, width)
    return 1.0 / np.array(widths)


@lru_cache(maxsize=256)
def _overlaps(kinds: str, n: int) -> tuple[Array, Array]:
    """How the points of factors may coincide: scalar products of their vectors, and how often.

    The vector of e is a unit vector, that of k a difference of two; coordinates are points.
    """
    often: dict[bytes, float] = {}
    slots = sum(1 if f == "e" else 2 for f in kinds)
    for labels in _coincidences(slots):
        vectors = np.zeros((len(kinds), slots))
        left = list(labels)
        for vector, factor in zip(vectors, kinds, strict=True):
            vector[left.pop(0)] += 1.0
            if factor == "k":
                vector[left.pop(0)] -= 1.0
        if not vectors.any(axis=1).all():
            continue  # a pair has two different points
        key = (vectors @ vectors.T).tobytes()
        # n (n-1) (n-2) ... choices of the distinct points
        often[key] = often.get(key, 0.0) + float(np.prod(n - np.arange(max(labels) + 1.0)))
    inner = np.stack([np.frombuffer(key).reshape(len(kinds), -1) for key in often])
    average = float(n) ** kinds.count("e") * (n * (n - 1.0)) ** kinds.count("k")
    return inner, np.array(list(often.values())) / average


@lru_cache(maxsize=8)
def _coincidences(slots: int) -> tuple[tuple[int, ...], ...]:
    """Every way in which slots may hold equal points: labels 0, 1, ... in order of appearance."""
    out: list[tuple[int, ...]] = [()]
    for _ in range(slots):
        out = [(*old, new) for old in out for new in range(max(old, default=-1) + 2)]
    return tuple(out)
