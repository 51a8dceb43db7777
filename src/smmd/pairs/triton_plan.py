"""What the kernels are told: the function of r², the cross terms, and how the work is cut."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from smmd.pairs.triton_cross import ABSENT


class Tiles(NamedTuple):
    """How ``gram`` is cut: rows × columns of a tile, and how many programs share a row tile."""

    rows: int
    columns: int
    warps: int
    stages: int
    splits: int
    passes: int  # bfloat16 products in the gradient: 1, 2 (exact z) or 3 (exact weights too)
    inner: int = 64  # step along d, where d does not fit in one
    strip: int = 0  # rows whose weights are stored at a time; 0: multiplied at once


class Kernel(NamedTuple):
    """The radial function as kernels want it."""

    kind: str
    a: Tensor | None
    offset: Tensor | None
    weight: Tensor | None
    base: Tensor | None
    terms: int
    batch_step: int
    bases: int  # NARROW, WIDE, or EITHER: to be read on the device
    coef: tuple[float, ...]
    inverse_c: tuple[float, float]
    top: float = 0.0  # what the profile leaves out of every pair
    tables: tuple[Tensor, Tensor] | None = None  # of a fixed mixture: for r², for −½ a_max r²


class Cross(NamedTuple):
    """The terms of a statistic that need one evaluation a point (``triton_cross``)."""

    kind: int
    numbers: Tensor | None
    first: int
    second: int


NO_CROSS = Cross(ABSENT.value, None, 0, 0)


class Parts(NamedTuple):
    """What the programs left to be added up."""

    pairs: Tensor | None  # float64 (B, parts)
    pulls: Tensor | None  # float32 (splits, B, m, d)
    cross: Tensor | None  # float64 (B, parts)
    cross_slope: Tensor | None  # float32 (B, n)


def power_of_two(x: int) -> int:
    """The least power of two that is not below x."""
    return 1 << max(0, x - 1).bit_length()


#: Up to so many dimensions ``triton_direct`` sums squared differences; beyond, inner products.
MOST_DIFFERENCES = 32


def prefers_direct(batches: int, m: int, n: int, d: int) -> bool:
    """Whether one kernel (``triton_direct``) beats four on matrix units (``triton_gram``).

    It saves three launches.  Summing squared differences it spends about 3d + 10 instructions on
    a pair where the other spends 10; and one program goes through all n·d numbers.  Inner products
    are truncated there: at 1,024 × 64 that costs 6·10⁻⁵ null standard deviations, and grows.
    """
    if d > MOST_DIFFERENCES:
        return d <= 64 and n <= 1024 and (n <= 512 or batches * m * n < 5e6)
    return n * d <= 25_000 and (n <= 1024 or batches * m * n * (3 * d + 10) < 1e9)


#: Programs of one wave: the multiprocessors of an H100 or H200, each of which holds one.
WAVE = 132


def choose_tiles(batches: int, m: int, n: int, d: int, gradient: bool) -> Tiles:
    """Tile sizes that were fastest on an H200 (``benchmarks/gpu.py --sweep``)."""
    strip, passes, wanted = 0, 3, 0
    if not gradient:
        rows, columns, warps, stages = (128, 64, 4, 3) if d <= 64 else (128, 64, 8, 3)
    elif d <= 16:
        rows, columns, warps, stages = 64, 128, 4, 3
    elif d <= 64:
        rows, columns, warps, stages = 64, 64, 4, 3
    else:  # 32 MB of weights at a time
        rows, columns, warps, stages, passes = 128, 64, 8, 3, 2
        strip = min(2048, max(128, (1 << 24) // (n * batches) // 128 * 128))
    row_tiles = -(-min(m, strip or m) // rows) * batches
    column_tiles = -(-n // columns)
    if not strip:  # eight column tiles for each program, or some waves (halves are uneven)
        waves = 4 if gradient else 8
        wanted = min(column_tiles // 8, -(-waves * WAVE // row_tiles))
    # Fewer tiles a program where that would leave units idle.
    splits = max(1, wanted, min(column_tiles // 2, WAVE // row_tiles))
    if gradient:  # truncated additions of the gradient: not more than 32768 columns in sequence
        splits = max(splits, -(-n // 32768))
    return Tiles(rows, columns, warps, stages, splits, passes, strip=strip)


def column_cuts(programs: int, n: int) -> int:
    """How many ranges of columns ``apply_weights`` takes side by side, to fill a wave."""
    return max(1, min(WAVE // programs, n // 1024))
