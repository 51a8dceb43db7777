"""The terms of the statistic that need one evaluation for each point, in float64.

There are n of them beside n² pairs, so they can afford to be exact: their error would be shared
by all pairs.  One buffer of float64 ``numbers`` holds what a launch needs to know:

    constant, 1/#pairs, −2/n, then the function of ‖z‖² as ``cross_terms`` reads it.
"""

from __future__ import annotations

import triton
import triton.language as tl

#: What E_x k(x, z) is: nothing to do, Σ_q of exponentials, or a Chebyshev series.
ABSENT = tl.constexpr(0)
EXPONENTIALS = tl.constexpr(1)
SERIES = tl.constexpr(2)

#: How many numbers come before those of the function.
HEADER = tl.constexpr(3)

_LOG2E = tl.constexpr(1.4426950408889634)
_LN2_HIGH = tl.constexpr(0.6931471803691238)  # 32 bits: its product with k is exact
_LN2_LOW = tl.constexpr(1.9082149292705877e-10)
_ROUND = tl.constexpr(6755399441055744.0)  # 1.5 · 2^52: adding it rounds a float64 to an integer


@triton.jit
def exponential64(t):
    """e^t and e^t − 1 in float64, both to rounding: e^t = 2^k e^f, |f| ≤ ln(2)/2."""
    t = tl.maximum(t, -700.0, propagate_nan=tl.PropagateNan.ALL)
    t = tl.minimum(t, 700.0, propagate_nan=tl.PropagateNan.ALL)
    k = (t * _LOG2E + _ROUND) - _ROUND
    f = (t - k * _LN2_HIGH) - k * _LN2_LOW
    p = f * 1.6059043836821613e-10 + 2.08767569878681e-09  # 1/13!, 1/12!, …
    p = p * f + 2.505210838544172e-08
    p = p * f + 2.755731922398589e-07
    p = p * f + 2.7557319223985893e-06
    p = p * f + 2.48015873015873e-05
    p = p * f + 0.0001984126984126984
    p = p * f + 0.001388888888888889
    p = p * f + 0.008333333333333333
    p = p * f + 0.041666666666666664
    p = p * f + 0.16666666666666666
    p = p * f + 0.5
    p = (p * f) * f + f
    power = ((k.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)
    return power * p + power, power * p + (power - 1.0)


@triton.jit
def _clenshaw(coefficients, count, w):
    """Σ_k c_k T_k(2w − 1)."""
    y2 = 4.0 * w - 2.0
    b1 = tl.zeros_like(w)
    b2 = tl.zeros_like(w)
    for step in range(1, count):
        b0 = y2 * b1 - b2 + tl.load(coefficients + count - step)
        b2 = b1
        b1 = b0
    return 0.5 * y2 * b1 - b2 + tl.load(coefficients)


@triton.jit
def cross_terms(r2, numbers, first, second, KIND: tl.constexpr):
    """f(r²) and f'(r²) of ``radial.Exponentials`` (``first`` terms of a, offset, weight, base) or

    ``radial.SeriesRadial`` (a, weight, base, amplitude, amplitude − 1, c, two series).
    """
    value = tl.zeros_like(r2)
    slope = tl.zeros_like(r2)
    if KIND == EXPONENTIALS:
        for q in range(first):
            row = numbers + 4 * q
            half = -0.5 * tl.load(row)
            weight = tl.load(row + 2)
            e, less = exponential64(half * r2 + tl.load(row + 1))
            value += weight * tl.where(tl.load(row + 3) != 0.0, less, e)
            slope += (half * weight) * e
    else:
        half = 0.5 * tl.load(numbers)
        weight = tl.load(numbers + 1)
        amplitude = tl.load(numbers + 3)
        c = tl.load(numbers + 5)
        top = tl.where(tl.load(numbers + 2) != 0.0, tl.load(numbers + 4), amplitude)
        x = tl.minimum(half * r2, 1e30, propagate_nan=tl.PropagateNan.ALL)
        w = 1.0 / tl.sqrt(1.0 + x / c)
        amplitude *= weight
        value += weight * top - (amplitude * x) / (c + x) * _clenshaw(numbers + 6, first, w)
        series = _clenshaw(numbers + 6 + first, second, w)
        slope -= (half * amplitude) * (w * w * w) * series
    return value, slope


@triton.jit
def saturated(x, LIMIT: tl.constexpr):
    """What is beyond the range of the answer's type becomes its largest number; in float32.

    (From there the store converts: not every Triton goes from float64 to half precision.)
    """
    x = tl.maximum(x, -LIMIT, propagate_nan=tl.PropagateNan.ALL)
    return tl.minimum(x, LIMIT, propagate_nan=tl.PropagateNan.ALL).to(tl.float32)


@triton.jit(do_not_specialize=["parts", "cross_parts", "count", "all_rows", "tiles", "splits"])
def finish(
    part,
    cross_part,
    pulls,
    cross_slope,
    z,
    numbers,
    value,
    grad,
    parts,
    cross_parts,
    count,
    all_rows,
    tiles,
    splits,
    LIMIT: tl.constexpr,
    GRAD: tl.constexpr,
    D: tl.constexpr,
    DP: tl.constexpr,
    BR: tl.constexpr,
):
    """Put a statistic together from its programs' parts; programs: batches × tiles of rows."""
    program = tl.program_id(0)
    b = (program // tiles).to(tl.int64)
    tile = program % tiles
    pair_scale = tl.load(numbers + 1)
    if tile == 0:
        at = tl.arange(0, 1024)
        total = tl.zeros((1024,), tl.float64)
        if part is not None:
            for start in range(0, parts, 1024):
                mask = start + at < parts
                total += tl.load(part + b * parts + start + at, mask=mask, other=0.0)
            total *= pair_scale
        for start in range(0, cross_parts, 1024):
            mask = start + at < cross_parts
            total += tl.load(cross_part + b * cross_parts + start + at, mask=mask, other=0.0)
        tl.store(value + b, saturated(tl.sum(total, 0) + tl.load(numbers), LIMIT))
    if GRAD:
        i = tile * BR + tl.arange(0, BR)
        k = tl.arange(0, DP)
        live = (i < count)[:, None] & (k < D)[None, :]
        at_i = b * count + i.to(tl.int64)
        at = at_i[:, None] * D + k[None, :]
        pull = tl.zeros((BR, DP), tl.float32)
        for cut in range(splits):
            pull += tl.load(
                pulls + tl.cast(cut, tl.int64) * all_rows * D + at, mask=live, other=0.0
            )
        slope = tl.load(cross_slope + at_i, mask=i < count, other=0.0)
        own = tl.load(z + at, mask=live, other=0.0).to(tl.float32)
        tl.store(grad + at, pull * pair_scale.to(tl.float32) + slope[:, None] * own, mask=live)
