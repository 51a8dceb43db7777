"""What an item of the paper comes to: cells that set our number beside the printed one."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

#: How far two numbers may lie apart, in standard errors of their difference.
SIGMAS = 3.0


@dataclass(frozen=True)
class Cell:
    """Our number with its standard error, and the paper's with its own.

    ``paper`` is None where the paper has nothing (a method it could not have, say).  An error of
    None means that it is not known; the comparison then leaves it out.
    """

    row: tuple[str, ...]
    column: str
    ours: float
    error: float | None = None
    paper: float | None = None
    paper_error: float | None = None
    note: str = ""

    @property
    def z(self) -> float | None:
        """Ours minus the paper's in standard errors of the difference; None if not comparable."""
        if self.paper is None or not math.isfinite(self.ours):
            return None
        spread = math.hypot(self.error or 0.0, self.paper_error or 0.0)
        if math.isnan(spread):  # a single run has no error
            return None
        difference = self.ours - self.paper
        if spread == 0.0:
            return 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
        return difference / spread

    @property
    def agrees(self) -> bool | None:
        return None if self.z is None else abs(self.z) <= SIGMAS


def rounding(printed: str | float) -> float:
    """The standard deviation of what rounding to the printed digits leaves open."""
    text = str(printed).lower()
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - decimals) / math.sqrt(12.0))


@dataclass(frozen=True)
class Table:
    """Cells with their layout: the order of rows and columns is the order of first appearance."""

    name: str
    title: str
    headers: tuple[str, ...]
    cells: tuple[Cell, ...]
    digits: str = ".2f"
    against: str = "paper"
    #: "max": the largest of each method and column, and what is within 5 % of it, is bold.
    bold: str = ""

    @property
    def rows(self) -> list[tuple[str, ...]]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(cell.column for cell in self.cells))

    def at(self, row: tuple[str, ...], column: str) -> Cell | None:
        return next((c for c in self.cells if c.row == row and c.column == column), None)

    def group(self, name: str) -> list[Cell]:
        """The cells whose row begins with ``name``."""
        return [cell for cell in self.cells if cell.row[0] == name]

    def compared(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.z is not None]

    def best(self) -> set[tuple[tuple[str, ...], str]]:
        """(row, column) of what is within 5 % of the largest of its method and column."""
        if self.bold != "max":
            return set()
        top: dict[tuple[str, str], float] = {}
        for cell in self.cells:
            key = (cell.row[0], cell.column)
            top[key] = max(top.get(key, -math.inf), cell.ours)
        return {(c.row, c.column) for c in self.cells if c.ours >= 0.95 * top[c.row[0], c.column]}

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        numbers = ["ours", "error", self.against.replace(" ", "_"), "its_error", "z", "agrees"]
        writer.writerow([*(h.lower() for h in self.headers), "column", *numbers, "note"])
        for c in self.cells:
            values = [c.ours, c.error, c.paper, c.paper_error, c.z]
            shown = ["" if v is None else f"{v:.6g}" for v in values]
            agrees = {None: "", True: "yes", False: "no"}[c.agrees]
            writer.writerow([*c.row, c.column, *shown, agrees, c.note])
        return text.getvalue()


@dataclass(frozen=True)
class Result:
    """All that an item computed: tables to compare, data to draw, facts to conclude from."""

    tables: tuple[Table, ...]
    data: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: Where and how it was computed: device, versions, seed, sizes, wall time.
    made: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Cell]:
        for table in self.tables:
            yield from table.cells

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    def to_json(self) -> str:
        return json.dumps(_shortened(asdict(self)), ensure_ascii=False, separators=(",", ":"))


def together(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """``made`` of a result from several: seconds add up, what is not the same everywhere is listed.

    Its key is empty unless all parts have the same.
    """
    names = dict.fromkeys(name for made in parts for name in made)
    found: dict[str, Any] = {}
    for name in names:
        values = list(dict.fromkeys(made[name] for made in parts if name in made))
        found[name] = values[0] if len(values) == 1 else " / ".join(map(str, values))
    keys = {made["key"] for made in parts}
    found["key"] = keys.pop() if len(keys) == 1 else ""
    found["seconds"] = round(sum(made["seconds"] for made in parts), 1)
    return found


def _shortened(value: Any) -> Any:
    """Nine digits of each number: more than any simulation has, and less to store."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _shortened(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value]
    return value


def from_json(text: str) -> Result:
    raw = json.loads(text)
    tables = tuple(
        Table(
            **{
                **table,
                "headers": tuple(table["headers"]),
                "cells": tuple(Cell(**{**c, "row": tuple(c["row"])}) for c in table["cells"]),
            }
        )
        for table in raw["tables"]
    )
    return Result(**{**raw, "tables": tables, "notes": tuple(raw["notes"])})
