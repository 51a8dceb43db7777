"""Launching the kernel of small samples; whole statistics of them in one launch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from smmd.pairs.triton_direct import MOST_TILES, direct
from smmd.pairs.triton_launch import KINDS, Bound, largest, table_of, traits_of
from smmd.pairs.triton_plan import MOST_DIFFERENCES, NO_CROSS, Cross, Kernel, power_of_two

#: Rows of a program, and columns that it has at once.
BLOCK, COLUMNS = 16, 64
#: How many batches one launch finishes by itself.
MOST_BATCHES = 128

#: For each stream, on which kernels follow each other: the programs' parts, and how many programs
#: of a batch have arrived, which each kernel leaves at 0.
_rooms: dict[tuple[int | None, int], tuple[Tensor, Tensor]] = {}


def _bound(
    kernel: Kernel, cross: Cross, finish: torch.dtype | None, gradient: bool,
    programs: int, d: int, block: int = BLOCK, warps: int = 0,
) -> Bound:  # fmt: skip
    """``finish`` is the type of the answer, if there is to be one."""
    return Bound(
        direct,
        programs,
        num_warps=warps or (4 if d <= MOST_DIFFERENCES else 8),
        KIND=KINDS[kernel.kind],
        BASE=kernel.bases,
        CROSS=cross.kind,
        FINISH=finish is not None,
        LIMIT=0.0 if finish is None else largest(finish),
        GRAD=gradient,
        PRODUCTS=d > MOST_DIFFERENCES,
        D=d,
        DP=max(16, power_of_two(d)),
        BM=block,
        BN=COLUMNS,
    )


def direct_sums(
    rows: Tensor,
    cols: Tensor,
    kernel: Kernel,
    row_start: int,
    gradient: bool,
    cross: Cross = NO_CROSS,
    block: int = BLOCK,
    warps: int = 0,
) -> tuple[Tensor, Tensor | None]:
    """The programs' float64 sums (B, parts); the gradient (with ``cross`` of the statistic)."""
    batches, m, d = rows.shape
    n = cols.shape[1]
    tiles = -(-m // block)
    part = torch.empty((batches, tiles), dtype=torch.float64, device=rows.device)
    grad = None
    if gradient:
        grad = torch.empty(rows.shape, dtype=torch.float32, device=rows.device)
    arguments = (
        rows, cols, kernel.a, kernel.offset, kernel.weight, kernel.base, table_of(kernel, False),
        kernel.coef, *kernel.inverse_c, cross.numbers, part, None, None, grad,
        m, n, row_start, kernel.terms, kernel.batch_step, tiles, cross.first, cross.second,
    )  # fmt: skip
    bound = _bound(kernel, cross, None, gradient, batches * tiles, d, block, warps)
    bound((*traits_of(rows, kernel), *traits_of(cols)), arguments)
    return part, grad


def fits(batches: int, n: int) -> bool:
    """Whether the programs of one launch can add each other's parts up."""
    return batches <= MOST_BATCHES and n <= BLOCK * MOST_TILES.value


class Small:
    """A statistic of samples of one shape and type, with all that calls share found beforehand.

    What Triton, PyTorch and this package would find out anew at each call takes longer than the
    kernel.
    """

    def __init__(
        self, kernel: Kernel, cross: Cross, shape: tuple[int, ...], dtype: torch.dtype,
        device: torch.device,
    ) -> None:  # fmt: skip
        *batch, n, d = shape
        self.shape, self.dtype, self.device = shape, dtype, device
        self.batch, self.batches, tiles = tuple(batch), math.prod(batch), -(-n // BLOCK)
        self.programs = self.batches * tiles
        self.before = (
            kernel.a, kernel.offset, kernel.weight, kernel.base, table_of(kernel, False),
            kernel.coef, *kernel.inverse_c, cross.numbers,
        )  # fmt: skip
        self.after = (n, n, 0, kernel.terms, kernel.batch_step, tiles, cross.first, cross.second)
        self.kernel = kernel
        self.bounds = [
            _bound(kernel, cross, dtype, gradient, self.programs, d) for gradient in (False, True)
        ]

    def __call__(self, z: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The statistic (…) of contiguous z (…, n, d) in its type, and its gradient in float32."""
        part, arrived = self._room()
        answer = torch.empty(self.batch, dtype=self.dtype, device=self.device)
        grad = None
        if gradient:
            grad = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        arguments = (z, z, *self.before, part, arrived, answer, grad, *self.after)
        self.bounds[gradient](traits_of(z, self.kernel), arguments)
        return answer, grad

    def _room(self) -> tuple[Tensor, Tensor]:
        index = self.device.index
        if index is not None and torch.cuda.is_current_stream_capturing():
            # A graph may be replayed on any stream: it needs a place of its own.
            return _new_room(self.programs, self.batches, self.device)
        stream = 0 if index is None else torch._C._cuda_getCurrentRawStream(index)
        room = _rooms.get((index, stream))
        if room is None or len(room[0]) < self.programs:
            room = _new_room(max(self.programs, 1024), MOST_BATCHES, self.device)
            _rooms[index, stream] = room
        return room


def _new_room(programs: int, batches: int, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.empty(programs, dtype=torch.float64, device=device),
        torch.zeros(batches, dtype=torch.int32, device=device),
    )
