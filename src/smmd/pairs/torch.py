"""The sum over pairs as one PyTorch operator: value and row gradient in a single pass.

The forward pass computes Σ_{i≠j} f(r²_ij) and, where a gradient will be wanted, the gradient with
it; the backward pass is a multiplication, and differentiating that once more is a second operator
(a Hessian–vector product).  To ``torch.compile`` both are opaque, so nothing is traced and no
n×n tensor is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from smmd import arrays
from smmd import radial as radial_functions
from smmd.pairs import blocks, dense, gpu, plan
from smmd.radial import Exponentials, Radial, SeriesRadial

#: Said where a third derivative would be needed.
THIRD = "smmd is differentiable twice; a third derivative was asked for"


def encode(radial: Radial) -> tuple[str, list[float], Tensor | None]:
    """A radial function as what an operator's schema can hold."""
    if isinstance(radial, Exponentials) and not isinstance(radial.a, tuple):
        return "exponentials", [], torch.stack(torch.broadcast_tensors(*radial.parameters()))
    name, numbers = radial.encode()
    return name, list(numbers), None


def decode(name: str, numbers: list[float], widths: Any) -> Radial:
    """The inverse of ``encode``; ``widths`` may be a tensor or a NumPy array."""
    if widths is not None:
        return Exponentials(widths[0], widths[1], widths[2], widths[3])
    return radial_functions.decode(name, numbers)


@torch.library.custom_op("smmd::pair_sum", mutates_args=())
def pair_sum_operator(
    z: Tensor, name: str, numbers: list[float], widths: Tensor | None, gradient: bool
) -> tuple[Tensor, Tensor]:
    """Σ_{i≠j} f(r²_ij) in float64, and its gradient in the type of z (or an empty tensor)."""
    found = None
    if gpu.serves(z):
        found = gpu.pair_sum(z, decode(name, numbers, widths), gradient=gradient)
    if found is None and _blockwise(z):
        tensor = None if widths is None else widths.detach().numpy()
        found = _on_cpu(z, None, decode(name, numbers, tensor), gradient)
    if found is None:
        radial, work = decode(name, numbers, widths), _work(z)
        slope = dense.pair_gradient(work, radial) if gradient else None
        slope = None if slope is None else arrays.saturating_cast(slope, z.dtype)
        found = dense.pair_sum(work, radial), slope
    return found[0], z.new_empty(0) if found[1] is None else found[1]


def _blockwise(z: Tensor) -> bool:
    """Whether NumPy's blocks take this tensor."""
    return z.device.type == "cpu" and plan.forced() != "dense"


def _work(z: Tensor) -> Tensor:
    """Without gradient, in the type that sums are computed in."""
    return z.detach().to(arrays.work_dtype(z))


def _on_cpu(
    z: Tensor, cols: Tensor | None, radial: Radial, gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """``blocks``: against other columns, or z against itself.  The gradient is of z's type."""
    single, x = z.dtype == torch.float32, z.detach().numpy()
    if cols is None:
        total, slope = blocks.pair_sum(x, radial, gradient=gradient, single=single)
    else:
        y = cols.detach().numpy()
        total, slope = blocks.cross_sum(x, y, radial, gradient=gradient, single=single)
    value = torch.from_numpy(np.asarray(total))
    if slope is None:
        return value, None
    # Saturated, because a value beyond float32 hands back a slope of 0, and 0·∞ is no number.
    return value, arrays.saturating_cast(torch.from_numpy(slope), z.dtype)


@pair_sum_operator.register_fake
def _(
    z: Tensor, name: str, numbers: list[float], widths: Tensor | None, gradient: bool
) -> tuple[Tensor, Tensor]:
    value = z.new_empty(z.shape[:-2], dtype=arrays.work_dtype(z))
    return value, torch.empty_like(
        z, memory_format=torch.contiguous_format
    ) if gradient else z.new_empty(0)


def cross_sum(
    rows: Tensor, cols: Tensor, radial: Radial, *, gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """Σ_ij f(‖rows_i − cols_j‖²) and its gradient in ``rows``, outside the graph."""
    found = None
    if gpu.serves(rows):
        # No row is among the columns: row i would be column start + i.
        start = cols.shape[-2]
        found = gpu.row_sum(rows, cols, start, radial, gradient=gradient)
        if found is not None and found[1] is not None:
            found = found[0], 0.5 * found[1]
    if found is None and _blockwise(rows):
        found = _on_cpu(rows, cols, _numpy_widths(radial), gradient)
    if found is None:
        x, y = _work(rows), _work(cols)
        slope = dense.row_gradient(x, y, radial).to(rows.dtype) if gradient else None
        found = dense.row_sums(x, y, radial).sum(-1), slope
    return found


def row_sum(rows: Tensor, cols: Tensor, start: int, radial: Radial) -> tuple[Tensor, Tensor]:
    """Σ_ij f(‖rows_i − cols_j‖²) over j ≠ start + i, and twice its gradient in ``rows``.

    ``rows`` are the columns from ``start`` on: so that is the gradient of the sum over all pairs
    of columns.
    """
    if gpu.serves(rows):
        found = gpu.row_sum(rows, cols, start, radial, gradient=True)
        if found is not None and found[1] is not None:
            return found[0], found[1]
    stop = start + rows.shape[-2]
    value, slope = pair_sum_outside(rows, radial, gradient=True)
    assert slope is not None
    for others in (cols[..., :start, :], cols[..., stop:, :]):
        if others.shape[-2]:
            part, pull = cross_sum(rows, others, radial, gradient=True)
            assert pull is not None
            value, slope = value + part, slope + 2.0 * pull
    return value, slope


def pair_sum_outside(z: Tensor, radial: Radial, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """``pair_sum`` and its gradient, outside the graph."""
    value, slope = pair_sum_operator(z.detach().contiguous(), *encode(radial), gradient)
    return value, slope if gradient else None


def hessian_product_outside(z: Tensor, u: Tensor, radial: Radial) -> Tensor:
    """The derivative of the gradient of ``pair_sum`` along u, outside the graph."""
    return pair_hessian_product(z.detach(), u.detach(), *encode(radial))


def _numpy_widths(radial: Radial) -> Radial:
    if not isinstance(radial, Exponentials) or isinstance(radial.a, tuple):
        return radial
    return Exponentials(*(v.detach().numpy() for v in radial.parameters()))


@torch.library.custom_op("smmd::pair_hessian_product", mutates_args=())
def pair_hessian_product(
    z: Tensor, u: Tensor, name: str, numbers: list[float], widths: Tensor | None
) -> Tensor:
    radial = decode(name, numbers, widths)
    return dense.pair_hessian_product(_work(z), _work(u), radial).to(z.dtype)


@pair_hessian_product.register_fake
def _(z: Tensor, u: Tensor, name: str, numbers: list[float], widths: Tensor | None) -> Tensor:
    return torch.empty_like(z, memory_format=torch.contiguous_format)


def _refuse_third(ctx: Any, on_bend: Tensor) -> tuple[Any, ...]:
    raise NotImplementedError(THIRD)


pair_hessian_product.register_autograd(_refuse_third)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    z, name, numbers, widths, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(z, output[1], widths)
    ctx.radial = (name, numbers)


def _backward(ctx: Any, on_value: Tensor | None, on_slope: Tensor | None) -> tuple[Any, ...]:
    z, slope, widths = ctx.saved_tensors
    total = None
    if on_value is not None:
        total = (on_value[..., None, None] * slope).to(z.dtype)
    if on_slope is not None:
        bend = pair_hessian_product(z, on_slope.contiguous(), *ctx.radial, widths)
        total = bend if total is None else total + bend
    return total, None, None, None, None


pair_sum_operator.register_autograd(_backward, setup_context=_setup)


@torch.library.custom_op("smmd::radial", mutates_args=())
def _radial(r2: Tensor, name: str, numbers: list[float], order: int) -> Tensor:
    import array_api_compat.torch as xp

    radial = decode(name, numbers, None)
    return (radial.value, radial.slope, radial.curvature)[order](xp, r2).contiguous()


@_radial.register_fake
def _(r2: Tensor, name: str, numbers: list[float], order: int) -> Tensor:
    return torch.empty_like(r2, memory_format=torch.contiguous_format)


def _radial_setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    r2, *ctx.radial = inputs
    ctx.save_for_backward(r2)


def _radial_backward(ctx: Any, on_value: Tensor) -> tuple[Any, ...]:
    (r2,) = ctx.saved_tensors
    name, numbers, order = ctx.radial
    if order == 2:
        raise NotImplementedError(THIRD)
    return on_value * _radial(r2, name, numbers, order + 1), None, None, None


_radial.register_autograd(_radial_backward, setup_context=_radial_setup)


def radial_value(radial: SeriesRadial, r2: Tensor) -> Tensor:
    """f(r²) element by element as one node of the graph: a recurrence is slow to compile."""
    name, numbers = radial.encode()
    return _radial(r2.contiguous(), name, list(numbers), 0)


def pair_sum(z: Tensor, radial: Radial) -> Tensor:
    """Σ_{i≠j} f(‖z_i − z_j‖²) for z (…, n, d), differentiable twice in z.

    In float64 whatever the type of z, from float32 products where ``plan`` allows.
    """
    name, numbers, widths = encode(radial)
    if arrays.is_transformed(z):
        from smmd.pairs.torch_transforms import Transformed

        value, _ = Transformed.apply(z.contiguous(), name, numbers, widths)  # type: ignore[no-untyped-call]
        return value
    gradient = z.requires_grad and torch.is_grad_enabled()
    value, _ = pair_sum_operator(z.contiguous(), name, numbers, widths, gradient)
    return value
