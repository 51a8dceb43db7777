"""docs/benchmarks.md and its figures from the files in benchmarks/results.

    python -m benchmarks.page

Of ``cpu.csv`` (``benchmarks.cpu``), ``gpu.csv`` and ``gpu_check.csv`` (``benchmarks.gpu``) it takes
those that are there.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import _page_cpu, _page_gpu
from benchmarks._page_rows import Rows
from smmd import figures
from smmd.files import atomic_write

ROOT = Path(__file__).parent.parent
RESULTS, DOCS = ROOT / "benchmarks" / "results", ROOT / "docs"

HEAD = """# Benchmarks

The sum over pairs is the only expensive part of SMMD². What it costs, beside other ways to the
same or a like number, and how far from what the machine can do at all. `python -m benchmarks.cpu`
and `python -m benchmarks.gpu` write the files in `benchmarks/results/`, from which
`python -m benchmarks.page` makes this page. Memory is linear in n on every path, and
`smmd.explain(z)` says which path is taken and why.
"""


def main() -> None:
    """Write the page."""
    cpu = Rows.read(RESULTS / "cpu.csv", "s_median", 1.0)
    gpu = Rows.read(RESULTS / "gpu.csv", "ms_median", 1e-3)
    check = Rows.read(RESULTS / "gpu_check.csv", "n", 1.0)
    with figures.look() as plt:
        for name, rows, room in (("cpu", cpu, _page_cpu), ("gpu", gpu, _page_gpu)):
            if rows is not None:
                drawing = room.figure(rows, plt, figures)
                image = figures.encode(drawing)["svg"]
                atomic_write(DOCS / "images" / f"benchmarks-{name}.svg", image)
                plt.close(drawing)
    parts = [HEAD, "" if cpu is None else _page_cpu.text(cpu), _page_gpu.text(gpu, check)]
    atomic_write(DOCS / "benchmarks.md", "\n".join(part for part in parts if part))


if __name__ == "__main__":
    main()
