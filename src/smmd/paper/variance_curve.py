"""Figure "Variance-curve": √Var(γ, d, n) over the kernel width for several d, n = 100."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smmd import figures, null_variance
from smmd.kernels import Gaussian
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import DIMENSIONS, N, Work

#: Widths γ of the table and, finer, of the curve.
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_CURVE = np.geomspace(0.1, 30.0, 121)


def printed(gamma: float, d: int, n: int) -> tuple[float, float]:
    """√Var of the paper's Eq. (2.3), term by term, and what float64 leaves open in it."""
    g2 = gamma**2
    terms = (
        (g2 / (2 + g2)) ** d,
        (g2 / (4 + g2)) ** (d / 2),
        -2 * (g2**2 / ((1 + g2) * (3 + g2))) ** (d / 2),
    )
    variance = 2 * sum(terms) / (n * (n - 1))
    rounding = 2 * 2.0**-52 * (4 + 2 * d) * sum(map(abs, terms)) / (n * (n - 1))
    if variance <= rounding:
        return math.nan, math.nan
    return math.sqrt(variance), rounding / (2 * math.sqrt(variance))


def compute(work: Work) -> Result:
    cells = []
    for d in DIMENSIONS:
        for gamma in WIDTHS:
            ours = math.sqrt(null_variance(N, d, Gaussian(gamma=gamma)))
            paper, open_digits = printed(gamma, d, N)
            cells.append(Cell((f"d={d}",), f"γ={gamma:g}", ours, 0.0, paper, open_digits))
    curves = {
        str(d): [math.sqrt(null_variance(N, d, Gaussian(gamma=float(g)))) for g in _CURVE]
        for d in DIMENSIONS
    }
    peaks = {d: max(values) for d, values in curves.items()}
    at_one = {d: math.sqrt(null_variance(N, d, Gaussian(1.0))) for d in DIMENSIONS}
    ratios = [math.sqrt(null_variance(N, d, Gaussian(1 / 16))) / at_one[d] for d in DIMENSIONS]
    return Result(
        (
            Table(
                "variance",
                "√Var(γ, d, n): the cancellation-free form beside Eq. (2.3) as printed",
                ("Dimension",),
                tuple(cells),
                digits=".3e",
                against="Eq. (2.3) as printed",
            ),
        ),
        data={"gamma": _CURVE.tolist(), "curves": curves},
        facts={
            "spread over d": max(peaks.values()) / min(peaks.values()),
            "smallest ratio of s=1/16 to s=1": min(ratios),
            "largest ratio of s=1/16 to s=1": max(ratios),
        },
        notes=("No simulation: both sides are formulas; the error is float64's rounding.",),
    )


def draw(plt: Any, result: Result) -> Any:
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    for (d, values), colour in zip(result.data["curves"].items(), figures.STEPS, strict=False):
        ax.plot(result.data["gamma"], values, color=colour, label=f"d = {d}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(1e-8, 3e-2)
    ax.set_xlabel("kernel width γ")
    ax.set_ylabel("√Var(γ, d, n = 100)")
    ax.legend(ncols=2, loc="lower right")
    return figure


ITEM = Item(
    name="variance-curve",
    title="The scaling term of SMMD²",
    place="Figure 1, “Variance-curve”",
    about="The standard deviation of MMD² under normality, over kernel width and dimension.",
    compute=compute,
    draw=draw,
)
