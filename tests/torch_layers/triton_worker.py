"""CodeNorm's kernels against its operators, on a GPU or in Triton's interpreter.

``python -m tests.torch_layers.triton_worker``; ``test_triton`` runs it.  With an argument they are
compiled for a Hopper GPU that is not there instead.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

import smmd
from smmd.torch import CodeNorm, standardizing
from smmd.torch import standardizing_triton as kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def answers(path: str, n: int, d: int, momentum: float | None) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    # Far from the origin, of very different scales, one column constant.
    z = torch.randn(n, d, generator=generator) * torch.logspace(-3, 3, d) + 100.0
    z[:, 0] = 3.0
    u = torch.randn(n, d, generator=generator).to(DEVICE)
    z = z.to(DEVICE).requires_grad_()
    layer = CodeNorm(d, momentum=momentum, device=DEVICE)
    with smmd.pairs.use(path):
        assert standardizing._has_kernels(z) == (path == "triton")
        for _ in range(2):
            out = layer(z)
        (slope,) = torch.autograd.grad(out, z, u, retain_graph=True)
        (again,) = torch.autograd.grad(out, z, u, create_graph=True)
        (bend,) = torch.autograd.grad((again * u).sum(), z)
        loss = smmd.torch.SMMDLoss()(layer(z))
        loss.backward()
    return {"out": out, "slope": slope, "again": again, "bend": bend, "loss": loss,
            "grad": z.grad, **layer.state_dict()}  # fmt: skip


def compare() -> None:
    for n, d, momentum in ((2, 3, 0.1), (100, 8, 0.1), (300, 17, 0.5), (40, 5, None)):
        found, expected = (answers(path, n, d, momentum) for path in ("triton", "difference"))
        for name, value in expected.items():
            # Sums of n float32 numbers, columns divided by deviations down to 1e-3 (slopes of 1e3).
            size = value.detach().abs().max().clamp_min(1.0)
            torch.testing.assert_close(
                found[name] / size, value / size, rtol=2e-4, atol=2e-5, msg=lambda m, k=name: k + m
            )
    print("ok")


def compile_only() -> None:
    from triton.runtime import driver

    from smmd.pairs import triton_launch
    from tests.pairs_triton import compiler

    driver.set_active(compiler.Absent())
    triton_launch.first = compiler.compile_only
    z = torch.empty(256, 64)
    layer = CodeNorm(64)
    state = layer.running_mean, layer.running_var, layer.num_batches_tracked
    for running in (None, kernels.Running(*state, 0.1)):
        _, kept = kernels.forward(z, 1e-10, running)
    kernels.backward(z, z, kept)


if __name__ == "__main__":
    compile_only() if sys.argv[1:] else compare()
