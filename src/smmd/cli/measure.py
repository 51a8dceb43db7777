"""``smmd measure``: how far a file's rows are from N(0, I)."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from smmd import measure as measures
from smmd import samples
from smmd.cli import options, tables
from smmd.frames import columns_phrase
from smmd.kernels import Kernel


class Normalize(StrEnum):
    """What is done to the columns before measuring."""

    NONE = "none"
    STANDARDIZE = "standardize"
    WHITEN = "whiten"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("measure")(measure)


def measure(
    file: options.File = None,
    columns: options.Columns = None,
    scale: options.Scale = None,
    kernel: options.KernelChoice = options.KernelName.GAUSSIAN,
    gamma: options.Gamma = None,
    normalize: Annotated[
        Normalize, typer.Option(help="Standardize or whiten the columns first.")
    ] = Normalize.NONE,
    nan_policy: options.MissingRows = options.NanPolicy.RAISE,
    as_json: options.AsJson = False,
) -> None:
    """How far are the rows of FILE from N(0, I)?

    SMMD² is the squared maximum mean discrepancy in units of its own standard deviation under
    normality: 0 ± 1 for a standard normal sample, larger for anything else.  A standard normal
    sample exceeds 2.0 in 3 to 5 % of cases; "smmd threshold" tells other levels.

    The comparison is with mean 0 and covariance I exactly.  For data in their own units add
    --normalize whiten, or ask "smmd test" for a p-value.

    \b
    Examples:
      smmd measure                                  the shipped data set
      smmd measure codes.npy                        an auto-encoder's codes
      smmd measure data.csv --normalize whiten      data in their own units
      smmd measure data.csv --columns x,y --json    two columns, for a program
      smmd measure codes.npy --kernel multi-scale --scale 1/16,1/8,1/4
    """
    chosen = options.kernel_of(kernel, scale, gamma)
    source = tables.read(file, columns)
    result = _measured(source, chosen, normalize, nan_policy)
    typer.echo(json.dumps(result) if as_json else _sheet(result))


def _measured(
    source: tables.File, kernel: Kernel, normalize: Normalize, nan_policy: options.NanPolicy
) -> dict[str, Any]:
    z, omitted = _complete(source, nan_policy)
    if len(z) < 2:
        raise ValueError(f"{source.name} has {len(z)} complete rows; at least 2 are needed")
    location = _location(z)
    if normalize is Normalize.STANDARDIZE:
        z = samples.standardize(z)
    elif normalize is Normalize.WHITEN:
        z = samples.whiten(z)
    n, d = z.shape
    mean_square = np.mean(np.sum(z * z, axis=-1)) if kernel.adaptive else None
    mixture = kernel.resolve(n, d, mean_square)
    gamma2 = mixture.gamma2
    if kernel.adaptive:
        gamma2 = 1.0 / float(np.ravel(mixture.precisions)[0])
    smmd = float(measures.smmd(z, kernel=kernel))
    return {
        "file": source.name,
        "n": n,
        "d": d,
        "columns": list(source.table.names),
        "columns_left_out": list(source.left_out),
        "rows_omitted": omitted,
        "normalize": normalize.value,
        "kernel": repr(kernel),
        "gamma": None if gamma2 is None else math.sqrt(gamma2),
        "mmd2_unbiased": float(measures.mmd2(z, kernel)),
        "mmd2_biased": float(measures.mmd2(z, kernel, unbiased=False)),
        "null_sd": math.sqrt(float(measures.null_variance(n, d, kernel))),
        "smmd": smmd,
        "reading": _reading(smmd, normalize, location),
    }


def _complete(source: tables.File, policy: options.NanPolicy) -> tuple[np.ndarray, int]:
    values, names = source.table.values, source.table.names
    missing = np.isnan(values)
    rows = missing.any(axis=1)
    samples.check_finite(values[~rows], source.name)
    if not rows.any():
        return values, 0
    if policy is options.NanPolicy.RAISE:
        where = columns_phrase([names[k] for k in np.flatnonzero(missing.any(axis=0))])
        raise ValueError(
            f"{source.name} has missing values in {where}, in {int(rows.sum())} of {len(values)} "
            "rows; fill them in, or leave those rows out with --nan-policy omit"
        )
    return values[~rows], int(rows.sum())


def _location(z: np.ndarray) -> bool:
    """Whether some column's mean or spread alone would tell the sample from N(0, I)."""
    n = len(z)
    # Five standard errors of a mean and of a variance under N(0, 1).
    far = np.abs(z.mean(axis=0)) > 5.0 / math.sqrt(n)
    off = np.abs(z.var(axis=0) - 1.0) > 5.0 * math.sqrt(2.0 / n)
    return bool(np.any(far | off))


def _reading(smmd: float, normalize: Normalize, location: bool) -> str:
    """What the number says, in a sentence or two."""
    if normalize is not Normalize.NONE:
        own = "centred and scaled" if normalize is Normalize.STANDARDIZE else "whitened"
        verdict = "Not normal: f" if smmd > 3.0 else "F"
        return (
            f"{verdict}or a normal sample that was {own} by its own moments the value lies below "
            '0, not around it; "smmd test" gives the p-value that goes with it.'
        )
    if smmd <= 2.0:
        return "Within what a standard normal sample of this size gives (0 ± 1)."
    verdict = f"Not N(0, I): {smmd:.1f} standard deviations above what normality gives (0 ± 1)."
    if location:
        verdict += (
            "  Some columns are not even centred at 0 with variance 1; to look past that, add "
            "--normalize whiten."
        )
    return verdict


def _sheet(result: dict[str, Any]) -> str:
    shown = [
        ("sample", f"{result['file']}: n = {result['n']}, d = {result['d']}"),
        ("columns", _short(result["columns"])),
        ("kernel", result["kernel"] + ("" if result["gamma"] is None else _width(result))),
        ("MMD², unbiased", f"{result['mmd2_unbiased']:.6g}"),
        ("MMD², biased", f"{result['mmd2_biased']:.6g}"),
        ("null sd", f"{result['null_sd']:.6g}"),
        ("SMMD²", f"{result['smmd']:.4g}"),
    ]
    if result["columns_left_out"]:
        shown.insert(2, ("left out", f"{_short(result['columns_left_out'])} (not numeric)"))
    if result["rows_omitted"]:
        shown.insert(1, ("rows omitted", f"{result['rows_omitted']} with missing values"))
    width = max(len(label) for label, _ in shown)
    lines = [f"{label:<{width}}  {value}" for label, value in shown]
    return "\n".join([*lines, "", result["reading"]])


def _width(result: dict[str, Any]) -> str:
    return f", width γ = {result['gamma']:.4g}"


def _short(names: list[str]) -> str:
    return ", ".join(names[:8]) + ("" if len(names) <= 8 else f" and {len(names) - 8} more")
