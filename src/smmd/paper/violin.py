"""Figure "violin_plot": SMMD² has mean 0 and variance 1 under N(0, I), for all scales and d."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from smmd import figures
from smmd.kernels import Gaussian
from smmd.nulls.moments import null_moments
from smmd.paper.discrimination import RBF_SCALES, number
from smmd.paper.items import Item
from smmd.paper.many import Batch, to_numpy
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import DIMENSIONS, N, Work

#: What of a violin is drawn: the outer tails run off the page.
_EDGES = np.linspace(-4.0, 6.0, 81)


def compute(work: Work, dimensions: tuple[int, ...] = DIMENSIONS) -> Result:
    found = {}
    for i, d in enumerate(dimensions):
        found[d] = work.part(f"d={d}", i / len(dimensions), partial(_violins, work, d))
    cells_of_mean, cells_of_sd = [], []
    for d, violins in found.items():
        for scale in RBF_SCALES:
            one = violins[scale]
            kurtosis = null_moments("standard", N, d, number(scale) * d).kurtosis or 0.0
            repeats = work.sizes.violin
            error = 1.0 / math.sqrt(repeats)
            of_sd = math.sqrt((kurtosis + 2.0) / (4.0 * repeats))
            note = f"excess kurtosis {kurtosis:.0f}" if kurtosis > 100.0 else ""
            row, column = (f"d={d}",), f"s={scale}"
            cells_of_mean.append(Cell(row, column, one["mean"], error, 0.0, 0.0, note))
            cells_of_sd.append(Cell(row, column, one["sd"], of_sd, 1.0, 0.0, note))
    tables = tuple(
        Table(
            name,
            f"{title} of SMMD² over {work.sizes.violin:,} samples of N(0, I)",
            ("Dimension",),
            tuple(cells),
            digits=".3f",
            against="exact",
        )
        for name, title, cells in (
            ("violin-mean", "Mean", cells_of_mean),
            ("violin-sd", "Standard deviation", cells_of_sd),
        )
    )
    return Result(
        tables,
        data={str(d): violins for d, violins in found.items()},
        notes=(
            "Errors follow from the exact null variance (1) and kurtosis.  Where the kurtosis is "
            "large, 10,000 repeats need not show a standard deviation near 1.",
        ),
    )


def _violins(work: Work, d: int) -> dict[str, Any]:
    parts: dict[str, list[np.ndarray]] = {scale: [] for scale in RBF_SCALES}
    for z in work.batches(work.draws(d), work.sizes.violin, d):
        batch = Batch(z)
        for scale, values in parts.items():
            kernel = Gaussian(number(scale))
            values.append(to_numpy(batch.closed_form(kernel, standardized=True)))
    return {scale: _summary(np.concatenate(values)) for scale, values in parts.items()}


def _summary(values: np.ndarray) -> dict[str, Any]:
    return {
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "histogram": [int(c) for c in np.histogram(values, _EDGES)[0]],
    }


def draw(plt: Any, result: Result) -> Any:
    columns = list(result.data)
    figure, axes = plt.subplots(2, -(-len(columns) // 2), figsize=(8.4, 4.6), sharey=True)
    middles = 0.5 * (_EDGES[1:] + _EDGES[:-1])
    for ax, d in zip(np.ravel(axes), columns, strict=False):
        for place, scale in enumerate(RBF_SCALES):
            one = result.data[d][scale]
            counts = np.asarray(one["histogram"], dtype=float)
            width = 0.42 * counts / counts.max()
            ax.fill_betweenx(middles, place - width, place + width, color=figures.PALE, linewidth=0)
            low, high = one["mean"] - one["sd"], one["mean"] + one["sd"]
            ax.plot([place, place], [low, high], color=figures.RED)
            ax.plot(place, one["mean"], ".", color=figures.RED, markersize=4)
        ax.axhline(0.0, color=figures.GREY, linewidth=0.5)
        ax.set_xticks(range(len(RBF_SCALES)), RBF_SCALES, fontsize=7)
        ax.set_title(f"d = {d}")
        ax.set_ylim(_EDGES[0], _EDGES[-1])
    for ax in np.ravel(axes)[len(columns) :]:
        ax.set_visible(False)
    figure.supxlabel("kernel scale s", fontsize=9)
    figure.supylabel("SMMD²: mean ± standard deviation in red", fontsize=9)
    return figure


def reason(cell: Cell) -> str:
    return "heavy tails: the error bar itself is not reliable there" if cell.note else ""


ITEM = Item(
    name="violin",
    title="Mean 0, variance 1 under normality",
    place="Figure 3, “violin_plot”",
    about="The law of SMMD² for n = 100 points of N(0, I): every violin has mean 0 and variance 1.",
    compute=compute,
    uses=("violin",),
    draw=draw,
    reason=reason,
)
