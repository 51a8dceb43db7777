"""What value and gradient cost above the input.  `python -m benchmarks.memory`

SMMD² and its gradient of 100,000 × 8 points in NumPy, in a process of its own, whose largest
resident size is what the operating system has counted.  About a minute on two cores.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

import smmd

#: Resident bytes are counted in units of 1 KiB on Linux and of 1 byte on macOS.
UNIT = 1 if sys.platform == "darwin" else 1024


def peak() -> int:
    """The largest resident size so far, in bytes."""
    return UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(n: int, d: int, dtype: str) -> None:
    """Print one line of the table."""
    z = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    smmd.value_and_grad(z[:1000])  # what is imported and cached on first use
    before, start = peak(), time.perf_counter()
    value, _ = smmd.value_and_grad(z)
    spent = time.perf_counter() - start
    above = (peak() - before) / 1e6
    print(f"| {n:,} × {d} {dtype} | {value:+.4f} | {above:.0f} MB | {spent:.1f} s |", flush=True)


def main() -> None:
    """One process a size, because a process's largest size never falls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--d", type=int, default=8)
    parser.add_argument("--dtype", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dtype is not None:
        measure(options.n, options.d, options.dtype)
        return
    print("| points | SMMD² | memory above the input | time |\n|---|---:|---:|---:|", flush=True)
    for dtype in ("float64", "float32"):
        sizes = ["--n", str(options.n), "--d", str(options.d), "--dtype", dtype]
        subprocess.run([sys.executable, "-m", "benchmarks.memory", *sizes], check=True)


if __name__ == "__main__":
    main()
