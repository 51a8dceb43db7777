"""Centring and scaling a batch by its own statistics as one node of the graph.

A batch of codes takes less time to normalize than the operators of a recorded graph take to call:
so the backward pass is written out, and a GPU has a kernel for each way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd import arrays
from smmd.pairs import gpu
from smmd.samples import moments

#: A kernel's program goes through all rows of its columns: beyond, operators are as fast.
_MOST_ROWS = 4096


def serves(rows: Tensor) -> bool:
    """Whether autograd calls Python here; compilers and ``torch.func`` want plain operators."""
    return not (arrays.is_compiling(rows) or arrays.is_transformed(rows))


def standardized(rows: Tensor, layer: Any) -> Tensor:
    """The rows (…, n, d) centred and divided by the root of their n−1 variance, at least eps.

    ``layer`` is the ``CodeNorm`` whose running statistics they go into.
    """
    out: Tensor = _Standardize.apply(rows, layer)  # type: ignore[no-untyped-call]
    return out


def _recorded(rows: Tensor, eps: float) -> Tensor:
    """The same in operators that autograd records."""
    _, centred, squares = moments(rows)
    return centred * (squares / (rows.shape[-2] - 1)).clamp_min(eps).rsqrt()


class _Standardize(torch.autograd.Function):
    """The result is not kept for the backward pass, so that it may be changed in place."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, layer: Any) -> Tensor:
        found = _launched(rows, layer) if _has_kernels(rows) else None
        ctx.launched, ctx.eps = found is not None, layer.eps
        out, *kept = found or _computed(rows, layer)
        ctx.save_for_backward(rows, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, on_out: Tensor) -> tuple[Tensor, None]:
        rows, *kept = ctx.saved_tensors
        if torch.is_grad_enabled():  # the graph of this pass is wanted, too
            out = _recorded(rows, ctx.eps)
            (slope,) = torch.autograd.grad(out, rows, on_out, create_graph=True)
            return slope, None
        if ctx.launched:
            from smmd.torch import standardizing_triton as kernels

            return kernels.backward(on_out.contiguous(), rows.contiguous(), *kept), None
        centred, root, pull = kept
        along = (on_out * centred).sum(dim=-2, keepdim=True) * pull
        slope = on_out - on_out.mean(dim=-2, keepdim=True)
        return torch.addcmul(slope, centred, along, value=-1.0).mul_(root), None


def _computed(rows: Tensor, layer: Any) -> tuple[Tensor, ...]:
    """The standardized rows; the centred ones, the reciprocal roots, and the pull of the latter.

    The pull is root²/(n − 1), or 0 where the variance is below eps and so the root is a constant.
    """
    mean, centred, squares = moments(rows)
    free = rows.shape[-2] - 1
    variance = squares.div_(free)
    layer.track(mean, variance)
    root = variance.clamp_min(layer.eps).rsqrt_()
    pull = (root * root).mul_(variance > layer.eps).div_(free)
    return centred * root, centred, root, pull


def _has_kernels(rows: Tensor) -> bool:
    return (
        rows.dtype is torch.float32
        and rows.ndim == 2
        and rows.shape[0] <= _MOST_ROWS
        and gpu.serves(rows)
        and (not rows.is_cuda or rows.device.index == torch.cuda.current_device())
    )


def _launched(rows: Tensor, layer: Any) -> tuple[Tensor, ...] | None:
    """The standardized rows in one launch, and what the backward pass has to know.

    None where the running statistics are not such that a kernel can follow them.
    """
    from smmd.torch import standardizing_triton as kernels

    running = None
    if layer.tracks():
        mean = layer.running_mean
        if layer.momentum is None or mean.dtype != torch.float32 or mean.device != rows.device:
            return None
        buffers = mean, layer.running_var, layer.num_batches_tracked
        running = kernels.Running(*buffers, float(layer.momentum))
    return kernels.forward(rows.contiguous(), layer.eps, running)
