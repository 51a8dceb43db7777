"""Each item in small: it computes, draws, and its numbers are what they must be."""

import math

import numpy as np
import pytest

from smmd import figures
from smmd.paper import (
    codenorm_effect,
    discrimination_uniform,
    intervals,
    optimal_shift,
    outlier_delta,
    outliers,
    random_encoders,
    thresholds,
    variance_curve,
    violin,
)
from smmd.paper.work import Settings, Sizes, Work

SMALL = Settings(
    sizes=Sizes(violin=400, repeats=200, thresholds=2000, shifts=2, deltas=300, encoder_codes=200)
)


@pytest.fixture
def work(tmp_path):
    return lambda module: Work(module.ITEM.name, SMALL, tmp_path)


def drawn(module, result):
    with figures.look() as plt:
        figure = module.draw(plt, result)
        pictures = figures.encode(figure)
        plt.close(figure)
    assert pictures["svg"].startswith(b"<?xml")
    assert pictures["png"].startswith(b"\x89PNG")


def test_variance_curve(work):
    result = variance_curve.compute(work(variance_curve))
    drawn(variance_curve, result)
    assert all(cell.agrees for cell in result.table("variance").compared())
    # Eq. (2.3) by hand at γ = 1, d = 2: 2/(100·99)·(1/9 + 1/5 − 2/8).
    by_hand = math.sqrt(2 / 9900 * (1 / 9 + 1 / 5 - 1 / 4))
    cell = result.table("variance").at(("d=2",), "γ=1")
    assert cell.ours == pytest.approx(by_hand, rel=1e-12)


def test_codenorm_effect(work):
    result = codenorm_effect.compute(work(codenorm_effect))
    drawn(codenorm_effect, result)
    assert all(cell.agrees for cell in result.tables[0].compared())
    assert -2.5 < result.facts["shift"] < -1.0
    assert sum(result.data["before"]) <= 400


def test_violin(work):
    result = violin.compute(work(violin), dimensions=(1, 8))
    drawn(violin, result)
    assert sum(cell.agrees is False for cell in result) <= 1  # 28 comparisons


def test_uniform(work):
    result = discrimination_uniform.compute(work(discrimination_uniform), dimensions=(2,))
    drawn(discrimination_uniform, result)
    table = result.table("tau-uniform")
    assert len(table.cells) == 9 + 9 + 12 + 12 + 7
    assert sum(cell.agrees is False for cell in table.cells) <= 1  # 28 comparisons
    # The formula's reading of HZ is not in the paper.
    assert table.at(("an RBF", "HZ as in its formula"), "d=2").paper is None
    # s = 1/8 beats s = 2 by more than ten standard errors.
    good, bad = (table.at(("an RBF", scale), "d=2") for scale in ("1/8", "2"))
    assert good.ours - bad.ours > 10 * math.hypot(good.error, bad.error)


def test_outliers(work):
    result = outliers.compute(work(outliers))
    drawn(outliers, result)
    assert result.facts["largest"] < 0.5  # five standard errors of τ from 200 repeats


def test_outlier_delta(work):
    result = outlier_delta.compute(work(outlier_delta), dimensions=(2,))
    assert all(cell.agrees for cell in result.table("delta-mean").compared())
    # 2/√n of a null standard deviation, but for the finite width of the kernel.
    assert 0.0 < result.facts["largest sd"] < 0.25


def test_optimal_shift(work):
    result = optimal_shift.compute(work(optimal_shift))
    drawn(optimal_shift, result)
    assert result.facts["to ours"] < 3e-6
    assert result.facts["smallest gain"] > 0.0


def test_random_encoders(work):
    result = random_encoders.compute(work(random_encoders))
    assert all(cell.agrees for cell in result)
    assert result.facts["smallest bias"] > 3.0
    assert result.facts["largest bias"] > 15.0


def test_refining_finds_a_known_maximum():
    top = np.array([0.7, -1.3])
    found = optimal_shift.refine(lambda t: -((t - top) ** 2).sum(axis=1))
    np.testing.assert_allclose(found, top, atol=2e-6)


def test_thresholds(work):
    result = thresholds.compute(work(thresholds), dimensions=(1, 2))
    assert [c.column for c in result.table("thresholds").cells][:7] == [
        "s=1", "s=1/2", "s=1/4", "s=1/8", "s=1/16", "HZ", "HZ as in its formula",
    ]  # fmt: skip
    assert sum(cell.agrees is False for cell in result) <= 1
    assert ("d=1", "Centered+Scaled/Whitened") in result.table("thresholds").rows


def test_intervals(work):
    result = intervals.compute(work(intervals))
    bands = {cell.row[0]: cell.ours for cell in result.table("bands").cells}
    assert bands["B"] == pytest.approx(3 / math.sqrt(50), rel=1e-12)
    assert bands["E"] == pytest.approx(3 * math.sqrt(0.01 / 1.99), rel=1e-9)
    assert result.facts["largest level"] < 0.05
    for cell in result.table("e-variance").cells:
        m = int(cell.row[0][2:])
        weights = [0.01 * 0.99**k for k in range(m)]
        assert cell.ours == pytest.approx(sum(w * w for w in weights), rel=1e-12)
        assert cell.agrees is False
