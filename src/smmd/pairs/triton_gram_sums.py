"""Launching the kernels of large samples: memory, grids and arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from smmd.pairs.triton_apply import apply_weights
from smmd.pairs.triton_cross import ABSENT
from smmd.pairs.triton_gram import FUSED, NONE, STORED, gram
from smmd.pairs.triton_launch import KINDS, Bound, table_of, traits_of
from smmd.pairs.triton_plan import NO_CROSS, Cross, Kernel, Parts, Tiles, column_cuts, power_of_two
from smmd.pairs.triton_split import FEW_DIMENSIONS, split


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


class _Split:
    """Rows as ``gram`` reads them; and their cross terms, if any."""

    def __init__(
        self, kernel: Kernel, cross: Cross, shape: tuple[int, ...], width: int, z_width: int,
        given_centre: bool,
    ) -> None:  # fmt: skip
        self.batches, self.count, d = shape
        self.kernel, self.cross, self.width, self.z_width = kernel, cross, width, z_width
        self.given_centre, self.d = given_centre, d
        loaded = max(power_of_two(max(width, z_width)), 8)
        block = max(1, 2048 // loaded)
        self.blocks = -(-self.count // block)
        self.bound = Bound(
            split,
            self.batches * self.blocks,
            KIND=KINDS[kernel.kind],
            CROSS=cross.kind,
            GRAD=z_width > 0,
            GIVEN=given_centre,
            D=d,
            DP=width,
            DZ=z_width,
            DL=loaded,
            QP=power_of_two(kernel.terms),
            BR=block,
        )

    def __call__(
        self, x: Tensor, centre: Tensor | None = None
    ) -> tuple[tuple[Tensor, Tensor, Tensor | None], tuple[Tensor | None, Tensor | None], Tensor]:
        """The parts, the cross terms and the centre, which is that of x if none is given."""
        kernel, cross, device = self.kernel, self.cross, x.device
        batches, count = self.batches, self.count
        if centre is None:
            centre = torch.empty((batches, self.d), dtype=torch.float32, device=device)
        shape = batches, count, 2 * self.width
        parts = torch.empty(shape, dtype=torch.float16, device=device)
        side = torch.empty((batches, _padded(count)), dtype=torch.int64, device=device)
        z = cross_part = cross_slope = None
        if self.z_width:
            shape = batches, count, 2 * self.z_width
            z = torch.empty(shape, dtype=torch.bfloat16, device=device)
        if cross.kind != ABSENT.value:
            cross_part = torch.empty((batches, self.blocks), dtype=torch.float64, device=device)
            if self.z_width:
                cross_slope = torch.empty((batches, count), dtype=torch.float32, device=device)
        arguments = (
            x, centre, kernel.a, kernel.offset, kernel.base,
            2.0 * kernel.inverse_c[0], 2.0 * kernel.inverse_c[1],
            cross.numbers, parts, side, z, cross_part, cross_slope,
            count, side.shape[1], kernel.terms, kernel.batch_step, self.blocks,
            cross.first, cross.second,
        )  # fmt: skip
        self.bound(traits_of(x, kernel), arguments)
        return (parts, side, z), (cross_part, cross_slope), centre


class Gram:
    """Sums from matrix units for one shape, with all that calls share found beforehand.

    ``symmetric`` says that the rows are the columns.
    """

    def __init__(
        self,
        kernel: Kernel,
        batches: int,
        m: int,
        n: int,
        d: int,
        symmetric: bool,
        half: bool,
        gradient: bool,
        cut: Tiles,
        cross: Cross = NO_CROSS,
    ) -> None:
        self.kernel, self.gradient = kernel, gradient
        self.batches, self.m, self.n = batches, m, n
        width, step = _stored_width(d, cut.inner)
        span = 16 if d <= 8 else power_of_two(max(d, 16))
        if cut.strip:
            span = min(span, 128)
        chunks = -(-d // span)
        z_width = 0 if not gradient else 8 if d <= 8 else chunks * span
        if cut.strip:
            z_width = max(z_width, 16)
        mean = d > FEW_DIMENSIONS.value
        self.columns = _Split(kernel, cross, (batches, n, d), width, z_width, mean)
        self.rows = None
        if not symmetric:
            self.rows = _Split(kernel, NO_CROSS, (batches, m, d), width, 0, True)

        column_tiles = -(-n // cut.columns)
        self.per_split = -(-column_tiles // cut.splits)
        self.splits = -(-column_tiles // self.per_split)
        row_tiles = -(-m // cut.rows)
        self.tiles = min(-(-(cut.strip or m) // cut.rows), row_tiles)
        self.strip = self.tiles * cut.rows
        self.strips = -(-m // self.strip)
        self.parts = self.splits * row_tiles
        self.copies = 1 if cut.strip else self.splits
        self.stored = bool(gradient and cut.strip)
        mode = NONE if not gradient else STORED if cut.strip else FUSED
        # All strips have as many tiles, except perhaps the last.
        self.counts = [min(self.tiles, row_tiles - s * self.tiles) for s in range(self.strips)]
        self.bounds = {
            here: Bound(
                gram,
                batches * self.splits * here,
                num_warps=cut.warps,
                num_stages=cut.stages,
                KIND=KINDS[kernel.kind],
                BASE=kernel.bases,
                GRAD=mode.value,
                HALF=half,
                PASSES=cut.passes,
                D=d,
                DP=width,
                DZ=z_width,
                DG=span,
                BK=step,
                BM=cut.rows,
                BN=cut.columns,
            )
            for here in set(self.counts)
        }
        self.apply = None
        if self.stored:
            self.apply = {
                here: _Apply(kernel, batches, m, n, d, cut, span, chunks, z_width, here)
                for here in set(self.counts)
            }

    def __call__(self, rows: Tensor, cols: Tensor, row_start: int) -> Parts:
        kernel, device = self.kernel, rows.device
        batches, m, n = self.batches, self.m, self.n
        mean = cols.mean(1, dtype=torch.float32) if self.columns.given_centre else None
        columns, cross_terms, centre = self.columns(cols, mean)
        own = columns if self.rows is None else self.rows(rows, centre)[0]
        part = torch.empty((batches, self.parts), dtype=torch.float64, device=device)
        grad = weights = sums = None
        stride = _padded(n)
        if self.gradient:
            shape = (self.copies, *rows.shape)
            grad = torch.empty(shape, dtype=torch.float32, device=device)
        if self.stored:
            shape = batches, self.strip, stride
            weights = torch.empty(shape, dtype=torch.bfloat16, device=device)
            shape = batches, self.splits, self.strip
            sums = torch.empty(shape, dtype=torch.float32, device=device)
        before = (
            *own[:2], *columns, weights, rows, centre, kernel.a, kernel.offset, kernel.weight,
            kernel.base, table_of(kernel, True), kernel.coef, 2.0 * kernel.inverse_c[0], part,
            grad, sums, m, n, batches * m, row_start,
        )  # fmt: skip
        traits = traits_of(rows, kernel)
        for s, here in enumerate(self.counts):
            first = s * self.strip
            arguments = (
                *before, first, self.strip, stride, kernel.terms, kernel.batch_step, here,
                self.splits, self.per_split, s * self.splits * self.tiles, self.parts,
                _padded(m), stride,
            )  # fmt: skip
            self.bounds[here](traits, arguments)
            if self.apply is not None:
                given = (weights, sums, columns[2], rows, centre)
                self.apply[here](given, grad, first, traits)
        return Parts(part, grad, *cross_terms)


class _Apply:
    """The gradient of a strip of row tiles from their weights.

    They alone would leave most of the GPU idle, so ranges of columns go side by side, and their
    parts are added up.
    """

    def __init__(
        self, kernel: Kernel, batches: int, m: int, n: int, d: int, cut: Tiles,
        span: int, chunks: int, z_width: int, tiles: int,
    ) -> None:  # fmt: skip
        self.kernel, self.batches, self.m, self.n, self.d = kernel, batches, m, n, d
        self.tiles, self.chunks, self.stride = tiles, chunks, _padded(n)
        self.held = tiles * cut.rows
        programs = batches * chunks * tiles
        column_tiles = -(-n // cut.columns)
        self.per_cut = -(-column_tiles // column_cuts(programs, n))
        self.cuts = -(-column_tiles // self.per_cut)
        self.bound = Bound(
            apply_weights,
            programs * self.cuts,
            num_warps=8,
            KIND=KINDS[kernel.kind],
            PASSES=cut.passes,
            D=d,
            DZ=z_width,
            DG=span,
            BM=cut.rows,
            BN=cut.columns,
            SECTION=16384,
        )

    def __call__(
        self, given: tuple[Tensor | None, ...], grad: Tensor | None, first: int, traits: object
    ) -> None:
        weights, sums, z, rows, centre = given
        assert grad is not None
        assert weights is not None
        assert sums is not None
        kernel, batches = self.kernel, self.batches
        held = min(self.held, self.m - first)
        out, out_first, out_rows = grad, 0, self.m
        if self.cuts > 1:
            shape = self.cuts, batches, held, self.d
            out = torch.empty(shape, dtype=torch.float32, device=grad.device)
            out_first, out_rows = first, held
        arguments = (
            weights, sums, z, rows, centre, kernel.a, kernel.offset, kernel.weight, kernel.base,
            2.0 * kernel.inverse_c[0], out, self.m, self.n, first, weights.shape[1], self.stride,
            kernel.batch_step, self.tiles, self.chunks, self.cuts, self.per_cut, sums.shape[1],
            out_first, out_rows, batches * held * self.d if self.cuts > 1 else 0,
        )  # fmt: skip
        self.bound(traits, arguments)
        if self.cuts > 1:
            torch.sum(out, 0, out=grad[0, :, first : first + held])
