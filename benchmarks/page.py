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
`python -m benchmarks.page` makes this page. Memory is linear in n on every path.
"""

PATHS = """## Which way a sum goes

`smmd.explain` says it, and why; `smmd.pairs.use`, or the environment variable `SMMD_PAIRS` for a
whole process, overrides it.

```python
import numpy as np
import smmd

z = np.random.default_rng(0).standard_normal((2000, 8))
print(smmd.explain(z))
print(smmd.explain(z.astype(np.float32)))
with smmd.pairs.use("difference"):
    exact = smmd.smmd(z)
assert abs(exact - smmd.smmd(z)) < 1e-9
```

On a CPU, for NumPy and PyTorch:

- `gram`: blocks of the upper triangle through BLAS and `exp`, all cores, in float64;
- `gram32`: the same in float32, for float32 data where that changes SMMD² by less than 10⁻⁴;
- `difference`: differences in place of products, for points far out and for the gradients of small
  float64 samples whose terms cancel.

On an NVIDIA GPU, for PyTorch, `triton`: fused kernels on matrix units, and for small samples one
launch for everything (`direct`). In every framework `dense`: the formulas as they read, a block of
rows at a time.

One statistic of a sample that is too large for one process, or one GPU:
`torchrun --nproc-per-node 4 -m smmd.distributed codes.npy`.
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
    parts = [HEAD, "" if cpu is None else _page_cpu.text(cpu), _page_gpu.text(gpu, check), PATHS]
    atomic_write(DOCS / "benchmarks.md", "\n".join(part for part in parts if part))


if __name__ == "__main__":
    main()
