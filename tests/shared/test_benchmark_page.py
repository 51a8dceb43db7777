"""The page of benchmarks is made of whatever files are there."""

from __future__ import annotations

import csv

import pytest

from benchmarks import _gpu_check, _gpu_table, _page_gpu, cpu, page
from benchmarks._page_rows import crossover, duration


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    (tmp_path / "images").mkdir()
    return tmp_path


def write(path, names, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)


def test_without_any_file(folders):
    page.main()
    text = (folders / "benchmarks.md").read_text(encoding="utf-8")
    assert "There are no results here" in text
    assert "nan" not in text


def test_a_run_that_was_cut_short(folders):
    times = {"ms_p10": 1.0, "ms_median": 2.0, "ms_p90": 3.0, "graph_ms": 1.0, "MiB": 4.0}
    rows = [
        {"work": work, "batch": 1, "n": shape[-2], "d": shape[-1], "method": method, **times}
        for work, shape, method, _ in _gpu_table.rows(tiny=False)[:9]
    ]
    write(folders / "gpu.csv", [*_gpu_table.COLUMNS, "device", "torch", "triton", "python"], rows)
    errors = dict.fromkeys(("value", "value+grad", "gradient", "same bits"), 1.0)
    checked = [{"kernel": "s=0.125", "d": 8, "n": 41, "path": "chosen", **errors}]
    write(folders / "gpu_check.csv", _gpu_check.COLUMNS, checked)
    values = [
        {"work": "value", "method": name, "n": n, "d": 8, "s_median": n * 1e-6, "MiB": 1.0,
         "clock": "wall", "cores": 2}
        for n in (1000, 5000) for name in ("smmd test", "pingouin")
    ]  # fmt: skip
    write(folders / "cpu.csv", cpu.FIELDS, values)
    page.main()
    text = (folders / "benchmarks.md").read_text(encoding="utf-8")
    assert "| 100 × 8 | 2.00 ms | – | 2.00 ms | 1.00 ms | 1.00× | 2.00× | 4.00 | 4.00 |" in text
    assert "Of 5,000 × 8 points" in text
    assert "nan" not in text
    assert (folders / "images" / "benchmarks-cpu.svg").stat().st_size > 1000


def test_crossover_is_found_between_measured_sizes():
    ours = [(1000, 1.0), (10_000, 100.0), (20_000, 400.0)]
    theirs = [(1000, 10.0), (10_000, 100.0 / 3.0), (20_000, 1.0)]
    # Ratios 10 and 1/3: on a line of logarithms one at log 10 / log 30 of the way.
    assert crossover(ours, theirs) == "4,800"
    assert crossover(ours[:1], theirs) == "above 1,000"
    assert crossover(ours[1:], theirs[1:]) == "below 10,000"
    assert crossover([], theirs) == ""


def test_durations_have_the_unit_that_suits():
    assert [duration(x) for x in (3e-6, 0.0123, 1.5, 600.0, float("nan"))] == [
        "3.00 µs", "12.3 ms", "1.50 s", "10.0 min", "–",
    ]  # fmt: skip


def test_rows_of_importance_come_first():
    listed = _gpu_table.rows(tiny=False)
    assert listed[0] == ("value+grad", (100, 8), _page_gpu.GAUSSIAN, False)
    assert len(set(listed)) == len(listed)
