"""Several seeds side by side: one run says little, their spread says more."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smmd import files
from smmd.wae.evaluation import FILE, Evaluation, signed

#: What is compared: a name for JSON, a heading, and how a number is written.
_COLUMNS = (
    ("mse", "test MSE", "{:.4f}"),
    ("b", "B", "{:.3f}"),
    ("smmd", "SMMD², all codes", "{:.2f}"),
    ("skewness", "skewness", "{:.3f}"),
    ("kurtosis", "kurtosis", "{:.2f}"),
    ("frechet", "Fréchet, samples", "{:.3f}"),
    ("coverage", "classes", "{:.1f}"),
)


def numbers(evaluation: Evaluation) -> dict[str, float]:
    """The numbers of one run that are compared between seeds."""
    found: dict[str, float] = {
        "mse": evaluation.mse,
        "b": evaluation.b.value,
        "smmd": evaluation.whole.smmd,
        "skewness": evaluation.skewness,
        "kurtosis": evaluation.kurtosis,
        "frechet": evaluation.quality.samples,
    }
    if evaluation.quality.coverage is not None:
        found["coverage"] = float(evaluation.quality.coverage)
    return found


def summary(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    """Mean and standard deviation (n−1) of each number over the seeds, and each seed's own."""
    each = [numbers(evaluation) for evaluation in evaluations]
    names = list(each[0])
    columns = {name: [found[name] for found in each] for name in names}
    return {
        "seeds": [evaluation.seed for evaluation in evaluations],
        "mean": {name: statistics.fmean(values) for name, values in columns.items()},
        "sd": {name: _sd(values) for name, values in columns.items()},
        "each": columns,
        "inside_band": sum(evaluation.b.inside for evaluation in evaluations),
    }


def _sd(values: Sequence[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def rows(evaluations: Sequence[Evaluation]) -> tuple[list[str], list[list[str]]]:
    """Headings and lines of a table: mean, standard deviation, each seed."""
    found = summary(evaluations)
    columns = [column for column in _COLUMNS if column[0] in found["mean"]]
    lines = []
    for label in ("mean", "sd"):
        values = found[label]
        lines.append([label, *(_cell(values[name], form) for name, _, form in columns)])
    for k, seed in enumerate(found["seeds"]):
        cells = (_cell(found["each"][name][k], form) for name, _, form in columns)
        lines.append([f"seed {seed}", *cells])
    return ["", *(heading for _, heading, _ in columns)], lines


def text(evaluations: Sequence[Evaluation]) -> str:
    """The table as text, and how many seeds keep B in its band."""
    headers, lines = rows(evaluations)
    table = [headers, *lines]
    widths = [max(len(line[k]) for line in table) for k in range(len(headers))]
    shown = [
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in table
    ]
    return "\n".join([*shown, "", verdict(evaluations)])


def verdict(evaluations: Sequence[Evaluation]) -> str:
    """How the seeds did, in two sentences."""
    found = summary(evaluations)
    low, high = evaluations[0].b.exact
    many = len(evaluations)
    spread = "" if found["sd"]["mse"] is None else f" ± {found['sd']['mse']:.4f}"
    return (
        f"B lies in its exact band ({signed(low)} to {signed(high)}) for {found['inside_band']} of "
        f"{many} seed{'s' if many > 1 else ''}. Test MSE {found['mean']['mse']:.4f}{spread}."
    )


def write(folder: Path, evaluations: Sequence[Evaluation]) -> None:
    """The summary, and every evaluation, beside the seeds' folders."""
    whole = {**summary(evaluations), "runs": [one.to_json() for one in evaluations]}
    files.atomic_write(folder / FILE, json.dumps(whole, indent=1) + "\n")


def _cell(value: float | None, form: str) -> str:
    if value is None or not math.isfinite(value):
        return ""
    return form.format(value).replace("-", "−")
