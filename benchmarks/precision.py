"""Does the arithmetic's precision change what is learned?  Several seeds each, on one GPU.

    PYTHONPATH=src python -m benchmarks.precision --seeds 4 --epochs 60
    python -m benchmarks.precision --compare      # the table of docs/training.md, from results/

The paper's network and recipe on the shipped digits; per precision the seconds of the whole
``fit`` (recording and checkpoints included) and of its training, and mean and spread over seeds of
what the paper's table reports, on the 2,000 test digits.  ``--compare`` tests whether ten seeds
each on full MNIST, trained by ``benchmarks.mnist``, differ in mean or spread.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import stats

import smmd
from smmd.wae import fit

#: Measures of seeds by arithmetic, tf32 first, from runs of ``benchmarks.mnist`` on an H200.
KEPT = Path(__file__).parent / "results" / "mnist_precision.json"


def compare() -> None:
    """Means and spreads over seeds, and the tests of tf32 against all others together."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    print("| |", " | ".join(kept), "| p of equal means | of equal spreads |")
    for name in ("mse", "kurtosis", "skewness", "b"):
        given = [np.array([row[name] for row in rows]) for rows in kept.values()]
        wide, narrow = given[0], np.concatenate(given[1:])
        means = stats.ttest_ind(wide, narrow, equal_var=False).pvalue
        spreads = stats.levene(wide, narrow, center="median").pvalue
        cells = [f"{v.mean():.4f} ± {v.std(ddof=1):.4f}" for v in given]
        print(f"| {name} |", " | ".join(cells), f"| {means:.2f} | {spreads:.2f} |")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--only", default="float32,tf32,bf16")
    parser.add_argument("--version", default="code-norm")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", action="store_true", help="full MNIST, from kept results")
    args = parser.parse_args()
    if args.compare:
        compare()
        return
    rows = []
    for precision in args.only.split(","):
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            runs = fit(
                preset="paper", version=args.version, epochs=args.epochs, seeds=args.seeds,
                precision=precision, out=folder,
            )  # fmt: skip
        spent = time.perf_counter() - begun
        found = {name: [] for name in ("mse", "b", "kurtosis", "skewness")}
        for run in runs:
            codes = run.encode(run.dataset().test).astype(np.float64)
            skewness, kurtosis = smmd.mardia(codes)
            values = (run.log[-1]["val_mse"], run.log[-1]["b"], kurtosis, skewness)
            for name, value in zip(found, values, strict=True):
                found[name].append(float(value))
        trained = sum(row["seconds"] for run in runs for row in run.log)
        rows.append({"precision": precision, "fit_s": spent, "train_s": trained, **found})
        cells = [f"{n} {np.mean(v):8.4f} ± {np.std(v, ddof=1):.4f}" for n, v in found.items()]
        print(f"{precision:<8} fit {spent:6.1f} s, training {trained:6.1f} s:", ", ".join(cells))
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
