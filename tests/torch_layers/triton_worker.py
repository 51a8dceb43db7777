"""CodeNorm's and SlicedLoss's kernels against operators, on a GPU or in Triton's interpreter.

``python -m tests.torch_layers.triton_worker norm`` (or ``slices``); ``test_triton`` runs it.  With
``compile`` they are compiled for a Hopper GPU that is not there instead.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

import smmd
from smmd.torch import CodeNorm, SlicedLoss, slices, slices_triton, standardizing
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


def compare_norm() -> None:
    for n, d, momentum in ((2, 3, 0.1), (100, 8, 0.1), (300, 17, 0.5), (40, 5, None)):
        found, expected = (answers(path, n, d, momentum) for path in ("triton", "difference"))
        for name, value in expected.items():
            # Sums of n float32 numbers, columns divided by deviations down to 1e-3 (slopes of 1e3).
            size = value.detach().abs().max().clamp_min(1.0)
            torch.testing.assert_close(
                found[name] / size, value / size, rtol=2e-4, atol=2e-5, msg=lambda m, k=name: k + m
            )
    print("ok")


#: Batch, n, d, directions, width: no multiple of a tile, or just one.
SLICES = [
    ((), 2, 1, 1, 1.0),
    ((), 41, 3, 7, 0.3),
    ((2,), 41, 65, 100, 3.0),
    ((), 257, 64, 64, 1.0),
    ((3, 2), 41, 3, 64, 1.0),
    ((), 257, 65, 7, 0.3),
]


def waves(path: str, z: Tensor, loss: SlicedLoss, u: Tensor, v: Tensor) -> dict[str, Tensor]:
    z = z.to(torch.float32 if path == "triton" else torch.float64).requires_grad_()
    directions = slices.random_directions(loss.seed, loss.step, loss.n_slices, z.shape[-1])
    known = slices.frequencies(loss.kernel.gamma)
    with smmd.pairs.use(path):
        assert slices._has_kernels(z, known[0]) == (path == "triton")
        sums = slices._sums(z, directions.to(z.dtype), *known)
        (slope,) = torch.autograd.grad(sums, z, u[: known[0]], retain_graph=True)
        (again,) = torch.autograd.grad(sums, z, u[: known[0]], create_graph=True)
        (bend,) = torch.autograd.grad((again * v).sum(), z)
        value = loss(z)
        (pull,) = torch.autograd.grad(value, z)
    return {"sums": sums / z.shape[-2], "slope": slope, "again": again, "bend": bend,
            "value": value, "pull": pull}  # fmt: skip


def compare_slices() -> None:
    # Sums that one program makes alone, and ones that are cut in many.
    for programs in (1, slices_triton._PROGRAMS):
        slices_triton._PROGRAMS = programs
        slices_triton._summing.cache_clear()
        slices_triton._sloping.cache_clear()
        for batch, n, d, many, gamma in SLICES:
            generator = torch.Generator().manual_seed(n)
            z = (1.2 * torch.randn(*batch, n, d, generator=generator) + 0.3).to(DEVICE)
            u = torch.randn(64, 2, *batch, many, generator=generator).double().to(DEVICE)
            v = torch.randn(*batch, n, d, generator=generator).to(DEVICE)
            loss = SlicedLoss(many, gamma=gamma, resample=False).to(DEVICE)
            found, expected = (waves(path, z, loss, u, v) for path in ("triton", "difference"))
            for name, value in expected.items():
                # Up to the 41st power of a float32 number; the value is in null deviations.
                size = value.abs().max().clamp_min(1.0) if name != "pull" else value.abs().max()
                error = (found[name].double() - value).abs().max() / size
                assert error < 1e-5, (name, batch, n, d, many, gamma, float(error))
    odd_rows()
    angles()
    print("ok")


def odd_rows() -> None:
    """What is not a number stays so; what kernels have no room for goes another way."""
    loss = SlicedLoss(5, resample=False).to(DEVICE)
    with smmd.pairs.use("triton"):
        for bad in (torch.nan, torch.inf):
            z = torch.ones(40, 3, device=DEVICE)
            z[7, 1] = bad
            value = loss(z.requires_grad_())
            value.backward()
            assert value.isnan()
            assert torch.isnan(z.grad).all()
        z = torch.ones(4, 3, device=DEVICE)
        assert not slices._has_kernels(z, slices.frequencies(0.1)[0])
        assert not slices._has_kernels(z.double(), 18)
        assert not slices._has_kernels(z[:0], 18)


@triton.jit
def cos_sin_of(turns, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    cosine, sine = slices_triton.cos_sin(tl.load(turns + i))
    tl.store(out + i, cosine)
    tl.store(out + BLOCK + i, sine)


def angles() -> None:
    few = torch.linspace(-2.0, 2.0, 4096)
    for turns in (few, 50.0 * few, 1e5 * few, 1e30 * few, torch.full_like(few, torch.inf)):
        out = torch.empty(2, 4096, device=DEVICE)
        cos_sin_of[(1,)](turns.to(DEVICE), out, BLOCK=4096)
        angle = 2.0 * torch.pi * torch.remainder(turns.double(), 1.0)
        expected = torch.stack([torch.cos(angle), torch.sin(angle)])
        torch.testing.assert_close(out.cpu().double(), expected, rtol=0, atol=1e-7, equal_nan=True)


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
    for d, waves in ((64, 18), (300, 42)):
        z, directions = torch.empty(1, 256, d), torch.empty(100, d)
        slices_triton.slopes(z, directions, 0.3, slices_triton.sums(z, directions, 0.3, waves))


if __name__ == "__main__":
    {"norm": compare_norm, "slices": compare_slices, "compile": compile_only}[sys.argv[1]]()
