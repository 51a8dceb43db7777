"""Random directions' sums of waves on a GPU: one kernel forward, one backward.

Projections, their cosines and sines and the powers of those stay in registers: nothing of n times
the number of directions is written, and the backward pass computes them again.  Matrix products are
of float32 in three tf32 ones.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import math
from functools import lru_cache

import torch
import triton
import triton.language as tl
from torch import Tensor

from smmd.pairs.triton_launch import Bound, traits_of
from smmd.pairs.triton_plan import power_of_two

#: Up to so many coordinates are read at once, more of them in steps.
_WHOLE, _STEP = 64, 32
#: Forward: directions and rows that a program has at once, and its warps.  Sums of more than 32
#: frequencies leave registers for half the rows.
_SUM_DIRECTIONS, _SUM_ROWS, _SUM_WARPS = 64, 32, 4
#: Backward: directions, rows, coordinates whose slopes a program has, and its warps, where these
#: are all coordinates, and where all else is computed for each such block of them again.
_SLOPE_TILES = (16, 64, 64, 4), (32, 128, 128, 8)
#: Programs that are wanted: about two waves.
_PROGRAMS = 512

_ROUND = tl.constexpr(3145728.0)  # 1.5 · 2^21: adding it rounds a float32 to quarters
_TURN = tl.constexpr(6.2831855)
_TURN_LOW = tl.constexpr(-1.7484556e-7)  # 2π as the sum of two floats


@triton.jit
def cos_sin(turns):
    """cos(2π turns) and sin(2π turns), wrong by less than 1e-7.

    Whole turns and quarters are taken off without rounding, however many there are.
    """
    rest = turns - tl.floor(turns + 0.5)
    shifted = rest + _ROUND
    quarter = shifted.to(tl.int32, bitcast=True)  # in its last two bits
    f = rest - (shifted - _ROUND)
    u = f * f
    s = tl.fma(
        f, _TURN, f * tl.fma(u, tl.fma(u, tl.fma(u, -75.367515, 81.59194), -41.341662), _TURN_LOW)
    )
    c = tl.fma(u, tl.fma(u, tl.fma(u, tl.fma(u, 59.24437, -85.4437), 64.939326), -19.739209), 1.0)
    odd = (quarter & 1) != 0
    cosine = tl.where(odd, s, c)
    sine = tl.where(odd, c, s)
    cosine = tl.where(((quarter + 1) & 2) != 0, -cosine, cosine)
    return cosine, tl.where((quarter & 2) != 0, -sine, sine)


@triton.jit
def block_of(x, i, k, rows, D: tl.constexpr):
    """Rows i and columns k of a matrix with D columns; 0 beyond."""
    at = i.to(tl.int64)[:, None] * D + k[None, :]
    return tl.load(x + at, mask=(i < rows)[:, None] & (k < D)[None, :], other=0.0)


@triton.jit
def products(x, i, many_x, y, j, many_y, D: tl.constexpr, BD: tl.constexpr):
    """Inner products of rows i of x with rows j of y."""
    k = tl.arange(0, BD)
    left = block_of(x, i, k, many_x, D)
    found = tl.dot(left, tl.trans(block_of(y, j, k, many_y, D)), input_precision="tf32x3")
    for start in range(BD, D, BD):
        left = block_of(x, i, start + k, many_x, D)
        right = block_of(y, j, start + k, many_y, D)
        # Tensor cores truncate when they add: with many coordinates that would shrink projections.
        # A sum would become the product's start, fma does not.
        found = tl.fma(tl.dot(left, tl.trans(right), input_precision="tf32x3"), 1.0, found)
    return found


@triton.jit(do_not_specialize=["batches", "n", "share", "ranges", "scale"])
def wave_sums(
    x, directions, part, batches, n, share, ranges, scale,
    K: tl.constexpr, D: tl.constexpr, Q: tl.constexpr, QP: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Of a range of rows (a multiple of BR) Σ cos and Σ sin for Q frequencies and BK directions.

    Programs: batches × ranges × blocks of directions.  Directions are the tile's rows, so that a
    thread has many rows' values of few directions and sums over rows stay within a warp.
    """
    program = tl.program_id(0)
    blocks: tl.constexpr = (K + BK - 1) // BK
    j = (program % blocks) * BK + tl.arange(0, BK)
    span = (program // blocks) % ranges
    b = (program // blocks) // ranges
    x += b.to(tl.int64) * n * D
    first = span * share
    last = tl.minimum(first + share, n)
    q = tl.arange(0, QP)[None, :]
    # Sums with what rounding took from them: a range may be long.
    real_sum = tl.zeros((BK, QP), tl.float32)
    real_lost = tl.zeros((BK, QP), tl.float32)
    imag_sum = tl.zeros((BK, QP), tl.float32)
    imag_lost = tl.zeros((BK, QP), tl.float32)
    for start in range(first, last, BR):
        i = start + tl.arange(0, BR)
        turns = products(directions, j, K, x, i, n, D, BD) * scale
        cosine, sine = cos_sin(turns)
        there = (i < n)[None, :]
        real = tl.where(there, cosine, 0.0)
        imag = tl.where(there, sine, 0.0)
        real_new = tl.zeros((BK, QP), tl.float32)
        imag_new = tl.zeros((BK, QP), tl.float32)
        for power in tl.static_range(1, Q):
            real_new = tl.where(q == power, tl.sum(real, 1)[:, None], real_new)
            imag_new = tl.where(q == power, tl.sum(imag, 1)[:, None], imag_new)
            if power < Q - 1:
                before = real
                real = tl.fma(real, cosine, -(imag * sine))
                imag = tl.fma(before, sine, imag * cosine)
        real_sum, real_lost = added(real_sum, real_lost, real_new)
        imag_sum, imag_lost = added(imag_sum, imag_lost, imag_new)
    # The wave of frequency 0 counts rows.
    real_sum = tl.where(q == 0, (last - first).to(tl.float32), real_sum)
    at = ((span * Q + q).to(tl.int64) * 2 * batches + b) * K + j[:, None]
    there = (q < Q) & (j < K)[:, None]
    tl.store(part + at, real_sum.to(tl.float64) - real_lost.to(tl.float64), mask=there)
    at += tl.cast(batches, tl.int64) * K
    tl.store(part + at, imag_sum.to(tl.float64) - imag_lost.to(tl.float64), mask=there)


@triton.jit
def added(total, lost, more):
    """A sum after Kahan, and by how much it is too large."""
    more -= lost
    new = total + more
    return new, (new - total) - more


@triton.jit
def waves_at(on_sums, q, b, batches, j, K: tl.constexpr):
    """What frequency q's sums of cosines and of sines get from directions j, as a row each."""
    step = tl.cast(batches, tl.int64) * K
    at = on_sums + q * 2 * step + b * K + j
    return tl.load(at)[None, :], tl.load(at + step)[None, :]


@triton.jit(do_not_specialize=["batches", "n", "share", "tiles", "scale"])
def wave_slopes(
    x, directions, on_sums, part, batches, n, share, tiles, scale,
    K: tl.constexpr, KP: tl.constexpr, D: tl.constexpr, Q: tl.constexpr,
    BK: tl.constexpr, BR: tl.constexpr, BD: tl.constexpr, BG: tl.constexpr,
):  # fmt: skip
    """What rows get through ``share`` blocks of BK directions, in BG of their coordinates.

    Programs: ranges of directions × batches × tiles of rows × blocks of coordinates.  A projection
    gets Re Σ_q (gS_q + i gC_q) (cos + i sin)^q, where gC_q, gS_q = ``on_sums`` are what sums of
    cosines and of sines get, times the frequency: 0 in what fills them up to KP directions.
    """
    program = tl.program_id(0)
    blocks: tl.constexpr = (D + BG - 1) // BG
    k = (program % blocks) * BG + tl.arange(0, BG)
    i = ((program // blocks) % tiles) * BR + tl.arange(0, BR)
    row = (program // blocks) // tiles  # of ``part``: a range's batch
    b = row % batches
    first = (row // batches) * share
    x += b.to(tl.int64) * n * D
    slope = tl.zeros((BR, BG), tl.float32)
    for block in range(first, tl.minimum(first + share, KP // BK)):
        j = block * BK + tl.arange(0, BK)
        turns = products(x, i, n, directions, j, K, D, BD) * scale
        cosine, sine = cos_sin(turns)
        imag, real = waves_at(on_sums, Q - 1, b, batches, j, KP)
        real += tl.zeros((BR, BK), tl.float32)
        imag += tl.zeros((BR, BK), tl.float32)
        for below in tl.range(2, Q, num_stages=1, loop_unroll_factor=2):  # Horner's rule
            on_cosine, on_sine = waves_at(on_sums, Q - below, b, batches, j, KP)
            before = real
            real = tl.fma(before, cosine, tl.fma(-imag, sine, on_sine))
            imag = tl.fma(before, sine, tl.fma(imag, cosine, on_cosine))
        real = tl.fma(real, cosine, -(imag * sine))
        slope = tl.dot(real, block_of(directions, j, k, K, D), slope, input_precision="tf32x3")
    at = (row.to(tl.int64) * n + i)[:, None] * D + k[None, :]
    tl.store(part + at, slope, mask=(i < n)[:, None] & (k < D)[None, :])


def _cut(pieces: int, programs: int) -> tuple[int, int]:
    """How many of so many pieces a program takes, such that enough run, and how many ranges."""
    share = -(-pieces // max(1, min(pieces, _PROGRAMS // programs)))
    return share, -(-pieces // share)


@lru_cache(maxsize=256)
def _summing(batches: int, n: int, d: int, many: int, waves: int) -> tuple[Bound, int, int]:
    programs = batches * -(-many // _SUM_DIRECTIONS)
    block = _SUM_ROWS if waves <= 32 else _SUM_ROWS // 2
    share, ranges = _cut(-(-n // block), programs)
    bound = Bound(
        wave_sums, programs * ranges, _SUM_WARPS,
        K=many, D=d, Q=waves, QP=power_of_two(waves),
        BK=_SUM_DIRECTIONS, BR=block, BD=_step(d),
    )  # fmt: skip
    return bound, share * block, ranges


@lru_cache(maxsize=256)
def _sloping(batches: int, n: int, d: int, many: int, waves: int) -> tuple[Bound, int, int, int]:
    directions, rows, most, warps = _SLOPE_TILES[d > _WHOLE]
    block = min(most, _width(d))
    tiles, steps = -(-n // rows), -(-many // directions)
    programs = batches * tiles * -(-d // block)
    share, ranges = _cut(steps, programs)
    bound = Bound(
        wave_slopes, programs * ranges, warps,
        K=many, KP=steps * directions, D=d, Q=waves,
        BK=directions, BR=rows, BD=_step(d), BG=block,
    )  # fmt: skip
    return bound, share, ranges, tiles


def _width(d: int) -> int:
    """So many columns hold d coordinates; matrix products take 16 at least."""
    return max(16, power_of_two(d))


def _step(d: int) -> int:
    return _width(d) if d <= _WHOLE else _STEP


def sums(rows: Tensor, directions: Tensor, step: float, waves: int) -> Tensor:
    """Σ cos(q step y) and Σ sin(q step y) over rows (B, n, d), in float64 (waves, 2, B, K)."""
    batches, n, d = rows.shape
    many = len(directions)
    run, share, ranges = _summing(batches, n, d, many, waves)
    part = torch.empty((ranges, waves, 2, batches, many), dtype=torch.float64, device=rows.device)
    arguments = (rows, directions, part, batches, n, share, ranges, step / (2.0 * math.pi))
    with torch.cuda.device_of(rows):
        run((traits_of(rows), traits_of(directions)), arguments)
    return part.sum(0)


def slopes(rows: Tensor, directions: Tensor, step: float, on_sums: Tensor) -> Tensor:
    """What rows get from ``on_sums``, which reaches ``sums``."""
    batches, n, d = rows.shape
    waves, _, _, many = on_sums.shape
    run, share, ranges, tiles = _sloping(batches, n, d, many, waves)
    frequency = torch.arange(waves, dtype=torch.float64, device=rows.device).mul_(step)
    pull = rows.new_zeros((waves, 2, batches, run.constants["KP"]))
    torch.mul(on_sums, frequency[:, None, None, None], out=pull[..., :many])
    part = rows.new_empty((ranges, batches, n, d))
    arguments = (rows, directions, pull, part, batches, n, share, tiles, step / (2.0 * math.pi))
    with torch.cuda.device_of(rows):
        run((traits_of(rows), traits_of(directions)), arguments)
    return part.sum(0) if ranges > 1 else part[0]
