"""The operator ``smmd::pair_sum`` inside ``torch.func``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from smmd import arrays
from smmd.pairs.torch import pair_hessian_product
from smmd.pairs.torch import pair_sum_operator as pair_sum


class Transformed(torch.autograd.Function):
    """The same operator for ``torch.func``, which the operator registry does not reach."""

    @staticmethod
    def forward(
        z: Tensor, name: str, numbers: list[float], widths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        return pair_sum(z, name, numbers, widths, True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        z, name, numbers, widths = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(z, output[1], widths)
        ctx.save_for_forward(z, output[1], widths)
        ctx.radial = (name, numbers)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        z, slope, widths = ctx.saved_tensors
        total = None
        if grads[0] is not None:
            total = (grads[0][..., None, None] * slope).to(z.dtype)
        if grads[1] is not None:
            bend = _Hessian.apply(z, grads[1], *ctx.radial, widths)  # type: ignore[no-untyped-call]
            total = bend if total is None else total + bend
        return total, None, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, Tensor]:
        z, slope, widths = ctx.saved_tensors
        along = tangents[0]
        assert along is not None
        bend = _Hessian.apply(z, along, *ctx.radial, widths)  # type: ignore[no-untyped-call]
        return (slope * along).sum((-2, -1), dtype=arrays.work_dtype(z)), bend

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[Any, ...],
        z: Tensor,
        name: str,
        numbers: list[float],
        widths: Tensor | None,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        z = _batch_first(z, in_dims[0], info.batch_size)
        widths = _batched_widths(widths, in_dims[3], info.batch_size)
        return Transformed.apply(z, name, numbers, widths), (0, 0)  # type: ignore[no-untyped-call]


class _Hessian(torch.autograd.Function):
    """``pair_hessian_product`` for ``torch.func``; linear in u and not differentiated in z."""

    @staticmethod
    def forward(
        z: Tensor, u: Tensor, name: str, numbers: list[float], widths: Tensor | None
    ) -> Tensor:
        return pair_hessian_product(z, u.contiguous(), name, numbers, widths)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        z, _, name, numbers, widths = inputs
        ctx.save_for_backward(z, widths)
        ctx.radial = (name, numbers)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        z, widths = ctx.saved_tensors
        bend = _Hessian.apply(z, grads[0], *ctx.radial, widths)  # type: ignore[no-untyped-call]
        return None, bend, None, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[Any, ...],
        z: Tensor,
        u: Tensor,
        name: str,
        numbers: list[float],
        widths: Tensor | None,
    ) -> tuple[Tensor, int]:
        z, u = (_batch_first(v, k, info.batch_size) for v, k in ((z, in_dims[0]), (u, in_dims[1])))
        widths = _batched_widths(widths, in_dims[4], info.batch_size)
        return _Hessian.apply(z, u, name, numbers, widths), 0  # type: ignore[no-untyped-call]


def _batch_first(x: Tensor, axis: int | None, size: int) -> Tensor:
    return (x.expand(size, *x.shape) if axis is None else x.movedim(axis, 0)).contiguous()


def _batched_widths(widths: Tensor | None, axis: int | None, size: int) -> Tensor | None:
    """The four parameters stay on axis 0, the new batch comes after them."""
    return None if widths is None else _batch_first(widths, axis, size).movedim(0, 1).contiguous()
