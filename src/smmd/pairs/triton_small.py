"""Whole statistics of small samples in one launch, with all that calls share found beforehand.

What Triton, PyTorch and this package would find out anew at each call takes longer than the kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd.pairs import triton_launch
from smmd.pairs.triton_direct import MOST_TILES, direct
from smmd.pairs.triton_launch import INTERPRETED, direct_constants, table_of
from smmd.pairs.triton_plan import Cross, Kernel

#: Rows of a program, and how many batches one launch finishes by itself.
BLOCK, MOST_BATCHES = 16, 128

#: For each stream, on which kernels follow each other: the programs' parts, and how many programs
#: of a batch have arrived, which each kernel leaves at 0.
_rooms: dict[tuple[int | None, int], tuple[Tensor, Tensor]] = {}


def fits(batches: int, n: int) -> bool:
    """Whether programs of one launch can add each other's parts up."""
    return batches <= MOST_BATCHES and n <= BLOCK * MOST_TILES.value


class Small:
    """constant + mean pair(r²_ij) − 2 mean cross(‖z_i‖²) for samples of one shape and type."""

    def __init__(
        self, kernel: Kernel, cross: Cross, shape: tuple[int, ...], dtype: torch.dtype,
        device: torch.device,
    ) -> None:  # fmt: skip
        *self.batch, n, d = shape
        self.shape, self.dtype, self.device = shape, dtype, device
        tiles = -(-n // BLOCK)
        self.batches = 1
        for count in self.batch:
            self.batches *= count
        self.programs = self.batches * tiles
        self.before = (
            kernel.a, kernel.offset, kernel.weight, kernel.base, table_of(kernel, False),
            kernel.coef, *kernel.inverse_c, cross.numbers,
        )  # fmt: skip
        self.after = (n, n, 0, kernel.terms, kernel.batch_step, tiles, cross.first, cross.second)
        self.constants = {
            gradient: direct_constants(kernel, cross, dtype, gradient, n, d, BLOCK)
            for gradient in (False, True)
        }
        self.ready: dict[tuple[bool, int], tuple[Any, tuple[Any, ...]]] = {}

    def __call__(self, z: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The statistic (…) of contiguous z (…, n, d) in its type, and its gradient in float32."""
        index = self.device.index
        if index is not None and index != torch.cuda.current_device():
            with torch.cuda.device(index):
                return self(z, gradient)
        part, arrived = self._room(index)
        answer = torch.empty(self.batch, dtype=self.dtype, device=self.device)
        grad = None
        if gradient:
            grad = torch.empty(self.shape, dtype=torch.float32, device=self.device)
        arguments = (z, z, *self.before, part, arrived, answer, grad, *self.after)
        key = (gradient, z.data_ptr() % 16)
        ready = self.ready.get(key)
        if ready is not None:
            run, values = ready
            run(*arguments, *values)
            return answer, grad
        constants, options = self.constants[gradient]
        made = triton_launch.first(direct, self.programs, arguments, constants | options)
        if not INTERPRETED:
            self.ready[key] = made[(self.programs, 1, 1)], tuple(constants.values())
        return answer, grad

    def _room(self, index: int | None) -> tuple[Tensor, Tensor]:
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
