"""Speed, memory and accuracy on a GPU, beside the paper's listing and SIGReg's algorithm.

    PYTHONPATH=src python -m benchmarks.gpu --check            # accuracy against float64
    PYTHONPATH=src python -m benchmarks.gpu --sweep            # which tiles are fastest
    PYTHONPATH=src python -m benchmarks.gpu --table --out benchmarks/results/gpu.csv

Times are medians over single calls between CUDA events, so they include launching and, for losses,
the whole way through ``smmd.torch.SMMDLoss`` and autograd; "graph" is the replay of a CUDA graph.
Memory is what a call takes beyond its input.  ``--quick`` leaves out what compiles for long.
"""

from __future__ import annotations

import argparse
import csv
import platform
import time
from pathlib import Path

import torch
import triton

from benchmarks import _gpu_check, _gpu_sweep, _gpu_table
from smmd.pairs.triton import Tiles

DIMENSIONS = (1, 3, 8, 65, 512, 1024)
KINDS = ("s=0.125", "s=0.03125", "s=1000", "multi", "sliced", "imq")
#: The path of large samples, with the gradient at once and by stored weights.
_GRAM, _STRIP = Tiles(128, 64, 8, 3, 2, 3), Tiles(128, 64, 8, 3, 2, 2, 64, 1024)


def check(quick: bool) -> list[dict[str, object]]:
    """Errors at awkward shapes: sums on each path, and whole losses as users call them."""
    jobs = []
    for d in DIMENSIONS:
        for kind in KINDS:
            if kind == "sliced" and d == 1:
                continue
            for n in (2, 401):
                for tiles in (None, _GRAM, _STRIP):
                    if d > 65 and tiles == _GRAM:
                        continue
                    for gradient in (True, False):
                        jobs.append(_gpu_sweep.Case("", kind, 1, n, d, gradient, tiles))
    begun = time.perf_counter()
    for case, error in _gpu_sweep.compile_all(jobs).items():
        if error:
            print("failed:", case, error)
    print(f"compiled {len(jobs)} in {time.perf_counter() - begun:.0f} s", flush=True)
    sizes = [2, 41, 401, 1271, 4096] + ([] if quick else [65537])
    print("err in null sd: value, value+grad | gradient, relative | amplification")
    rows: list[dict[str, object]] = []
    for d in DIMENSIONS:
        for kind in KINDS:
            for problem in _gpu_check.problems(d, "cuda", [kind]):
                for n in sizes:
                    if n == 65537 and (kind not in ("s=0.125", "imq") or d > 512):
                        continue
                    rows.extend(_check_one(problem, n, d))
    worst: dict[object, float] = {}
    for row in rows:
        for part in ("value", "value+grad"):
            if int(row["n"]) <= 4096:  # type: ignore[call-overload]
                key = (row["path"], part)
                worst[key] = max(worst.get(key, 0.0), abs(float(row[part])))  # type: ignore[arg-type]
    for key, error in worst.items():
        print(f"largest error for n <= 4096, {key}: {error:.1e} null sd")
    print("same bits twice:", all(row["same bits"] for row in rows))
    return rows


def _check_one(problem: _gpu_check.Problem, n: int, d: int) -> list[dict[str, object]]:
    torch.manual_seed(n + d)
    z = torch.randn(n, d, device="cuda") + 3.0
    exact = _gpu_check.reference(z, problem.exact)
    rows: list[dict[str, object]] = []
    for name, tiles in (("chosen", None), ("gram", _GRAM), ("strip", _STRIP), ("loss", None)):
        if (name == "gram" and d > 65) or (name in ("gram", "strip") and n < 41):
            continue
        if name == "loss":
            if n > 4096 or n * d > 1_000_000:
                continue
            e = _gpu_check.loss_errors(problem.kernel, torch.randn(n, d, device="cuda"))
        else:
            e = _gpu_check.errors(problem, z, exact, tiles)
        print(
            f"{problem.name:9s} {d:5d} {n:6d} {name:7s} {e['value']:+.1e} {e['value+grad']:+.1e} | "
            f"{e['gradient']:.1e} | {e['amplification']:.1e} same={e['same bits']:.0f}",
            flush=True,
        )
        rows.append({"kernel": problem.name, "d": d, "n": n, "path": name, **e})
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
    parser.add_argument("--only", default="", help="of the sweep, comma-separated beginnings")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    if options.check:
        rows += check(options.quick)
    if options.sweep:
        rows += _gpu_sweep.run(options.only)
    if options.table:
        quick = options.quick
        rows += _gpu_table.run(
            compiled=not quick, repeats=15 if quick else 30, budget=0.3 if quick else 1.0
        )
    if options.out:
        write(rows, options.out)


if __name__ == "__main__":
    main()
