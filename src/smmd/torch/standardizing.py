"""Centring and scaling a batch by its own statistics as one node of the graph.

A batch of codes takes less time to normalize than the operators of a recorded graph take to call:
so the backward pass is written out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd import arrays
from smmd.samples import moments


def serves(rows: Tensor) -> bool:
    """Whether autograd calls Python here; compilers and ``torch.func`` want plain operators."""
    return not (arrays.is_compiling(rows) or arrays.is_transformed(rows))


def standardized(rows: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """The rows (…, n, d) centred and divided by the root of their n−1 variance, at least ``floor``.

    And their mean and variance, through which no gradient flows.
    """
    out, _, mean, variance = _Standardize.apply(rows, floor)  # type: ignore[no-untyped-call]
    return out, mean, variance


class _Standardize(torch.autograd.Function):
    """The reciprocal root is a result only so that the backward pass can be differentiated."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        mean, centred, squares = moments(rows)
        variance = squares.div_(rows.shape[-2] - 1)
        root = variance.clamp_min(floor).rsqrt_()
        out = centred.mul_(root)
        ctx.mark_non_differentiable(mean, variance)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(out, root, variance)
        ctx.floor = floor
        return out, root, mean, variance

    @staticmethod
    def backward(ctx: Any, on_out: Tensor | None, on_root: Tensor | None, *_: Any) -> Any:
        out, root, variance = ctx.saved_tensors
        free, varies = out.shape[-2] - 1, variance > ctx.floor  # else the root is a constant
        slope = None
        if on_out is not None:
            along = (on_out * out).sum(dim=-2, keepdim=True) * varies
            slope = on_out - on_out.mean(dim=-2, keepdim=True)
            slope = torch.addcmul(slope, out, along, value=-1.0 / free) * root
        if on_root is not None:
            part = out * (on_root * root * root * varies / -free)
            slope = part if slope is None else slope + part
        return slope, None
