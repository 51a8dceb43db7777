"""Timing on a GPU: medians of CUDA events, CUDA graph replays, and the machine's own limits.

Without a GPU the same functions use the clock, so that the scripts can be tried anywhere.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def times(call: Callable[[], object], repeats: int, budget: float) -> np.ndarray:
    """Milliseconds of single calls, launches included; fewer repeats if ``budget`` s runs out."""
    call()
    synchronize()
    found: list[float] = []
    begun = time.perf_counter()
    for _ in range(repeats):
        found.append(_once(call))
        if len(found) >= 3 and time.perf_counter() - begun > budget:
            break
    return np.array(found)


def _once(call: Callable[[], object]) -> float:
    if DEVICE == "cpu":
        begun = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - begun)
    start = torch.cuda.Event(enable_timing=True)
    stop = torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    stop.record()
    stop.synchronize()
    return float(start.elapsed_time(stop))


def graph_time(call: Callable[[], object], repeats: int, budget: float) -> float:
    """Median milliseconds of replays of ``call`` captured in a CUDA graph."""
    if DEVICE == "cpu":
        return math.nan
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return float(np.median(times(graph.replay, repeats, budget)))


def peak_memory(call: Callable[[], object]) -> float:
    """Mebibytes that one call takes beyond what is there before it."""
    if DEVICE == "cpu":
        return math.nan
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = call()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del kept
    return peak / 2**20


@triton.jit
def _exponentials(out, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = (at % 1024).to(tl.float32) * -0.001
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(rounds):
        total += tl.exp2(x)
        x += 1e-7
    tl.store(out + at, total)


def limits(tiny: bool = False) -> dict[str, float]:
    """Bare exponentials per second (with two additions each), and bytes copied per second."""
    block, programs, rounds = (128, 2, 8) if tiny else (4096, 132 * 16, 4096)
    out = torch.empty(block * programs, device=DEVICE)

    def exponentials() -> None:
        _exponentials[(programs,)](out, rounds, BLOCK=block, num_warps=8)

    spent = np.median(times(exponentials, 10, 1.0)) * 1e-3
    source = torch.randn(2**10 if tiny else 2**30, device=DEVICE)
    target = torch.empty_like(source)
    copying = np.median(times(lambda: target.copy_(source), 10, 1.0)) * 1e-3
    return {
        "exponentials/s": float(block * programs * rounds / spent),
        "copied bytes/s": float(2 * source.nbytes / copying),
    }
