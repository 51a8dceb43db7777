"""Launching the kernels of large samples: memory, grids and arguments."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from smmd.pairs.triton_apply import apply_weights
from smmd.pairs.triton_cross import ABSENT
from smmd.pairs.triton_gram import FUSED, NONE, STORED, gram
from smmd.pairs.triton_launch import KINDS, launch, table_of, traits_of
from smmd.pairs.triton_plan import (
    NO_CROSS,
    Cross,
    Kernel,
    Parts,
    Tiles,
    column_cuts,
    from_special_unit,
    power_of_two,
)
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
    stride = _padded(n)
    grad, stored, mode = None, None, NONE.value
    if gradient:
        mode = STORED.value if cut.strip else FUSED.value
        copies = 1 if cut.strip else splits
        grad = torch.empty((copies, *rows.shape), dtype=torch.float32, device=rows.device)
    if columns[2] is not None and cut.strip:
        weights = torch.empty((batches, strip, stride), dtype=torch.bfloat16, device=rows.device)
        sums = torch.empty((batches, splits, strip), dtype=torch.float32, device=rows.device)
        stored = _Stored(weights, sums, columns[2], rows, centre, kernel, cut, span, chunks)
    kind = KINDS[kernel.kind]
    factor = 2.0 * kernel.inverse_c[0]
    traits = traits_of(rows, kernel)
    for s in range(strips):
        here = min(tiles, -(-(m - s * strip) // cut.rows))
        arguments = (
            *own[:2],
            *columns,
            None if stored is None else stored.weights,
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
            None if stored is None else stored.sums,
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
            SPECIAL=from_special_unit(n),
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
        if stored is not None and grad is not None:
            stored.apply(grad[0], s * strip, here)
    return Parts(part, grad, *cross_terms)


@dataclass(frozen=True)
class _Stored:
    """Weights of a strip of rows at a time, to be multiplied with z."""

    weights: Tensor  # (B, strip, padded n)
    sums: Tensor  # (B, splits, strip)
    z: Tensor
    rows: Tensor
    centre: Tensor
    kernel: Kernel
    cut: Tiles
    span: int
    chunks: int

    def apply(self, grad: Tensor, first: int, tiles: int) -> None:
        """The gradient (B, m, d) of ``tiles`` row tiles from row ``first`` on.

        They alone would leave most of the GPU idle, so ranges of columns go side by side, and
        their parts are added up.
        """
        batches, m, d = self.rows.shape
        n, strip = self.z.shape[1], self.weights.shape[1]
        held = min(strip, m - first)
        programs = batches * self.chunks * tiles
        column_tiles = -(-n // self.cut.columns)
        per_cut = -(-column_tiles // column_cuts(programs, n))
        cuts = -(-column_tiles // per_cut)
        out, out_first = grad, 0
        if cuts > 1:
            shape = cuts, batches, held, d
            out, out_first = torch.empty(shape, dtype=grad.dtype, device=grad.device), first
        arguments = (
            self.weights,
            self.sums,
            self.z,
            self.rows,
            self.centre,
            self.kernel.a,
            self.kernel.weight,
            2.0 * self.kernel.inverse_c[0],
            out,
            m,
            n,
            first,
            strip,
            self.weights.shape[2],
            self.kernel.batch_step,
            tiles,
            self.chunks,
            cuts,
            per_cut,
            self.sums.shape[1],
            out_first,
            out.shape[-2],
            batches * held * d if cuts > 1 else 0,
        )
        launch(
            apply_weights,
            programs * cuts,
            traits_of(self.rows, self.kernel),
            arguments,
            KIND=KINDS[self.kernel.kind],
            PASSES=self.cut.passes,
            D=d,
            DZ=self.z.shape[2] // 2,
            DG=self.span,
            BM=self.cut.rows,
            BN=self.cut.columns,
            SECTION=16384,
            num_warps=8,
            num_stages=3,
        )
        if cuts > 1:
            torch.sum(out, 0, out=grad[:, first : first + held])
