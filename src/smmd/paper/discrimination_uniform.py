"""Table "Discrimination-power-table-unifrom" and its box plot: N(0, I) against the uniform law."""

from __future__ import annotations

from functools import partial
from typing import Any

from smmd.paper import boxes, discrimination
from smmd.paper.draws import Draws
from smmd.paper.items import Item
from smmd.paper.model import Result
from smmd.paper.work import DIMENSIONS, Draw, N, Work

#: As printed, over d = 1, 2, 4, 8, 16, 32.
PRINTED: dict[str, dict[str, tuple[str, ...]]] = {
    "an RBF": {
        "2": ("0.49", "0.14", "0.05", "0.02", "3.7e-04", "0.11"),
        "1": ("1.18", "0.7", "0.29", "0.09", "0.04", "0.03"),
        "1/2": ("1.85", "1.64", "0.97", "0.45", "0.17", "0.03"),
        "1/4": ("1.97", "2.32", "2.02", "1.19", "0.76", "0.35"),
        "1/8": ("2.28", "2.61", "2.56", "2.01", "1.5", "0.98"),
        "1/16": ("2.21", "2.62", "2.49", "1.88", "1.39", "1.17"),
        "1/32": ("2.22", "2.49", "2.1", "1.16", "0.51", "0.44"),
        "HZ": ("1.46", "1.99", "2.26", "2.13", "1.49", "0.39"),
    },
    "emp RBF": {
        "2": ("0.32", "0.15", "0.15", "9.1e-04", "0.03", "0.13"),
        "1": ("0.75", "0.42", "0.16", "0.01", "0.02", "0.01"),
        "1/2": ("1.07", "0.95", "0.5", "0.23", "0.09", "0.01"),
        "1/4": ("1.36", "1.34", "1.1", "0.66", "0.3", "0.14"),
        "1/8": ("1.35", "1.57", "1.3", "0.99", "0.66", "0.51"),
        "1/16": ("1.4", "1.54", "1.38", "1.02", "0.71", "0.62"),
        "1/32": ("1.45", "1.36", "1.1", "0.57", "0.26", "0.15"),
        "HZ": ("1.07", "1.18", "1.23", "0.98", "0.64", "0.25"),
    },
    "emp IMQ": {
        "2": ("0.51", "0.29", "0.08", "0.06", "0.01", "0.03"),
        "1": ("0.74", "0.48", "0.27", "0.12", "0.06", "0.03"),
        "1/2": ("1.01", "0.88", "0.49", "0.33", "0.08", "0.04"),
        "1/4": ("1.21", "1.12", "0.74", "0.46", "0.16", "0.06"),
        "1/8": ("1.23", "1.36", "1.1", "0.45", "0.2", "0.1"),
        "1/16": ("1.32", "1.41", "1.22", "0.53", "0.27", "0.07"),
        "1/32": ("1.31", "1.46", "1.19", "0.61", "0.32", "0.08"),
        "1/64": ("1.33", "1.38", "1.17", "0.63", "0.29", "0.2"),
        "1/128": ("1.33", "1.42", "1.26", "0.82", "0.32", "0.08"),
        "1/256": ("1.32", "1.26", "1.19", "0.63", "0.28", "0.13"),
        "1/512": ("1.16", "1.04", "1.14", "0.77", "0.27", "0.08"),
        "1/1024": ("1.08", "1.04", "1.06", "0.77", "0.32", "0.11"),
    },
}


def uniform(d: int) -> Draw:
    """Samples of U[−√3, √3]^d, which has the mean and the variances of N(0, I)."""

    def draw(stream: Draws, count: int) -> Any:
        return stream.uniform(-(3.0**0.5), 3.0**0.5, count, N, d)

    return draw


def compute(work: Work, dimensions: tuple[int, ...] = DIMENSIONS) -> Result:
    found = {}
    for i, d in enumerate(dimensions):
        found[d] = work.part(
            f"d={d}", i / len(dimensions), partial(discrimination.experiment, work, d, uniform(d))
        )
    shown = 8 if 8 in found else dimensions[-1]
    return Result(
        (
            discrimination.table(
                "tau-uniform",
                "τ between N(0, I) and the uniform distribution on [−√3, √3]^d",
                found,
                PRINTED,
            ),
        ),
        data=discrimination.boxes(found[shown], "uniform"),
        notes=(
            "The row HZ uses γ² := γ_{d,n}, which is what the paper's tables show; the row after "
            "it uses γ as in the formula.",
            "Analytic IMQ and exact sliced (γ² = s, for a projection has one dimension) are new.",
        ),
    )


def draw(plt: Any, result: Result) -> Any:
    return boxes.boxplots(plt, result.data)


ITEM = Item(
    name="discrimination-uniform",
    title="Discrimination power: uniform distribution",
    place="Table 1, “Discrimination-power-table-unifrom”, and Figure 4, its box plot (d = 8)",
    about="How well does each estimator tell 100 points of N(0, I) from 100 uniform points?",
    compute=compute,
    uses=("repeats",),
    draw=draw,
)
