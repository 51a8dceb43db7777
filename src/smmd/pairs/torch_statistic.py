"""A whole statistic as one PyTorch operator, since most of a small sample's time goes elsewhere.

On a GPU it goes into launching, on a CPU into PyTorch's graph: so the terms of single points, the
sum over pairs, the constant and the gradient of all of it come out of the same kernels, or the same
blocks.  The backward pass is a multiplication; differentiating it once more is a second operator.

In eager mode an ``autograd.Function`` is called, which takes a third of an operator's time on the
host; ``torch.compile`` sees the operator ``smmd::statistic``.  Both do the same.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from smmd import arrays, samples
from smmd.pairs import blocks, gpu, plan
from smmd.pairs import torch as torch_pairs
from smmd.pairs.functions import value_and_slope
from smmd.radial import Radial, decode


class Form(NamedTuple):
    """constant − 2 mean cross(‖z_i‖²) + mean pair(‖z_i − z_j‖²), over i ≠ j if unbiased."""

    pair: Radial
    cross: Radial
    constant: float
    unbiased: bool


#: Coordinates of points whose squares sum to less need no look of their own.
ORDINARY = 1e290

_PLAIN = (Tensor, torch.nn.Parameter)


def is_plain(z: Tensor) -> bool:
    """Whether z is a tensor of eager mode, and none of ``torch.func``'s."""
    return (
        type(z) in _PLAIN
        and not torch.compiler.is_compiling()
        and z.layout is torch.strided
        and not torch._C._functorch.is_functorch_wrapped_tensor(z)
    )


def by_blocks(z: Tensor) -> bool:
    """Whether NumPy's blocks take a plain tensor."""
    known = z.device.type == "cpu" and z.dtype in (torch.float32, torch.float64)
    return known and plan.forced() != "dense" and not gpu.serves(z)


def _may_lose(form: Form, z: Tensor) -> bool:
    """Whether a far point could cost a wide kernel's value digits that ``smmd.sharpen`` mends.

    Its test, for points whose terms are as large as they can be: at the origin, or far from it.
    """
    from smmd.sharpen import UNIT, loses

    ends = form.cross.value(np, np.array([0.0, 1e30])) - form.constant
    largest = float(np.abs(ends).max()) / math.sqrt(max(1, z.shape[-2]))
    return bool(loses(UNIT, largest, z.dtype == torch.float64))


class Ready:
    """A statistic for plain tensors of one shape, type and device: what is known of it beforehand.

    Finding that out again takes longer than a small sample's sums.
    """

    def __init__(self, form: Form, z: Tensor, wide: bool) -> None:
        self.form, self.by_blocks = form, by_blocks(z)
        self.serves = gpu.serves(z) or (self.by_blocks and not (wide and _may_lose(form, z)))
        self.on_gpu = None
        if gpu.serves(z):
            self.on_gpu = gpu.statistic(*form, z.shape, z.dtype, z.device)

    def __call__(self, z: Tensor) -> Tensor:
        """The statistic of z (…, n, d) in the type of z, differentiable twice."""
        if z.requires_grad and torch.is_grad_enabled():
            answer: Tensor = _Eager.apply(z, self)  # type: ignore[no-untyped-call]
            return answer
        return self.compute(z, False)[0]

    def compute(self, z: Tensor, gradient: bool) -> tuple[Tensor, Tensor | None]:
        """The statistic, and its gradient."""
        if self.on_gpu is not None:
            return self.on_gpu(z, gradient)
        if self.by_blocks:
            return _on_cpu(z, self.form, gradient)
        return _by_terms(z, self.form, gradient)


def compiled(z: Tensor, form: Form) -> Tensor:
    """The statistic as an operator in compiled code."""
    gradient = z.requires_grad and torch.is_grad_enabled()
    pair, cross = form.pair.encode(), form.cross.encode()
    value, _ = _operator(
        z.contiguous(), pair[0], list(pair[1]), cross[0], list(cross[1]),
        form.constant, form.unbiased, gradient,
    )  # fmt: skip
    return value


def _on_cpu(z: Tensor, form: Form, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """In NumPy, all of it in float64 but for the blocks that ``plan`` lets be float32."""
    x, n = z.detach().numpy().astype(np.float64, copy=False), z.shape[-2]
    count = n * (n - 1) if form.unbiased else n * n
    single = z.dtype == torch.float32
    norms = np.einsum("...k,...k->...", x, x)
    if not np.maximum.reduce(norms, axis=None, initial=0.0) < ORDINARY:
        samples.check_finite(z, "z")
    total, slope = blocks.pair_sum(x, form.pair, gradient=gradient, single=single)
    cross, bend = value_and_slope(form.cross, norms, gradient)
    value = form.constant + total / count - (2.0 / n) * np.add.reduce(cross, axis=-1)
    if not form.unbiased:
        value = value + form.pair.value(np, np.zeros_like(value)) / n
    if slope is None or bend is None:
        return _tensor(value, single), None
    bend *= -4.0 / n
    slope /= count
    slope += bend[..., None] * x
    return _tensor(value, single), _tensor(slope, single)


def _tensor(values: np.ndarray, single: bool) -> Tensor:
    dtype = np.float32 if single else np.float64
    return torch.from_numpy(np.asarray(arrays.saturating_cast(values, dtype)))


def _by_terms(z: Tensor, form: Form, gradient: bool) -> tuple[Tensor, Tensor | None]:
    """The same from a sum over pairs and one over points."""
    import array_api_compat.torch as xp

    x = z.detach().to(arrays.work_dtype(z))
    n = z.shape[-2]
    count = n * (n - 1) if form.unbiased else n * n
    total, slope = torch_pairs.pair_sum_outside(z, form.pair, gradient=gradient)
    norms = (x * x).sum(-1)
    value = form.constant + total / count - 2.0 * form.cross.value(xp, norms).mean(-1)
    if not form.unbiased:
        value = value + form.pair.value(xp, torch.zeros_like(value)) / n
    answer: Tensor = arrays.saturating_cast(value, z.dtype)
    if slope is None:
        return answer, None
    pull = (-4.0 / n) * form.cross.slope(xp, norms)[..., None] * x
    return answer, (slope.to(x.dtype) / count + pull).to(_slope_dtype(z))


def _slope_dtype(z: Tensor) -> torch.dtype:
    return torch.float64 if z.dtype == torch.float64 else torch.float32


def _hessian_product(z: Tensor, u: Tensor, form: Form) -> Tensor:
    """The derivative of the statistic's gradient along u."""
    import array_api_compat.torch as xp

    n = z.shape[-2]
    count = n * (n - 1) if form.unbiased else n * n
    bend = torch_pairs.hessian_product_outside(z, u, form.pair)
    work = arrays.work_dtype(z)
    x, along = z.detach().to(work), u.detach().to(work)
    norms, inner = (x * x).sum(-1), (x * along).sum(-1)
    own = form.cross.slope(xp, norms)[..., None] * along
    own = own + (2.0 * form.cross.curvature(xp, norms) * inner)[..., None] * x
    return (bend.to(work) / count - (4.0 / n) * own).to(u.dtype)


def _scaled(on_value: Tensor, slope: Tensor, dtype: torch.dtype) -> Tensor:
    found = (on_value if on_value.ndim == 0 else on_value[..., None, None]) * slope
    return found if found.dtype is dtype else found.to(dtype)


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, ready: Ready) -> Tensor:
        value, slope = ready.compute(z, True)
        ctx.save_for_backward(z, slope)
        ctx.form = ready.form
        return value

    @staticmethod
    def backward(ctx: Any, on_value: Tensor) -> tuple[Tensor, None]:
        z, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # the graph of this pass is wanted, too
            slope = _Slope.apply(z, slope, ctx.form)  # type: ignore[no-untyped-call]
        return _scaled(on_value, slope, z.dtype), None


class _Slope(torch.autograd.Function):
    """The gradient that is there already, as a function of z."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, slope: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(z)
        ctx.form = form
        return slope.view_as(slope)

    @staticmethod
    def backward(ctx: Any, on_slope: Tensor) -> tuple[Tensor, None, None]:
        (z,) = ctx.saved_tensors
        bend = _Bend.apply(z, on_slope, ctx.form)  # type: ignore[no-untyped-call]
        return bend.to(z.dtype), None, None


class _Bend(torch.autograd.Function):
    """The Hessian product: linear in u, and not differentiable in z."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, u: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(z)
        ctx.form = form
        return _hessian_product(z, u, form)

    @staticmethod
    def backward(ctx: Any, on_bend: Tensor) -> tuple[None, Tensor, None]:
        if ctx.needs_input_grad[0]:
            raise NotImplementedError(torch_pairs.THIRD)
        (z,) = ctx.saved_tensors
        return None, _Bend.apply(z, on_bend, ctx.form), None  # type: ignore[no-untyped-call]


@torch.library.custom_op("smmd::statistic", mutates_args=())
def _operator(
    z: Tensor,
    pair: str,
    pair_numbers: list[float],
    cross: str,
    cross_numbers: list[float],
    constant: float,
    unbiased: bool,
    gradient: bool,
) -> tuple[Tensor, Tensor]:
    encoded = (pair, tuple(pair_numbers), cross, tuple(cross_numbers), constant, unbiased)
    key = (*encoded, z.shape, z.dtype, z.device, plan.forced())
    ready = _decoded.get(key)
    if ready is None:
        if len(_decoded) > 1024:
            _decoded.clear()
        form = Form(decode(pair, pair_numbers), decode(cross, cross_numbers), constant, unbiased)
        ready = _decoded[key] = Ready(form, z, False)
    value, slope = ready.compute(z.detach(), gradient)
    return value, z.new_empty(0) if slope is None else slope


#: What the operator made ready, by its arguments.
_decoded: dict[Any, Ready] = {}


@_operator.register_fake
def _(z: Tensor, *form: Any) -> tuple[Tensor, Tensor]:
    slope = z.new_empty(z.shape, dtype=_slope_dtype(z)) if form[-1] else z.new_empty(0)
    return z.new_empty(z.shape[:-2]), slope


@torch.library.custom_op("smmd::statistic_hessian_product", mutates_args=())
def _operator_bend(
    z: Tensor,
    u: Tensor,
    pair: str,
    pair_numbers: list[float],
    cross: str,
    cross_numbers: list[float],
    constant: float,
    unbiased: bool,
) -> Tensor:
    form = Form(decode(pair, pair_numbers), decode(cross, cross_numbers), constant, unbiased)
    return _hessian_product(z, u, form)


@_operator_bend.register_fake
def _(z: Tensor, u: Tensor, *form: Any) -> Tensor:
    return torch.empty_like(u, memory_format=torch.contiguous_format)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    z, *form, _ = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(z, output[1])
    ctx.form = form


def _backward(ctx: Any, on_value: Tensor | None, on_slope: Tensor | None) -> tuple[Any, ...]:
    z, slope = ctx.saved_tensors
    total = None
    if on_value is not None:
        total = _scaled(on_value, slope, z.dtype)
    if on_slope is not None:
        bend = _operator_bend(z, on_slope.contiguous(), *ctx.form).to(z.dtype)
        total = bend if total is None else total + bend
    return total, *(7 * [None])


_operator.register_autograd(_backward, setup_context=_setup)
