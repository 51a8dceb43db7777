"""The table of speed and memory on a GPU: whole losses through autograd, and values alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

import smmd
import smmd.torch
from benchmarks import _gpu_baselines, _gpu_timing

KERNELS: dict[str, smmd.Kernel] = {
    "Gaussian": smmd.Gaussian(),
    "sliced": smmd.Sliced(),
    "three scales": smmd.MultiScale((1 / 16, 1 / 8, 1 / 4)),
    "IMQ": smmd.IMQ(),
}
#: n, d of losses with their gradient; compiled baselines are timed where "compiled" is set.
SHAPES = [
    (100, 8, True), (256, 64, True), (1024, 8, False), (1024, 64, True), (4096, 8, False),
    (4096, 64, True), (4096, 512, False), (8192, 64, True), (8192, 512, True), (16384, 8, False),
    (16384, 64, False), (16384, 512, True), (65536, 8, False), (65536, 64, True),
    (131072, 64, False),
]  # fmt: skip
VALUES = [(1_000_000, 8), (1_000_000, 64), (65536, 8), (16384, 8), (16384, 64)]
BATCHES = [(1000, 100, 8), (10000, 100, 8)]


@dataclass
class Table:
    """Rows as they are measured, printed as they come."""

    repeats: int
    budget: float
    rows: list[dict[str, object]] = field(default_factory=list)

    def note(
        self,
        what: str,
        shape: tuple[int, ...],
        method: str,
        call: Callable[[], object],
        *,
        graph: bool = False,
    ) -> None:
        """Time ``call``; what goes wrong is printed and leaves no row."""
        name = f"{what} {'x'.join(map(str, shape))}"
        try:
            memory = _gpu_timing.peak_memory(call)
            times = _gpu_timing.event_times(call, self.repeats, self.budget)
            replay = float("nan")
            if graph:
                replay = float(np.median(_gpu_timing.graph_times(call, self.repeats)))
        except Exception as error:
            print(f"{name:26s} {method:20s} {type(error).__name__} {str(error)[:200]}", flush=True)
            return
        low, median, high = np.percentile(times, [10, 50, 90])
        print(
            f"{name:26s} {method:20s} {median:9.3f} ms ({low:.3f} to {high:.3f})  graph "
            f"{replay:8.4f}  {memory:9.1f} MiB",
            flush=True,
        )
        batch, n, d = (1, *shape)[-3:]
        self.rows.append(
            {"work": what, "batch": batch, "n": n, "d": d, "method": method, "ms_median": median,
             "ms_p10": low, "ms_p90": high, "graph_ms": replay, "MiB": memory}
        )  # fmt: skip


def loss_and_gradient(loss: Callable[[Tensor], Tensor], z: Tensor) -> Callable[[], object]:
    """One training step's share: the loss and its gradient through autograd."""
    leaf = z.clone().requires_grad_()
    return lambda: torch.autograd.grad(loss(leaf), leaf)


def run(*, compiled: bool, repeats: int, budget: float) -> list[dict[str, object]]:
    """Everything, in one run on one machine."""
    table = Table(repeats, budget)
    for name, rate in _gpu_timing.limits().items():
        print(f"{name}: {rate:.3e}", flush=True)
        table.rows.append({"work": "limit", "method": name, "rate": rate})
    for n, d in VALUES:
        z = torch.randn(n, d, device="cuda")
        table.note("value", (n, d), "smmd Gaussian", lambda z=z: smmd.smmd(z))
    for shape in BATCHES:
        z = torch.randn(*shape, device="cuda")
        table.note("value", shape, "smmd Gaussian", lambda z=z: smmd.smmd(z))
        mean = loss_and_gradient(smmd.torch.SMMDLoss(), z)
        table.note("value+grad", shape, "smmd Gaussian", mean)
    baselines = [("listing", _gpu_baselines.listing), ("SIGReg", _gpu_baselines.sigreg)]
    torch._dynamo.config.cache_size_limit = 64
    for n, d, also_compiled in SHAPES:
        z = torch.randn(n, d, device="cuda")
        for name, kernel in KERNELS.items():
            if n <= 65536 or name == "Gaussian":
                step = loss_and_gradient(smmd.torch.SMMDLoss(kernel=kernel), z)
                table.note("value+grad", (n, d), f"smmd {name}", step, graph=n <= 16384)
        for name, loss in baselines:
            if name == "listing" and n > 16384:
                continue
            table.note("value+grad", (n, d), f"{name} eager", loss_and_gradient(loss, z))
            if compiled and also_compiled:
                fast = torch.compile(loss, dynamic=False)
                table.note("value+grad", (n, d), f"{name} compiled", loss_and_gradient(fast, z))
        torch.cuda.empty_cache()
    if compiled:
        _inside_compile(table)
    summary(table.rows)
    return table.rows


def _inside_compile(table: Table) -> None:
    """The loss inside somebody's compiled step."""
    for n, d in ((100, 8), (1024, 64)):
        z = torch.randn(n, d, device="cuda")
        module = torch.compile(smmd.torch.SMMDLoss(), fullgraph=True)
        table.note("value+grad", (n, d), "smmd Gaussian compiled", loss_and_gradient(module, z))


def summary(rows: list[dict[str, object]]) -> None:
    """How many times faster than the baselines, and with which share of their memory."""
    cells = {
        (r["n"], r["d"], r["method"]): r
        for r in rows
        if r["work"] == "value+grad" and r["batch"] == 1
    }
    print("ratios: smmd kernel, baseline: times faster, share of memory; in a graph: times faster")
    for n, d, _ in SHAPES:
        for name in KERNELS:
            ours = cells.get((n, d, f"smmd {name}"))
            if ours is None:
                continue
            parts = []
            for other in ("listing eager", "listing compiled", "SIGReg eager", "SIGReg compiled"):
                theirs = cells.get((n, d, other))
                if theirs is not None:
                    times = float(theirs["ms_median"]) / float(ours["ms_median"])  # type: ignore[arg-type]
                    graph = float(theirs["ms_median"]) / float(ours["graph_ms"])  # type: ignore[arg-type]
                    share = float(theirs["MiB"]) / max(float(ours["MiB"]), 1e-3)  # type: ignore[arg-type]
                    parts.append(f"{other} {times:.1f}x 1/{share:.0f} ({graph:.0f}x)")
            print(f"  {n}x{d} {name}: " + "; ".join(parts), flush=True)
