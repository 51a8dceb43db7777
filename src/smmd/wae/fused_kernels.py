"""What lies between the matrix products of a training step, one launch each.

``bias_act_``     y ← relu(y + bias), in place
``mask_and_sum``  g ← g where the output was positive, and the sums over rows, which are the
                  bias's gradient, in parts
``add_up``        the sums of such parts, of all layers at once
``convolve``      a convolution of few weights with bias and activation
``convolve_back`` its gradients
``adam_``         Adam on all weights of a network as one vector

Rows are (m, channels).  On a CPU the same in plain PyTorch, which says what the kernels compute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

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


class Zeros(NamedTuple):
    """Padding, as ``nn.ZeroPad2d`` counts it."""

    left: int
    right: int
    top: int
    bottom: int


@dataclass(frozen=True)
class Convolution:
    """A convolution of few inputs an output point, or few outputs an input point.

    The former reads in any way, the latter all points (stride 1, no zeros around).  A gradient in x
    is for the former only where patches do not overlap.
    """

    few: str  # "in" or "out"
    stride: tuple[int, int]
    zeros: Zeros
    act: str  # "", "relu" or "sigmoid"


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor, how: Convolution, dtype: torch.dtype
) -> Tensor:
    """act(x ∗ weight + bias) of images stored with channels last, as ``dtype``."""
    if not _on_triton(x):
        padded = functional.pad(x.to(weight.dtype), how.zeros)
        y = functional.conv2d(padded, weight, bias, how.stride)
        y = {"": lambda: y, "relu": y.relu, "sigmoid": y.sigmoid}[how.act]()
        return y.to(dtype)
    h, w, *rest = _sizes(x, weight, how)
    n, o = len(x), len(weight)
    y = torch.empty(n, h, w, o, dtype=dtype, device=x.device)
    options = _options(weight, how)
    grid = (triton.cdiv(n * h * w, options["BR"]),)
    images = (x, weight, bias, y, n * h * w, h, w)
    if how.few == "in":
        fused_triton.few_in[grid](*images, *rest, *x.stride(), *weight.stride(), **options)
    else:
        fused_triton.few_out[grid](*images, *rest[:2], *weight.stride(), **options)
    return y.permute(0, 3, 1, 2)


def convolve_back(
    g: Tensor, y: Tensor, x: Tensor, weight: Tensor, how: Convolution,
    on_weight: Tensor, on_bias: Tensor, on_below: Tensor | None, wanted: bool,
) -> Tensor | None:  # fmt: skip
    """The gradient in x, if wanted; parts of the others go where ``mask_and_sum`` puts them.

    With ``on_below``, for few outputs, x is the output of a ReLU: what is returned is the gradient
    before it, whose sums are parts of the gradient in that layer's bias.
    """
    if not _on_triton(x):
        return _convolve_back(g, y, x, weight, how, on_weight, on_bias, on_below, wanted)
    h, w, *rest = _sizes(x, weight, how)
    n, taps = len(x), weight[0].numel() if how.few == "in" else weight[:, 0].numel()
    strides = (on_weight.stride(0), on_bias.stride(0))
    options = _options(weight, how)
    # Eight warps: with four a thread's share of all the sums nearly fills its registers.
    options |= {"BK": triton.next_power_of_2(taps), "WANTED": wanted, "num_warps": 8}
    on_x = x
    if wanted:
        # A point of x that no patch looks at gets zero.
        all_seen = how.few == "out" or rest == [h * how.stride[0], w * how.stride[1], 0, 0]
        on_x = torch.empty_like(x) if all_seen else torch.zeros_like(x)
    images = (g, y, x, weight, on_x, on_weight, on_bias)
    grid = (len(on_weight),)
    if how.few == "in":
        fused_triton.few_in_back[grid](
            *images, *strides, n * h * w, h, w, *rest, *x.stride(), *weight.stride(), **options
        )
    else:
        below = on_bias if on_below is None else on_below
        height, width, *_ = rest
        fused_triton.few_out_back[grid](
            *images, below, *strides, below.stride(0), n * height * width, h, w, height, width,
            *weight.stride(), BELOW=on_below is not None, **options,
        )  # fmt: skip
    return on_x if wanted else None


def _convolve_back(
    g: Tensor, y: Tensor, x: Tensor, weight: Tensor, how: Convolution,
    on_weight: Tensor, on_bias: Tensor, on_below: Tensor | None, wanted: bool,
) -> Tensor | None:  # fmt: skip
    slope: Tensor | float = 1.0
    if how.act:
        slope = (y > 0) if how.act == "relu" else y * (1 - y)
    padded = functional.pad(x.to(weight.dtype), how.zeros)
    on_x, *rest = torch.ops.aten.convolution_backward(
        (g * slope).to(weight.dtype), padded, weight, [len(weight)],
        how.stride, (0, 0), (1, 1), False, (0, 0), 1, [wanted, True, True],
    )  # fmt: skip
    for parts, total in zip((on_weight, on_bias), rest, strict=True):
        put(parts, total)
    if not wanted:
        return None
    on_x = functional.pad(on_x, [-zeros for zeros in how.zeros])
    if on_below is not None:
        on_x = on_x * (x > 0)
        put(on_below, on_x.sum((0, 2, 3)))
    return on_x.to(x.dtype)


def _sizes(x: Tensor, weight: Tensor, how: Convolution) -> tuple[int, ...]:
    """Height and width of the output and of x, and the zeros above and to the left."""
    (height, width), (a, b), (s, t) = x.shape[2:], weight.shape[2:], how.stride
    left, right, top, bottom = how.zeros
    h, w = (height + top + bottom - a) // s + 1, (width + left + right - b) // t + 1
    return h, w, height, width, top, left


def _options(weight: Tensor, how: Convolution) -> dict[str, Any]:
    """What a kernel is compiled for; not too many rows, so that there is work for everybody."""
    o, c, a, b = weight.shape
    width = int(triton.next_power_of_2(o if how.few == "in" else c))
    height = min(512, max(16, BLOCK // width))
    options = {"IN": c, "OUT": o, "A": a, "B": b, "BR": height, "BC": width, "ACT": how.act}
    if how.few == "in":
        options |= {"S": how.stride[0], "T": how.stride[1]}
    return {**options, "num_warps": 4}


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
