"""Launching the kernels: memory, grids and arguments."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from smmd.pairs.triton_cross import ABSENT, finish
from smmd.pairs.triton_direct import direct
from smmd.pairs.triton_gram import FUSED, NONE, STORED, apply_weights, gram, split
from smmd.pairs.triton_math import COLUMNS, GAUSSIAN, MIXTURE, PROFILE, mixture_table
from smmd.pairs.triton_plan import NO_CROSS, Cross, Kernel, Parts, Tiles, power_of_two

_KINDS = {"gaussian": GAUSSIAN.value, "mixture": MIXTURE.value, "profile": PROFILE.value}


def _mixture_table(kernel: Kernel, relative: bool) -> Tensor | None:
    if kernel.kind != "mixture":
        return None
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
        QP=power_of_two(kernel.terms),
        num_warps=1,
    )
    return table


def direct_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: Kernel,
    row_start: int,
    gradient: bool,
    cross: Cross = NO_CROSS,
    answer: Tensor | None = None,
    block: int = 16,
    warps: int = 4,
) -> tuple[Tensor, Tensor | None]:
    """The programs' float64 sums (B, parts), and the gradient (of the statistic, with ``cross``).

    With ``answer`` (B,), for which one program a sample must do, the sum goes there instead.
    """
    batches, m, d = rows.shape
    n = cols.shape[1]
    tiles = -(-m // block)
    part = answer
    if part is None:
        part = torch.empty((batches, tiles), dtype=torch.float64, device=rows.device)
    grad = None
    if gradient:
        grad = torch.empty(rows.shape, dtype=torch.float32, device=rows.device)
    direct[(batches * tiles,)](
        rows,
        cols,
        kernel.a,
        kernel.offset,
        kernel.weight,
        kernel.base,
        _mixture_table(kernel, False),
        kernel.coef,
        *kernel.inverse_c,
        cross.numbers,
        part,
        grad,
        m,
        n,
        row_start,
        kernel.terms,
        kernel.batch_step,
        tiles,
        cross.first,
        cross.second,
        KIND=_KINDS[kernel.kind],
        BASE=kernel.bases,
        CROSS=cross.kind,
        LIMIT=0.0 if answer is None else _largest(answer.dtype),
        GRAD=gradient,
        D=d,
        DP=max(16, power_of_two(d)),
        BM=block,
        BN=64 if n <= 64 else 128,
        num_warps=warps,
    )
    return part, grad


@lru_cache(maxsize=8)
def _largest(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).max)


def _padded(count: int) -> int:
    """Rows as stored: whole tiles, so that a ragged one may be read to its end."""
    return -(-count // 256) * 256


def _stored_width(d: int, inner: int) -> tuple[int, int]:
    """Width of h (and of l), and the step along it."""
    if d <= 8:
        return 8, 16
    if d <= inner:
        width = max(16, power_of_two(d))
        return width, width
    return -(-d // inner) * inner, inner


def _split_rows(
    x: Tensor, centre: Tensor, kernel: Kernel, cross: Cross, inner: int, z_width: int
) -> tuple[tuple[Tensor, Tensor, Tensor | None], tuple[Tensor | None, Tensor | None]]:
    """Rows as ``gram`` reads them; and their cross terms, if any."""
    batches, count, d = x.shape
    width, _ = _stored_width(d, inner)
    parts = torch.empty((batches, count, 2 * width), dtype=torch.float16, device=x.device)
    side = torch.empty((batches, _padded(count)), dtype=torch.int64, device=x.device)
    z = cross_part = cross_slope = None
    if z_width:
        z = torch.empty((batches, count, 2 * z_width), dtype=torch.bfloat16, device=x.device)
    loaded = max(power_of_two(max(width, z_width)), 8)
    block = max(1, 2048 // loaded)
    blocks = -(-count // block)
    if cross.kind != ABSENT.value:
        cross_part = torch.empty((batches, blocks), dtype=torch.float64, device=x.device)
        if z_width:
            cross_slope = torch.empty((batches, count), dtype=torch.float32, device=x.device)
    split[(batches * blocks,)](
        x,
        centre,
        kernel.a,
        kernel.offset,
        kernel.base,
        2.0 * kernel.inverse_c[0],
        2.0 * kernel.inverse_c[1],
        cross.numbers,
        parts,
        side,
        z,
        cross_part,
        cross_slope,
        count,
        side.shape[1],
        kernel.terms,
        kernel.batch_step,
        blocks,
        cross.first,
        cross.second,
        KIND=_KINDS[kernel.kind],
        CROSS=cross.kind,
        GRAD=z is not None,
        D=d,
        DP=width,
        DZ=z_width,
        DL=loaded,
        QP=power_of_two(kernel.terms),
        BR=block,
        num_warps=4,
    )
    return (parts, side, z), (cross_part, cross_slope)


def gram_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: Kernel,
    row_start: int,
    symmetric: bool,
    gradient: bool,
    cut: Tiles,
    cross: Cross = NO_CROSS,
) -> Parts:
    """Sums from matrix units; ``symmetric`` says that ``rows`` is ``cols``."""
    batches, m, d = rows.shape
    n = cols.shape[1]
    width, step = _stored_width(d, cut.inner)
    span = 16 if d <= 8 else power_of_two(max(d, 16))
    if cut.strip:
        span = min(span, 128)
    chunks = -(-d // span)
    z_width = 0 if not gradient else 8 if d <= 8 else chunks * span
    if cut.strip:
        z_width = max(z_width, 16)

    half = symmetric and row_start == 0 and not gradient
    centre = cols.mean(1)
    columns, cross_terms = _split_rows(cols, centre, kernel, cross, cut.inner, z_width)
    own = columns
    if not symmetric:
        own, _ = _split_rows(rows, centre, kernel, NO_CROSS, cut.inner, 0)
    table = _mixture_table(kernel, True)

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
        grad = torch.empty((1, *rows.shape), dtype=torch.float32, device=rows.device)
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
    return Parts(part, grad, *cross_terms)


def finished(parts: Parts, z: Tensor, cross: Cross, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """The statistic in the type of z, and its gradient in float32."""
    batches, n, d = z.shape
    value = torch.empty(batches, dtype=z.dtype, device=z.device)
    grad, tiles, width, block, splits = None, 1, 1, 1, 0
    if gradient:
        assert parts.pulls is not None
        grad = torch.empty(z.shape, dtype=torch.float32, device=z.device)
        width = power_of_two(d)
        block = max(1, 2048 // width)
        tiles, splits = -(-n // block), parts.pulls.shape[0]
    finish[(batches * tiles,)](
        parts.pairs,
        parts.cross,
        parts.pulls,
        parts.cross_slope,
        z,
        cross.numbers,
        value,
        grad,
        0 if parts.pairs is None else parts.pairs.shape[1],
        0 if parts.cross is None else parts.cross.shape[1],
        n,
        batches * n,
        tiles,
        splits,
        LIMIT=_largest(z.dtype),
        GRAD=gradient,
        D=d,
        DP=width,
        BR=block,
        num_warps=4,
    )
    return value, grad
