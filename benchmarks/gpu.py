"""Speed, memory and accuracy of the GPU kernels beside the paper's listing and SIGReg.

    PYTHONPATH=src python -m benchmarks.gpu --check            # accuracy against float64
    PYTHONPATH=src python -m benchmarks.gpu --sweep            # which tiles are fastest
    PYTHONPATH=src python -m benchmarks.gpu --table --out gpu.csv

Times are medians over single calls between CUDA events, so they include launching; "graph" is
the replay of a CUDA graph.  Memory is what a call takes beyond its input.
"""

from __future__ import annotations

import argparse
import csv
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import triton

from benchmarks import _gpu_baselines, _gpu_check, _gpu_sweep, _gpu_timing
from smmd.pairs.triton import Tiles


def check(quick: bool) -> list[dict[str, object]]:
    """Errors at awkward shapes, for the path chosen and for the one of large samples."""
    sizes = [2, 41, 401, 1271, 4096] + ([] if quick else [65537])
    jobs = []
    rows: list[dict[str, object]] = []
    for d in (1, 3, 8, 65, 512, 1024):
        for kind in ("s=0.125", "s=0.03125", "s=1000", "multi", "sliced", "imq"):
            for n in (2, 401):
                for tiles in (None, Tiles(128, 64, 8, 3, 2, 3), _STRIP):
                    if d > 65 and tiles is not None and not tiles.strip:
                        continue
                    for gradient in (True, False):
                        jobs.append(_gpu_sweep.Case("", kind, 1, n, d, gradient, tiles))
    begun = time.perf_counter()
    failed = {c: e for c, e in _gpu_sweep.compile_all(jobs).items() if e and c.d * 1 > 1}
    print(f"compiled {len(jobs)} in {time.perf_counter() - begun:.0f} s", flush=True)
    for case, error in failed.items():
        if not (case.kind == "sliced" and case.d == 1):
            print("failed:", case, error)
    print("err in null sd: value, value+grad | gradient, relative | amplification")
    for d in (1, 3, 8, 65, 512, 1024):
        for kind in ("s=0.125", "s=0.03125", "s=1000", "multi", "sliced", "imq"):
            for problem in _gpu_check.problems(d, "cuda", [kind]):
                for n in sizes:
                    if n == 65537 and (kind in ("multi", "sliced", "s=0.03125") or d > 512):
                        continue
                    rows.extend(_check_one(problem, n, d))
    return rows


_STRIP = Tiles(128, 64, 8, 3, 2, 2, 64, 1024)


def _check_one(problem: _gpu_check.Problem, n: int, d: int) -> list[dict[str, object]]:
    torch.manual_seed(n + d)
    z = torch.randn(n, d, device="cuda") + 3.0
    exact = _gpu_check.reference(z, problem.exact)
    rows: list[dict[str, object]] = []
    for name, tiles in (("chosen", None), ("gram", Tiles(128, 64, 8, 3, 2, 3)), ("strip", _STRIP)):
        if (name == "gram" and d > 65) or (name != "chosen" and n < 41):
            continue
        e = _gpu_check.errors(problem, z, exact, tiles)
        print(
            f"{problem.name:9s} {d:5d} {n:6d} {name:7s} {e['value']:+.1e} {e['value+grad']:+.1e} | "
            f"{e['gradient']:.1e} | {e['amplification']:.1e} same={e['same bits']:.0f}",
            flush=True,
        )
        rows.append({"kernel": problem.name, "d": d, "n": n, "path": name, **e})
    return rows


def table(quick: bool) -> list[dict[str, object]]:
    """Times and memory of value + gradient (and of values alone), with the baselines."""
    rows: list[dict[str, object]] = []
    limits = _gpu_timing.limits()
    for name, rate in limits.items():
        print(f"{name}: {rate:.3e}", flush=True)
        rows.append({"work": name, "method": "limit", "median": rate})

    def note(work: str, method: str, call: Callable[[], object], graph: bool = False) -> None:
        try:
            memory = _gpu_timing.peak_memory(call)
            times = _gpu_timing.event_times(call, 30, 1.0)
            replay = float(np.median(_gpu_timing.graph_times(call, 30))) if graph else float("nan")
        except Exception as error:
            print(f"{work:26s} {method:20s} {type(error).__name__} {str(error)[:60]}", flush=True)
            return
        low, median, high = np.percentile(times, [10, 50, 90])
        print(
            f"{work:26s} {method:20s} {median:9.3f} ms ({low:.3f}–{high:.3f})  graph "
            f"{replay:8.4f}  {memory:9.1f} MiB",
            flush=True,
        )
        rows.append({"work": work, "method": method, "median": median, "p10": low, "p90": high,
                     "graph": replay, "MiB": memory})  # fmt: skip

    for n, d in ((1_000_000, 8), (1_000_000, 64), (65536, 8), (16384, 8), (16384, 64)):
        z = torch.randn(1, n, d, device="cuda")
        problem = _gpu_check.problems(d, "cuda", ["s=0.125"])[0]
        note(f"value {n}x{d}", "smmd", lambda p=problem, z=z: p.sums(z, gradient=False))
    for batch in (1000, 10000):
        z = torch.randn(batch, 100, 8, device="cuda")
        problem = _gpu_check.problems(8, "cuda", ["s=0.125"])[0]
        note(f"value {batch}x100x8", "smmd", lambda p=problem, z=z: p.sums(z, gradient=False))
        note(f"value+grad {batch}x100x8", "smmd", lambda p=problem, z=z: p.sums(z))
    shapes = [(100, 8), (256, 64), (1024, 8), (1024, 64), (4096, 8), (4096, 64), (4096, 512),
              (8192, 64), (8192, 512), (16384, 8), (16384, 64), (16384, 512),
              (65536, 8)]  # fmt: skip
    listing, sigreg = _gpu_baselines.listing, _gpu_baselines.sigreg
    compiled = [] if quick else [
        ("listing compiled", torch.compile(listing, dynamic=False)),
        ("SIGReg compiled", torch.compile(sigreg, dynamic=False)),
    ]  # fmt: skip
    torch._dynamo.config.cache_size_limit = 64
    for n, d in shapes:
        work = f"value+grad {n}x{d}"
        z = torch.randn(n, d, device="cuda")
        for kind in ("s=0.125", "sliced", "multi", "imq"):
            problem = _gpu_check.problems(d, "cuda", [kind])[0]
            note(work, f"smmd {kind}", lambda p=problem, z=z: p.sums(z[None]), n <= 16384)
        leaf = z.clone().requires_grad_()
        for name, loss in [("listing eager", listing), ("SIGReg eager", sigreg), *compiled]:
            if "listing" in name and n > 16384:
                continue
            note(work, name, lambda f=loss, x=leaf: torch.autograd.grad(f(x), x))
    return rows


def write(rows: list[dict[str, object]], path: Path) -> None:
    """A CSV with the device and versions beside every row."""
    where = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }
    names = list(dict.fromkeys(k for row in rows for k in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, *where])
        writer.writeheader()
        writer.writerows({**row, **where} for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("check", "sweep", "table", "quick"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    if options.check:
        rows += check(options.quick)
    if options.sweep:
        rows += _gpu_sweep.run()
    if options.table:
        rows += table(options.quick)
    if options.out:
        write(rows, options.out)


if __name__ == "__main__":
    main()
