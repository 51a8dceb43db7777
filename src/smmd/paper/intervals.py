"""Section 3.1 and the appendix: the bands of B and E, and 2.0 as a liberal threshold."""

from __future__ import annotations

import math

from smmd.monitor import BStatistic, EStatistic
from smmd.nulls import analytic_law
from smmd.paper.items import Item
from smmd.paper.model import Cell, Result, Table, rounding
from smmd.paper.thresholds import ALPHA
from smmd.paper.work import DIMENSIONS, N, Work

#: B_m with m = 50, and E_m with α = 0.99 in the limit of many batches.
BATCHES, MOMENTUM = 50, 0.99
PRINTED = {"B": "0.424", "E": "0.212"}
SCALES = ("1", "1/2", "1/4", "1/8", "1/16")


def compute(work: Work) -> Result:
    b, e = BStatistic(), EStatistic(momentum=MOMENTUM)
    for _ in range(BATCHES):
        b.update(0.0)
    for _ in range(5_000):  # 0.99^10000 is gone
        e.update(0.0)
    bands = {"B": b.band(3)[1], "E": e.band(3)[1]}
    cells = [
        Cell((name,), "3σ", bands[name], 0.0, float(printed), rounding(printed))
        for name, printed in PRINTED.items()
    ]
    variances = [_e_variance(m) for m in (1, 10, BATCHES)]
    levels = []
    for d in DIMENSIONS:
        for scale in SCALES:
            top, _, bottom = scale.partition("/")
            law = analytic_law("standard", N, d, d * float(top) / float(bottom or 1))
            levels.append(Cell((f"d={d}",), f"s={scale}", float(law.sf(2.0))))
    largest = max(c.ours for c in levels)
    return Result(
        (
            Table("bands", "Half-width of the three-sigma band", ("Statistic",), tuple(cells),
                  digits=".5f"),
            Table("e-variance", "Variance of E_m, α = 0.99, E_0 = 0", ("Batches",),
                  tuple(variances), digits=".3e", against="as printed"),
            Table("liberal", "P(SMMD² > 2.0) under N(0, I), n = 100, from the null law",
                  ("Dimension",), tuple(levels), digits=".4f"),
        ),
        facts={"largest level": largest, "alpha": ALPHA},
        notes=(
            f"3·√(0.01/1.99) = {3 * math.sqrt(0.01 / 1.99):.5f}; the paper cut the digits after "
            "0.212 instead of rounding.",
            "The variance of E_m is (1 − α)/(1 + α) times 1 − α^(2m); the paper prints 2m + 2 in "
            "the exponent.  The limit, and with it the band, is not affected.",
        ),
    )  # fmt: skip


def _e_variance(m: int) -> Cell:
    """Of our E-statistic, whose band is 3σ wide, beside the paper's formula."""
    e = EStatistic(momentum=MOMENTUM)
    for _ in range(m):
        e.update(0.0)
    printed = (1 - MOMENTUM ** (2 * m + 2)) * (1 - MOMENTUM) / (1 + MOMENTUM)
    return Cell((f"m={m}",), "variance", (e.band(3)[1] / 3) ** 2, 0.0, printed, 0.0)


def reason(cell: Cell) -> str:
    if cell.column == "variance":
        return "the exponent is 2m: at m = 1 the variance is that of (1 − α)S, (1 − α)²"
    return "the paper cut the digits instead of rounding" if cell.row == ("E",) else ""


ITEM = Item(
    name="intervals",
    title="Bands of the B- and E-statistic; 2.0 as a threshold",
    place="Section 3.1 and appendix “Hypothesis Tests”",
    about="The three-sigma bands as printed, and the level of the easy threshold 2.0.",
    compute=compute,
    reason=reason,
    recipe=2,
)
