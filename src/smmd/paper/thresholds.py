"""Table "thresholds": what SMMD² exceeds with probability 5 %, three kinds of null, n = 100."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from smmd import figures
from smmd.kernels import Gaussian, HenzeZirkler
from smmd.nulls import Null, analytic_law
from smmd.nulls.montecarlo import SimulatedNull, normalize
from smmd.paper.discrimination import HZ, HZ_FORMULA, number
from smmd.paper.items import Item
from smmd.paper.many import Batch, to_numpy
from smmd.paper.model import Cell, Result, Table, rounding
from smmd.paper.work import DIMENSIONS, N, Work

ALPHA = 0.05
#: Scale below which the null law is not asked.
NARROWEST = 1 / 20
#: The paper does not say how many samples its thresholds come from; its validation uses 10,000.
PAPER_REPEATS = 10_000

SCALES = ("1", "1/2", "1/4", "1/8", "1/16", HZ, HZ_FORMULA)
TYPES: dict[str, Null] = {
    "Original": "standard",
    "Centered+Scaled": "diagonal",
    "Centered+Whitened": "normal",
}

#: As printed, over s = 1, 1/2, 1/4, 1/8, 1/16, HZ.  At d = 1 scaling is whitening.
PRINTED: dict[int, dict[str, tuple[str, ...]]] = {
    1: {
        "Original": ("1.97", "1.97", "1.95", "1.92", "1.91", "1.98"),
        "Centered+Scaled": ("-0.13", "0.32", "0.75", "1.05", "1.24", "0.22"),
    },
    2: {
        "Original": ("1.93", "1.94", "1.90", "1.85", "1.83", "1.90"),
        "Centered+Scaled": ("-0.57", "-0.12", "0.39", "0.86", "1.16", "0.23"),
        "Centered+Whitened": ("-0.79", "-0.33", "0.22", "0.72", "1.06", "0.03"),
    },
    4: {
        "Original": ("1.90", "1.87", "1.83", "1.79", "1.76", "1.83"),
        "Centered+Scaled": ("-1.09", "-0.66", "-0.02", "0.63", "1.12", "0.30"),
        "Centered+Whitened": ("-1.60", "-1.25", "-0.56", "0.24", "0.85", "-0.16"),
    },
    8: {
        "Original": ("1.85", "1.83", "1.80", "1.77", "1.74", "1.75"),
        "Centered+Scaled": ("-1.76", "-1.36", "-0.59", "0.34", "1.11", "0.55"),
        "Centered+Whitened": ("-2.63", "-2.57", "-1.88", "-0.60", "0.58", "-0.30"),
    },
    16: {
        "Original": ("1.81", "1.80", "1.77", "1.74", "1.78", "1.78"),
        "Centered+Scaled": ("-2.65", "-2.30", "-1.47", "-0.15", "1.08", "1.05"),
        "Centered+Whitened": ("-4.00", "-4.47", "-4.17", "-2.31", "0.00", "-0.03"),
    },
    32: {
        "Original": ("1.77", "1.77", "1.74", "1.71", "1.76", "1.30"),
        "Centered+Scaled": ("-3.87", "-3.59", "-2.78", "-1.13", "0.75", "1.02"),
        "Centered+Whitened": ("-5.86", "-7.12", "-7.91", "-5.72", "-1.24", "0.06"),
    },
}


def gamma2(scale: str, d: int) -> float:
    """The squared width that a column of the table means."""
    if scale in (HZ, HZ_FORMULA):
        gamma = HenzeZirkler.gamma(N, d)
        return gamma if scale == HZ else gamma**2
    return number(scale) * d


def compute(work: Work, dimensions: tuple[int, ...] = DIMENSIONS) -> Result:
    simulated, by_law = [], []
    for i, d in enumerate(dimensions):
        found = work.part(f"d={d}", i / len(dimensions), partial(_thresholds, work, d))
        for kind in PRINTED[d]:
            for scale in SCALES:
                value, error = found[kind][scale]
                paper = _printed(d, kind, scale)
                # The printed error is that of PAPER_REPEATS samples, and of rounding.
                theirs = None
                if paper is not None:
                    spread = error * math.sqrt(work.sizes.thresholds / PAPER_REPEATS)
                    theirs = math.hypot(spread, rounding(paper))
                row = (f"d={d}", _row_name(d, kind))
                column = scale if scale in (HZ, HZ_FORMULA) else f"s={scale}"
                printed = None if paper is None else float(paper)
                simulated.append(Cell(row, column, value, error, printed, theirs))
                if gamma2(scale, d) < NARROWEST * d:
                    continue  # by law it takes longer than by simulation
                law = analytic_law(TYPES[kind], N, d, gamma2(scale, d))
                note = "" if law.valid else law.reason
                by_law.append(Cell(row, column, law.isf(ALPHA), 0.0, value, error, note))
    return Result(
        (
            Table(
                "thresholds",
                f"Thresholds of level 5 %, from {work.sizes.thresholds:,} samples",
                ("Dimension", "Sample type"),
                tuple(simulated),
            ),
            Table(
                "thresholds-by-law",
                "The same from the null law, without simulation",
                ("Dimension", "Sample type"),
                tuple(by_law),
                digits=".3f",
                against="simulated",
            ),
        ),
        notes=(
            "The paper does not say from how many samples its thresholds come; its error is taken "
            f"to be that of {PAPER_REPEATS:,}, the number in its validation, and of rounding.",
            "HZ is γ² := γ_{d,n}, as the paper's table shows; then γ as in its formula.",
        ),
        facts={"largest original": max(c.ours for c in simulated if c.row[1] == "Original")},
    )


def _thresholds(work: Work, d: int) -> dict[str, dict[str, list[float]]]:
    values: dict[str, dict[str, list[Any]]] = {k: {s: [] for s in SCALES} for k in PRINTED[d]}
    for z in work.batches(work.draws(d), work.sizes.thresholds, d):
        for kind, parts in values.items():
            batch = Batch(normalize(z, TYPES[kind]))
            for scale in SCALES:
                kernel = Gaussian(gamma2(scale, d) / d)
                parts[scale].append(to_numpy(batch.closed_form(kernel, standardized=True)))
    return {
        kind: {scale: _quantile(found) for scale, found in parts.items()}
        for kind, parts in values.items()
    }


def _quantile(parts: list[Any]) -> list[float]:
    null = SimulatedNull(np.sort(np.concatenate(parts)))
    return [null.isf(ALPHA), null.isf_standard_error(ALPHA)]


def _printed(d: int, kind: str, scale: str) -> str | None:
    return None if scale == HZ_FORMULA else PRINTED[d][kind][SCALES.index(scale)]


def _row_name(d: int, kind: str) -> str:
    return "Centered+Scaled/Whitened" if d == 1 and kind != "Original" else kind


def draw(plt: Any, result: Result) -> Any:
    table = result.table("thresholds")
    figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.9), sharey=True)
    for ax, kind in zip(axes, TYPES, strict=True):
        rows = [row for row in table.rows if row[1].startswith(kind)]
        for row, colour in zip(rows, figures.STEPS[-len(rows) :], strict=True):
            cells = [c for c in table.cells if c.row == row and c.column.startswith("s=")]
            ax.plot([c.ours for c in cells], color=colour, label=row[0])
            ax.plot([c.paper for c in cells], "o", color=colour, markersize=3)
        ax.set_xticks(range(5), [c.column[2:] for c in cells])
        ax.set_title(kind)
        ax.set_xlabel("kernel scale s")
    axes[0].set_ylabel("threshold: line ours, dot paper's")
    axes[0].legend(ncols=2, fontsize=7, loc="lower left")
    return figure


def reason(cell: Cell) -> str:
    if cell.error:  # a simulation
        return ""
    words = "the law's first three moments are exact, its shape is not: levels to some percent"
    return f"{words} ({cell.note})" if cell.note else words


ITEM = Item(
    name="thresholds",
    title="Thresholds of level 5 %",
    place="Table 4, “thresholds”",
    about="Above which SMMD² of 100 points normality is rejected, known or estimated parameters.",
    compute=compute,
    uses=("thresholds",),
    draw=draw,
    reason=reason,
)
