"""What the kernels are compared with, on the same device: the paper's listing and SIGReg."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def listing(z: Tensor, scale: float = 1.0 / 8.0) -> Tensor:
    """The paper's TensorFlow listing (appendix, Code), word for word in PyTorch."""
    n, d = z.shape
    norms2 = torch.sum(torch.square(z), dim=1, keepdim=True)
    dotprods = z @ z.T
    dists2 = norms2 + norms2.T - 2.0 * dotprods
    gamma2 = scale * d
    variance = (
        (gamma2 / (2.0 + gamma2)) ** d
        + (gamma2 / (4.0 + gamma2)) ** (d / 2.0)
        - 2.0 * (gamma2**2.0 / ((1.0 + gamma2) * (3.0 + gamma2))) ** (d / 2.0)
    )
    variance = 2.0 * variance / (n * (n - 1.0))
    ekzz = (torch.sum(torch.exp(-dists2 / (2.0 * gamma2))) - n) / (n * n - n)
    ekzn = (gamma2 / (1.0 + gamma2)) ** (d / 2.0) * torch.mean(
        torch.exp(-norms2 / (2.0 * (1.0 + gamma2)))
    )
    eknn = (gamma2 / (2.0 + gamma2)) ** (d / 2.0)
    return variance**-0.5 * (ekzz - 2.0 * ekzn + eknn)


def sigreg(z: Tensor, slices: int = 1024, knots: int = 17, t_max: float = 3.0) -> Tensor:
    """SIGReg as LeJEPA describes it: the Epps–Pulley statistic of random one-dimensional slices.

    For each of ``slices`` unit directions, n ∫ |φ_n(t) − e^(−t²/2)|² e^(−t²/2) dt by the
    trapezoidal rule on [0, t_max], doubled by symmetry; averaged over the slices.
    """
    n, d = z.shape
    directions = torch.randn(d, slices, device=z.device, dtype=z.dtype)
    directions = directions / directions.norm(dim=0)
    t = torch.linspace(0.0, t_max, knots, device=z.device, dtype=z.dtype)
    step = t_max / (knots - 1)
    trapezoid = torch.full((knots,), 2.0 * step, device=z.device, dtype=z.dtype)
    trapezoid[0] = step
    trapezoid[-1] = step
    target = torch.exp(-0.5 * t * t)
    angle = (z @ directions).unsqueeze(-1) * t
    real = angle.cos().mean(0) - target
    imaginary = angle.sin().mean(0)
    error = (real * real + imaginary * imaginary) * target
    return n * (error @ trapezoid).mean()


class Nothing(torch.autograd.Function):
    """What autograd takes for itself: a value that is there, and a multiplication on the way back.

    No loss with a gradient of its own can be faster in eager mode.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        ctx.save_for_backward(slope)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, on_value: Tensor) -> tuple[Tensor, None, None]:
        (slope,) = ctx.saved_tensors
        return on_value * slope, None, None
