"""Kernels given by series, over pairs whose distances are known to be bounded: fewer terms do.

With s = x/(c + x), x = a r²/2 up to X, and y = 2s/s_max − 1,

    1 − φ = s · P(y),    −φ' = Q(y),    P = Σ_j (Σ_{i<m} p_ji y^i) y^(mj)

so that 1 − φ keeps its relative accuracy near x = 0, and no root is needed.  The inner sums are one
matrix product, for P and Q together.

In float32 fewer terms still do.  What rounding the coefficients does to all pairs alike would shift
their sum: that is measured once for pairs of N(0, I) points, and taken back.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from smmd.radial import ALONE, SeriesRadial

#: The polynomials' omitted rest, relative to their sizes: sums in that type do not feel it.
REST = {"float64": 2e-16, "float32": 3e-8}
#: So many pairs of N(0, I) points measure the mean error of float32.
SAMPLE = 1 << 16
#: Beyond so many terms the series for all distances does as well.
MOST = 40
#: How many times its largest value a polynomial's terms may add up to: their roundings do, too.
LOSS = 4.0


class Short(NamedTuple):
    """The polynomials of the module."""

    c: float
    stretch: float  # 2/s_max, a short number
    value: np.ndarray  # p, shape (1, J, m)
    both: np.ndarray  # p and q, shape (2, J, m)

    def pieces(self, slopes: bool) -> np.ndarray:
        return self.both if slopes else self.value

    def rows(self, slopes: bool) -> int:
        """How much room ``drop`` needs for each pair."""
        series, count, m = self.pieces(slopes).shape
        return 1 + m + series * count

    def drop(self, g: np.ndarray, work: np.ndarray, slopes: bool) -> np.ndarray:
        """1 − φ of g = x/c, which becomes s, and −φ' if asked, as rows that lie in ``work``."""
        y = work[0]
        np.maximum(g, 0.0, out=g)
        np.add(g, 1.0, out=y)
        np.divide(g, y, out=g)
        np.multiply(g, self.stretch, out=y)
        y -= 1.0
        found = _polynomials(self.pieces(slopes), y, work[1:])
        found[0] *= g
        return found


class Series:
    """weight·(amplitude·φ(x) − base) up to a bound of x: the ``Function`` of a ``SeriesRadial``."""

    edge = 128

    def __init__(self, radial: SeriesRadial, short: Short, missing: float) -> None:
        self.radial, self.short, self.missing = radial, short, missing

    def affine(self, part: slice) -> tuple[Any, Any]:
        return 0.0, 0.5 * self.radial.a / self.short.c

    def rows(self, slopes: bool) -> int:
        return self.short.rows(slopes)

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        found = self.short.drop(g.reshape(-1), work, slopes).reshape(-1, *g.shape)
        pairs, radial = g[0].size, self.radial
        if diagonal:
            pairs -= g.shape[-1]
            found.reshape(len(found), len(g), -1)[..., :: g.shape[-1] + 1] = 0.0
        if slopes:
            g[...] = found[1]
        # Many short sums: their float32 roundings average out.
        drop = np.add.reduce(np.add.reduce(found[0], axis=-1), axis=-1, dtype=np.float64)
        top = radial.amplitude_minus_one if radial.base else radial.amplitude
        return pairs * (top - radial.amplitude * self.missing) - radial.amplitude * drop

    def weight_of(self, samples: int) -> Any:
        return self.radial.weight

    def slope_weight_of(self, samples: int) -> Any:
        return -0.5 * self.radial.a * self.radial.amplitude * self.radial.weight


def shortened(radial: SeriesRadial, reach: float, single: int = 0) -> Series | None:
    """The function for pairs of r² ≤ reach; None where that would not be shorter.

    ``single``, for sums in float32, is the points' dimension.
    """
    largest = 0.5 * radial.a * reach
    if not largest < 1e6:
        return None
    # Bounds in steps of √2, so that few of them are met.
    step = math.ceil(2.0 * math.log2(max(largest, 1e-3) * (1.0 + 1e-9)))
    key = (radial.c, radial.decay, radial.series[:2], step, "float32" if single else "float64")
    short = _fit(*key)
    if short is None:
        return None
    return Series(radial, short, _missing(radial.a, single, *key) if single else 0.0)


def _phi(c: float, decay: float, series: tuple[tuple[float, ...], ...]) -> SeriesRadial:
    """φ(x) − 1 as a function of x."""
    return SeriesRadial(2.0, 1.0, 1.0, 1.0, 0.0, c, (series[0], series[1], ()), decay)


@lru_cache(maxsize=256)
def _fit(
    c: float, decay: float, series: tuple[tuple[float, ...], ...], step: int, dtype: str
) -> Short | None:
    """The shortest of some maps for x ≤ 2^(step/2)."""
    phi, points, largest = _phi(c, decay, series), 64, 2.0 ** (0.5 * step)
    pi = 4 * np.arctan(np.longdouble(1))
    theta = (np.arange(points, dtype=np.longdouble) + 0.5) * (pi / points)
    basis = np.cos(np.outer(np.arange(points), theta)) * (np.longdouble(2) / points)
    basis[0] *= 0.5
    fits = []
    for wider in (1.0, 2.0, 4.0, 8.0, 16.0):
        # Rounded, so that float32 holds it: all pairs share it.
        stretch = max(2.0 + 2.0**-8, round(2.0**8 * 2.0 * (1.0 + wider * c / largest)) * 2.0**-8)
        c_here = (0.5 * stretch - 1.0) * largest
        s = (np.cos(theta) + 1) / stretch
        x = c_here * s / (1 - s)
        found = [_cut(basis @ v, REST[dtype]) for v in (-phi.value(np, x) / s, -phi.slope(np, x))]
        fits.append((sum(map(len, found)), c_here, stretch, found))
    _, c, stretch, found = min(fits, key=lambda fit: fit[0])
    powers = [np.polynomial.chebyshev.cheb2poly(v) for v in found]
    lost = max(float(np.abs(p).sum() / np.abs(v).sum()) for p, v in zip(powers, found, strict=True))
    if max(map(len, found)) > MOST or lost > LOSS:
        return None
    pieces = (_pieces(p).astype(dtype) for p in (powers[:1], powers))
    return Short(c, stretch, *pieces)


@lru_cache(maxsize=256)
def _missing(
    a: float, d: int, c: float, decay: float, series: tuple[tuple[float, ...], ...], step: int,
    dtype: str,
) -> float:  # fmt: skip
    """What float32 makes of 1 − φ too small on average, for pairs of N(0, I_d) points."""
    from scipy.special import gammaincinv  # here, because it doubles the time of an import

    short = _fit(c, decay, series, step, dtype)
    assert short is not None
    levels = (np.arange(257.0) + 0.25) / 257.5
    shares = np.linspace(levels[0], levels[-1], SAMPLE)
    x = 2.0 * a * np.interp(shares, levels, gammaincinv(0.5 * d, levels))  # r² = 2χ²
    x = np.minimum(x, 2.0 ** (0.5 * step))
    exact = -_phi(c, decay, series).value(np, x)
    g = (x / short.c).astype(dtype)
    work = np.empty((short.rows(False), g.size), dtype)
    return float(np.mean(exact - short.drop(g, work, False)[0].astype(np.float64)))


def _cut(coefficients: np.ndarray, rest: float) -> np.ndarray:
    """Without the terms whose sum nobody feels."""
    tails = np.append(np.cumsum(np.abs(coefficients[::-1]))[::-1], 0.0)
    return coefficients[: max(1, int(np.argmax(tails <= rest * tails[0])))]


def _pieces(polynomials: list[np.ndarray]) -> np.ndarray:
    """Polynomials cut into J pieces of m terms, for ``_polynomials``."""
    longest = max(map(len, polynomials))
    count = 4 if longest > 12 else 2  # as measured; even numbers of rows suit products best
    found = np.zeros((len(polynomials), count, max(2, -(-longest // count))))
    for row, polynomial in zip(found.reshape(len(found), -1), polynomials, strict=True):
        row[: len(polynomial)] = polynomial
    return found


def _polynomials(pieces: np.ndarray, y: np.ndarray, room: np.ndarray) -> np.ndarray:
    """The polynomials at y (points), each a row of the result, which lies in ``room``."""
    series, count, m = pieces.shape
    powers, parts = room[:m], room[m:]
    powers[0], powers[1] = 1.0, y
    for i in range(2, m):
        np.multiply(y, powers[i - 1], out=powers[i])
    rows, width = pieces.reshape(-1, m), ALONE // pieces.size
    for start in range(0, y.size, width):
        here = slice(start, start + width)
        np.matmul(rows, powers[:, here], out=parts[:, here])
    top = np.multiply(y, powers[m - 1], out=powers[0])  # y^m
    sums: np.ndarray = parts.reshape(series, count, -1)
    for part in sums:
        for j in range(count - 1, 0, -1):
            np.multiply(part[j], top, out=powers[1])
            part[j - 1] += powers[1]
    return sums[:, 0]
