"""Section 3.2: E[ΔMMD²_u] ≈ 0 when one point of a normal sample is moved far away."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from smmd import null_variance, outlier_delta
from smmd.kernels import IMQ, Gaussian, Kernel
from smmd.paper.discrimination import number
from smmd.paper.items import Item
from smmd.paper.many import to_numpy
from smmd.paper.model import Cell, Result, Table
from smmd.paper.work import DIMENSIONS, N, Work

SCALES = ("1", "1/4", "1/8", "1/16")
KERNELS = ("RBF", "IMQ")


def kernel(name: str, scale: str) -> Kernel:
    return Gaussian(number(scale)) if name == "RBF" else IMQ(number(scale))


def compute(work: Work, dimensions: tuple[int, ...] = DIMENSIONS) -> Result:
    cells, spreads = [], []
    for i, d in enumerate(dimensions):
        found = work.part(f"d={d}", i / len(dimensions), partial(_deltas, work, d))
        for name, scale, mean, sd in found:
            error = sd / math.sqrt(work.sizes.deltas)
            cells.append(Cell((name, scale), f"d={d}", mean, error, 0.0, 0.0))
            spreads.append(Cell((name, scale), f"d={d}", sd))
    headers = ("Kernel", "Kernel scale")
    return Result(
        (
            Table(
                "delta-mean",
                "Mean of ΔMMD²_u, in null standard deviations of MMD²_u, as z₁ recedes",
                headers,
                tuple(cells),
                digits=".4f",
                against="exact",
            ),
            Table(
                "delta-sd",
                "Standard deviation of ΔMMD²_u in the same units",
                headers,
                tuple(spreads),
                digits=".3f",
            ),
        ),
        facts={"largest sd": max(c.ours for c in spreads)},
        notes=(
            "One point is one of 100: what moves is about 2/√n = 0.2 of a null standard "
            "deviation, whichever way the point goes and however far.",
        ),
    )


def _deltas(work: Work, d: int) -> list[list[object]]:
    cases = {(name, scale): kernel(name, scale) for name in KERNELS for scale in SCALES}
    parts: dict[tuple[str, str], list[np.ndarray]] = {case: [] for case in cases}
    for z in work.batches(work.draws(d), work.sizes.deltas, d):
        for case, chosen in cases.items():
            parts[case].append(to_numpy(outlier_delta(z, chosen)))
    found: list[list[object]] = []
    for case, values in parts.items():
        unit = math.sqrt(null_variance(N, d, cases[case]))
        changes = np.concatenate(values) / unit
        found.append([*case, float(changes.mean()), float(changes.std())])
    return found


ITEM = Item(
    name="outlier-delta",
    title="One far point hardly moves MMD²",
    place="Section 3.2, “Avoiding Outliers”, Eq. (3.1)",
    about="The change of MMD² when one of 100 normal points is sent to infinity has mean zero.",
    compute=compute,
    uses=("deltas",),
)
