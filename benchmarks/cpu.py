"""Speed and memory on a CPU, beside the peers that install.  Writes benchmarks/results/cpu.csv.

    python -m benchmarks.cpu                                    # smmd, the listing and SIGReg
    python -m benchmarks.cpu --python /somewhere/bin/python     # and peers that are installed there
    python -m benchmarks.page                                   # docs/benchmarks.md from the files

Every method and size has a process of its own, whose largest resident size is the method's memory.
Two-sample estimators get as many draws from N(0, I) as there are points.  Rows are written as they
come; a method that takes longer than ``--limit`` seconds, or more memory than there is, has none
and is not asked for larger sizes.  On a machine that others use, too, ``--shared`` gives every
method one core and counts that core's seconds.  About ten minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._cpu_methods import METHODS
from smmd.pairs.threads import cores

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "cpu.csv"
FIELDS = (
    "work", "method", "n", "d", "s_p10", "s_median", "s_p90", "calls", "MiB", "version",
    "cpu", "cores", "clock", "python", "numpy",
)  # fmt: skip
LIMITS = [name for name in METHODS if name.startswith("exp")]
BATCHES = [name for name in METHODS if name.startswith("batch")]
VALUES = [name for name in METHODS if not name.endswith((" loss", "compiled"))]
VALUES = [name for name in VALUES if name not in LIMITS + BATCHES]
LOSSES = [name for name in METHODS if name.endswith((" loss", "compiled"))]
PEERS = ("frouros", "hyppo", "alibi-detect", "ignite", "geomloss", "pingouin")


def cases() -> Iterator[tuple[str, str, int, int]]:
    """(work, method, n, d), small sizes first."""
    yield from (("limit", name, 1_000_000, 1) for name in LIMITS)
    for n in (1000, 5000, 20_000):
        yield from (("value", name, n, 8) for name in VALUES)
    for n in (100_000, 200_000):
        yield from (("value", name, n, 8) for name in ("smmd float64", "smmd float32"))
    for d in (2, 32, 128, 512):
        yield from (("value", name, 5000, d) for name in VALUES if name not in PEERS)
    for n in (100, 1000, 5000, 20_000):
        yield from (("value+grad", name, n, 8) for name in LOSSES)
    for d in (64, 512):
        yield from (("value+grad", name, 2000, d) for name in LOSSES)
    yield from (("10,000 samples", name, 100, 8) for name in BATCHES)


def model() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def available() -> int:
    """Bytes of memory that a new process may take, where the system tells it; else 8 GiB."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 2**33
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def prepare(shared: bool) -> None:
    """In the new process: who asks for too much memory is refused it, rather than killed."""
    import resource

    most = int(0.9 * available())
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if shared:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def elsewhere(
    name: str, n: int, d: int, pythons: list[str], limit: float, shared: bool
) -> dict[str, object]:
    """What the first interpreter that has the method's package finds."""
    said = ""
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    if shared:
        here |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for python in pythons:
        command = [python, "-W", "ignore", "-m", "benchmarks._cpu_methods", name, str(n), str(d)]
        try:
            done = subprocess.run(
                [*command, "cpu" if shared else "wall"], env=here, cwd=ROOT, timeout=limit,
                capture_output=True, text=True, preexec_fn=partial(prepare, shared),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"longer than {limit:.0f} s") from None
        if done.returncode == 0:
            found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
            return found
        said = (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]
    raise RuntimeError(said)


def others(methods: set[str]) -> list[dict[str, str]]:
    """Rows of the file that are of no such method."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["method"] not in methods]


def main() -> None:
    """Measure everything, or what ``--only`` names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", default=[], help="another interpreter")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one process")
    parser.add_argument("--only", default="", help="methods, comma-separated; other rows stay")
    parser.add_argument("--shared", action="store_true", help="one core, and its own clock")
    options = parser.parse_args()
    pythons = [sys.executable, *options.python]
    only = set(options.only.split(",")) - {""}
    here = {
        "cpu": model(), "cores": 1 if options.shared else cores(),
        "clock": "processor" if options.shared else "wall",
        "python": platform.python_version(), "numpy": np.__version__,
    }  # fmt: skip
    kept = others(only) if only else []
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)

        def note(**row: object) -> None:
            short = {k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()}
            print(" ".join(f"{k}={v}" for k, v in short.items()), flush=True)
            writer.writerow({**short, **here})
            file.flush()

        given_up: set[tuple[str, str, int]] = set()
        for work, name, n, d in cases():
            if (only and name not in only) or (work, name, d) in given_up:
                continue
            try:
                found = elsewhere(name, n, d, pythons, options.limit, options.shared)
            except RuntimeError as error:
                print(f"{work} {name} {n} x {d}: {error}", flush=True)
                given_up.add((work, name, d))
                continue
            note(work=work, method=name, n=n, d=d, **found)


if __name__ == "__main__":
    main()
