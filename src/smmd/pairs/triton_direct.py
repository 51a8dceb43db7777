"""Small samples: one launch for everything.

In few dimensions distances are sums of squared differences, where nothing cancels; in more, inner
products of points centred on the tile's mean, three tf32 products each.  Nothing is prepared
beforehand, which only pays once the sample is large (``triton_gram``).
"""

from __future__ import annotations

import triton
import triton.language as tl

from smmd.pairs.triton_cross import ABSENT, HEADER, cross_terms, saturated
from smmd.pairs.triton_math import (
    _LOG2E,
    COLUMNS,
    GAUSSIAN,
    MIXTURE,
    contribution,
    folded,
    two_floats,
)

#: So many programs of a batch can be added up by one of them.
MOST_TILES = tl.constexpr(128)


@triton.jit(
    do_not_specialize=["m", "n", "row_start", "terms", "batch_step", "tiles", "first", "second"]
)
def direct(
    rows,
    cols,
    a,
    offset,
    weight,
    base,
    table,
    coef,
    inverse_c_high,
    inverse_c_low,
    numbers,
    part,
    arrived,
    answer,
    grad,
    m,
    n,
    row_start,
    terms,
    batch_step,  # 1, or 0 if all batches share their kernel
    tiles,
    first,
    second,
    KIND: tl.constexpr,
    BASE: tl.constexpr,
    CROSS: tl.constexpr,
    FINISH: tl.constexpr,
    LIMIT: tl.constexpr,  # of the answer's type
    GRAD: tl.constexpr,
    PRODUCTS: tl.constexpr,  # distances from inner products
    D: tl.constexpr,
    DP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """One tile of rows against all columns; programs: batches × tiles.

    With CROSS, whole statistics: each program adds its points' cross terms (``triton_cross``).
    FINISH: the program that comes last, by the count of those that have ``arrived``, adds up the
    parts of its batch, in their order, and leaves the count at 0 again.
    """
    program = tl.program_id(0)
    b = (program // tiles).to(tl.int64)
    i = (program % tiles) * BM + tl.arange(0, BM)
    rows += b * m * D
    cols += b * n * D
    b_kernel = b * batch_step
    live_i = i < m

    wide = False
    factor = 1.0
    scale = 1.0
    ratio_high = 0.0
    ratio_low = 0.0
    offset_high = 0.0
    offset_low = 0.0
    if KIND == GAUSSIAN:
        precision = tl.load(a + b_kernel).to(tl.float64)
        wide = tl.load(base + b_kernel).to(tl.float32) != 0.0
        shift, share = folded(tl.load(offset + b_kernel).to(tl.float64), wide)
        scale = tl.load(weight + b_kernel).to(tl.float64) * share
        factor = (2.0 * precision * scale).to(tl.float32)
        ratio = -0.5 * precision
        ratio_high, ratio_low = two_floats(tl.where(wide, ratio, ratio * _LOG2E))
        offset_high, offset_low = two_floats(tl.where(wide, shift, shift * _LOG2E))
    elif KIND == MIXTURE:
        table += b_kernel * terms * COLUMNS
    else:
        factor = 2.0 * inverse_c_high

    if GRAD | PRODUCTS:
        # Matrix products need an origin near by: the mean of this tile.
        k = tl.arange(0, DP)
        live_x = live_i[:, None] & (k < D)[None, :]
        x = tl.load(rows + i[:, None] * D + k[None, :], mask=live_x, other=0.0).to(tl.float32)
        origin = tl.sum(x, 0) / tl.sum(live_i.to(tl.float32), 0)
        x = tl.where(live_x, x - origin[None, :], 0.0)
    if PRODUCTS:
        norm = tl.sum(x * x, 1)
    if GRAD:
        pull = tl.zeros((BM, DP), tl.float32)
        pull_weight = tl.zeros((BM, BN), tl.float32)

    # Sums stay spread over the tile: few tiles follow each other, and reductions cost as much
    # as the pairs.
    total = tl.zeros((BM, BN), tl.float32)
    for j0 in range(0, n, BN):
        j = j0 + tl.arange(0, BN)
        live_j = j < n
        if GRAD | PRODUCTS:
            live_y = live_j[:, None] & (k < D)[None, :]
            y = tl.load(cols + j[:, None] * D + k[None, :], mask=live_y, other=0.0)
            y = tl.where(live_y, y.to(tl.float32) - origin[None, :], 0.0)
        if not PRODUCTS:
            r2 = tl.zeros((BM, BN), tl.float32)
            for k1 in tl.static_range(D):
                x1 = tl.load(rows + i * D + k1, mask=live_i, other=0.0).to(tl.float32)
                y1 = tl.load(cols + j * D + k1, mask=live_j, other=0.0).to(tl.float32)
                step = x1[:, None] - y1[None, :]
                r2 += step * step
        else:
            inner = tl.dot(x, tl.trans(y), input_precision="tf32x3")
            r2 = tl.fma(inner, -2.0, norm[:, None] + tl.sum(y * y, 1)[None, :])
            r2 = tl.maximum(r2, 0.0, propagate_nan=tl.PropagateNan.ALL)
        if KIND == GAUSSIAN:
            e = tl.fma(r2, ratio_high, tl.fma(r2, ratio_low, offset_low)) + offset_high
        elif KIND == MIXTURE:
            e = r2
        else:
            e = tl.fma(r2, -inverse_c_high, r2 * -inverse_c_low)
        value, pair = contribution(e, wide, table, terms, coef, KIND, BASE, GRAD)
        other = live_i[:, None] & live_j[None, :] & (i[:, None] + row_start != j[None, :])
        total += tl.where(other, value, 0.0)
        if GRAD:
            pair = tl.where(other, pair, 0.0)
            pull = tl.dot(pair, y, pull, input_precision="tf32x3")
            pull_weight += pair

    result = tl.sum(tl.sum(total.to(tl.float64), 1), 0) * scale
    if CROSS != ABSENT:
        own, slope, z = _own_terms(rows, i, live_i, numbers, first, second, CROSS, D, DP)
        pair_scale = tl.load(numbers + 1)
        result = result * pair_scale + own
        factor *= pair_scale.to(tl.float32)
    tl.store(part + program, result)
    if GRAD:
        g = (pull - tl.sum(pull_weight, 1)[:, None] * x) * factor
        if CROSS != ABSENT:
            g += slope[:, None] * z
        tl.store(grad + b * m * D + i[:, None] * D + k[None, :], g, mask=live_x)
    if FINISH:  # noqa: SIM102 - which kernels take as one scalar condition
        if tl.atomic_add(arrived + b, 1, sem="acq_rel") == tiles - 1:
            t = tl.arange(0, MOST_TILES)
            # Not from the first-level cache, which does not see other programs' stores.
            parts = tl.load(part + b * tiles + t, mask=t < tiles, other=0.0, cache_modifier=".cg")
            tl.store(answer + b, saturated(tl.sum(parts, 0) + tl.load(numbers), LIMIT))
            tl.store(arrived + b, 0)


@triton.jit
def _own_terms(
    rows, i, live_i, numbers, first, second,
    CROSS: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """−2/n Σ_i f(‖z_i‖²) of these rows, what multiplies z_i in its gradient, and z."""
    k = tl.arange(0, DP)
    live = live_i[:, None] & (k < D)[None, :]
    z = tl.load(rows + i[:, None] * D + k[None, :], mask=live, other=0.0).to(tl.float64)
    value, slope = cross_terms(tl.sum(z * z, 1), numbers + HEADER, first, second, CROSS)
    share = tl.load(numbers + 2)
    total = share * tl.sum(tl.where(live_i, value, 0.0), 0)
    return total, (2.0 * share * slope).to(tl.float32), z.to(tl.float32)
