"""Rows as matrix units can multiply them without rounding.

Tensor cores truncate when they add, which is a shared relative error; so the products are made
exact.  Each row is scaled by a power of two so that its largest entry is below 2048 and every
entry becomes an integer h plus l/2048, |l| ≤ 1024: both are float16 numbers, and sums of products
of such integers below 2^24 are exact in float32, in any order (``triton_gram``).
"""

from __future__ import annotations

import triton
import triton.language as tl

from smmd.pairs.triton_cross import ABSENT, HEADER, cross_terms
from smmd.pairs.triton_math import _LOG2E, GAUSSIAN, MIXTURE, folded

#: In more dimensions norms are nearly equal, and held more exactly (``usual_norm``); and products
#: of points off their mean would exceed 2^24, and be truncated: there the mean is the centre.
FEW_DIMENSIONS = tl.constexpr(64)

_ROUND64 = tl.constexpr(6755399441055744.0)  # 1.5 · 2^52: rounds a float64 to an integer


@triton.jit
def _middle(x, count, k, D: tl.constexpr):
    """A point amidst the rows, as float32: in each coordinate the median of five of them.

    Any point will do that is not far off.  The mean would take a launch more, and an outlier more
    to heart.
    """
    a = _row(x, count, 1, k, D)
    b = _row(x, count, 3, k, D)
    c = _row(x, count, 5, k, D)
    d = _row(x, count, 7, k, D)
    low = tl.maximum(tl.minimum(a, b), tl.minimum(c, d))
    high = tl.minimum(tl.maximum(a, b), tl.maximum(c, d))
    fifth = _row(x, count, 9, k, D)
    return tl.maximum(tl.minimum(low, high), tl.minimum(tl.maximum(low, high), fifth))


@triton.jit
def _row(x, count, tenths, k, D: tl.constexpr):
    at = (tl.cast(count, tl.int64) * tenths) // 10
    return tl.load(x + at * D + k, mask=k < D, other=0.0).to(tl.float32)


@triton.jit
def usual_norm(a, base, at, terms, unit_high, KIND: tl.constexpr, D: tl.constexpr):
    """About −½‖z‖² of a standardized sample's rows: ``side`` holds what exceeds it.

    An error of a norm shifts the row's n pairs alike.  In many dimensions, where an addition a
    pair costs nothing beside the products, only norms' differences are rounded; in few, this is 0.
    """
    norm = tl.full((), 0.0, tl.float32)
    if D > FEW_DIMENSIONS:
        if KIND == GAUSSIAN:
            unit = tl.load(a + at).to(tl.float64)
            unit = tl.where(tl.load(base + at).to(tl.float32) != 0.0, unit, unit * _LOG2E)
        elif KIND == MIXTURE:
            unit = tl.full((), 0.0, tl.float64)
            for q in range(terms):
                unit = tl.maximum(unit, tl.load(a + at * terms + q).to(tl.float64))
        else:
            unit = tl.cast(unit_high, tl.float64)
        norm += (tl.minimum(unit, 1e30) * (-0.5 * D)).to(tl.float32)
    return norm


@triton.jit(do_not_specialize=["count", "terms", "batch_step", "tiles", "first", "second"])
def split(
    x,
    centre,
    a,
    offset,
    base,
    unit_high,  # PROFILE: 2/c as two floats
    unit_low,
    numbers,
    parts,
    side,
    z,
    cross_part,
    cross_slope,
    count,
    side_step,  # length of one batch of ``side``
    terms,
    batch_step,
    tiles,
    first,
    second,
    KIND: tl.constexpr,
    CROSS: tl.constexpr,
    GRAD: tl.constexpr,
    GIVEN: tl.constexpr,  # the centre is given, else it is found and written
    D: tl.constexpr,
    DP: tl.constexpr,  # stored width of h and of l
    DZ: tl.constexpr,  # stored width of each half of z
    DL: tl.constexpr,  # a power of two that covers both
    QP: tl.constexpr,
    BR: tl.constexpr,
):
    """Centre and scale rows; write h and l, (norm, g), z as two bfloat16.

    The norm is −½‖z‖² with half the offset, from ``usual_norm`` on.
    With CROSS also −2/n Σ f(‖z_i‖²) and what multiplies z_i in its gradient (``triton_cross``).
    """
    program = tl.program_id(0)
    b = (program // tiles).to(tl.int64)
    i = (program % tiles) * BR + tl.arange(0, BR)
    k = tl.arange(0, DL)
    live = i < count
    at = b * count + i.to(tl.int64)

    shift = tl.zeros((1,), tl.float64)
    if KIND == GAUSSIAN:
        wide = tl.load(base + b * batch_step).to(tl.float32) != 0.0
        precision = tl.load(a + b * batch_step).to(tl.float64)
        kept, _ = folded(tl.load(offset + b * batch_step).to(tl.float64), wide)
        unit = tl.where(wide, precision, precision * _LOG2E)
        shift += 0.5 * tl.where(wide, kept, kept * _LOG2E)
    elif KIND == MIXTURE:
        q = tl.arange(0, QP)
        each = tl.load(a + b * batch_step * terms + q, mask=q < terms, other=0.0)
        unit = tl.max(each.to(tl.float64), 0)
    else:
        unit = tl.cast(unit_high, tl.float64) + tl.cast(unit_low, tl.float64)

    mask = live[:, None] & (k < D)[None, :]
    entry = tl.load(x + at[:, None] * D + k[None, :], mask=mask, other=0.0).to(tl.float64)
    if CROSS != ABSENT:
        norms = tl.sum(entry * entry, 1)
        value, slope = cross_terms(norms, numbers + HEADER, first, second, CROSS)
        share = tl.load(numbers + 2)
        tl.store(cross_part + program, share * tl.sum(tl.where(live, value, 0.0), 0))
        if GRAD:
            tl.store(cross_slope + at, (2.0 * share * slope).to(tl.float32), mask=live)
    if GIVEN:
        middle = tl.load(centre + b * D + k, mask=k < D, other=0.0)
    else:
        middle = _middle(x + b * count * D, count, k, D)
        if program % tiles == 0:
            tl.store(centre + b * D + k, middle, mask=k < D)
    entry = tl.where(mask, entry - middle.to(tl.float64)[None, :], 0.0)
    scaled = entry * tl.sqrt(unit)

    # the power of two at or below the row's largest entry, over 1024
    largest = tl.maximum(tl.max(tl.abs(scaled), 1).to(tl.float32), 1e-30)
    power = (largest.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    step = power * 0.0009765625
    per_step = 2048.0 / step.to(tl.float64)
    whole = (scaled * per_step[:, None] + _ROUND64) - _ROUND64
    h = (whole * 0.00048828125 + _ROUND64) - _ROUND64
    low = whole - h * 2048.0
    if D > FEW_DIMENSIONS:
        # Of the row itself: what its parts leave out would shift the row's n pairs alike, where in
        # products with centred rows it has no preferred sign.
        usual = usual_norm(a, base, b * batch_step, terms, unit_high, KIND, D)
        half_square = -0.5 * tl.sum(scaled * scaled, 1) - usual.to(tl.float64) + shift
    else:
        # Of its parts: differences between near rows keep their accuracy.
        half_square = -0.5 * tl.sum(whole * whole, 1) / (per_step * per_step) + shift

    row = parts + at[:, None] * (2 * DP) + k[None, :]
    stored = live[:, None] & (k < DP)[None, :]
    tl.store(row, h.to(tl.float32).to(tl.float16), mask=stored)
    tl.store(row + DP, low.to(tl.float32).to(tl.float16), mask=stored)
    norm_bits = half_square.to(tl.float32).to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    step_bits = step.to(tl.int32, bitcast=True).to(tl.int64) << 32
    tl.store(side + b * side_step + i, norm_bits | step_bits, mask=live)
    if GRAD:
        single = entry.to(tl.float32)
        high = single.to(tl.bfloat16)
        row = z + at[:, None] * (2 * DZ) + k[None, :]
        stored = live[:, None] & (k < DZ)[None, :]
        tl.store(row, high, mask=stored)
        tl.store(row + DZ, (single - high.to(tl.float32)).to(tl.bfloat16), mask=stored)
