"""The law of SMMD² for mixtures of Gaussian kernels: several scales, IMQ, sliced.

A mixture has no spectrum in closed form, but its sectors are matrices in one basis whatever the
widths (`spectrum.log_hermite_matrix`), so that the projected spectrum, and with it the limit law,
is found to rounding.  At finite n mean and variance are exact, and so is the skewness under
"standard"; what estimation does to it, a term of order 1/n, is taken from Gaussian kernels that
are alike.  The calibration grid has two mixtures in it.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special

from smmd import closed_form
from smmd.kernels import Kernel, MultiScale
from smmd.nulls.estimated import Estimated
from smmd.nulls.law import NullLaw
from smmd.nulls.means import mean_of_smmd
from smmd.nulls.moments import degenerate_skewness, null_moments, variance_ratio
from smmd.nulls.projected_cube import projected_cube
from smmd.nulls.shapes import fractional_power
from smmd.nulls.spectrum import (
    Null,
    Spectrum,
    log_hermite_matrix,
    projected_spectrum,
    sectors,
)
from smmd.nulls.validity import verdict, wrong_width

Array = NDArray[np.float64]

#: What is left out of a sector, and of all sectors, as a share of the trace of squares.
_LEFT_OUT = 1e-9
_LARGEST_SECTOR, _LAST_SECTOR = 400, 1200
#: A spectrum whose Σ m μ² is further than this from E h² was cut short.
_SEEN = 1e-5
#: Shares of the standard deviation below which a term, and differences in log u below which two
#: terms, hardly matter.
_SMALL_SHARE, _CROWD = 1e-4, 0.1
#: Widths at which it is found out what a projection leaves of third moments.
_GRID = 9
#: Eigenvalues closer than this are merged, keeping Σ m μ² and Σ m μ³.
_MERGED = 0.01
#: Where the search for the Gaussian kernel that is as skewed begins and ends, as a scale γ²/d.
_FIRST_SCALE, _WIDEST_SCALE = 1 / 8, 1e4


@lru_cache(maxsize=128)
def mixture_law(kernel: Kernel, null: Null, n: int, d: int) -> NullLaw:
    """The law of SMMD² with a kernel whose widths do not depend on the data."""
    mixture = kernel.resolve(n, d)
    terms = Terms(tuple(np.ravel(mixture.precisions).tolist()), mixture.log_weights)
    spectrum, simple = (mixture_spectrum(terms, name, d) for name in (null, "standard"))
    known = closed_form.log_null_second_moment(mixture, d)
    if abs(simple.trace(2) / exp(float(np.ravel(known)[0])) - 1.0) > _SEEN:
        raise ValueError("the spectrum of so narrow a kernel has no end in sight; use a wider one")
    gamma2 = _equivalent_width(spectrum, null, d)
    few = _few(terms, d, 1 if mixture.profile == "mixture" else 4)
    skewness = _skewness(few, null, n, d, gamma2, spectrum)
    reason = verdict(null, n, d, gamma2, skewness)[1]
    if isinstance(kernel, MultiScale):  # an average width may hide one that was not calibrated
        reason = next(
            filter(None, [reason, *(wrong_width(n, d, s * d) for s in kernel.scales)]), ""
        )
    ratio = 1.0 if null == "standard" else _variance_ratio(few, null, n, d)
    return NullLaw(
        null=null,
        n=n,
        d=d,
        gamma2=gamma2,
        mean=mean_of_smmd(kernel, null, n, d),
        sd=sqrt(ratio * spectrum.trace(2) / simple.trace(2)),
        skewness=skewness,
        kurtosis=None,
        valid=not reason,
        reason=reason,
        shape=fractional_power(spectrum, skewness),
    )


class Terms(NamedTuple):
    """Precisions u = 1/γ² and log-weights."""

    precisions: tuple[float, ...]
    log_weights: tuple[float, ...]


def _variance_ratio(few: Terms, null: Estimated, n: int, d: int) -> float:
    """Variance at n by its limit: exact for a mixture of few terms that is nearly the same."""
    limit = 2.0 * mixture_spectrum(few, null, d).trace(2)
    widths, weights = 1.0 / np.array(few.precisions), np.exp(few.log_weights)
    return variance_ratio(limit, null, n, d, tuple(widths.tolist()), tuple(weights.tolist()))[0]


def _skewness(few: Terms, null: Null, n: int, d: int, gamma2: float, spectrum: Spectrum) -> float:
    """[8 (n−2) T_3 + 4 E h³]/√(n(n−1))/(2 T_2)^(3/2), and what estimation adds to it.

    E h³ is exact for "standard".  How much of each of its terms a projection leaves is taken from
    the Gaussian kernel of the term's mean log u, what estimation adds from the one with the same
    limit law (γ²).
    """
    cubes = _cubes(few, d)
    if null != "standard":
        log_u = np.log(few.precisions)
        grid = np.linspace(log_u.min(), log_u.max(), _GRID)
        left = [_left(null, d, float(g)) for g in np.exp(-grid)]
        cubes = cubes * np.interp(_triples(log_u) / 3.0, grid, left)
    third = 8.0 * (n - 2.0) * spectrum.trace(3) + 4.0 * float(np.sum(cubes))
    own = third / sqrt(n * (n - 1.0)) / (2.0 * spectrum.trace(2)) ** 1.5
    added = null_moments(null, n, d, gamma2).skewness - degenerate_skewness(null, n, d, gamma2)
    return own + added


def _left(null: Null, d: int, gamma2: float) -> float:
    """The share of E h³ that a projection leaves; none where it is lost in rounding anyway."""
    whole = projected_cube("standard", d, gamma2)
    return min(1.0, max(0.0, projected_cube(null, d, gamma2) / whole)) if whole > 0.0 else 0.0


def _cubes(few: Terms, d: int) -> Array:
    """E h_a h_b h_c of one pair under N(0, I), for all triples of terms; together E h³.

    Each h is a sum of four Gaussians in (x, y): k, −E_y k, −E_x k and E k.
    """
    u, weight = np.array(few.precisions), np.exp(few.log_weights)
    rho, none = u / (1.0 + u), np.zeros_like(u)
    alone, both = (1.0 + u) ** (-0.5 * d), (1.0 + 2.0 * u) ** (-0.5 * d)
    xx, xy = np.concatenate([u, rho, none, none]), np.concatenate([-u, none, none, none])
    yy = np.concatenate([u, none, rho, none])
    c = np.concatenate([weight, -weight * alone, -weight * alone, weight * both])
    determinant = (1.0 + _triples(xx)) * (1.0 + _triples(yy)) - _triples(xy) ** 2
    values = c[:, None, None] * c[:, None] * c * determinant ** (-0.5 * d)
    return np.asarray(values.reshape((4, u.size) * 3).sum(axis=(0, 2, 4)))


def _triples(v: Array) -> Array:
    return np.asarray(v[:, None, None] + v[:, None] + v)


def _few(terms: Terms, d: int, step: int) -> Terms:
    """No negligible terms, and of a quadrature every fourth (nodes are 1/4 apart in log u)."""
    u, log_w = (np.array(part)[::step] for part in terms)
    log_w += log(step)
    share = log_w + 0.5 * closed_form.log_cross_covariance(u, u, d)
    kept = share > share.max() + log(_SMALL_SHARE)
    u, w = u[kept], np.exp(log_w[kept])
    # a sliced kernel's nodes crowd below u = 1/γ²
    bins = np.unique(np.floor(np.log(u) / _CROWD), return_inverse=True)[1]
    total = np.bincount(bins, weights=w)
    mean = np.bincount(bins, weights=w * u) / total
    return Terms(tuple(mean.tolist()), tuple(np.log(total).tolist()))


@lru_cache(maxsize=128)
def mixture_spectrum(terms: Terms, null: Null, d: int) -> Spectrum:
    """Eigenvalues of the kernel under N(0, I) after projecting out what the null estimates."""
    u, log_weights = (np.array(part) for part in terms)
    powers = np.arange(_LAST_SECTOR + 2.0 * _LARGEST_SECTOR + 4.0)[:, None]
    log_c = special.logsumexp(
        log_weights - 0.5 * d * np.log1p(2.0 * u) + powers * (np.log(u) - np.log1p(2.0 * u)),
        axis=1,
    )
    projected = {degree: (copies, removed) for degree, copies, removed in sectors(null, d)}
    values: list[Array] = []
    counts: list[Array] = []
    total = 0.0
    for degree in range(_LAST_SECTOR):
        whole = _harmonics(degree, d)
        copies, removed = projected.get(degree, (0.0, 0))
        here = 0.0
        for times, first in ((copies, removed), (whole - copies, 0)):
            if times > 0.0:
                found = _sector(log_c[degree:], 0.5 * d + degree, first)
                values.append(found)
                counts.append(np.full(found.size, float(times)))
                here += times * float(np.sum(found**2))
        total += here
        if degree > 2 and here < _LEFT_OUT * total:
            return _merged(np.concatenate(values), np.concatenate(counts))
    raise ValueError("the spectrum of so narrow a kernel has no end in sight; use a wider one")


def _harmonics(degree: int, d: int) -> float:
    """How many spherical harmonics of a degree there are in d dimensions."""
    if d == 1:
        return 1.0 if degree < 2 else 0.0
    return float(
        special.binom(degree + d - 1, d - 1)
        - (special.binom(degree + d - 3, d - 1) if degree > 1 else 0.0)
    )


def _sector(log_c: Array, beta: float, first: int) -> Array:
    """Eigenvalues of one M without its first rows and columns; ``log_c`` begins at its degree."""
    i = np.arange(first, first + _LARGEST_SECTOR)
    log_matrix = log_hermite_matrix(log_c, beta, i)
    # The matrix is positive: an entry is at most the geometric mean of two diagonal ones.
    diagonal = log_matrix.diagonal()
    kept = int(np.max(np.flatnonzero(diagonal > diagonal.max() + log(_LEFT_OUT)))) + 1
    # M = L Lᵀ to rounding with a fifth as many columns, and LᵀL has the same eigenvalues.
    factor, _, rank, _ = linalg.lapack.dpstrf(np.exp(log_matrix[:kept, :kept]), lower=1)
    columns = np.tril(factor)[:, :rank]
    return np.asarray(np.maximum(np.linalg.eigvalsh(columns.T @ columns), 0.0), dtype=float)


def _merged(values: Array, counts: Array) -> Spectrum:
    """Fewer eigenvalues with the same sums of squares and cubes: tails sum over all of them."""
    squares = counts * values**2
    order = np.argsort(-values, kind="stable")
    missing = 1.0 - np.cumsum(squares[order]) / squares.sum()
    kept = order[: int(np.argmax(missing < _LEFT_OUT)) + 1]
    bins = np.unique(np.floor(np.log(values[kept]) / _MERGED), return_inverse=True)[1]
    second = np.bincount(bins, weights=squares[kept])
    third = np.bincount(bins, weights=squares[kept] * values[kept])
    merged = third / second
    return Spectrum(merged[::-1], (second / merged**2)[::-1])


def _equivalent_width(spectrum: Spectrum, null: Null, d: int) -> float:
    """γ² of the Gaussian kernel whose limit law has this spectrum's skewness."""
    target = _limit_skewness(spectrum)

    def excess(log_scale: float) -> float:
        return _limit_skewness(projected_spectrum(null, d, d * exp(log_scale))) - target

    # Skewness grows with the width, towards a bound which wide mixtures may reach to rounding.
    low = high = log(_FIRST_SCALE)
    while excess(low) > 0.0:
        low, high = low - 1.0, low
    while low == high or excess(high) < 0.0:
        low, high = high, high + 1.0
        if high > log(_WIDEST_SCALE):
            return d * exp(high)
    return d * exp(float(optimize.brentq(excess, low, high, xtol=1e-6)))


def _limit_skewness(spectrum: Spectrum) -> float:
    return 8.0 * spectrum.trace(3) / (2.0 * spectrum.trace(2)) ** 1.5
