"""Centring and scaling on a GPU: one launch forward, running statistics included, one backward.

A program has a few columns and goes through all rows, twice to know them and once to write.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from smmd.pairs.triton_launch import Bound, traits_of

#: Columns of a program (a sector of memory), and rows that it has at once.
_COLUMNS, _ROWS = 8, 256


class Running(NamedTuple):
    """The buffers that a batch goes into, and its weight."""

    mean: Tensor
    var: Tensor
    batches: Tensor
    momentum: float


@triton.jit(do_not_specialize=["n", "d", "floor", "momentum"])
def standardize_rows(
    x, out, kept, running_mean, running_var, count,
    n, d, floor, momentum,
    TRACK: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    r = tl.arange(0, BR)
    total = tl.zeros((BC,), tl.float32)
    for start in range(0, n, BR):
        there = (start + r < n)[:, None] & (c < d)[None, :]
        value = tl.load(x + (start + r)[:, None] * d + c[None, :], mask=there, other=0.0)
        total += tl.sum(value, axis=0)
    mean = total / n
    # Centred once more: this removes the mean's own rounding, which matters far from the origin.
    rest = tl.zeros((BC,), tl.float32)
    squares = tl.zeros((BC,), tl.float32)
    for start in range(0, n, BR):
        there = (start + r < n)[:, None] & (c < d)[None, :]
        value = tl.load(x + (start + r)[:, None] * d + c[None, :], mask=there, other=0.0)
        value = tl.where(there, value - mean[None, :], 0.0)
        rest += tl.sum(value, axis=0)
        squares += tl.sum(value * value, axis=0)
    rest = rest / n
    variance = (squares - n * rest * rest) / (n - 1)
    root = 1.0 / tl.sqrt(tl.maximum(variance, floor))
    for start in range(0, n, BR):
        there = (start + r < n)[:, None] & (c < d)[None, :]
        at = (start + r)[:, None] * d + c[None, :]
        value = tl.load(x + at, mask=there, other=0.0)
        tl.store(out + at, (value - mean[None, :] - rest[None, :]) * root[None, :], mask=there)
    tl.store(kept + c, mean, mask=c < d)
    tl.store(kept + d + c, rest, mask=c < d)
    tl.store(kept + 2 * d + c, root, mask=c < d)
    # Below the floor the root is a constant.
    pull = tl.where(variance > floor, root * root / (n - 1), 0.0)
    tl.store(kept + 3 * d + c, pull, mask=c < d)
    if TRACK:
        before = tl.load(running_mean + c, mask=c < d, other=0.0)
        tl.store(running_mean + c, before + momentum * (mean + rest - before), mask=c < d)
        before = tl.load(running_var + c, mask=c < d, other=0.0)
        tl.store(running_var + c, before + momentum * (variance - before), mask=c < d)
        if tl.program_id(0) == 0:
            tl.store(count, tl.load(count) + 1)


@triton.jit(do_not_specialize=["n", "d"])
def standardize_rows_backward(on_out, x, kept, slope, n, d, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    r = tl.arange(0, BR)
    mean = tl.load(kept + c, mask=c < d, other=0.0)[None, :]
    rest = tl.load(kept + d + c, mask=c < d, other=0.0)[None, :]
    root = tl.load(kept + 2 * d + c, mask=c < d, other=0.0)[None, :]
    pull = tl.load(kept + 3 * d + c, mask=c < d, other=0.0)
    total = tl.zeros((BC,), tl.float32)
    along = tl.zeros((BC,), tl.float32)
    for start in range(0, n, BR):
        there = (start + r < n)[:, None] & (c < d)[None, :]
        at = (start + r)[:, None] * d + c[None, :]
        g = tl.load(on_out + at, mask=there, other=0.0)
        total += tl.sum(g, axis=0)
        along += tl.sum(g * (tl.load(x + at, mask=there, other=0.0) - mean - rest), axis=0)
    level = (total / n)[None, :]
    along = (along * pull)[None, :]
    for start in range(0, n, BR):
        there = (start + r < n)[:, None] & (c < d)[None, :]
        at = (start + r)[:, None] * d + c[None, :]
        g = tl.load(on_out + at, mask=there, other=0.0)
        centred = tl.load(x + at, mask=there, other=0.0) - mean - rest
        tl.store(slope + at, (g - level - centred * along) * root, mask=there)


@lru_cache(maxsize=256)
def _forward(d: int, tracked: bool) -> Bound:
    return Bound(standardize_rows, -(-d // _COLUMNS), 8, 2, TRACK=tracked, BR=_ROWS, BC=_COLUMNS)


@lru_cache(maxsize=256)
def _backward(d: int) -> Bound:
    return Bound(standardize_rows_backward, -(-d // _COLUMNS), 8, 2, BR=_ROWS, BC=_COLUMNS)


def forward(rows: Tensor, floor: float, running: Running | None) -> tuple[Tensor, Tensor]:
    """The standardized rows (n, d), and what ``backward`` wants to know."""
    n, d = rows.shape
    out, kept = torch.empty_like(rows), rows.new_empty((4, d))
    mean, var, count, momentum = running or (None, None, None, 0.0)
    traits = traits_of(rows)
    if running is not None:
        traits += (mean.data_ptr() % 16, var.data_ptr() % 16, count.data_ptr() % 16)  # type: ignore[union-attr]
    arguments = (rows, out, kept, mean, var, count, n, d, floor, momentum)
    _forward(d, running is not None)(traits, arguments)
    return out, kept


def backward(on_out: Tensor, rows: Tensor, kept: Tensor) -> Tensor:
    """The gradient in the rows."""
    n, d = rows.shape
    slope = torch.empty_like(rows)
    _backward(d)((traits_of(on_out), traits_of(rows)), (on_out, rows, kept, slope, n, d))
    return slope
