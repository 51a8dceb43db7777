"""The table of speed and memory on a GPU: whole losses through autograd, and values alone.

What matters most is measured first, so that a run cut short has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

import smmd
import smmd.torch
from benchmarks import _gpu_baselines, _gpu_compile, _gpu_timing
from benchmarks._gpu_record import Record

COLUMNS = (
    "work", "batch", "n", "d", "method", "ms_p10", "ms_median", "ms_p90", "graph_ms", "MiB",
    "calls", "rate",
)  # fmt: skip
KERNELS: dict[str, smmd.Kernel] = {
    "Gaussian": smmd.Gaussian(),
    "sliced": smmd.Sliced(),
    "three scales": smmd.MultiScale((1 / 16, 1 / 8, 1 / 4)),
    "IMQ": smmd.IMQ(),
}
NOTHING = "autograd alone"
BASELINES = {"listing": _gpu_baselines.listing, "SIGReg": _gpu_baselines.sigreg}
Call = Callable[[], object]
#: (work, shape, method, baseline compiled?) in order of importance.
Row = tuple[str, tuple[int, ...], str, bool]


def points(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(*shape, device=_gpu_timing.DEVICE)


def value(kernel: str, z: Tensor) -> Call:
    return lambda: smmd.smmd(z, kernel=KERNELS[kernel])


def gradient_of(loss: Callable[[Tensor], Tensor], z: Tensor) -> Call:
    """One training step's share: the loss and its gradient through autograd."""
    leaf = z.clone().requires_grad_()
    return lambda: torch.autograd.grad(loss(leaf), leaf)


def nothing(z: Tensor) -> Call:
    value, slope = z.new_zeros(()), torch.zeros_like(z)
    return gradient_of(lambda leaf: _gpu_baselines.Nothing.apply(leaf, value, slope), z)


def step(kernel: str, z: Tensor) -> Call:
    return gradient_of(smmd.torch.SMMDLoss(kernel=KERNELS[kernel]), z)


def compiled_baseline(loss: str, z: Tensor) -> Call:
    torch._dynamo.config.cache_size_limit = 64
    return gradient_of(torch.compile(BASELINES[loss], dynamic=False), z)


def normalized(z: Tensor, compiled: bool) -> Call:
    """CodeNorm and the loss, as a training step adds them to the rest."""
    norm, loss = smmd.torch.CodeNorm(z.shape[-1]).to(z.device), smmd.torch.SMMDLoss()

    def both(x: Tensor) -> Tensor:
        return loss(norm(x))

    return gradient_of(torch.compile(both, fullgraph=True) if compiled else both, z)


def rows(tiny: bool) -> list[Row]:
    """Everything that is measured, first things first."""
    found: list[Row] = []

    def both(n: int, d: int, *methods: str) -> None:
        found.extend(("value+grad", (n, d), m, "compiled" in m) for m in methods)

    gaussian, sliced = "smmd Gaussian", "smmd sliced"
    for n, d in ((100, 8), (1024, 64), (16384, 8), (16384, 64)):
        both(n, d, gaussian, "listing eager")
        if n == 100:
            both(n, d, NOTHING)
    both(65536, 8, gaussian)
    found += [("value", (1_000_000, d), gaussian, False) for d in (8, 64)]
    for n, d in ((256, 64), (4096, 64), (16384, 512), (8192, 512), (8192, 64), (1024, 64)):
        both(n, d, gaussian, sliced, "SIGReg eager", "SIGReg compiled")
    both(256, 64, NOTHING)
    found += [("CodeNorm+loss", (256, 64), how, False) for how in ("eager", "inside torch.compile")]
    found += [("value", (10_000, 100, 8), gaussian, False)]
    found += [("value+grad", (10_000, 100, 8), gaussian, False)]
    for n, d in ((100, 8), (1024, 64), (16384, 64)):
        both(n, d, "listing compiled")
    for n, d in ((256, 512), (1024, 512), (4096, 512), (256, 8), (4096, 8)):
        both(n, d, gaussian, sliced, "SIGReg eager", "SIGReg compiled")
    for n, d in ((32768, 512), (16384, 64), (65536, 64), (65536, 512), (131072, 64)):
        both(n, d, gaussian, sliced, "SIGReg eager")
    both(16384, 64, "SIGReg compiled")
    for n, d in ((1024, 64), (16384, 8), (16384, 64)):
        both(n, d, "smmd three scales", "smmd IMQ")
    both(16384, 8, sliced)
    found += [("value", shape, gaussian, False) for shape in ((16384, 8), (65536, 8), (65536, 64))]
    for n, d in ((32768, 512), (65536, 64), (65536, 512)):
        both(n, d, "SIGReg compiled")
    both(262144, 64, gaussian)
    unique = list(dict.fromkeys(found))
    if tiny:
        unique = [(w, (*s[:-2], min(s[-2], 40), min(s[-1], 5)), m, c) for w, s, m, c in unique]
        unique = [(w, (2, *s[1:]) if len(s) == 3 else s, m, c) for w, s, m, c in unique]
    return list(dict.fromkeys(unique))


def maker(work: str, shape: tuple[int, ...], method: str) -> Call:
    """The call that a row times."""
    z = points(shape)
    who, _, what = method.partition(" ")
    if method == NOTHING:
        return nothing(z)
    if work == "CodeNorm+loss":
        return normalized(z, method != "eager")
    if who == "smmd":
        return value(what, z) if work == "value" else step(what, z)
    return compiled_baseline(who, z) if what == "compiled" else gradient_of(BASELINES[who], z)


def jobs(listed: list[Row]) -> list[_gpu_compile.Job]:
    """What to compile beforehand; the largest compiled baselines would not fit side by side."""
    found: list[_gpu_compile.Job] = []
    for work, shape, method, is_compiled in listed:
        who, _, what = method.partition(" ")
        if who == "smmd":
            found.append(("smmd_step", (what, shape, work == "value+grad")))
        elif is_compiled and shape[0] <= 32768:
            found.append(("compiled", (who, shape)))
    # Inductor takes longest, so that it begins first.
    return sorted(dict.fromkeys(found), key=lambda job: job[0])


def run(path: Path | None, seconds: float, *, tiny: bool = False) -> list[dict[str, object]]:
    """Everything, in one run on one machine, until the seconds are over."""
    record = Record(COLUMNS, path, seconds)
    listed = rows(tiny)
    _gpu_compile.compile_all(jobs(listed), 0.45 * seconds)
    for name, rate in _gpu_timing.limits(tiny).items():
        print(f"{name}: {rate:.3e}", flush=True)
        record.add(work="limit", method=name, rate=rate)
    for work, shape, method, is_compiled in listed:
        if is_compiled and shape[0] > 32768 and record.spent > seconds - 25.0 and not tiny:
            continue  # compiling it alone takes that long
        small = shape[-2] <= 16384 and work != "value"
        record.time(
            work, shape, method, partial(maker, work, shape, method),
            graph=small and method.startswith(("smmd", "eager")),
        )  # fmt: skip
        if shape[-2] >= 4096 and _gpu_timing.DEVICE == "cuda":
            torch.cuda.empty_cache()
    return record.rows
