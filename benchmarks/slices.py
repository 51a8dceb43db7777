"""From which batch size on random slices are faster than all of them at once.

    python -m benchmarks.slices [--device cuda] [--sizes 1024 4096 ...]

Value and gradient of the exact sliced kernel and of ``SlicedLoss`` with 1024 directions, float32,
d = 64: the median of repetitions, and a warm-up before.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from statistics import median

import torch

import smmd
import smmd.torch

D, SLICES = 64, 1024


def seconds(call: Callable[[], object], device: str, repeats: int) -> float:
    """The median time of one call, the first left out."""

    def once() -> float:
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    once()
    return median(once() for _ in range(repeats))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 4096, 16384])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
    print(f"{name}, {torch.get_num_threads()} threads, torch {torch.__version__}, d = {D}\n")
    print(f"| n | all directions, ms | {SLICES} random ones, ms |\n|---|---|---|")
    losses = {
        "exact": smmd.torch.SMMDLoss(kernel=smmd.Sliced()),
        "slices": smmd.torch.SlicedLoss(SLICES).to(options.device),
    }
    for n in options.sizes:
        z = torch.randn(n, D, device=options.device, requires_grad=True)
        times = [
            1e3 * seconds(lambda f=loss, z=z: f(z).backward(), options.device, options.repeats)
            for loss in losses.values()
        ]
        print(f"| {n} | {times[0]:.3g} | {times[1]:.3g} |", flush=True)


if __name__ == "__main__":
    main()
