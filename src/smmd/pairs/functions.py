"""Kernels applied in place to blocks of affine distances g = c₀ + c₁ r² (see ``distances``)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from smmd.pairs.series import shortened
from smmd.radial import Exponentials, Radial, Rational, SeriesRadial

#: Offsets up to this size become factors, so that powers stay small and keep their digits.
FACTOR = 40.0


class Function(Protocol):
    """A kernel as the sum over blocks wants it: f = weight · F(g), f' = slope_weight · G(g)."""

    #: Rows and columns of a block: what the function needs at once then fits the cache.
    edge: int

    def rows(self, slopes: bool) -> int:
        """How many numbers ``apply`` needs room for beside each pair's."""

    def affine(self, part: slice) -> tuple[Any, Any]:
        """(c₀, c₁): plain numbers, or arrays (s, 1, 1)."""

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        """Σ F over each sample's block; ``g`` becomes G if ``slopes``; ``work`` is (rows, pairs).

        ``diagonal`` leaves out the pairs i = j of a square block.
        """

    def weight_of(self, samples: int) -> Any:
        """The factor of the sums, a number or one for each sample."""

    def slope_weight_of(self, samples: int) -> Any:
        """The factor of the slopes."""


def _clear(g: np.ndarray) -> None:
    """Zero on the diagonals of a stack of square matrices."""
    side = g.shape[-1]
    g.reshape(len(g), -1)[:, :: side + 1] = 0.0


def _totals(values: np.ndarray) -> np.ndarray:
    return np.add.reduce(values.reshape(len(values), -1), axis=-1).astype(np.float64, copy=False)


def _far(power: np.ndarray) -> bool:
    """Whether e^power is so small somewhere that (e^power − 1) + 1 would not be it any more."""
    return bool(power.min(initial=0.0) < -8.0)


class Exponential:
    """weight·(exp(offset − a r²/2) − base): everything but the exponential is left to BLAS."""

    edge = 256

    def __init__(self, a: Any, offset: Any, weight: Any, wide: bool) -> None:
        self.wide = wide
        # A wide kernel's values are small differences: its offset must stay inside.
        inside = wide or bool(np.max(np.abs(offset)) > FACTOR)
        self.a, self.offset = a, offset if inside else 0.0 * offset
        self.weight = weight if inside else weight * np.exp(offset)

    def affine(self, part: slice) -> tuple[Any, Any]:
        return _column(self.offset, part), _column(-0.5 * self.a, part)

    def rows(self, slopes: bool) -> int:
        return int(self.wide and slopes)

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        if not self.wide:
            np.exp(g, out=g)
        elif slopes and _far(g):
            values = np.expm1(g, out=work[0].reshape(g.shape))
            np.exp(g, out=g)
            if diagonal:
                _clear(values)
                _clear(g)
            return _totals(values)
        else:
            np.expm1(g, out=g)
        if diagonal:
            _clear(g)
        sums = _totals(g)
        if self.wide and slopes:
            g += 1.0
            if diagonal:
                _clear(g)
        return sums

    def weight_of(self, samples: int) -> Any:
        return self.weight

    def slope_weight_of(self, samples: int) -> Any:
        return -0.5 * self.a * self.weight


def _column(values: Any, part: slice) -> Any:
    return np.reshape(values[part], (-1, 1, 1)) if np.ndim(values) else values


class Mixture:
    """Σ_q weight_q·exp(offset_q − a_q r²/2), exponents relative to the steepest one's.

    What all pairs share stays out of the block, whose type may be float32: its rounding would
    shift them alike.
    """

    edge = 256

    def __init__(self, radial: Exponentials) -> None:
        a, offset, weight, _ = (np.array(v, dtype=np.float64) for v in radial.parameters())
        self.steepest = float(a.max())
        self.ratios = (a / self.steepest).tolist()
        self.weights = weight * np.exp(offset)
        self.slopes = -0.5 * a * self.weights

    def affine(self, part: slice) -> tuple[Any, Any]:
        return 0.0, -0.5 * self.steepest

    def rows(self, slopes: bool) -> int:
        return 1 + slopes

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        sums, term = np.zeros(len(g)), work[0].reshape(g.shape)
        slope = work[1].reshape(g.shape) if slopes else None
        if slope is not None:
            slope[...] = 0.0
        for ratio, weight, bend in zip(self.ratios, self.weights, self.slopes, strict=True):
            np.exp(np.multiply(g, ratio, out=term), out=term)
            if diagonal:
                _clear(term)
            sums += weight * _totals(term)
            if slope is not None:
                term *= g.dtype.type(bend)
                slope += term
        if slope is not None:
            g[...] = slope
        return sums

    def weight_of(self, samples: int) -> Any:
        return 1.0

    def slope_weight_of(self, samples: int) -> Any:
        return 1.0


class Reciprocal:
    """weight·(1/(1 + x) − base), x = a r²/2: the inverse multiquadric, one division a pair."""

    edge = 256

    def __init__(self, radial: Rational) -> None:
        self.a, self.wide = radial.a, bool(radial.base)
        self.weight = -radial.weight if self.wide else radial.weight

    def affine(self, part: slice) -> tuple[Any, Any]:
        return (0.0 if self.wide else 1.0), 0.5 * self.a

    def rows(self, slopes: bool) -> int:
        return int(self.wide)

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        if self.wide:  # x/(1 + x), in which small x keep their digits
            np.maximum(g, 0.0, out=g)
            inverse = np.add(g, 1.0, out=work[0].reshape(g.shape))
            np.reciprocal(inverse, out=inverse)
            g *= inverse
        else:
            np.maximum(g, 1.0, out=g)
            inverse = np.reciprocal(g, out=g)
        if diagonal:
            _clear(g)
        sums = _totals(g)
        if slopes:
            np.multiply(inverse, inverse, out=g)
            if diagonal:
                _clear(g)
        return sums

    def weight_of(self, samples: int) -> Any:
        return self.weight

    def slope_weight_of(self, samples: int) -> Any:
        return -0.5 * self.a * abs(self.weight)


class General:
    """Any radial function, evaluated as it is written."""

    edge = 128

    def __init__(self, radial: Radial) -> None:
        self.radial = radial

    def affine(self, part: slice) -> tuple[Any, Any]:
        return 0.0, 1.0

    def rows(self, slopes: bool) -> int:
        return 0

    def apply(
        self, g: np.ndarray, work: np.ndarray, part: slice, *, diagonal: bool, slopes: bool
    ) -> np.ndarray:
        np.maximum(g, 0.0, out=g)
        radial = _restricted(self.radial, part)
        values, slope = value_and_slope(radial, g, slopes)
        if diagonal:
            _clear(values)
        if slope is not None:
            g[...] = slope
            if diagonal:
                _clear(g)
        return _totals(values)

    def weight_of(self, samples: int) -> Any:
        return 1.0

    def slope_weight_of(self, samples: int) -> Any:
        return 1.0


def value_and_slope(
    radial: Radial, r2: np.ndarray, slopes: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """f and f' with what they share computed once."""
    if not slopes:
        return radial.value(np, r2), None
    if isinstance(radial, SeriesRadial):
        return radial.value_and_slope(r2)
    if not isinstance(radial, Exponentials) or not isinstance(radial.a, tuple):
        return radial.value(np, r2), radial.slope(np, r2)
    values, slope_parts = [], []
    for a, offset, weight, base in zip(*radial.parameters(), strict=True):
        power = (-0.5 * a) * r2
        power += offset
        if base and _far(power):
            values.append(weight * np.expm1(power))
            term = weight * np.exp(power)
        elif base:
            term = weight * np.expm1(power)
            values.append(term)
            term = term + weight
        else:
            term = weight * np.exp(power)
            values.append(term)
        slope_parts.append((-0.5 * a) * term)
    return sum(values[1:], values[0]), sum(slope_parts[1:], slope_parts[0])


def _restricted(radial: Radial, part: slice) -> Radial:
    if not isinstance(radial, Exponentials) or isinstance(radial.a, tuple):
        return radial
    return Exponentials(*(v[part] for v in radial.parameters()))


def uniform_parts(
    radial: Radial, batch: tuple[int, ...], reach: float, single: int = 0
) -> Iterator[tuple[slice | np.ndarray, Function]]:
    """The samples that one function serves, and that function; no r² is beyond ``reach``.

    ``single``, for blocks in float32, is the points' dimension.

    Widths that follow the data are arrays; there wide and narrow samples are taken apart.
    """
    everything = slice(None)
    if isinstance(radial, SeriesRadial):
        yield everything, shortened(radial, reach, single) or General(radial)
        return
    if not isinstance(radial, Exponentials) or isinstance(radial.a, tuple):
        yield everything, _fixed(radial)
        return
    shape = (*batch, len(radial))
    fields = [
        np.broadcast_to(np.asarray(v, dtype=np.float64), shape).reshape(-1, len(radial))
        for v in radial.parameters()
    ]
    if len(radial) > 1:
        yield everything, General(Exponentials(*fields))
        return
    a, offset, weight, base = (v[:, 0] for v in fields)
    for wide in (False, True):
        part = np.flatnonzero((base > 0) == wide)
        if len(part):
            yield part, Exponential(a[part], offset[part], weight[part], wide)


@lru_cache(maxsize=256)
def _fixed(radial: Radial) -> Function:
    """The function of a kernel whose width does not follow the data."""
    if isinstance(radial, Rational):
        return Reciprocal(radial)
    if not isinstance(radial, Exponentials):
        return General(radial)
    if len(radial) == 1:
        (a,), (offset,), (weight,), (base,) = radial.parameters()
        return Exponential(a, offset, weight, bool(base))
    if any(radial.base) or max(map(abs, radial.offset)) > FACTOR:
        return General(radial)
    return Mixture(radial)
