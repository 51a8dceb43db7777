"""Large samples: squared distances from inner products on matrix units, exact to rounding.

``triton_split`` has written each row as g·(h + l/2048) with integers h and l in float16.  Then

    z_i·z_j = g_i g_j (Σ h h' + 2^-11 Σ (h l' + l h')),

what is left out, Σ l l', is below a rounding of ‖z‖² and has no preferred sign.
"""

from __future__ import annotations

import triton
import triton.language as tl

from smmd.pairs.triton_apply import factor_of, rounded_dot
from smmd.pairs.triton_math import (
    _LOG2E,
    COLUMNS,
    GAUSSIAN,
    MIXTURE,
    contribution,
    folded,
)
from smmd.pairs.triton_split import FEW_DIMENSIONS, usual_norm

#: What becomes of a pair's weight in the gradient.
NONE = tl.constexpr(0)
FUSED = tl.constexpr(1)
STORED = tl.constexpr(2)


@triton.jit
def _unpack(side):
    """A row's norm and g, which travel as one 64-bit number: half the instructions of two loads."""
    norm = side.to(tl.int32).to(tl.float32, bitcast=True)
    return norm, (side >> 32).to(tl.int32).to(tl.float32, bitcast=True)


@triton.jit
def _products(
    x,
    y,
    live_i,
    live_j,
    x_one,
    x_two,
    MASKED: tl.constexpr,
    DP: tl.constexpr,
    BK: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Σ h h' and Σ (h l' + l h') of a tile; x and y point at the tiles' first rows."""
    j = tl.arange(0, BN)
    if DP == 8:  # h and l side by side fill one step of the matrix unit
        at = y + j[:, None] * 16 + tl.arange(0, 16)[None, :]
        if MASKED:
            both = tl.load(at, mask=live_j[:, None], other=0.0)
        else:
            both = tl.load(at)
        # rows [h 0] over rows [l h]: one product, one wait
        stacked = tl.reshape(tl.dot(x_one, tl.trans(both)), (2, BM, BN))
        major, minor = tl.split(tl.permute(stacked, (1, 2, 0)))
    elif DP == BK:
        at = y + j[:, None] * (2 * DP) + tl.arange(0, DP)[None, :]
        if MASKED:
            high = tl.load(at, mask=live_j[:, None], other=0.0)
            low = tl.load(at + DP, mask=live_j[:, None], other=0.0)
        else:
            high = tl.load(at)
            low = tl.load(at + DP)
        major = tl.dot(x_one, tl.trans(high))
        minor = tl.dot(x_one, tl.trans(low))
        minor = tl.dot(x_two, tl.trans(high), minor)
    else:
        k = tl.arange(0, BK)
        i = tl.arange(0, BM)
        at_x = x + i[:, None] * (2 * DP) + k[None, :]
        at_y = y + j[:, None] * (2 * DP) + k[None, :]
        major = tl.zeros((BM, BN), tl.float32)
        minor = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, DP, BK):
            xh = tl.load(at_x + k0, mask=live_i[:, None], other=0.0)
            xl = tl.load(at_x + DP + k0, mask=live_i[:, None], other=0.0)
            if MASKED:
                yh = tl.load(at_y + k0, mask=live_j[:, None], other=0.0)
                yl = tl.load(at_y + DP + k0, mask=live_j[:, None], other=0.0)
            else:
                yh = tl.load(at_y + k0)
                yl = tl.load(at_y + DP + k0)
            major = tl.dot(xh, tl.trans(yh), major)
            minor = tl.dot(xh, tl.trans(yl), minor)
            minor = tl.dot(xl, tl.trans(yh), minor)
    return major, minor


@triton.jit
def _leading(x):
    """x rounded to bfloat16's eight bits, still float32 (so that the rest x − it is exact)."""
    bits = (x.to(tl.int32, bitcast=True) + 0x8000) & -65536
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _column_tile(
    tile, x, y, side, z, n, diagonal, live_i, norm, step, x_one, x_two,
    usual, top, wide, table, terms, coef, pull, pull_weight, stride,
    MASKED: tl.constexpr, KIND: tl.constexpr, BASE: tl.constexpr, GRAD: tl.constexpr,
    PASSES: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DZ: tl.constexpr, DG: tl.constexpr, BK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Row sums of one tile of pairs, and its part of the gradient (or the weights for it)."""
    j0 = (tile * BN).to(tl.int64)
    j = tl.arange(0, BN)
    live_j = tile * BN + j < n
    major, minor = _products(
        x, y + j0 * (2 * DP), live_i, live_j, x_one, x_two, MASKED, DP, BK, BM, BN
    )
    other_norm, other_step = _unpack(side)
    # Not ``major + …``: the compiler would start one product from the other, and truncate.
    inner = tl.fma(minor, 0.00048828125, major) * step[:, None]
    e = inner * other_step[None, :] + (norm[:, None] + other_norm[None, :])
    if D > FEW_DIMENSIONS:
        e += usual
    e = tl.minimum(e, top, propagate_nan=tl.PropagateNan.ALL)  # rounding must not exceed r = 0
    value, pair = contribution(e, wide, table, terms, coef, KIND, BASE, GRAD != NONE)
    if MASKED:
        keep = live_j[None, :] & (diagonal[:, None] != tile * BN + j[None, :])
        value = tl.where(keep, value, 0.0)
        pair = tl.where(keep, pair, 0.0)
    if GRAD == FUSED:
        k = tl.arange(0, DG)
        at = z + j0 * (2 * DZ) + j[:, None] * (2 * DZ) + k[None, :]
        leading = _leading(pair)
        first = leading.to(tl.bfloat16)
        if MASKED:
            z_high = tl.load(at, mask=live_j[:, None], other=0.0)
        else:
            z_high = tl.load(at)
        pull = rounded_dot(first, z_high, pull)
        if (DZ > 8) & (PASSES > 1):
            if MASKED:
                z_low = tl.load(at + DZ, mask=live_j[:, None], other=0.0)
            else:
                z_low = tl.load(at + DZ)
            pull = rounded_dot(first, z_low, pull)
        if PASSES > 2:
            pull = rounded_dot((pair - leading).to(tl.bfloat16), z_high, pull)
            pull_weight += tl.sum(pair, 1)
        else:
            pull_weight += tl.sum(leading, 1)
    elif GRAD == STORED:
        leading = _leading(pair)
        pull_weight += tl.sum(leading, 1)
        at = z + j0 + tl.arange(0, BM).to(tl.int64)[:, None] * stride + j[None, :]
        tl.store(at, leading.to(tl.bfloat16))  # the strip has whole tiles; masked weights are 0
    return tl.sum(value, 1).to(tl.float64), pull, pull_weight


@triton.jit(
    do_not_specialize=[
        "m", "n", "all_rows", "row_start", "first_row", "terms", "batch_step",
        "tiles", "splits", "tiles_per_split", "part_row", "part_rows",
    ]
)  # fmt: skip
def gram(
    x_parts, x_side, y_parts, y_side, z, weights, rows, centre,
    a, offset, weight, base, table, coef, factor_profile, part, grad, grad_weight,
    m, n, all_rows, row_start, first_row, strip, stride, terms, batch_step,
    tiles, splits, tiles_per_split, part_row, part_rows,
    x_side_step, y_side_step,
    KIND: tl.constexpr, BASE: tl.constexpr, GRAD: tl.constexpr, HALF: tl.constexpr,
    PASSES: tl.constexpr,
    D: tl.constexpr, DP: tl.constexpr, DZ: tl.constexpr, DG: tl.constexpr, BK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """A tile of rows against a range of column tiles; programs: batches × splits × tiles.

    HALF: only columns at or right of the diagonal; what lies right of it counts twice.
    GRAD: FUSED multiplies the weights with z at once; STORED writes those of the rows from
    ``first_row`` on into a strip of bfloat16, for ``apply_weights``.
    """
    program = tl.program_id(0)
    tile_i = program % tiles
    rest = program // tiles
    cut = rest % splits
    b = (rest // splits).to(tl.int64)
    b_kernel = b * batch_step
    i0 = first_row + tile_i * BM
    i = i0 + tl.arange(0, BM)
    live_i = i < m
    at_i = b * m + i.to(tl.int64)

    wide = False
    top = 0.0
    scale = tl.full((), 1.0, tl.float64)
    if KIND == GAUSSIAN:
        scale = tl.load(weight + b_kernel).to(tl.float64)
        wide = tl.load(base + b_kernel).to(tl.float32) != 0.0
        shift, share = folded(tl.load(offset + b_kernel).to(tl.float64), wide)
        scale *= share
        top = tl.where(wide, shift, shift * _LOG2E).to(tl.float32)
    elif KIND == MIXTURE:
        table += b_kernel * terms * COLUMNS
    usual = 2.0 * usual_norm(a, base, b_kernel, terms, factor_profile, KIND, D)

    x = x_parts + (b * m + i0.to(tl.int64)) * (2 * DP)
    y = y_parts + b * n * (2 * DP)
    y_side += b * y_side_step + tl.arange(0, BN)
    norm, step = _unpack(tl.load(x_side + b * x_side_step + i, mask=live_i, other=0))
    i_local = tl.arange(0, BM)
    if DP == 8:
        k = tl.arange(0, 16)
        twice = tl.arange(0, 2 * BM)
        at = (
            x
            + (twice % BM)[:, None] * 16
            + tl.where(twice[:, None] < BM, k[None, :], (k[None, :] + 8) % 16)
        )
        there = (first_row + tile_i * BM + twice % BM < m)[:, None]
        there = there & ((twice >= BM)[:, None] | (k < 8)[None, :])
        x_one = tl.load(at, mask=there, other=0.0)
        x_two = 0
    elif DP == BK:
        at = x + i_local[:, None] * (2 * DP) + tl.arange(0, DP)[None, :]
        x_one = tl.load(at, mask=live_i[:, None], other=0.0)
        x_two = tl.load(at + DP, mask=live_i[:, None], other=0.0)
    else:
        x_one = 0
        x_two = 0

    total = tl.zeros((BM,), tl.float64)
    pull = 0.0
    if GRAD == FUSED:
        z += b * n * (2 * DZ)
        pull = tl.zeros((BM, DG), tl.float32)
    elif GRAD == STORED:
        z = weights + (b * strip + tile_i * BM) * stride
    pull_weight = tl.zeros((BM,), tl.float32)

    # Column tiles [lo, hi) of this program: first the full ones off the diagonal, unmasked;
    # then those with pairs i = j, and the ragged last one.
    lo = cut * tiles_per_split
    hi = tl.minimum(lo + tiles_per_split, tl.cdiv(n, BN))
    ragged = n // BN
    first_pair = tl.minimum(tl.maximum(row_start + i0, 0), n)
    last_pair = tl.minimum(tl.maximum(row_start + tl.minimum(i0 + BM, m), 0), n)
    diag_lo = first_pair // BN
    diag_hi = tl.where(last_pair > first_pair, tl.cdiv(last_pair, BN), diag_lo)
    if HALF:
        lo = tl.maximum(lo, diag_lo)
        diag_hi = tl.minimum(tl.cdiv(i0 + BM, BN), tl.cdiv(n, BN))
    here_lo = tl.minimum(tl.maximum(diag_lo, lo), hi)
    here_hi = tl.minimum(tl.maximum(diag_hi, here_lo), hi)
    full_hi = tl.minimum(hi, ragged)
    before = tl.maximum(tl.minimum(here_lo, full_hi) - lo, 0)
    after = tl.maximum(full_hi - tl.maximum(here_hi, lo), 0)
    skip = tl.maximum(here_hi, lo) - lo - before

    # ``side`` is fetched one tile ahead; one tile too far is inside the padded array or the last.
    last = tl.maximum(ragged - 1, 0)
    side = tl.load(y_side + tl.minimum(lo + tl.where(before > 0, 0, skip), last) * BN)
    for t in range(before + after):
        tile = lo + t + tl.where(t < before, 0, skip)
        ahead = lo + t + 1 + tl.where(t + 1 < before, 0, skip)
        side_ahead = tl.load(y_side + tl.minimum(ahead, last) * BN)
        sums, pull, pull_weight = _column_tile(
            tile, x, y, side, z, n, i, live_i, norm, step, x_one, x_two,
            usual, top, wide, table, terms, coef, pull, pull_weight, stride,
            False, KIND, BASE, GRAD, PASSES, D, DP, DZ, DG, BK, BM, BN,
        )  # fmt: skip
        total += sums
        side = side_ahead
    if HALF:
        total += total

    on_diagonal = here_hi - here_lo
    has_ragged = (ragged * BN < n) & (ragged >= lo) & (ragged < hi)
    has_ragged = has_ragged & ((ragged < here_lo) | (ragged >= here_hi))
    for t in range(on_diagonal + has_ragged.to(tl.int32)):
        tile = tl.where(t < on_diagonal, here_lo + t, ragged)
        side = tl.load(y_side + tile * BN, mask=tile * BN + tl.arange(0, BN) < n, other=0)
        sums, pull, pull_weight = _column_tile(
            tile, x, y, side, z, n, i + row_start, live_i, norm, step, x_one, x_two,
            usual, top, wide, table, terms, coef, pull, pull_weight, stride,
            True, KIND, BASE, GRAD, PASSES, D, DP, DZ, DG, BK, BM, BN,
        )  # fmt: skip
        if HALF:
            sums = tl.where(t < on_diagonal, sums, sums + sums)
        total += sums

    at_part = b * part_rows + part_row + cut * tiles + tile_i
    tl.store(part + at_part, tl.sum(tl.where(live_i, total, 0.0), 0) * scale)
    if GRAD == FUSED:
        factor = factor_of(a, offset, weight, base, b_kernel, factor_profile, KIND)
        if DZ == 8:
            pull = tl.sum(tl.reshape(pull, (BM, 2, 8)), 1)
        k = tl.arange(0, 8 if DZ == 8 else DG)
        live = live_i[:, None] & (k < D)[None, :]
        own = tl.load(rows + at_i[:, None] * D + k[None, :], mask=live, other=0.0).to(tl.float32)
        own -= tl.load(centre + b * D + k, mask=k < D, other=0.0).to(tl.float32)[None, :]
        g = (pull - pull_weight[:, None] * own) * factor
        tl.store(
            grad + (at_i + cut.to(tl.int64) * all_rows)[:, None] * D + k[None, :], g, mask=live
        )
    elif GRAD == STORED:
        at = (b * splits + cut) * strip + tile_i * BM + i_local
        tl.store(grad_weight + at, pull_weight, mask=live_i)
