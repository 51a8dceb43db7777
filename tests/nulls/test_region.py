"""The declared region: committed levels keep the promise in it, and the laws still give them."""

import re

import numpy as np
import pytest

from benchmarks import _calibration_levels as levels
from benchmarks import _calibration_page as page
from smmd.nulls import NULLS, validity

LEVELS = levels.read_levels()
QUANTILES = levels.read_quantiles()
#: Laws that are computed here: one in so many of those in the region, of all nulls and widths.
EVERY = 4


def in_region():
    return [row for row in LEVELS if row.valid and row.method == "analytic"]


def test_the_promise_is_kept_everywhere_in_the_region():
    """±5 % at 0.05, ±12 % at 0.01, ±30 % at 0.001, beyond three standard errors of simulation."""
    missed = [
        (row, alpha)
        for row in in_region()
        for alpha in levels.ALPHAS
        if row.excess(alpha) > levels.SIGMAS
    ]
    assert not missed


def test_the_region_is_not_empty_where_it_matters():
    cells = {(row.n, row.d, row.null, row.kernel) for row in in_region() if row.statistic == "smmd"}
    for null in NULLS:
        for n, d in ((20, 2), (50, 2), (50, 8)):
            for kernel in ("1", "1/4", "1/8", "1/16", "HZ", "multi", "imq"):
                assert (n, d, null, kernel) in cells
    assert len(cells) > 150


def test_the_promise_can_be_missed():
    """Outside the region it is: brackets in the tables are there for a reason."""
    outside = [row for row in LEVELS if not row.valid and row.method == "analytic"]
    assert any(row.excess(alpha) > levels.SIGMAS for row in outside for alpha in levels.ALPHAS)


@pytest.mark.parametrize("null", NULLS)
def test_todays_laws_at_the_simulated_quantiles(null):
    """Whether the committed levels are those of the code: p at a quantile is its level."""
    valid = {(r.n, r.d, r.null, r.kernel, r.statistic) for r in in_region()}
    rows = [
        row
        for row in QUANTILES
        if row.null == null and (row.n, row.d, null, row.kernel, row.statistic) in valid
    ][::EVERY]
    assert len(rows) > 5
    for row in rows:
        finds = {
            (statistic, method): find
            for statistic, method, find in levels.laws(null, row.n, row.d, row.kernel)
        }
        law = finds[row.statistic, "analytic"]()
        assert law.valid, (row, law.reason)
        for alpha, quantile in zip(levels.ALPHAS, (row.q05, row.q01, row.q001), strict=True):
            error = np.sqrt(alpha * (1.0 - alpha) / row.samples)
            miss = abs(float(law.sf(quantile)) - alpha) - levels.PROMISE[alpha] * alpha
            assert miss < 4.0 * error, (row, alpha)


def test_smmd_is_zero_and_one_under_the_null():
    """Five standard errors, wherever a law is declared valid."""
    which = ("standard", "smmd")
    valid = {(r.n, r.d, r.kernel) for r in in_region() if (r.null, r.statistic) == which}
    rows = [r for r in QUANTILES if (r.null, r.statistic) == which]
    for row in rows:
        if (row.n, row.d, row.kernel) in valid:
            assert abs(row.mean) < 5.0 * row.sd / np.sqrt(row.samples)
            assert abs(row.sd - 1.0) < 5.0 * np.sqrt((row.kurtosis + 2.0) / (4.0 * row.samples))


def test_the_page_is_made_of_the_committed_levels():
    assert page.PAGE.read_text(encoding="utf-8") == page.text(LEVELS)
    assert validity.in_words() in page.text(LEVELS)


def test_entries_of_the_page():
    """Three levels in percent, in brackets outside the region."""
    row = next(r for r in LEVELS if r.statistic == "smmd" and r.method == "analytic")
    assert re.fullmatch(r"\(?\d+\.\d\d/\d+\.\d\d/\d+\.\d{3}\)?", levels.cell_text(row))
