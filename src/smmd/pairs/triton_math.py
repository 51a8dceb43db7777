"""What one pair contributes, in float32 without a systematic error.

A relative error that all pairs share is amplified about n/4 times in null standard deviations, so
constants are split into two floats, ``expm1`` keeps its relative accuracy through zero, and only
rounding to nearest (which averages out) is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import triton
import triton.language as tl

from smmd.pairs.triton_cross import exponential64

#: How a pair's exponent ``e`` becomes its value.
GAUSSIAN = tl.constexpr(0)  # e holds scale and offset: 2^e, or e^e - 1 for a wide kernel
MIXTURE = tl.constexpr(1)  # Σ_q over a table of (ratio, offset, weight, slope, base)
PROFILE = tl.constexpr(2)  # e = -r²/c: a polynomial in (1 + r²/c)^(-1/2)

#: Whether terms are wide (base 1; of a profile: most pairs have r² < c): no, yes, or to be read on
#: the device.
NARROW = tl.constexpr(0)
WIDE = tl.constexpr(1)
EITHER = tl.constexpr(2)

#: On an H200 the special-function unit's 2^x is 5.0·10⁻⁸ too small on average over each octave
#: below x = −1 (and 3.4·10⁻⁸ too large above x = 1): what sums of it are multiplied by.
MENDED = tl.constexpr(1.00000005)
#: Offsets beyond this stay in the exponent (``folded``).
FOLDED = tl.constexpr(40.0)

#: float32 numbers in one row of a mixture's table.
COLUMNS = tl.constexpr(8)

_LOG2E = tl.constexpr(1.4426950408889634)
_LN2_HIGH = tl.constexpr(0.693145751953125)  # 16 bits: its product with k is exact
_LN2_LOW = tl.constexpr(1.42860682030941723e-6)
_ROUND = tl.constexpr(12582912.0)  # 1.5 · 2^23: adding it rounds a float32 to an integer


@triton.jit
def expm1(t):
    """e^t − 1 for t < 80 with a relative error of rounding: e^t = 2^k e^f, |f| ≤ ln(2)/2.

    2^k (e^f − 1) + (2^k − 1) is exactly the polynomial wherever |t| is small.
    """
    t = tl.maximum(t, -80.0, propagate_nan=tl.PropagateNan.ALL)
    k = (t * _LOG2E + _ROUND) - _ROUND
    f = (t - k * _LN2_HIGH) - k * _LN2_LOW
    tail = 0.0083332984 + f * (0.0013933734 + f * 0.00019899392)
    tail = 0.5 + f * (0.16666667 + f * (0.041666463 + f * tail))
    p = f + (f * f) * tail
    power = ((k.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return power * p + (power - 1.0)


@triton.jit
def folded(offset, wide):
    """An offset, and the factor of sums that stands for what was taken out of it.

    Taken out of the exponent it leaves 2^x with x ≤ 0, where the special-function unit's mean
    error is known and mended; an offset too large for that stays.
    """
    taken = (tl.abs(offset) <= FOLDED) & (wide == 0)
    factor, _ = exponential64(tl.where(taken, offset, 0.0))
    return tl.where(taken, 0.0, offset), tl.where(taken, factor * MENDED, 1.0)


@triton.jit
def exponential(t, wide, BASE: tl.constexpr):
    """exp(t) − base and exp(t), where t is in units of log 2 unless the base is 1."""
    if BASE == NARROW:
        k = tl.exp2(t)
        v = k
    elif BASE == WIDE:
        v = expm1(t)
        k = v + 1.0
    else:
        if wide:
            v = expm1(t)
            k = v + 1.0
        else:
            v = tl.exp2(t)
            k = v
    return v, k


@triton.jit
def mixture(e, table, terms, slope: tl.constexpr, BASE: tl.constexpr):
    """Σ_q weight_q (exp(ratio_q e + offset_q) − base_q) and Σ_q slope_q exp(ratio_q e + offset_q).

    Each constant that all pairs share comes as the sum of two floats.
    """
    value = tl.zeros_like(e)
    weight = tl.zeros_like(e)
    for q in range(terms):
        row = table + q * COLUMNS
        # The small part goes in before the large one is rounded, which else would swallow it.
        low = tl.fma(e, tl.load(row + 1), tl.load(row + 3))
        t = tl.fma(e, tl.load(row), low) + tl.load(row + 2)
        v, k = exponential(t, tl.load(row + 7) != 0.0, BASE)
        value += tl.fma(v, tl.load(row + 4), v * tl.load(row + 5))
        if slope:
            weight += k * tl.load(row + 6)
    return value, weight


@triton.jit
def profile(e, coef, slope: tl.constexpr, BASE: tl.constexpr):
    """f − f₀ and 2c·(−df/dr²) of the profile f = top − t P(u), all functions of x = r²/c = −e:

    w = (1 + x)^(−1/2), t = x w² = 1 − w², u = w − w₀, P(u) = p₀ + u P₁(u), f₀ = top − t₀ p₀.
    ``coef`` = (w₀, t₀ if BASE is WIDE else 1 − t₀, low part of p₀, p₀, p₁, …).

    In f − f₀ = −(t − t₀) p₀ − t u P₁(u) everything is as small as the values' spread, so that no
    relative error is amplified by what they have in common.  t − t₀ keeps its accuracy in wide
    kernels, x < 1, as x w² − t₀; in narrow ones as (1 − t₀) − w².
    """
    v = 1.0 - e
    w = tl.rsqrt(v)
    # The unit's error is not a rounding: all pairs share it.  Its residual 1 − (1 + x) w² is found
    # exactly where x < 1 (beyond, to rounding of v), and mends w² and w − w₀ (the latter before
    # it is rounded to w's size).
    square = w * w
    if BASE == WIDE:
        residual = tl.fma(e, square, 1.0 - square)
        t = -e * square
        from_centre = tl.fma(t, residual, tl.fma(-e, square, -coef[1]))
        t = tl.fma(t, residual, t)
    else:
        residual = tl.fma(-v, square, 1.0)
        square_mended = tl.fma(square, residual, square)
        from_centre = coef[1] - square_mended
        t = -e * square_mended
    residual = tl.fma(-v, tl.fma(w, w, -square), residual)
    u = (w - coef[0]) + (0.5 * w) * residual
    degree: tl.constexpr = len(coef) - 4
    p = tl.zeros_like(e) + coef[degree + 3]
    dp = tl.zeros_like(e)
    for step in tl.static_range(1, degree):
        if slope:
            dp = tl.fma(dp, u, p)
        p = tl.fma(p, u, coef[degree + 3 - step])
    if slope:
        dp = tl.fma(dp, u, p)
    tail = tl.fma(p, u, coef[2])
    value = -tl.fma(from_centre, coef[3], t * tail)
    weight = (w * square) * (2.0 * w * (coef[3] + tail) - t * dp)
    return value, weight


@triton.jit
def contribution(
    e, wide, table, terms, coef, KIND: tl.constexpr, BASE: tl.constexpr, SLOPE: tl.constexpr
):
    """A pair's value and the weight of its difference vector in the gradient (up to a factor)."""
    if KIND == GAUSSIAN:
        value, weight = exponential(e, wide, BASE)
    elif KIND == MIXTURE:
        value, weight = mixture(e, table, terms, SLOPE, BASE)
    else:
        value, weight = profile(e, coef, SLOPE, BASE)
    return value, weight


@triton.jit
def two_floats(x):
    """A float64 as the sum of two float32."""
    high = x.to(tl.float32)
    return high, (x - high.to(tl.float64)).to(tl.float32)


@triton.jit(do_not_specialize=["terms"])
def mixture_table(a, offset, weight, base, table, terms, RELATIVE: tl.constexpr, QP: tl.constexpr):
    """One row of ``table`` for each term, for exponents e = −½ a_max r² (RELATIVE) or e = r²."""
    b = tl.program_id(0)
    q = tl.arange(0, QP)
    live = q < terms
    at = b * terms + q
    a = tl.load(a + at, mask=live, other=0.0).to(tl.float64)
    offset = tl.load(offset + at, mask=live, other=0.0).to(tl.float64)
    weight = tl.load(weight + at, mask=live, other=0.0).to(tl.float64)
    base = tl.load(base + at, mask=live, other=0.0).to(tl.float32)
    offset, share = folded(offset, base != 0.0)
    weight *= share
    if RELATIVE:
        ratio = a / tl.max(a, 0)
    else:
        ratio = -0.5 * a
    ratio_high, ratio_low = two_floats(tl.where(base != 0.0, ratio, ratio * _LOG2E))
    offset_high, offset_low = two_floats(tl.where(base != 0.0, offset, offset * _LOG2E))
    weight_high, weight_low = two_floats(weight)
    row = table + (b * terms + q).to(tl.int64) * COLUMNS
    tl.store(row, ratio_high, mask=live)
    tl.store(row + 1, ratio_low, mask=live)
    tl.store(row + 2, offset_high, mask=live)
    tl.store(row + 3, offset_low, mask=live)
    tl.store(row + 4, weight_high, mask=live)
    tl.store(row + 5, weight_low, mask=live)
    tl.store(row + 6, (2.0 * a * weight).to(tl.float32), mask=live)
    tl.store(row + 7, base, mask=live)


def mixture_numbers(
    a: Sequence[float],
    offset: Sequence[float],
    weight: Sequence[float],
    base: Sequence[float],
    *,
    relative: bool,
) -> tuple[float, ...]:
    """What ``mixture_table`` writes, computed on the host for a kernel that stays the same."""
    rows = []
    for aq, oq, wq, bq in zip(a, offset, weight, base, strict=True):
        unit = 1.0 if bq else math.log2(math.e)
        if not bq and abs(oq) <= FOLDED.value:
            oq, wq = 0.0, wq * math.exp(oq) * MENDED.value
        ratio = aq / max(a) if relative else -0.5 * aq
        numbers = (v for x in (ratio * unit, oq * unit, wq) for v in _two_floats(x))
        rows.extend([*numbers, 2.0 * aq * wq, float(bq)])
    return tuple(rows)


def _two_floats(x: float) -> tuple[float, float]:
    high = float(np.float32(x))
    return high, x - high
