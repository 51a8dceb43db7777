"""Figure "Outlier-discrimination-experimen": one point of a hundred at 100·(1, …, 1), d = 4."""

from __future__ import annotations

from typing import Any

from smmd.paper import boxes, discrimination
from smmd.paper.draws import Draws
from smmd.paper.items import Item
from smmd.paper.model import Result
from smmd.paper.work import N, Work

D = 4
FAR = 100.0


def with_outlier(stream: Draws, count: int) -> Any:
    """N(0, I) samples whose first point is replaced by 100·(1, 1, 1, 1)."""
    z = stream.normal(count, N, D)
    z[:, 0] = FAR
    return z


def compute(work: Work) -> Result:
    found = work.part("d=4", 0.0, lambda: discrimination.experiment(work, D, with_outlier))
    table = discrimination.table(
        "tau-outlier", "τ between N(0, I) and the same with one far point", {D: found}, {}
    )
    largest = max(cell.ours for cell in table.cells)
    error = next(c.error for c in table.cells if c.ours == largest)
    return Result(
        (table,),
        data=discrimination.boxes(found, "with outlier"),
        facts={"largest": largest, "error": error or 0.0},
        notes=("The paper prints no numbers here, only the box plot.",),
    )


def draw(plt: Any, result: Result) -> Any:
    return boxes.boxplots(plt, result.data)


ITEM = Item(
    name="outliers",
    title="Outliers are not seen",
    place="Figure 6, “Outlier-discrimination-experimen”",
    about="Does any estimator notice that one of 100 points lies at 100·(1, 1, 1, 1)?",
    compute=compute,
    uses=("repeats",),
    draw=draw,
)
