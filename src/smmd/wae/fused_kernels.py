"""What lies between the matrix products of a training step, one launch each.

``bias_act_``     y ← relu(y + bias), in place
``mask_and_sum``  g ← g where the output was positive, and the sums over rows, which are the
                  bias's gradient
``adam_``         Adam on all weights of a network as one vector

Rows are (m, channels).  On a CPU the same in plain PyTorch, which says what the kernels compute.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # pragma: no cover - then nothing is fused
    triton = None

BETA1, BETA2 = 0.9, 0.999
#: Whether there is anything to launch with.
HAVE_TRITON = triton is not None
#: Numbers in a program's block, and in Adam's.
BLOCK, ADAM_BLOCK = 8192, 1024


def bias_act_(y: Tensor, bias: Tensor, relu: bool) -> None:
    """y (m, c) += bias, and then the ReLU if there is one."""
    if not _on_triton(y):
        y.add_(bias)
        if relu:
            y.relu_()
        return
    rows, channels = y.shape
    height, width = _block(channels)
    grid = (triton.cdiv(rows, height), triton.cdiv(channels, width))
    _bias_act[grid](y, bias, rows, channels, BR=height, BC=width, RELU=relu, num_warps=4)


def mask_and_sum(g: Tensor, y: Tensor | None, total: Tensor) -> Tensor:
    """g where y > 0 (all of g without y); its sum over rows goes to ``total`` (c)."""
    if not _on_triton(g):
        masked = g if y is None else torch.where(y > 0, g, 0)
        total.copy_(masked.to(total.dtype).sum(0))
        return masked
    rows, channels = g.shape
    height, width = _block(channels)
    grid = (triton.cdiv(rows, height), triton.cdiv(channels, width))
    parts = torch.empty(grid[0], channels, dtype=torch.float32, device=g.device)
    masked = g if y is None else torch.empty_like(g)
    _mask_and_sum[grid](
        g, g if y is None else y, masked, parts, rows, channels,
        BR=height, BC=width, RELU=y is not None, num_warps=4,
    )  # fmt: skip
    torch.sum(parts, 0, out=total)
    return masked


def adam_(
    weights: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor], narrow: Tensor | None,
    rate: Tensor, step: Tensor, epsilon: float,
) -> None:  # fmt: skip
    """One step, the ``step``-th counted from 1; ``narrow`` receives a copy of the weights."""
    first, second = moments
    if not _on_triton(weights):
        t = step.double()
        first.lerp_(gradient, 1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        spread = (second / (1 - BETA2**t)).sqrt_().add_(epsilon)
        weights.sub_((rate / (1 - BETA1**t)) * first / spread)
        if narrow is not None:
            narrow.copy_(weights)
        return
    n = weights.numel()
    _adam[(triton.cdiv(n, ADAM_BLOCK),)](
        weights, gradient, first, second, weights if narrow is None else narrow, rate, step, n,
        LOG1=math.log(BETA1), LOG2=math.log(BETA2), B1=BETA1, B2=BETA2, EPS=epsilon,
        NARROW=narrow is not None, BLOCK=ADAM_BLOCK, num_warps=4,
    )  # fmt: skip


#: Set by tests, which run the kernels in Triton's interpreter on a CPU.
ALWAYS_TRITON = False


def _on_triton(x: Tensor) -> bool:
    return triton is not None and (x.is_cuda or ALWAYS_TRITON)


def _block(channels: int) -> tuple[int, int]:
    """Rows and channels of a program: whole rows where they are short."""
    width = min(64, int(triton.next_power_of_2(channels)))
    return max(16, BLOCK // width), width


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _bias_act(
        y: Any, bias: Any, rows: Any, channels: Any,
        BR: tl.constexpr, BC: tl.constexpr, RELU: tl.constexpr,
    ) -> None:  # fmt: skip
        r = tl.program_id(0) * BR + tl.arange(0, BR)
        c = tl.program_id(1) * BC + tl.arange(0, BC)
        there = (r < rows)[:, None] & (c < channels)[None, :]
        at = y + r[:, None] * channels + c[None, :]
        value = tl.load(at, mask=there, other=0.0).to(tl.float32)
        value += tl.load(bias + c, mask=c < channels, other=0.0).to(tl.float32)[None, :]
        if RELU:
            value = tl.maximum(value, 0.0)
        tl.store(at, value.to(y.dtype.element_ty), mask=there)

    @triton.jit  # type: ignore[untyped-decorator]
    def _mask_and_sum(
        g: Any, y: Any, out: Any, parts: Any, rows: Any, channels: Any,
        BR: tl.constexpr, BC: tl.constexpr, RELU: tl.constexpr,
    ) -> None:  # fmt: skip
        r = tl.program_id(0) * BR + tl.arange(0, BR)
        c = tl.program_id(1) * BC + tl.arange(0, BC)
        there = (r < rows)[:, None] & (c < channels)[None, :]
        at = r[:, None] * channels + c[None, :]
        value = tl.load(g + at, mask=there, other=0.0)
        if RELU:
            positive = tl.load(y + at, mask=there, other=0.0).to(tl.float32) > 0.0
            value = tl.where(positive, value, 0.0)
            tl.store(out + at, value, mask=there)
        total = tl.sum(value.to(tl.float32), axis=0)
        tl.store(parts + tl.program_id(0) * channels + c, total, mask=c < channels)

    @triton.jit  # type: ignore[untyped-decorator]
    def _adam(
        weights: Any, gradient: Any, first: Any, second: Any, narrow: Any,
        rate: Any, step: Any, n: Any,
        LOG1: tl.constexpr, LOG2: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr,
        EPS: tl.constexpr, NARROW: tl.constexpr, BLOCK: tl.constexpr,
    ) -> None:  # fmt: skip
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        there = at < n
        # 1 − β^t cancels for small t: in float64.
        t = tl.load(step).to(tl.float64)
        shrink1 = (1.0 - tl.exp(t * LOG1)).to(tl.float32)
        shrink2 = (1.0 - tl.exp(t * LOG2)).to(tl.float32)
        g = tl.load(gradient + at, mask=there, other=0.0)
        m = tl.load(first + at, mask=there, other=0.0)
        v = tl.load(second + at, mask=there, other=0.0)
        w = tl.load(weights + at, mask=there, other=0.0)
        m += (g - m) * (1.0 - B1)
        v = v * B2 + g * g * (1.0 - B2)
        w -= tl.load(rate) / shrink1 * m / (tl.sqrt(v / shrink2) + EPS)
        tl.store(first + at, m, mask=there)
        tl.store(second + at, v, mask=there)
        tl.store(weights + at, w, mask=there)
        if NARROW:
            tl.store(narrow + at, w.to(narrow.dtype.element_ty), mask=there)
