"""Cells, tables and results: comparing, writing, reading."""

import csv
import io
import math

import pytest

from smmd.paper.model import Cell, Result, Table, from_json, rounding


def test_a_cell_compares_in_standard_errors_of_the_difference():
    cell = Cell(("a",), "x", 1.0, 0.3, 2.0, 0.4)
    assert cell.z == pytest.approx(-2.0)
    assert cell.agrees
    assert not Cell(("a",), "x", 1.0, 0.3, 2.6, 0.4).agrees
    assert Cell(("a",), "x", 1.0).z is None
    assert Cell(("a",), "x", math.nan, 0.1, 1.0).agrees is None
    assert Cell(("a",), "x", 1.0, 0.0, 1.0, 0.0).agrees
    assert Cell(("a",), "x", 1.0, None, 2.0).z == -math.inf


@pytest.mark.parametrize(
    ("printed", "step"), [("0.49", 0.01), ("1.5", 0.1), ("1", 1.0), ("3.7e-04", 1e-5)]
)
def test_rounding_leaves_a_uniform_error(printed, step):
    assert rounding(printed) == pytest.approx(step / math.sqrt(12))


TABLE = Table(
    "t",
    "Title",
    ("Method", "Scale"),
    (
        Cell(("an", "1"), "d=1", 1.0, 0.1, 0.98, 0.1),
        Cell(("an", "1/8"), "d=1", 2.0, 0.1, 3.0, 0.1, "why | not"),
        Cell(("an", "1/16"), "d=1", 1.95),
        Cell(("emp", "1"), "d=1", 0.5),
    ),
    bold="max",
)


def test_the_best_are_within_five_percent_of_their_methods_largest():
    best = {(("an", "1/8"), "d=1"), (("an", "1/16"), "d=1"), (("emp", "1"), "d=1")}
    assert TABLE.best() == best
    assert Table("t", "", ("a",), TABLE.cells).best() == set()


def test_csv_holds_every_number():
    rows = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert [row["agrees"] for row in rows] == ["yes", "no", "", ""]
    assert rows[1] == {
        "method": "an", "scale": "1/8", "column": "d=1", "ours": "2", "error": "0.1", "paper": "3",
        "its_error": "0.1", "z": "-7.07107", "agrees": "no", "note": "why | not",
    }  # fmt: skip


def test_results_survive_json():
    result = Result((TABLE,), {"curve": [1.0, 2.0]}, {"fact": 0.1 + 0.2}, ("note",), {"key": "k"})
    again = from_json(result.to_json())
    assert again.tables == result.tables
    assert again.data == {"curve": [1.0, 2.0]}
    assert again.facts["fact"] == pytest.approx(0.3, rel=1e-9)
    assert list(again) == list(TABLE.cells)
    assert again.table("t").at(("an", "1"), "d=1") == TABLE.cells[0]
    assert len(again.table("t").group("an")) == 3
