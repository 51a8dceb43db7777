"""Sums over pairs on NVIDIA GPUs: value and row gradient in one pass, memory linear in n.

Small samples take one kernel that works on differences (``triton_direct``).  Large ones take
four: a column mean, a split of the rows into exact float16 integers, the pairs (``triton_gram``)
and the sum of the programs' float64 parts.  Nothing here waits for the device, and no atomics are
used: the same input gives the same bits.

The same source runs on a CPU in Triton's interpreter (``TRITON_INTERPRET=1``), for tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from smmd.pairs.triton_direct import direct
from smmd.pairs.triton_gram import FUSED, NONE, STORED, apply_weights, gram, split
from smmd.pairs.triton_math import (
    COLUMNS,
    EITHER,
    GAUSSIAN,
    MIXTURE,
    NARROW,
    PROFILE,
    WIDE,
    mixture_table,
)

_KINDS = {"gaussian": GAUSSIAN.value, "mixture": MIXTURE.value, "profile": PROFILE.value}


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


class _Kernel(NamedTuple):
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

    ``rows`` (B, m, d) and ``cols`` (B, n, d) are contiguous float32.  Parameters that are tensors
    stay on the device; give ``base`` as plain numbers where it is known, which saves a branch.
    Returns float64 (B,), and 2 Σ_j Σ_q weight_q a_q exp(…)(cols_j − rows_i) as float32 (B, m, d):
    the derivative in one side, doubled, which is the whole gradient where every row is also a
    column.  ``symmetric`` says that ``rows`` is ``cols``; a value alone then takes half the pairs.
    """
    bases = EITHER.value
    if not isinstance(base, Tensor):
        bases = WIDE.value if all(base) else EITHER.value if any(base) else NARROW.value
    fields = [_on_device(v, rows.device) for v in (a, offset, weight, base)]
    batches, terms = max(v.shape[0] for v in fields), fields[0].shape[1]
    if batches > 1:
        fields = [v.expand(batches, terms) for v in fields]
    a, offset, weight, base = (v.contiguous() for v in fields)
    kind = "gaussian" if terms == 1 else "mixture"
    none = (0.0, 0.0)
    kernel = _Kernel(kind, a, offset, weight, base, terms, int(batches > 1), bases, none[:1], none)
    return _sums(rows, cols, kernel, row_start, symmetric, gradient, tiles)


def _on_device(values: Parameter, device: torch.device) -> Tensor:
    return values if isinstance(values, Tensor) else _constant(tuple(values), device)


@lru_cache(maxsize=1024)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor([values], dtype=torch.float64, device=device)


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
    c, middle, top, first, *rest = coef
    low = first - _float32(first)
    kernel = _Kernel(
        "profile",
        None,
        None,
        None,
        None,
        1,
        0,
        NARROW.value,
        (middle, low, first, *rest),
        _two_floats(1.0 / c),
    )
    total, grad = _sums(rows, cols, kernel, row_start, symmetric, gradient, tiles)
    if top:
        m, n = rows.shape[1], cols.shape[1]
        excluded = max(0, min(row_start + m, n) - max(row_start, 0))
        total = total + top * (m * n - excluded)
    return total, grad


def _float32(x: float) -> float:
    return float(torch.tensor(x, dtype=torch.float32))


@lru_cache(maxsize=256)
def _two_floats(x: float) -> tuple[float, float]:
    high = _float32(x)
    return high, x - high


def _power_of_two(x: int) -> int:
    return 1 << max(0, x - 1).bit_length()


def _sums(
    rows: Tensor,
    cols: Tensor,
    kernel: _Kernel,
    row_start: int,
    symmetric: bool,
    gradient: bool,
    tiles: Tiles | None,
) -> tuple[Tensor, Tensor | None]:
    batches, m, d = rows.shape
    n = cols.shape[1]
    if rows.device.type == "cuda" and rows.device.index != torch.cuda.current_device():
        with torch.cuda.device(rows.device):
            return _sums(rows, cols, kernel, row_start, symmetric, gradient, tiles)
    if tiles is None and prefers_differences(batches, m, n, d):
        return _direct_sums(rows, cols, kernel, row_start, gradient)
    half = symmetric and row_start == 0 and not gradient
    chosen = tiles or choose_tiles(batches, m, n, d, gradient, kernel.kind)
    return _gram_sums(rows, cols, kernel, row_start, symmetric, half, gradient, chosen)


def prefers_differences(batches: int, m: int, n: int, d: int) -> bool:
    """Whether one kernel on differences beats four on matrix units.

    It spends about 3d + 10 instructions on a pair where the other spends 10, but saves three
    launches; and one program sees n·d steps in sequence.
    """
    return d <= 64 and n * d <= 25_000 and (n <= 1024 or batches * m * n * (3 * d + 10) < 1e9)


def _mixture_table(kernel: _Kernel, relative: bool) -> Tensor:
    assert kernel.a is not None
    batches = kernel.a.shape[0]
    table = torch.empty(
        (batches, kernel.terms, COLUMNS.value), dtype=torch.float32, device=kernel.a.device
    )
    mixture_table[(batches,)](
        kernel.a,
        kernel.offset,
        kernel.weight,
        kernel.base,
        table,
        kernel.terms,
        RELATIVE=relative,
        QP=_power_of_two(kernel.terms),
        num_warps=1,
    )
    return table


def _direct_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: _Kernel,
    row_start: int,
    gradient: bool,
    block: int = 16,
    warps: int = 4,
) -> tuple[Tensor, Tensor | None]:
    batches, m, d = rows.shape
    n = cols.shape[1]
    tiles = -(-m // block)
    table = _mixture_table(kernel, False) if kernel.kind == "mixture" else None
    part = torch.empty((batches, tiles), dtype=torch.float64, device=rows.device)
    grad = torch.empty_like(rows) if gradient else None
    direct[(batches * tiles,)](
        rows,
        cols,
        kernel.a,
        kernel.offset,
        kernel.weight,
        kernel.base,
        table,
        kernel.coef,
        *kernel.inverse_c,
        part,
        grad,
        m,
        n,
        row_start,
        kernel.terms,
        kernel.batch_step,
        tiles,
        KIND=_KINDS[kernel.kind],
        BASE=kernel.bases,
        GRAD=gradient,
        D=d,
        DP=max(16, _power_of_two(d)),
        BM=block,
        BN=64 if n <= 64 else 128,
        num_warps=warps,
    )
    return (part.view(batches) if tiles == 1 else part.sum(-1)), grad


def choose_tiles(batches: int, m: int, n: int, d: int, gradient: bool, kind: str) -> Tiles:
    """Tile sizes that were fastest on an H200 (``benchmarks/gpu.py --sweep``)."""
    strip = 0
    if not gradient:
        rows, columns, warps, stages = (128, 64, 4, 3) if d <= 64 else (128, 64, 8, 3)
    elif d <= 64:
        rows, columns, warps, stages = 128, 64, 8, 3
    else:
        rows, columns, warps, stages = 128, 64, 8, 3
        strip = min(2048, max(128, (1 << 24) // (n * batches) // 128 * 128))
    row_tiles = -(-min(m, strip or m) // rows) * batches
    column_tiles = -(-n // columns)
    splits = min(-(-1056 // row_tiles), max(1, column_tiles // 8))
    if gradient:  # truncated additions of the gradient: not more than 32768 columns in sequence
        splits = max(splits, -(-n // 32768))
    return Tiles(rows, columns, warps, stages, splits, 2 if strip else 3, strip=strip)


def _padded(count: int) -> int:
    """Rows as stored: whole tiles, so that a ragged one may be read to its end."""
    return -(-count // 256) * 256


def _stored_width(d: int, inner: int) -> tuple[int, int]:
    """Width of h (and of l), and the step along it."""
    if d <= 8:
        return 8, 16
    if d <= inner:
        width = max(16, _power_of_two(d))
        return width, width
    return -(-d // inner) * inner, inner


def _split_rows(
    x: Tensor, centre: Tensor, kernel: _Kernel, unit: tuple[float, float], inner: int, z_width: int
) -> tuple[Tensor, Tensor, Tensor | None]:
    batches, count, d = x.shape
    width, _ = _stored_width(d, inner)
    parts = torch.empty((batches, count, 2 * width), dtype=torch.float16, device=x.device)
    side = torch.empty((batches, _padded(count)), dtype=torch.int64, device=x.device)
    z = None
    if z_width:
        z = torch.empty((batches, count, 2 * z_width), dtype=torch.bfloat16, device=x.device)
    loaded = max(_power_of_two(max(width, z_width)), 8)
    block = max(1, 2048 // loaded)
    blocks = -(-count // block)
    split[(batches * blocks,)](
        x,
        centre,
        kernel.a,
        kernel.offset,
        kernel.base,
        *unit,
        parts,
        side,
        z,
        count,
        side.shape[1],
        kernel.terms,
        kernel.batch_step,
        blocks,
        KIND=_KINDS[kernel.kind],
        GRAD=z is not None,
        D=d,
        DP=width,
        DZ=z_width,
        DL=loaded,
        QP=_power_of_two(kernel.terms),
        BR=block,
        num_warps=4,
    )
    return parts, side, z


def _gram_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: _Kernel,
    row_start: int,
    symmetric: bool,
    half: bool,
    gradient: bool,
    cut: Tiles,
) -> tuple[Tensor, Tensor | None]:
    batches, m, d = rows.shape
    n = cols.shape[1]
    width, step = _stored_width(d, cut.inner)
    span = 16 if d <= 8 else _power_of_two(max(d, 16))
    if cut.strip:
        span = min(span, 128)
    chunks = -(-d // span)
    z_width = 0 if not gradient else 8 if d <= 8 else chunks * span
    if cut.strip:
        z_width = max(z_width, 16)
    unit = (2.0 * kernel.inverse_c[0], 2.0 * kernel.inverse_c[1])

    centre = cols.mean(1)
    columns = _split_rows(cols, centre, kernel, unit, cut.inner, z_width)
    own = columns if symmetric else _split_rows(rows, centre, kernel, unit, cut.inner, 0)
    table = _mixture_table(kernel, True) if kernel.kind == "mixture" else None

    column_tiles = -(-n // cut.columns)
    per_split = -(-column_tiles // cut.splits)
    splits = -(-column_tiles // per_split)
    strip = min(cut.strip or m, -(-m // cut.rows) * cut.rows)
    strip = -(-strip // cut.rows) * cut.rows
    tiles = strip // cut.rows
    strips = -(-m // strip)
    parts = splits * -(-m // cut.rows)
    part = torch.empty((batches, parts), dtype=torch.float64, device=rows.device)
    grad = weights = weight_sums = None
    stride = _padded(n)
    mode = NONE.value
    if gradient and cut.strip:
        mode = STORED.value
        grad = torch.empty_like(rows)
        weights = torch.empty((batches, strip, stride), dtype=torch.bfloat16, device=rows.device)
        weight_sums = torch.empty((batches, splits, strip), dtype=torch.float32, device=rows.device)
    elif gradient:
        mode = FUSED.value
        grad = torch.empty((splits, batches, m, d), dtype=torch.float32, device=rows.device)
    kind = _KINDS[kernel.kind]
    factor = 2.0 * kernel.inverse_c[0]
    for s in range(strips):
        here = min(tiles, -(-(m - s * strip) // cut.rows))
        gram[(batches * splits * here,)](
            *own[:2],
            *columns,
            weights,
            rows,
            centre,
            kernel.a,
            kernel.offset,
            kernel.weight,
            kernel.base,
            table,
            kernel.coef,
            factor,
            part,
            grad,
            weight_sums,
            m,
            n,
            batches * m,
            row_start,
            s * strip,
            strip,
            stride,
            kernel.terms,
            kernel.batch_step,
            here,
            splits,
            per_split,
            s * splits * tiles,
            parts,
            _padded(m),
            _padded(n),
            KIND=kind,
            BASE=kernel.bases,
            GRAD=mode,
            HALF=half,
            PASSES=cut.passes,
            D=d,
            DP=width,
            DZ=z_width,
            DG=span,
            BK=step,
            BM=cut.rows,
            BN=cut.columns,
            num_warps=cut.warps,
            num_stages=cut.stages,
        )
        if mode == STORED.value:
            apply_weights[(batches * chunks * -(-here * cut.rows // 128),)](
                weights,
                weight_sums,
                columns[2],
                rows,
                centre,
                kernel.a,
                kernel.weight,
                factor,
                grad,
                m,
                n,
                s * strip,
                strip,
                stride,
                kernel.batch_step,
                -(-here * cut.rows // 128),
                chunks,
                splits,
                KIND=kind,
                PASSES=cut.passes,
                D=d,
                DZ=z_width,
                DG=span,
                BM=128,
                BN=64,
                SECTION=16384,
                num_warps=8,
                num_stages=3,
            )
    if mode == FUSED.value and grad is not None:
        grad = grad[0] if splits == 1 else grad.sum(0)
    return part.sum(-1), grad
