"""What lies between the matrix products of a training step, one launch each.

``bias_act_``     y ← relu(y + bias), in place
``mask_and_sum``  g ← g where the output was positive, and the sums over rows, which are the
                  bias's gradient, in parts
``add_up``        the sums of such parts, of all layers at once
``adam_``         Adam on all weights of a network as one vector

Rows are (m, channels).  On a CPU the same in plain PyTorch, which says what the kernels compute.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

try:
    import triton

    from smmd.wae import fused_triton
except ImportError:  # pragma: no cover - then nothing is fused
    triton = None

BETA1, BETA2 = 0.9, 0.999
#: Whether there is anything to launch with.
HAVE_TRITON = triton is not None
#: Numbers in a program's block, and in Adam's.
BLOCK, ADAM_BLOCK = 4096, 1024
#: Programs that share out a sum over an image's points: about two for each multiprocessor.
PARTS = 256


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
    fused_triton.bias_act[grid](
        y, bias, rows, channels, BR=height, BC=width, RELU=relu, num_warps=4
    )


def mask_and_sum(g: Tensor, y: Tensor | None, parts: Tensor) -> Tensor:
    """g where y > 0 (all of g without y); ``parts`` (p, c) receive sums that add up to its rows'.

    Nothing is added up in an order that depends on who comes first: the same bits every time.
    """
    if not _on_triton(g):
        masked = g if y is None else torch.where(y > 0, g, 0)
        put(parts, masked.to(parts.dtype).sum(0))
        return masked
    rows, channels = g.shape
    height, width = _block(channels)
    masked = g if y is None else torch.empty_like(g)
    fused_triton.mask_and_sum[(len(parts), triton.cdiv(channels, width))](
        g, g if y is None else y, masked, parts, rows, channels, parts.stride(0),
        BR=height, BC=width, RELU=y is not None, num_warps=4,
    )  # fmt: skip
    return masked


def put(parts: Tensor, total: Tensor) -> None:
    """A sum as parts of which all but the first are zero."""
    parts.zero_()
    parts[0] = total


def add_up(parts: Tensor, places: Tensor, out: Tensor) -> None:
    """out[places] ← the sums over the rows of ``parts`` (p, columns)."""
    if not _on_triton(parts):
        out[places] = parts.sum(0)
        return
    number, columns = parts.shape
    fused_triton.add_up[(triton.cdiv(columns, 32),)](
        parts, places, out, columns, number, BR=64, BC=32, num_warps=4
    )


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
    fused_triton.adam[(triton.cdiv(n, ADAM_BLOCK),)](
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
