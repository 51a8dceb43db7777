"""Small samples: one launch, distances as sums of squared differences.

Nothing cancels, so nothing is centred or split beforehand; the price is two instructions for each
pair and dimension, which only matters once the sample is large (``triton_gram``).
"""

from __future__ import annotations

import triton
import triton.language as tl

from smmd.pairs.triton_math import (
    _LOG2E,
    COLUMNS,
    GAUSSIAN,
    MIXTURE,
    contribution,
    two_floats,
)


@triton.jit(do_not_specialize=["m", "n", "row_start", "terms", "batch_step", "tiles"])
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
    part,
    grad,
    m,
    n,
    row_start,
    terms,
    batch_step,  # 1, or 0 if all batches share their kernel
    tiles,
    KIND: tl.constexpr,
    BASE: tl.constexpr,
    GRAD: tl.constexpr,
    D: tl.constexpr,
    DP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """One tile of rows against all columns; programs: batches × tiles."""
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
        shift = tl.load(offset + b_kernel).to(tl.float64)
        scale = tl.load(weight + b_kernel).to(tl.float64)
        wide = tl.load(base + b_kernel).to(tl.float32) != 0.0
        factor = (2.0 * precision * scale).to(tl.float32)
        ratio = -0.5 * precision
        ratio_high, ratio_low = two_floats(tl.where(wide, ratio, ratio * _LOG2E))
        offset_high, offset_low = two_floats(tl.where(wide, shift, shift * _LOG2E))
    elif KIND == MIXTURE:
        table += b_kernel * terms * COLUMNS
    else:
        factor = 2.0 * inverse_c_high

    if GRAD:
        # Σ w (y_j − x_i) as a matrix product needs an origin near by: the mean of this tile.
        k = tl.arange(0, DP)
        live_x = live_i[:, None] & (k < D)[None, :]
        x = tl.load(rows + i[:, None] * D + k[None, :], mask=live_x, other=0.0)
        origin = tl.sum(x, 0) / tl.sum(live_i.to(tl.float32), 0)
        x = tl.where(live_x, x - origin[None, :], 0.0)
        pull = tl.zeros((BM, DP), tl.float32)
        pull_weight = tl.zeros((BM, BN), tl.float32)

    # Sums stay spread over the tile: few tiles follow each other, and reductions cost as much
    # as the pairs.
    total = tl.zeros((BM, BN), tl.float32)
    for j0 in range(0, n, BN):
        j = j0 + tl.arange(0, BN)
        live_j = j < n
        r2 = tl.zeros((BM, BN), tl.float32)
        if D <= 32:
            for k1 in tl.static_range(D):
                x1 = tl.load(rows + i * D + k1, mask=live_i, other=0.0)
                y1 = tl.load(cols + j * D + k1, mask=live_j, other=0.0)
                step = x1[:, None] - y1[None, :]
                r2 += step * step
        else:
            for k2 in range(D):
                x2 = tl.load(rows + i * D + k2, mask=live_i, other=0.0)
                y2 = tl.load(cols + j * D + k2, mask=live_j, other=0.0)
                step = x2[:, None] - y2[None, :]
                r2 += step * step
        if KIND == GAUSSIAN:
            e = (r2 * ratio_high + offset_high) + (r2 * ratio_low + offset_low)
        elif KIND == MIXTURE:
            e = r2
        else:
            e = r2 * -inverse_c_high - r2 * inverse_c_low
        value, pair = contribution(e, wide, table, terms, coef, KIND, BASE, GRAD)
        other = live_i[:, None] & live_j[None, :] & (i[:, None] + row_start != j[None, :])
        total += tl.where(other, value, 0.0)
        if GRAD:
            pair = tl.where(other, pair, 0.0)
            live_y = live_j[:, None] & (k < D)[None, :]
            y = tl.load(cols + j[:, None] * D + k[None, :], mask=live_y, other=0.0)
            y = tl.where(live_y, y - origin[None, :], 0.0)
            pull = tl.dot(pair, y, pull, input_precision="tf32x3")
            pull_weight += pair

    tl.store(part + program, tl.sum(tl.sum(total, 1).to(tl.float64), 0) * scale)
    if GRAD:
        g = (pull - tl.sum(pull_weight, 1)[:, None] * x) * factor
        tl.store(grad + b * m * D + i[:, None] * D + k[None, :], g, mask=live_x)
