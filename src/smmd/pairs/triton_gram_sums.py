"""Launching the kernels of large samples: memory, grids and arguments."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from smmd.pairs.triton_apply import apply_weights
from smmd.pairs.triton_cross import ABSENT
from smmd.pairs.triton_gram import FUSED, NONE, STORED, gram
from smmd.pairs.triton_launch import KINDS, launch, table_of, traits_of
from smmd.pairs.triton_plan import NO_CROSS, Cross, Kernel, Parts, Tiles, column_cuts, power_of_two
from smmd.pairs.triton_split import split


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
    arguments = (
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
    )
    launch(
        split,
        batches * blocks,
        (*traits_of(x, kernel), centre.dtype),
        arguments,
        KIND=KINDS[kernel.kind],
        CROSS=cross.kind,
        GRAD=z is not None,
        D=d,
        DP=width,
        DZ=z_width,
        DL=loaded,
        QP=power_of_two(kernel.terms),
        BR=block,
        num_warps=4,
        num_stages=3,
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
    table = table_of(kernel, True)

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
    kind = KINDS[kernel.kind]
    factor = 2.0 * kernel.inverse_c[0]
    traits = traits_of(rows, kernel)
    for s in range(strips):
        here = min(tiles, -(-(m - s * strip) // cut.rows))
        arguments = (
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
        )
        launch(
            gram,
            batches * splits * here,
            traits,
            arguments,
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
            first = s * strip
            into = _Strip(weights, weight_sums, grad, first, min(strip, m - first), here, splits)
            _apply(into, columns[2], rows, centre, kernel, factor, cut, (z_width, span, chunks, n))
    return Parts(part, grad, *cross_terms)


class _Strip(NamedTuple):
    """A strip's weights, and where its gradient goes."""

    weights: Tensor
    sums: Tensor
    grad: Tensor  # (1, B, m, d)
    first: int
    rows: int
    tiles: int
    splits: int


def _apply(
    strip: _Strip,
    z: Tensor,
    rows: Tensor,
    centre: Tensor,
    kernel: Kernel,
    factor: float,
    cut: Tiles,
    sizes: tuple[int, int, int, int],
) -> None:
    """The gradient of a strip: few programs would be left idle by its rows alone, so that ranges

    of columns go side by side, and their parts are added up.
    """
    z_width, span, chunks, n = sizes
    batches, m, d = rows.shape
    height, stride = strip.weights.shape[1:]
    programs = batches * chunks * strip.tiles
    column_tiles = -(-n // cut.columns)
    per_cut = -(-column_tiles // column_cuts(programs, n))
    cuts = -(-column_tiles // per_cut)
    out, first, out_rows = strip.grad, 0, m
    if cuts > 1:
        first, out_rows = strip.first, strip.rows
        out = torch.empty((cuts, batches, out_rows, d), dtype=torch.float32, device=rows.device)
    arguments = (
        strip.weights,
        strip.sums,
        z,
        rows,
        centre,
        kernel.a,
        kernel.weight,
        factor,
        out,
        m,
        n,
        strip.first,
        height,
        stride,
        kernel.batch_step,
        strip.tiles,
        chunks,
        cuts,
        per_cut,
        strip.splits,
        first,
        out_rows,
        batches * out_rows * d if cuts > 1 else 0,
    )
    launch(
        apply_weights,
        programs * cuts,
        traits_of(rows, kernel),
        arguments,
        KIND=KINDS[kernel.kind],
        PASSES=cut.passes,
        D=d,
        DZ=z_width,
        DG=span,
        BM=cut.rows,
        BN=cut.columns,
        SECTION=16384,
        num_warps=8,
        num_stages=3,
    )
    if cuts > 1:
        torch.sum(out, 0, out=strip.grad[0, :, first : first + out_rows])
