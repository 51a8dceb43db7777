"""What the pages print is what the program prints."""

import csv
import re
from pathlib import Path

import numpy as np

import smmd

ROOT = Path(__file__).parents[2]


def test_the_result_shown_in_the_documentation():
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(.*?)```", page, re.DOTALL).group(1)
    x = np.random.default_rng(0).gamma(9.0, size=(200, 3))
    assert str(smmd.normality_test(x)).strip() == shown.strip()


def test_the_tables_of_the_power_study_are_those_of_its_file():
    page = (ROOT / "docs" / "power.md").read_text(encoding="utf-8")
    with (ROOT / "benchmarks" / "results" / "power.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        section = page.split(f"### n = {row['n']}, d = {row['d']}\n")[1].split("###")[0]
        header, line = (
            next(text for text in section.splitlines() if text.startswith(f"| {start} |"))
            for start in ("alternative", row["alternative"])
        )
        names, cells = ([cell.strip() for cell in text.split("|")] for text in (header, line))
        assert cells[names.index(row["test"])] == f"{100 * float(row['power']):.0f}"


def test_a_row_of_the_power_study_can_be_found_again():
    """Uniform columns, n = 50, d = 8, Henze–Zirkler: 2000 samples there, 400 here."""
    with (ROOT / "benchmarks" / "results" / "power.csv").open(encoding="utf-8") as file:
        stored = next(
            row
            for row in csv.DictReader(file)
            if (row["n"], row["d"], row["alternative"], row["test"]) == ("50", "8", "uniform", "HZ")
        )
    again = smmd.power(
        "uniform", 50, 8, statistic="henze-zirkler", method="monte-carlo",
        n_resamples=4999, n_simulations=400,
    )  # fmt: skip
    # Both thresholds are simulated: another 0.02.
    error = np.hypot(float(stored["standard_error"]), again.standard_error)
    assert abs(again.power - float(stored["power"])) < 4 * error + 0.02
