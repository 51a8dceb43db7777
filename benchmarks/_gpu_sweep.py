"""Which tile sizes are fastest: the sweep behind ``pairs.triton.choose_tiles``.

Kernels are compiled by many processes first, on small problems, into Triton's cache; then one
process times them one after another.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks import _gpu_check, _gpu_timing
from smmd.pairs import triton as pairs
from smmd.pairs.triton import Tiles
from smmd.pairs.triton_direct_sums import direct_sums


@dataclass(frozen=True)
class Case:
    """One problem and one way to cut it; ``block`` > 0 means the kernel on differences."""

    work: str
    kind: str
    batch: int
    n: int
    d: int
    gradient: bool
    tiles: Tiles | None
    block: int = 0
    warps: int = 4


def problem_call(case: Case, n: int, batch: int, device: str = "cuda") -> Callable[[], object]:
    z = torch.randn(batch, n, case.d, device=device)
    problem = _gpu_check.problems(case.d, device, [case.kind])[0]
    if case.block:
        a = torch.full((1, 1), 8.0 / case.d, dtype=torch.float64, device=device)
        zero, one = torch.zeros_like(a), torch.ones_like(a)
        kernel = pairs._exponentials(a, zero, one, (0.0,), z.device)

        def direct() -> tuple[Tensor, Tensor | None]:
            return direct_sums(z, z, kernel, 0, case.gradient, block=case.block, warps=case.warps)

        return direct
    return lambda: problem.sums(z, gradient=case.gradient, tiles=case.tiles)


def _compile(case: Case) -> tuple[Case, str, float]:
    begun = time.perf_counter()
    try:
        problem_call(case, min(case.n, 600), min(case.batch, 2))()
        torch.cuda.synchronize()
        return case, "", time.perf_counter() - begun
    except Exception as error:  # too much shared memory, say
        return case, f"{type(error).__name__}: {str(error)[:70]}", time.perf_counter() - begun


def compile_all(cases: list[Case]) -> dict[Case, str]:
    """Fill Triton's cache; what failed, and why."""
    with multiprocessing.get_context("spawn").Pool(min(14, os.cpu_count() or 1)) as pool:
        done = list(pool.imap_unordered(_compile, cases))
    return {case: error for case, error, _ in done}


def cases() -> list[Case]:
    found: list[Case] = []

    def add(work: str, kind: str, n: int, d: int, gradient: bool, cuts: list[Tiles]) -> None:
        found.extend(Case(work, kind, 1, n, d, gradient, cut) for cut in cuts)

    value = [
        (128, 64, 4, 3), (128, 64, 8, 3), (64, 64, 4, 3), (128, 128, 8, 3), (64, 128, 4, 3),
        (128, 32, 4, 3), (64, 32, 4, 3),
    ]  # fmt: skip
    for d in (8, 64):
        square = [Tiles(*v, 4, 3) for v in value if v[0] >= v[1]]
        add(f"value 262144x{d}", "s=0.125", 262144, d, False, square)
    add("value 16384x512", "s=0.125", 16384, 512, False, [
        Tiles(128, 64, 8, 3, 4, 2, 64), Tiles(128, 128, 8, 3, 4, 2, 64),
        Tiles(128, 64, 8, 4, 4, 2, 32), Tiles(128, 128, 8, 4, 4, 2, 32),
        Tiles(64, 64, 4, 3, 4, 2, 64), Tiles(128, 64, 4, 3, 4, 2, 64),
    ])  # fmt: skip
    add("grad 65536x8", "s=0.125", 65536, 8, True, [
        Tiles(*v, s, p) for v in
        [(128, 64, 8, 3), (64, 64, 4, 3), (128, 32, 8, 3), (64, 32, 4, 3)] for p in (3, 2)
        for s in (2, 4)
    ])  # fmt: skip
    add(
        "grad 16384x8",
        "s=0.125",
        16384,
        8,
        True,
        [Tiles(r, c, w, 3, s, 3) for r, c, w in [(128, 64, 8), (64, 64, 4)] for s in (2, 4, 8)],
    )
    add("grad 16384x64", "s=0.125", 16384, 64, True, [
        Tiles(*v, s, p) for v in
        [(128, 64, 8, 3), (128, 64, 8, 2), (64, 64, 4, 2), (128, 32, 8, 3), (64, 32, 4, 3)]
        for s, p in ((4, 3), (4, 2), (8, 2))
    ] + [Tiles(128, 64, 8, 3, 8, 2, 64, 2048), Tiles(128, 128, 8, 3, 8, 2, 64, 2048)])  # fmt: skip
    for kind in ("s=0.125", "sliced"):
        add(f"grad 8192x512 {kind}", kind, 8192, 512, True, [
            Tiles(128, 64, 8, 3, 8, 2, 64, 2048), Tiles(128, 128, 8, 3, 8, 2, 64, 2048),
            Tiles(128, 64, 8, 4, 8, 2, 32, 2048), Tiles(128, 128, 8, 4, 8, 2, 32, 2048),
            Tiles(128, 64, 8, 3, 16, 2, 64, 1024), Tiles(128, 64, 8, 3, 8, 1, 64, 2048),
            Tiles(64, 64, 4, 3, 8, 2, 64, 2048), Tiles(128, 64, 4, 3, 8, 2, 64, 2048),
        ])  # fmt: skip
    add(
        "grad 16384x8 sliced",
        "sliced",
        16384,
        8,
        True,
        [Tiles(128, 64, 8, 3, 4, 3), Tiles(128, 32, 8, 3, 4, 3), Tiles(64, 32, 4, 3, 4, 3)],
    )
    add(
        "grad 16384x8 multi",
        "multi",
        16384,
        8,
        True,
        [Tiles(128, 64, 8, 3, 4, 3), Tiles(128, 32, 8, 3, 4, 3), Tiles(64, 32, 4, 3, 4, 3)],
    )
    for n, d in ((100, 8), (1024, 8), (1024, 64), (4096, 8), (256, 64)):
        for block, warps in ((16, 4), (16, 8), (32, 4), (32, 8)):
            if block >= 16:
                found.append(Case(f"grad {n}x{d}", "s=0.125", 1, n, d, True, None, block, warps))
        if n > 100:
            add(f"grad {n}x{d}", "s=0.125", n, d, True, [
                Tiles(64, 64, 4, 3, 4 if n == 1024 else 8, 3), Tiles(64, 32, 4, 3, 4, 3)
            ])  # fmt: skip
    for block, warps in ((16, 4), (32, 8), (16, 8)):
        case = Case("grad 10000x100x8", "s=0.125", 10000, 100, 8, True, None, block, warps)
        found.append(case)
        found.append(Case("value 10000x100x8", "s=0.125", 10000, 100, 8, False, None, block, warps))
    return found


def run(only: str = "") -> list[dict[str, object]]:
    """Time what begins with one of ``only`` (comma-separated); prints as it goes."""
    names = tuple(only.split(",")) if only else ("",)
    listed = [case for case in cases() if case.work.startswith(names)]
    begun = time.perf_counter()
    failed = compile_all(listed)
    print(f"compiled {len(listed)} in {time.perf_counter() - begun:.0f} s", flush=True)
    rows: list[dict[str, object]] = []
    for case in listed:
        cut = case.tiles or (case.block, case.warps)
        how = ",".join(map(str, cut))
        if failed[case]:
            print(f"{case.work:22s} {how:28s} failed: {failed[case]}", flush=True)
            continue
        call = problem_call(case, case.n, case.batch)
        times = _gpu_timing.times(call, 15, 0.4)
        median = replay = float(np.median(times))
        if case.n * case.batch <= 20000:
            replay = _gpu_timing.graph_time(call, 15, 0.4)
        print(f"{case.work:22s} {how:28s} {median:8.3f} ms  graph {replay:8.3f}", flush=True)
        rows.append({"work": case.work, "cut": how, "median_ms": median, "graph_ms": replay})
    return rows
