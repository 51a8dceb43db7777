"""Functions of a squared distance, with their first two derivatives.

A kernel, its expectation over N(0, I) and their sums enter every statistic as

    f(r²) = k(r²) - base

where ``base`` is subtracted *inside* (through ``expm1`` and its like), so that for a wide kernel,
whose values all lie close to one, nothing is lost.  Weights and offsets already hold the scale
of the statistic.  Plain floats serve every framework; arrays (leading batch dimensions, then one
axis of terms) serve widths that depend on the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from smmd.arrays import Array, Namespace, kind

#: Up to this many terms are written out, one after the other.
_FEW = 8
#: So many points at once keep what a Chebyshev series needs of them in the cache.
_STRETCH = 8192
#: Multiplications up to which OpenBLAS computes a product on the calling thread.
ALONE = 1 << 18


class Radial(Protocol):
    """What the sums over pairs need to know about a kernel."""

    def value(self, xp: Namespace, r2: Array) -> Array:
        """f(r²)."""

    def slope(self, xp: Namespace, r2: Array) -> Array:
        """f'(r²)."""

    def curvature(self, xp: Namespace, r2: Array) -> Array:
        """f''(r²)."""

    def encode(self) -> tuple[str, tuple[float, ...]]:
        """A name and numbers from which ``decode`` makes this function again."""

    def __hash__(self) -> int:
        """Equal functions are prepared once."""


def _term(values: Any, q: int, ndim: int) -> Any:
    """The q-th of a list of numbers, or of the last axis of an array, ready to broadcast."""
    if isinstance(values, tuple):
        return values[q]
    picked = values[..., q]
    return picked.reshape(picked.shape + (1,) * (ndim - picked.ndim))


def expm1(xp: Namespace, power: Array) -> Array:
    """e^power − 1, whose derivative frameworks take as (e^power − 1) + 1: zero far to the left.

    So far out the one is subtracted in sight, which costs the value nothing.
    """
    if xp is np:
        return np.expm1(power)
    return xp.where(power < -1.0, xp.exp(power) - 1.0, xp.expm1(power))


@dataclass(frozen=True)
class Exponentials:
    """Σ_q weight_q · (exp(offset_q − a_q r²/2) − base_q), base_q being 0 or 1."""

    a: Any
    offset: Any
    weight: Any
    base: Any

    def encode(self) -> tuple[str, tuple[float, ...]]:
        return "exponentials", (*self.a, *self.offset, *self.weight, *self.base)

    def parameters(self) -> tuple[Any, Any, Any, Any]:
        """The four fields, in order."""
        return self.a, self.offset, self.weight, self.base

    def __len__(self) -> int:
        return len(self.a) if isinstance(self.a, tuple) else int(self.a.shape[-1])

    def component(self, q: int, ndim: int) -> tuple[Any, Any, Any, Any]:
        """(a, offset, weight, base) of term q, each broadcasting against ``ndim`` axes."""
        a, offset, weight, base = (_term(v, q, ndim) for v in self.parameters())
        return a, offset, weight, base

    @staticmethod
    def exponential(xp: Namespace, power: Array, base: Any) -> Array:
        """exp(power) − base."""
        if isinstance(base, float):
            return expm1(xp, power) if base else xp.exp(power)
        return xp.where(base > 0, expm1(xp, power), xp.exp(power))

    def _at_once(self, r2: Array) -> bool:
        """Under JAX many terms are one reduction: unrolled, XLA takes a minute to compile them."""
        return len(self) > _FEW and isinstance(self.a, tuple) and kind(r2) == "jax"

    def value(self, xp: Namespace, r2: Array) -> Array:
        if self._at_once(r2):
            a, offset, weight, base = (xp.asarray(v, dtype=r2.dtype) for v in self.parameters())
            power = offset - (0.5 * a) * r2[..., None]
            return xp.sum(weight * self.exponential(xp, power, base), axis=-1)
        total = None
        for q in range(len(self)):
            a, offset, weight, base = self.component(q, r2.ndim)
            term = weight * self.exponential(xp, offset - (0.5 * a) * r2, base)
            total = term if total is None else total + term
        return total

    def _derivative(self, xp: Namespace, r2: Array, order: int) -> Array:
        if self._at_once(r2):
            a, offset, weight, _ = (xp.asarray(v, dtype=r2.dtype) for v in self.parameters())
            terms = (-0.5 * a) ** order * weight * xp.exp(offset - (0.5 * a) * r2[..., None])
            return xp.sum(terms, axis=-1)
        total = None
        for q in range(len(self)):
            a, offset, weight, _ = self.component(q, r2.ndim)
            term = ((-0.5 * a) ** order * weight) * xp.exp(offset - (0.5 * a) * r2)
            total = term if total is None else total + term
        return total

    def slope(self, xp: Namespace, r2: Array) -> Array:
        return self._derivative(xp, r2, 1)

    def curvature(self, xp: Namespace, r2: Array) -> Array:
        return self._derivative(xp, r2, 2)


def _bounded(xp: Namespace, x: Array) -> Array:
    """Keep ∞/∞ away: beyond 1e30 every kernel here is zero to working precision."""
    return xp.clip(x, None, 1e30)


@dataclass(frozen=True)
class Rational:
    """weight · (1/(1 + a r²/2) − base): the inverse multiquadric kernel."""

    a: float
    weight: float
    base: float

    def encode(self) -> tuple[str, tuple[float, ...]]:
        return "rational", (self.a, self.weight, self.base)

    def value(self, xp: Namespace, r2: Array) -> Array:
        x = _bounded(xp, (0.5 * self.a) * r2)
        return (-self.weight * x if self.base else self.weight) / (1.0 + x)

    def slope(self, xp: Namespace, r2: Array) -> Array:
        x = _bounded(xp, (0.5 * self.a) * r2)
        return (-0.5 * self.a * self.weight) / (1.0 + x) / (1.0 + x)

    def curvature(self, xp: Namespace, r2: Array) -> Array:
        x = _bounded(xp, (0.5 * self.a) * r2)
        return (0.5 * self.a**2 * self.weight) / (1.0 + x) / (1.0 + x) / (1.0 + x)


@dataclass(frozen=True)
class SeriesRadial:
    """weight · (amplitude · φ(x) − base), x = a r²/2, φ(x) = Σ_q w_q e^(−t_q x), Σ w_q = 1.

    φ, such as ₁F₁(1/2; d/2; −x) of sliced kernels, is kept as Chebyshev series in 2w − 1 with
    w = 1/√(1 + x/c), which covers all x in [0, ∞):

        1 − φ = (1 − w²) Σ p_k T_k,   −φ' = w^m Σ p'_k T_k,   φ'' = w^(m+2) Σ p''_k T_k

    so that 1 − φ keeps its relative accuracy near x = 0, and its derivatives theirs far out: φ
    itself decays there as w^(m−2), which is m = 3 for sliced kernels and m = 4 (``decay``) for the
    inverse multiquadric.
    """

    a: float
    weight: float
    base: float
    amplitude: float
    amplitude_minus_one: float
    c: float
    series: tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]
    decay: float = 3.0

    def encode(self) -> tuple[str, tuple[float, ...]]:
        head = (self.a, self.weight, self.base, self.amplitude, self.amplitude_minus_one, self.c)
        first, second, third = self.series
        sizes = (float(len(first)), float(len(second)))
        return "series", (*head, self.decay, *sizes, *first, *second, *third)

    def _map(self, xp: Namespace, r2: Array) -> tuple[Array, Array]:
        x = _bounded(xp, (0.5 * self.a) * r2)
        return x, 1.0 / xp.sqrt(1.0 + x * (1.0 / self.c))

    def value(self, xp: Namespace, r2: Array) -> Array:
        x, w = self._map(xp, r2)
        drop = (-self.amplitude * self.weight) * (x / (self.c + x)) * clenshaw(self.series[0], w)
        top = self.amplitude_minus_one if self.base else self.amplitude
        return drop + self.weight * top

    def slope(self, xp: Namespace, r2: Array) -> Array:
        _, w = self._map(xp, r2)
        scale = -0.5 * self.a * self.amplitude * self.weight
        return scale * w**self.decay * clenshaw(self.series[1], w)

    def value_and_slope(self, r2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both of them, in NumPy."""
        x, w = self._map(np, r2)
        first, second = chebyshev(rectangle(self.series[:2]), 2.0 * w - 1.0)
        first *= (-self.amplitude * self.weight) * (x / (self.c + x))
        first += self.weight * (self.amplitude_minus_one if self.base else self.amplitude)
        second *= (-0.5 * self.a * self.amplitude * self.weight) * w**self.decay
        return first, second

    def curvature(self, xp: Namespace, r2: Array) -> Array:
        _, w = self._map(xp, r2)
        scale = 0.25 * self.a**2 * self.amplitude * self.weight
        return scale * w ** (self.decay + 2.0) * clenshaw(self.series[2], w)

    def cubed(self) -> tuple[float, ...]:
        """The series of −φ'/w³, whatever the decay, for code that knows only that."""
        slopes = np.array(self.series[1])
        for _ in range(int(self.decay) - 3):
            slopes = np.polynomial.chebyshev.chebmul(slopes, [0.5, 0.5])  # times w
        return tuple(slopes.tolist())


def is_fixed(radial: Radial) -> bool:
    """Whether the function is made of plain numbers: its width does not follow the data."""
    return not isinstance(radial, Exponentials) or isinstance(radial.a, tuple)


def decode(name: str, numbers: Sequence[float]) -> Radial:
    """The inverse of ``encode``."""
    if name == "exponentials":
        q = len(numbers) // 4
        a, offset, weight, base = (tuple(numbers[i * q : (i + 1) * q]) for i in range(4))
        return Exponentials(a, offset, weight, base)
    if name == "rational":
        return Rational(*numbers)
    precision, scale, base_value, amplitude, less, c, decay = numbers[:7]
    first, second = 9 + int(numbers[7]), 9 + int(numbers[7]) + int(numbers[8])
    series = (tuple(numbers[9:first]), tuple(numbers[first:second]), tuple(numbers[second:]))
    return SeriesRadial(precision, scale, base_value, amplitude, less, c, series, decay)


def clenshaw(coefficients: tuple[float, ...], w: Array) -> Array:
    """Σ_k c_k T_k(2w − 1) by Clenshaw's recurrence."""
    if isinstance(w, np.ndarray):
        return chebyshev(rectangle((coefficients,)), 2.0 * w - 1.0)[0]
    y2 = 4.0 * w - 2.0
    b1, b2 = 0.0 * w, 0.0 * w
    if kind(w) == "jax":
        # A loop: unrolled, the recurrence takes XLA minutes to compile.
        import jax

        def step(state: tuple[Array, Array], c: Array) -> tuple[tuple[Array, Array], None]:
            return (y2 * state[0] - state[1] + c, state[0]), None

        descending = jax.numpy.asarray(coefficients[:0:-1], dtype=w.dtype)
        (b1, b2), _ = jax.lax.scan(step, (b1, b2), descending, unroll=4)
    else:
        for c in coefficients[:0:-1]:
            b1, b2 = y2 * b1 - b2 + c, b1
    return 0.5 * y2 * b1 - b2 + coefficients[0]


@lru_cache(maxsize=256)
def rectangle(several: tuple[tuple[float, ...], ...]) -> np.ndarray:
    """Chebyshev series cut into pieces of length m: c (series, J, m) with

        Σ_k c_k T_k = Σ_j [Σ_{i<m} c_ji T_i] · T_j(T_m),

    for ``chebyshev``.  From T_{jm+i} = 2 T_i T_{jm} − T_{jm−i}.
    """
    longest = max(map(len, several))
    # What a point costs is m steps of T_i for all series, and 1.5 times J steps for each.
    m = max(2, round(math.sqrt(1.5 * longest * len(several))))
    found = np.zeros((len(several), -(-longest // m), m))
    for pieces, series in zip(found.reshape(len(several), -1), several, strict=True):
        pieces[: len(series)] = series
        for k in range(len(series) - 1, m, -1):
            if k % m:
                pieces[k - 2 * (k % m)] -= pieces[k]
                pieces[k] *= 2.0
    return found


def chebyshev(pieces: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The series of a ``rectangle`` at y (…) in [−1, 1], shape (series, …), in NumPy."""
    flat, pieces = y.reshape(-1), pieces.astype(y.dtype, copy=False)
    found = np.empty((len(pieces), flat.size), y.dtype)
    for start in range(0, flat.size, _STRETCH):
        here = slice(start, start + _STRETCH)
        found[:, here] = _stretch(pieces, flat[here])
    return found.reshape(-1, *y.shape)


def _stretch(pieces: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same for few y (points).

    Most of the work is one matrix product; what is left is Clenshaw's recurrence for J terms.
    """
    series, count, m = pieces.shape
    room = np.empty((m + series * count + 2, y.size), y.dtype)
    powers, parts, twice, work = room[:m], room[m:-2], room[-2], room[-1]
    np.add(y, y, out=twice)
    powers[0], powers[1] = 1.0, y
    for i in range(2, m):
        np.multiply(twice, powers[i - 1], out=powers[i])
        powers[i] -= powers[i - 2]
    rows, width = pieces.reshape(-1, m), max(256, ALONE // pieces.size)
    for start in range(0, y.size, width):
        here = slice(start, start + width)
        np.matmul(rows, powers[:, here], out=parts[:, here])
    if count > 1:
        top = powers[0]  # T_m, where nobody needs T_0 any more
        np.multiply(twice, powers[m - 1], out=top)
        top -= powers[m - 2]
        np.add(top, top, out=twice)
    sums: np.ndarray = parts.reshape(series, count, -1)
    for part in sums:
        for j in range(count - 2, -1, -1):
            np.multiply(top if j == 0 else twice, part[j + 1], out=work)
            part[j] += work
            if j + 2 < count:
                part[j] -= part[j + 2]
    return sums[:, 0]
