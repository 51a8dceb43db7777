"""Speed, memory and accuracy on a GPU, beside the paper's listing and SIGReg's algorithm.

    python -m benchmarks.gpu --table     # speed and memory: benchmarks/results/gpu.csv
    python -m benchmarks.gpu --check     # errors against float64: benchmarks/results/gpu_check.csv
    python -m benchmarks.gpu --sweep     # which tiles are fastest: printed
    python -m benchmarks.page            # docs/benchmarks.md from these files

Times are medians over single calls between CUDA events, so they include launching and, for losses,
the whole way through ``smmd.torch.SMMDLoss`` and autograd; "graph" is the replay of a CUDA graph.
Memory is what a call takes beyond its input.  Compilers' caches are filled first, by one process
for each core; then rows are measured in the order of their importance and written one by one, so
that a run cut short by ``--seconds`` or by force keeps what it has.  ``--tiny`` takes every step
once at small sizes, on any machine (with TRITON_INTERPRET=1 and SMMD_PAIRS=triton without a GPU).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import _gpu_check, _gpu_sweep, _gpu_table

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for flag in ("table", "check", "sweep", "tiny"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--only", default="", help="of the sweep, comma-separated beginnings")
    parser.add_argument("--seconds", type=float, default=130.0, help="for each of table and check")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the CSV files")
    options = parser.parse_args()
    if options.table:
        _gpu_table.run(options.out / "gpu.csv", options.seconds, tiny=options.tiny)
    if options.check:
        _gpu_check.run(options.out / "gpu_check.csv", options.seconds, tiny=options.tiny)
    if options.sweep:
        _gpu_sweep.run(options.only)


if __name__ == "__main__":
    main()
