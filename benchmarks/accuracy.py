"""Errors against 50-digit arithmetic, of smmd and of the paper's listing.

    python -m benchmarks.accuracy            # the tables below; about four minutes on one core
    python -m benchmarks.accuracy --write    # and into benchmarks/results and docs/accuracy.md

Samples and kernels are those of the tests (``tests/cases.py``): every kind of sample under every
kernel, and random hard ones (``tests/hard.py``).  An error is |value − truth|/max(1, |truth|), the
largest of MMD²_u, MMD²_b and SMMD², NumPy and PyTorch; of a gradient, the largest difference in
units of its norm.  In float32 the truth is that of the rounded points.  The paper's listing knows
Gaussian kernels and no random encoders, so it is asked only there, for SMMD².
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import smmd
from smmd.files import atomic_write
from smmd.progress import Bar
from tests import cases, exact, hard, listing
from tests.exact_derivatives import encoder_gradient, relative_error

ROOT = Path(__file__).parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "accuracy.csv", ROOT / "docs" / "accuracy.md"
#: What is asked for, by column; the listing is held to the same.
BOUNDS = {
    "float64": cases.DOUBLE,
    "gradient": cases.GRADIENT,
    "float32": cases.SINGLE,
    "listing float64": cases.DOUBLE,
    "listing float32": cases.SINGLE,
}
FIELDS = ("kind", "sample", "kernel", *BOUNDS)
LARGEST = exact.mpf(float(np.finfo(np.float32).max))
#: Below this, the squares of a gradient leave float64, and its norm is no measure of anything.
SMALLEST = exact.mpf("1e-290")
Row = dict[str, Any]


def trials(count: int, seed: int) -> Iterator[tuple[str, str, cases.Case, np.ndarray, Any]]:
    """(kind, sample, kernel, points, variances or None): the tests' samples, then random ones."""
    for kind, name, z in cases.samples():
        for case in cases.KERNELS:
            if cases.worth_trying(case, z):
                yield kind, name, case, z, None
    for one in hard.random_cases(count, seed):
        kind = "at random" if one.var is None else "at random, random encoder"
        yield kind, one.label, one.case, one.z, one.var


def measured(kind: str, name: str, case: cases.Case, z: np.ndarray, var: Any) -> Row:
    """The errors in one trial; what does not apply is left out."""
    row: Row = {"kind": kind, "sample": name, "kernel": case.label}
    row["float64"] = _value_error(case, z, var)
    if (off := _gradient_error(case, z, var)) is not None:
        row["gradient"] = off
    if (ask := _listing(case, var)) is not None:
        row["listing float64"] = cases.error(ask(z), _truths(case, z, None)[-1])
    with np.errstate(over="ignore"):
        single = z.astype(np.float32)
    rounded = single.astype(np.float64)
    if not np.isfinite(single).all() or not cases.worth_trying(case, rounded):
        return row
    small = None if var is None else var.astype(np.float32)
    row["float32"] = _value_error(case, single, small)
    if ask is not None and abs(truth := _truths(case, rounded, None)[-1]) < LARGEST:
        row["listing float32"] = cases.error(ask(single), truth)
    return row


def _truths(case: cases.Case, z: np.ndarray, var: Any) -> tuple[Any, Any, Any]:
    """MMD²_u, MMD²_b and SMMD² with 50 digits."""
    oracle = case.oracle(z)
    full = None if var is None else _full(z, var)
    unbiased, biased = (exact.mmd2(oracle, z, var=full, unbiased=u) for u in (True, False))
    return unbiased, biased, unbiased / exact.mp.sqrt(exact.null_variance(oracle, len(z)))


def _full(z: np.ndarray, var: np.ndarray) -> np.ndarray:
    """One variance per point as one per coordinate."""
    return np.broadcast_to(var if var.ndim == z.ndim else var[..., None], z.shape)


def _value_error(case: cases.Case, z: np.ndarray, var: Any) -> float:
    """The largest error of the three values, in NumPy and in PyTorch."""
    wide = None if var is None else var.astype(np.float64)
    truths = _truths(case, z.astype(np.float64), wide)
    worst = 0.0
    for make in (np.asarray, torch.tensor):
        x, v = make(z), None if var is None else make(var)
        found = (
            smmd.mmd2(x, case.kernel, var=v),
            smmd.mmd2(x, case.kernel, var=v, unbiased=False),
            smmd.smmd(x, kernel=case.kernel, var=v),
        )
        for value, truth in zip(found, truths, strict=True):
            if z.dtype == np.float64 or abs(truth) < LARGEST:
                worst = max(worst, cases.error(value, truth))
    return worst


def _gradient_error(case: cases.Case, z: np.ndarray, var: Any) -> float | None:
    """The largest difference of ∂MMD²_u, in units of the gradient's norm; None if it vanishes."""
    oracle = case.oracle(z)
    leaves = [torch.tensor(a, requires_grad=True) for a in (z, var) if a is not None]
    if var is None:
        truths = [exact.gradient(oracle, z)]
    elif isinstance(oracle, exact.Gaussian | exact.Mixture) and not case.kernel.adaptive:
        truths = list(encoder_gradient(oracle, z, _full(z, var)))
        if var.ndim < z.ndim:
            truths[1] = [[exact.mp.fsum(row)] for row in truths[1]]
    else:
        return None
    smmd.mmd2(leaves[0], case.kernel, var=leaves[1] if var is not None else None).backward()
    pairs = [
        (leaf.grad if leaf.ndim == 2 else leaf.grad[:, None], t)
        for leaf, t in zip(leaves, truths, strict=True)
    ]
    if var is None:
        pairs.append((smmd.value_and_grad(z, case.kernel, standardized=False)[1], truths[0]))
    errors = [
        relative_error(got.tolist(), truth)
        for got, truth in pairs
        if exact.mp.fsum(v * v for row in truth for v in row) > SMALLEST**2
    ]
    return max(errors) if errors else None


def _listing(case: cases.Case, var: Any) -> Callable[[np.ndarray], Any] | None:
    """The printed listing with this kernel, if it has it."""
    if var is not None or not isinstance(case.kernel, smmd.Gaussian | smmd.Adaptive):
        return None
    scale, adaptive = case.kernel.scale, case.kernel.adaptive
    return lambda z: listing.smmd(z, scale, adaptive)


def table(rows: list[Row]) -> str:
    """Per kind of sample: the worst error of each column, and how often the bound is missed."""
    heads = [f"{name} ≤ {bound:.0e}" for name, bound in BOUNDS.items()]
    text = ["| samples | cases | " + " | ".join(heads) + " |", "|---|---:|" + "---:|" * len(heads)]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for kind in [*kinds, None]:
        chosen = [row for row in rows if kind in (None, row["kind"])]
        cells = [_cell([r[c] for r in chosen if c in r], b) for c, b in BOUNDS.items()]
        label = "**all**" if kind is None else kind
        text.append(f"| {label} | {len(chosen)} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def _cell(errors: list[float], bound: float) -> str:
    if not errors:
        return ""
    worst, missed = max(errors), sum(error > bound for error in errors)
    shown = f"{worst:.0e}" if np.isfinite(worst) else "NaN or ∞"
    return f"{shown}, {missed} of {len(errors)} miss" if missed else shown


def write(rows: list[Row]) -> None:
    """Every case into the file of results, the table between its marks in the page."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.2e}" if isinstance(v, float) else v for k, v in row.items()})
    atomic_write(RESULTS, stream.getvalue())
    before, rest = PAGE.read_text(encoding="utf-8").split("<!-- table -->\n")
    after = rest.split("<!-- /table -->")[1]
    atomic_write(PAGE, f"{before}<!-- table -->\n{table(rows)}<!-- /table -->{after}")


def main() -> None:
    """Measure and print; a missed bound of smmd's own is an error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--random", type=int, default=400, help="how many random hard cases")
    parser.add_argument("--seed", type=int, default=0, help="of these")
    parser.add_argument("--write", action="store_true", help="also into the documentation")
    options = parser.parse_args()
    asked = list(trials(options.random, options.seed))
    rows, bar = [], Bar(len(asked), "accuracy")
    for trial in asked:
        rows.append(measured(*trial))
        bar.advance()
    bar.close()
    print(table(rows))
    if options.write:
        write(rows)
    missed = [
        f"{row['kernel']}, {row['sample']}: {column} {row[column]:.1e}"
        for row in rows
        for column in ("float64", "gradient", "float32")
        if row.get(column, 0.0) > BOUNDS[column]
    ]
    raise SystemExit("\n".join(["smmd misses its bounds:", *missed]) if missed else 0)


if __name__ == "__main__":
    main()
