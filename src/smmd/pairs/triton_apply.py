"""The gradient as matrix products of bfloat16 weights with bfloat16 parts of the points."""

from __future__ import annotations

import os

import triton
import triton.language as tl

from smmd.pairs.triton_math import GAUSSIAN, MIXTURE, folded

# The interpreter multiplies bfloat16 as if it were integers; widened there, it is the same product.
_WIDEN = tl.constexpr(os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"))


@triton.jit
def rounded_dot(left, right, total):
    """``total`` + left·right for bfloat16 operands."""
    if _WIDEN:
        left = left.to(tl.float32)
        right = right.to(tl.float32)
    return tl.dot(left, right, total)


@triton.jit
def factor_of(a, offset, weight, base, at, factor_profile, KIND: tl.constexpr):
    """What all weights of the gradient share."""
    if KIND == GAUSSIAN:
        wide = tl.load(base + at).to(tl.float32) != 0.0
        _, share = folded(tl.load(offset + at).to(tl.float64), wide)
        precision = tl.load(a + at).to(tl.float64) * share
        return (2.0 * precision * tl.load(weight + at).to(tl.float64)).to(tl.float32)
    elif KIND == MIXTURE:
        return 1.0
    else:
        return factor_profile


@triton.jit(
    do_not_specialize=[
        "m", "n", "first_row", "batch_step", "tiles", "chunks", "cuts", "per_cut", "splits",
        "out_first", "out_rows", "out_step",
    ]
)  # fmt: skip
def apply_weights(
    weights, grad_weight, z, rows, centre, a, offset, weight, base, factor_profile, out,
    m, n, first_row, strip, stride, batch_step, tiles, chunks, cuts, per_cut, splits,
    out_first, out_rows, out_step,
    KIND: tl.constexpr, PASSES: tl.constexpr, D: tl.constexpr, DZ: tl.constexpr,
    DG: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, SECTION: tl.constexpr,
):  # fmt: skip
    """The gradient of a strip of rows from its weights: weights·z − (Σ weights) z_i.

    Programs: batches × cuts × chunks × tiles.  A cut is a range of ``per_cut`` column tiles,
    whose part of the gradient goes to a place of its own.  Matrix units truncate when they add:
    every SECTION columns their sum moves to a rounded one.
    """
    program = tl.program_id(0)
    tile_i = program % tiles
    rest = program // tiles
    chunk = rest % chunks
    rest = rest // chunks
    cut = rest % cuts
    b = (rest // cuts).to(tl.int64)
    at_strip = tile_i * BM + tl.arange(0, BM)
    i = first_row + at_strip
    live_i = (i < m) & (at_strip < strip)
    j = tl.arange(0, BN)
    k = chunk * DG + tl.arange(0, DG)
    w = weights + (b * strip + at_strip.to(tl.int64))[:, None] * stride + j[None, :]
    at_z = z + b * n * (2 * DZ) + j[:, None] * (2 * DZ) + k[None, :]
    begin = cut * per_cut * BN
    end = tl.minimum(begin + per_cut * BN, n)
    total = tl.zeros((BM, DG), tl.float32)
    for section in range(begin, end, SECTION):
        pull = tl.zeros((BM, DG), tl.float32)
        for j0 in range(section, tl.minimum(section + SECTION, end), BN):
            live_j = j0 + j < n
            first = tl.load(w + j0)
            at = at_z + tl.cast(j0, tl.int64) * (2 * DZ)
            pull = rounded_dot(first, tl.load(at, mask=live_j[:, None], other=0.0), pull)
            if PASSES > 1:
                pull = rounded_dot(first, tl.load(at + DZ, mask=live_j[:, None], other=0.0), pull)
        total += pull
    pull_weight = tl.zeros((BM,), tl.float32)
    for part in range(tl.where(cut == 0, splits, 0)):
        at_weight = grad_weight + (b * splits + part) * strip + at_strip
        pull_weight += tl.load(at_weight, mask=live_i, other=0.0)
    live = live_i[:, None] & (k < D)[None, :]
    at_i = b * m + i.to(tl.int64)
    own = tl.load(rows + at_i[:, None] * D + k[None, :], mask=live, other=0.0).to(tl.float32)
    own -= tl.load(centre + b * D + k, mask=k < D, other=0.0).to(tl.float32)[None, :]
    factor = factor_of(a, offset, weight, base, b * batch_step, factor_profile, KIND)
    g = (total - pull_weight[:, None] * own) * factor
    at_out = cut.to(tl.int64) * out_step + (b * out_rows + (i - out_first).to(tl.int64)) * D
    tl.store(out + at_out[:, None] + k[None, :], g, mask=live)
