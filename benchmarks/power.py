"""How often tests of normality reject what is not normal.  `python -m benchmarks.power`

Every statistic sees the same samples, and is compared with its own simulated null, so that all
have the same level.  Writes benchmarks/results/power.csv and the tables of docs/power.md; about
six minutes on one core.  `--tables` rewrites the tables from the file.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from pathlib import Path

import numpy as np

import smmd
from smmd.files import atomic_write
from smmd.normality.alternatives import NAMED
from smmd.normality.power import values_of
from smmd.normality.statistics import STATISTICS

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "power.csv", ROOT / "docs" / "power.md"
ALPHA, SEED = 0.05, 20_190_108
#: (rows, dimensions, simulated samples of the null, of each alternative)
SIZES = (
    (50, (2, 8), 10_000, 2000),
    (200, (2, 8, 32), 4000, 500),
)
SCALES = ("1/32", "1/16", "1/8", "1/4", "1/2", "1", "2")
TESTS: dict[str, tuple[str, smmd.Kernel]] = {
    **{
        f"s={s}": ("smmd", smmd.Gaussian(float(np.divide(*map(float, (s + "/1").split("/")[:2])))))
        for s in SCALES
    },
    "multi-scale": ("smmd", smmd.MultiScale()),
    "1/8+1/2+2": ("smmd", smmd.MultiScale((1 / 8, 1 / 2, 2.0))),
    "IMQ": ("smmd", smmd.IMQ()),
    "sliced": ("smmd", smmd.Sliced()),
    "BHEP β=1": ("bhep", smmd.Gaussian(gamma=1.0)),
    "HZ": ("henze-zirkler", smmd.HenzeZirkler()),
    "skewness": ("mardia-skewness", smmd.Gaussian()),
    "kurtosis": ("mardia-kurtosis", smmd.Gaussian()),
}
FIELDS = ("n", "d", "alternative", "test", "power", "standard_error", "samples")


def values(samples: np.ndarray) -> dict[str, np.ndarray]:
    """Each test's statistic of each sample."""
    return {
        test: values_of(STATISTICS[name], samples, "normal", kernel)
        for test, (name, kernel) in TESTS.items()
    }


def in_batches(draw: object, rng: np.random.Generator, n: int, d: int, count: int) -> dict:
    """The statistics of ``count`` samples, some at a time."""
    step = max(1, 200_000 // (n * d))
    parts = []
    for first in range(0, count, step):
        size = min(step, count - first)
        parts.append(values(np.stack([draw(rng, (n, d)) for _ in range(size)])))
    return {test: np.concatenate([part[test] for part in parts]) for test in TESTS}


def measured() -> list[dict]:
    """All rows of the table."""
    rows = []
    for n, dimensions, n_null, n_alternative in SIZES:
        for d in dimensions:
            start = time.perf_counter()
            rng = np.random.default_rng((SEED, n, d))
            null = in_batches(NAMED["normal"][1], rng, n, d, n_null)
            limit = {test: np.sort(v)[-int(ALPHA * (n_null + 1))] for test, v in null.items()}
            for name, (_, draw) in NAMED.items():
                if name == "signs" and d < 3:
                    continue
                found = in_batches(draw, rng, n, d, n_alternative)
                for test, v in found.items():
                    share = float(np.mean(v > limit[test]))
                    error = np.sqrt(max(share * (1 - share), 1 / n_alternative) / n_alternative)
                    row = (n, d, name, test, f"{share:.4f}", f"{error:.4f}", n_alternative)
                    rows.append(dict(zip(FIELDS, row, strict=True)))
            print(f"n={n} d={d}: {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def tables(rows: list[dict]) -> str:
    """One table a size: alternatives down, tests across, in percent; then means."""
    text = []
    sizes = sorted({(int(r["n"]), int(r["d"])) for r in rows})
    tests = list(dict.fromkeys(r["test"] for r in rows))
    power = {
        (int(r["n"]), int(r["d"]), r["alternative"], r["test"]): float(r["power"]) for r in rows
    }
    for n, d in sizes:
        names = [a for a in NAMED if (n, d, a, tests[0]) in power]
        text += [f"### n = {n}, d = {d}", "", "| alternative | " + " | ".join(tests) + " |"]
        text.append("|---|" + "---:|" * len(tests))
        for name in names:
            cells = [f"{100 * power[n, d, name, test]:.0f}" for test in tests]
            text.append(f"| {name} | " + " | ".join(cells) + " |")
        others = [a for a in names if a != "normal"]
        means = [np.mean([power[n, d, a, test] for a in others]) for test in tests]
        text.append(
            "| *mean without normal* | " + " | ".join(f"{100 * m:.0f}" for m in means) + " |"
        )
        text.append("")
    return "\n".join(text)


def write_tables(rows: list[dict]) -> None:
    """Put the tables between their marks in the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- tables -->\n")
    after = rest.split("<!-- /tables -->")[1]
    page = f"{before}<!-- tables -->\n{tables(rows)}<!-- /tables -->{after}"
    atomic_write(PAGE, page)


def main() -> None:
    """Measure, or only rewrite the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", action="store_true", help="rewrite the tables from the file")
    if not parser.parse_args().tables:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(measured())
        atomic_write(RESULTS, stream.getvalue())
    with RESULTS.open(encoding="utf-8", newline="") as file:
        write_tables(list(csv.DictReader(file)))


if __name__ == "__main__":
    main()
