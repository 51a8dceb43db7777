"""Timing on a GPU: medians of CUDA events, CUDA graph replays, and the machine's own limits."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl


def event_times(call: Callable[[], object], repeats: int = 20, budget: float = 1.0) -> np.ndarray:
    """Milliseconds of single calls, launches included; fewer repeats if ``budget`` s runs out."""
    call()
    torch.cuda.synchronize()
    times: list[float] = []
    begun = time.perf_counter()
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
        if len(times) >= 3 and time.perf_counter() - begun > budget:
            break
    return np.array(times)


def graph_times(call: Callable[[], object], repeats: int = 20) -> np.ndarray:
    """Milliseconds of replays of ``call`` captured in a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return event_times(graph.replay, repeats)


def peak_memory(call: Callable[[], object]) -> float:
    """Mebibytes that one call takes beyond what is there before it."""
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


def limits() -> dict[str, float]:
    """Bare exponentials per second (with one addition each), and bytes copied per second."""
    block, programs, rounds = 4096, 132 * 16, 4096
    out = torch.empty(block * programs, device="cuda")

    def exponentials() -> None:
        _exponentials[(programs,)](out, rounds, BLOCK=block, num_warps=8)

    rate = block * programs * rounds / (np.median(event_times(exponentials, 10)) * 1e-3)
    source = torch.randn(2**30, device="cuda")
    target = torch.empty_like(source)
    bandwidth = (
        2 * source.nbytes / (np.median(event_times(lambda: target.copy_(source), 10)) * 1e-3)
    )
    return {"exponentials/s": float(rate), "copied bytes/s": float(bandwidth)}
