"""Rows of the benchmarks' CSV files, and the few numbers that the page makes of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True)
class Rows:
    """Measured rows; ``unit`` is what turns a row's time into seconds."""

    rows: list[dict[str, str]]
    time: str
    unit: float

    @classmethod
    def read(cls, path: Path, time: str, unit: float) -> Rows | None:
        """The rows of a file, or None where it is not there or holds none."""
        if not path.exists():
            return None
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return cls(rows, time, unit) if rows else None

    def find(self, work: str, method: str, n: int, d: int, batch: int = 1) -> dict[str, str] | None:
        """The one row, if it was measured."""
        for row in self.rows:
            here = (row["work"], row["method"], row["n"], row["d"], row.get("batch") or "1")
            if here == (work, method, str(n), str(d), str(batch)):
                return row
        return None

    def seconds(self, work: str, method: str, n: int, d: int, batch: int = 1) -> float:
        """Median seconds; not a number where there is no row."""
        row = self.find(work, method, n, d, batch)
        return math.nan if row is None else self.unit * float(row[self.time])

    def field(self, name: str, work: str, method: str, n: int, d: int) -> float:
        row = self.find(work, method, n, d)
        return float(row[name]) if row and row.get(name) else math.nan

    def line(self, work: str, method: str, d: int) -> list[tuple[int, float]]:
        """(n, seconds) of one method, in the order of n."""
        found = [
            (int(row["n"]), self.unit * float(row[self.time]))
            for row in self.rows
            if (row["work"], row["method"], row["d"]) == (work, method, str(d))
            and int(row.get("batch") or 1) == 1
        ]
        return sorted(found)

    def methods(self, work: str, n: int, d: int) -> list[str]:
        """Which methods were measured there, the fastest first."""
        found = {
            r["method"] for r in self.rows if (r["work"], r["n"], r["d"]) == (work, str(n), str(d))
        }
        return sorted(found, key=lambda m: self.seconds(work, m, n, d))


def crossover(ours: list[tuple[int, float]], theirs: list[tuple[int, float]]) -> str:
    """From which n on ``theirs`` is faster, between measured n on straight lines of logarithms."""
    both = [(n, t / dict(ours)[n]) for n, t in theirs if n in dict(ours)]
    if not both:
        return ""
    for (n0, r0), (n1, r1) in reversed(list(pairwise(both))):  # the last one counts
        if r0 >= 1.0 > r1:
            share = math.log(r0) / math.log(r0 / r1)
            return f"{round_to_two(math.exp(math.log(n0) + share * math.log(n1 / n0))):,}"
    if both[-1][1] >= 1.0:
        return f"above {both[-1][0]:,}"
    return f"below {both[0][0]:,}"


def round_to_two(x: float) -> int:
    """Two digits of a large number."""
    unit = 10 ** max(0, math.floor(math.log10(x)) - 1)
    return int(round(x / unit) * unit)


def duration(seconds: float) -> str:
    """With three digits, in the unit that suits."""
    if math.isnan(seconds):
        return "–"
    for unit, name in ((60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= (2.0 if name == "min" else 1.0) * unit:
            return f"{number(seconds / unit)} {name}"
    return f"{number(seconds * 1e6)} µs"


def number(x: float) -> str:
    """Three digits."""
    if math.isnan(x):
        return "–"
    return (
        f"{x:,.0f}"
        if x >= 100
        else f"{x:.1f}"
        if x >= 10
        else f"{x:.2g}"
        if x < 0.1
        else f"{x:.2f}"
    )


def table(head: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown whose first column is text."""
    rule = "|---|" + "---:|" * (len(head) - 1)
    rows = [head, *lines]
    text = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([text[0], rule, *text[1:]]) + "\n"


def ratio(x: float, text: Callable[[float], str] = number) -> str:
    return "–" if math.isnan(x) else f"{text(x)}×"
