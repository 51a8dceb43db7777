"""Launching the kernel that puts a statistic together."""

from __future__ import annotations

import torch
from torch import Tensor

from smmd.pairs.triton_cross import finish
from smmd.pairs.triton_launch import Bound, largest, traits_of
from smmd.pairs.triton_plan import Cross, Parts, power_of_two


class Finish:
    """From the parts of samples of one shape (B, n, d) and type to their statistics."""

    def __init__(
        self, cross: Cross, shape: tuple[int, ...], dtype: torch.dtype, gradient: bool
    ) -> None:
        batches, n, d = shape
        self.cross, self.dtype, self.batches, self.n = cross, dtype, batches, n
        self.gradient, self.tiles = gradient, 1
        width = block = 1
        if gradient:
            width = power_of_two(d)
            block = max(1, 2048 // width)
            self.tiles = -(-n // block)
        self.bound = Bound(
            finish,
            batches * self.tiles,
            LIMIT=largest(dtype),
            GRAD=gradient,
            D=d,
            DP=width,
            BR=block,
        )

    def __call__(self, parts: Parts, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """The statistic in the type of z, and its gradient in float32."""
        value = torch.empty(self.batches, dtype=self.dtype, device=z.device)
        grad, splits = None, 0
        if self.gradient:
            assert parts.pulls is not None
            splits = parts.pulls.shape[0]
            if splits == 1:
                grad = parts.pulls[0]  # in place
            else:
                grad = torch.empty(z.shape, dtype=torch.float32, device=z.device)
        arguments = (
            parts.pairs, parts.cross, parts.pulls, parts.cross_slope, z, self.cross.numbers,
            value, grad,
            0 if parts.pairs is None else parts.pairs.shape[1],
            0 if parts.cross is None else parts.cross.shape[1],
            self.n, self.batches * self.n, self.tiles, splits,
        )  # fmt: skip
        self.bound(traits_of(z), arguments)
        return value, grad
