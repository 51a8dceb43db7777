"""Sums over pairs on NVIDIA GPUs: value and row gradient in one pass, memory linear in n.

Small samples take one kernel (``triton_direct``).  Large ones take three: a split of the rows into
exact float16 integers, the pairs (``triton_gram``) and the sum of the programs' float64 parts.
``ready`` adds the terms that need one evaluation a point (``triton_cross``) in the same
launches.  Nothing here waits for the device, and no sum depends on the order in which programs
end: the same input gives the same bits.

The same source runs on a CPU in Triton's interpreter (``TRITON_INTERPRET=1``), for tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smmd.pairs import triton_cross, triton_direct_sums
from smmd.pairs.profile import rational_profile, series_profile, short_number
from smmd.pairs.triton_direct_sums import Small, direct_sums
from smmd.pairs.triton_finish import Finish
from smmd.pairs.triton_gram_sums import Gram
from smmd.pairs.triton_math import EITHER, NARROW, WIDE, mixture_numbers
from smmd.pairs.triton_plan import (
    Cross,
    Kernel,
    Parts,
    Tiles,
    choose_tiles,
    prefers_direct,
)
from smmd.radial import Exponentials, Radial, Rational, SeriesRadial

__all__ = ["Tiles", "pair_sums", "prepare", "profile_sums", "radial_sums", "ready"]

#: exp of a larger offset leaves float32 no room for a sum.
LARGEST_OFFSET = 78.0

#: A kernel parameter: (B, Q) or (1, Q) on the device, or Q plain numbers.
Parameter = Tensor | Sequence[float]


def pair_sums(
    rows: Tensor,
    cols: Tensor,
    a: Parameter,
    offset: Parameter,
    weight: Parameter,
    base: Parameter,
    *,
    row_start: int = 0,
    symmetric: bool = True,
    gradient: bool = True,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Σ_{j ≠ row_start+i} Σ_q weight_q (exp(offset_q − a_q r²_ij/2) − base_q), and its gradient.

    ``rows`` (B, m, d) and ``cols`` (B, n, d) are contiguous float32 (or float16, bfloat16).
    Parameters that are tensors stay on the device; give ``base`` as plain numbers where it is
    known, which saves a branch.  Returns float64 (B,), and
    2 Σ_j Σ_q weight_q a_q exp(…)(cols_j − rows_i) as float32 (B, m, d): the derivative in one
    side, doubled, which is the whole gradient where every row is also a column.  ``symmetric``
    says that ``rows`` is ``cols``; a value alone then takes half the pairs.
    """
    kernel = _exponentials(a, offset, weight, base, rows.device)
    return _sums(rows, cols, kernel, row_start, symmetric, gradient, tiles)


def _exponentials(
    a: Parameter, offset: Parameter, weight: Parameter, base: Parameter, device: torch.device
) -> Kernel:
    given = (a, offset, weight, base)
    bases = EITHER.value
    if not isinstance(base, Tensor):
        bases = WIDE.value if all(base) else EITHER.value if any(base) else NARROW.value
    fields = [_on_device(v, device) for v in (a, offset, weight, base)]
    batches, terms = max(v.shape[0] for v in fields), fields[0].shape[1]
    if batches > 1:
        fields = [v.expand(batches, terms) for v in fields]
    a, offset, weight, base = (v.contiguous() for v in fields)
    kind = "gaussian" if terms == 1 else "mixture"
    none = (0.0, 0.0)
    kernel = Kernel(kind, a, offset, weight, base, terms, int(batches > 1), bases, none[:1], none)
    numbers = [v for v in given if not isinstance(v, Tensor)]
    if kind == "mixture" and len(numbers) == len(given):
        tables = [
            _constant(mixture_numbers(*numbers, relative=r), device, torch.float32)
            for r in (False, True)
        ]
        kernel = kernel._replace(tables=(tables[0], tables[1]))
    return kernel


def _on_device(values: Parameter, device: torch.device) -> Tensor:
    return values if isinstance(values, Tensor) else _constant(tuple(values), device)


@lru_cache(maxsize=4096)
def _constant(
    values: tuple[float, ...], device: torch.device, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Numbers (1, …) on the device, for good.

    Made in another thread, so that a CUDA graph's memory pool, which the graph reuses at will,
    does not become their home.
    """
    if device.type == "cpu":
        return torch.tensor([values], dtype=dtype)
    with ThreadPoolExecutor(1) as thread:
        made = thread.submit(torch.tensor, [values], dtype=dtype, device=device)
        return made.result()


def profile_sums(
    rows: Tensor,
    cols: Tensor,
    coef: Sequence[float],
    *,
    row_start: int = 0,
    symmetric: bool = True,
    gradient: bool = True,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The same sum of a function f(r²) given as ``Profile.flat()``: no exponentials at all.

    f = top − t P(w − w₀) with w = (1 + r²/c)^(−1/2), t = 1 − w², coef = (c, w₀, top, p₀, p₁, …).
    """
    return _sums(rows, cols, _profile(coef, rows.shape[-1]), row_start, symmetric, gradient, tiles)


def _profile(coef: Sequence[float], d: int) -> Kernel:
    """Centred at t₀, near which pairs under N(0, I) gather."""
    c, middle, top, first, *rest = coef
    wide = 2.0 * d < c
    high = float(np.float32(first))
    centre = short_number((2.0 * d if wide else c) / (c + 2.0 * d))
    top -= (centre if wide else 1.0 - centre) * high
    coefficients = (middle, centre, first - high, high, *rest)
    inverse = 1.0 / c
    two_floats = (float(np.float32(inverse)), inverse - float(np.float32(inverse)))
    none = (None, None, None, None)
    base = WIDE.value if wide else NARROW.value
    return Kernel("profile", *none, 1, 0, base, coefficients, two_floats, top)


def _sums(
    rows: Tensor,
    cols: Tensor,
    kernel: Kernel,
    row_start: int,
    symmetric: bool,
    gradient: bool,
    tiles: Tiles | None,
) -> tuple[Tensor, Tensor | None]:
    batches, m, d = rows.shape
    n = cols.shape[1]
    if _elsewhere(rows.device):
        with torch.cuda.device(rows.device):
            return _sums(rows, cols, kernel, row_start, symmetric, gradient, tiles)
    if tiles is None and prefers_direct(batches, m, n, d):
        part, grad = direct_sums(rows, cols, kernel, row_start, gradient)
    else:
        chosen = tiles or choose_tiles(batches, m, n, d, gradient)
        half = symmetric and row_start == 0 and not gradient
        gram = Gram(kernel, batches, m, n, d, symmetric, half, gradient, chosen)
        parts = gram(rows, cols, row_start)
        assert parts.pairs is not None
        part, grad = parts.pairs, parts.pulls
        if grad is not None:
            grad = grad[0] if grad.shape[0] == 1 else grad.sum(0)
    total = part[:, 0] if part.shape[1] == 1 else part.sum(-1)
    if kernel.top:
        excluded = max(0, min(row_start + m, n) - max(row_start, 0))
        total = total + kernel.top * (m * n - excluded)
    return total, grad


def _elsewhere(device: torch.device) -> bool:
    return device.type == "cuda" and device.index != torch.cuda.current_device()


def _kernel(radial: Radial, d: int, device: torch.device) -> Kernel | None:
    """What the kernels want to know of f, or None where float32 has no room for it."""
    if isinstance(radial, Exponentials):
        if isinstance(radial.a, tuple):
            if max(map(abs, radial.offset)) > LARGEST_OFFSET:
                return None
            return _exponentials(*radial.parameters(), device)
        fields = [v.reshape(-1, v.shape[-1]) for v in radial.parameters()]
        return _exponentials(fields[0], fields[1], fields[2], fields[3], device)
    assert isinstance(radial, Rational | SeriesRadial)
    if not abs(radial.weight) < np.exp(LARGEST_OFFSET):
        return None
    if isinstance(radial, Rational):
        rational = rational_profile(radial.a, weight=radial.weight, base=radial.base)
        return _profile(rational.flat(), d)
    high = radial.amplitude_minus_one if radial.base else radial.amplitude
    profile = series_profile(
        d,
        radial.a,
        radial.c,
        radial.series[0],
        scale=radial.weight * radial.amplitude,
        top=radial.weight * high,
    )
    return _profile(profile.flat(), d)


def radial_sums(
    rows: Tensor,
    cols: Tensor,
    radial: Radial,
    *,
    row_start: int = 0,
    symmetric: bool = True,
    gradient: bool = True,
) -> tuple[Tensor, Tensor | None] | None:
    """``pair_sums`` or ``profile_sums`` of f, or None where float32 has no room for f.

    Widths that are tensors are (…, Q) for the batches of ``rows``, which are (B, m, d) here.
    """
    kernel = _kernel(radial, rows.shape[-1], rows.device)
    if kernel is None:
        return None
    return _sums(rows, cols, kernel, row_start, symmetric, gradient, None)


class Statistic(NamedTuple):
    """constant + Σ_{i≠j} pair(r²_ij)/#pairs − 2/n Σ cross(‖z_i‖²), ready for launching."""

    kernel: Kernel
    cross: Cross


def prepare(
    pair: Radial, cross: Radial, constant: float, n: int, d: int, device: torch.device, *,
    unbiased: bool = True,
) -> Statistic | None:  # fmt: skip
    """The statistic of fixed functions, or None where the kernels have no room for them.

    Unbiased: over the n(n − 1) pairs i ≠ j.  Else over all n², of which n are at r² = 0.
    """
    kernel = _kernel(pair, d, device)
    if kernel is None:
        return None
    if unbiased:
        pair_scale = 1.0 / (n * (n - 1))
    else:
        pair_scale = 1.0 / (n * n)
        constant += float(pair.value(np, np.zeros(()))) / n
    constant += kernel.top * (n * (n - 1)) * pair_scale
    header = (constant, pair_scale, -2.0 / n)
    if isinstance(cross, Exponentials):
        terms = len(cross)
        numbers = np.stack([np.asarray(v) for v in cross.parameters()], axis=-1).ravel()
        kind, first, second = triton_cross.EXPONENTIALS.value, terms, 0
    else:
        assert isinstance(cross, SeriesRadial)
        values, slopes = cross.series[0], cross.cubed()
        head = (cross.a, cross.weight, cross.base, cross.amplitude, cross.amplitude_minus_one)
        numbers = np.array([*head, cross.c, *values, *slopes])
        kind, first, second = triton_cross.SERIES.value, len(values), len(slopes)
    on_device = _constant((*header, *numbers.tolist()), device)
    return Statistic(kernel, Cross(kind, on_device, first, second))


def ready(
    prepared: Statistic, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device,
    tiles: Tiles | None = None,
) -> Small | Large:  # fmt: skip
    """What gives the statistic of contiguous samples (…, n, d) of this shape."""
    *batch, n, d = shape
    batches = math.prod(batch)
    direct = tiles is None and prefers_direct(batches, n, n, d)
    if direct and triton_direct_sums.fits(batches, n):
        return Small(*prepared, shape, dtype, device)
    return Large(prepared, shape, dtype, direct, tiles)


class Large:
    """A statistic of samples of one shape and type that takes several launches."""

    def __init__(
        self, prepared: Statistic, shape: tuple[int, ...], dtype: torch.dtype, direct: bool,
        tiles: Tiles | None,
    ) -> None:  # fmt: skip
        *batch, n, d = shape
        self.shape, self.stacked = shape, (math.prod(batch), n, d)
        self.kernel, self.cross = prepared
        self.direct, self.tiles, self.dtype = direct, tiles, dtype
        self.made: dict[bool, tuple[Gram | None, Finish]] = {}

    def __call__(self, z: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The statistic (…) of contiguous z in its type, and its gradient in float32."""
        x = z.detach().view(self.stacked)
        gram, finish = self.made.get(gradient) or self._make(gradient)
        if gram is None:
            part, slope = direct_sums(x, x, self.kernel, 0, gradient, self.cross)
            value, _ = finish(Parts(None, None, part, None), x)
        else:
            value, slope = finish(gram(x, x, 0), x)
        return value.view(self.shape[:-2]), None if slope is None else slope.view(self.shape)

    def _make(self, gradient: bool) -> tuple[Gram | None, Finish]:
        batches, n, d = self.stacked
        gram = None
        if not self.direct:
            cut = self.tiles or choose_tiles(batches, n, n, d, gradient)
            gram = Gram(
                self.kernel, batches, n, n, d, True, not gradient, gradient, cut, self.cross
            )
        finish = Finish(self.cross, self.stacked, self.dtype, gradient and not self.direct)
        self.made[gradient] = gram, finish
        return gram, finish
