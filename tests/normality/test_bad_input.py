"""Clear, early errors that name the columns; nothing taken silently."""

import numpy as np
import pytest

import smmd
from smmd.normality import TiesWarning

RNG = np.random.default_rng(20260106)
X = RNG.standard_normal((80, 4))


def changed(**columns):
    x = X.copy()
    for name, value in columns.items():
        x[:, int(name[1:])] = value
    return x


@pytest.mark.parametrize(
    ("x", "options", "error", "message"),
    [
        (X[:5], {}, ValueError, r"n=5 rows and d=4 columns .* at least d\+2=6 rows are needed"),
        (X[:2, :1], {}, ValueError, "n=2 rows; a test of null 'normal' needs at least 3"),
        (X[0], {}, ValueError, r"shape \(n, d\), got \(4,\); for one variable pass x\[:, None\]"),
        (X[None], {}, ValueError, "test one sample at a time"),
        (X[:, :0], {}, ValueError, "no columns"),
        (X.astype(complex), {}, TypeError, "complex"),
        ([["a", "b"]] * 5, {}, TypeError, "must hold"),
        ([[1.0, 2.0], [3.0]], {}, ValueError, "rows differ in length"),
        (np.array([[1, "x"]] * 5, dtype=object), {}, TypeError, "such as 'x'"),
        (changed(c1=3.0), {}, ValueError, "constant column '1'"),
        (changed(c1=1e8), {"null": "diagonal"}, ValueError, "constant column '1'"),
        (changed(c2=X[:, 0]), {}, ValueError, "'2' repeats '0'"),
        (changed(c3=X[:, 0] - 2.0 * X[:, 1]), {}, ValueError, "'0', '1', '3' are linearly depend"),
        (changed(c0=np.inf), {}, ValueError, "infinite values in column '0'"),
        (changed(c0=1.7e308), {}, ValueError, "values beyond ±1e.300 in column '0'"),
        (X, {"null": "gauss"}, ValueError, "null must be one of 'standard', 'diagonal', 'normal'"),
        (X, {"statistic": "anderson"}, ValueError, "statistic must be one of"),
        (X, {"statistic": "henze-zirkler", "null": "standard"}, ValueError, "use statistic='smmd'"),
        (X, {"statistic": "henze-zirkler", "kernel": smmd.IMQ()}, ValueError, "does not apply"),
        (X, {"kernel": 0.5}, TypeError, "kernel must be one of"),
        (X, {"method": "bootstrap"}, ValueError, "method must be"),
        (X, {"alpha": 5}, ValueError, "alpha must lie between 0 and 1"),
        (X, {"alpha": None}, TypeError, "alpha must be a number"),
        (X, {"nan_policy": "propagate"}, ValueError, "nan_policy must be one of"),
        (X, {"rank_deficient": "yes"}, ValueError, "rank_deficient must be one of"),
        (X, {"method": "monte-carlo", "n_resamples": 5}, ValueError, "at least 19"),
        (X, {"method": "monte-carlo", "n_resamples": 99.5}, TypeError, "whole number"),
        (X, {"method": "monte-carlo", "rng": "seed"}, TypeError, "rng must be a seed"),
        (X, {"method": "monte-carlo", "rng": 1, "batch": 0}, ValueError, "batch must be at least"),
        (X, {"device": "nowhere"}, ValueError, "device='nowhere' cannot be used"),
    ],
)  # fmt: skip
def test_is_refused(x, options, error, message):
    with pytest.raises(error, match=message):
        smmd.normality_test(x, **options)


def test_missing_values_are_refused_or_counted():
    x = X.copy()
    x[[3, 5, 5], [0, 1, 2]] = np.nan
    with pytest.raises(ValueError, match=r"columns '0', '1', '2', in 2 of 80 rows; .*omit"):
        smmd.normality_test(x)
    r = smmd.normality_test(x, nan_policy="omit")
    rest = smmd.normality_test(np.delete(X, [3, 5], axis=0))
    assert (r.n, r.n_omitted) == (78, 2)
    assert r.statistic == rest.statistic
    assert "2 of 80 rows left out" in str(r)


def test_all_rows_incomplete():
    x = X.copy()
    x[:, 1] = np.nan
    with pytest.raises(ValueError, match="n=0 rows"):
        smmd.normality_test(x, nan_policy="omit")


@pytest.mark.parametrize("spoilt", ["repeated", "dependent", "constant"])
def test_the_span_is_tested_only_if_asked(spoilt):
    x = {
        "repeated": np.column_stack([X, X[:, 1]]),
        "dependent": np.column_stack([X, X @ [1.0, -1.0, 0.5, 2.0]]),
        "constant": np.column_stack([X, np.full(80, 7.0)]),
    }[spoilt]
    with pytest.raises(ValueError, match="rank_deficient='project'"):
        smmd.normality_test(x)
    r = smmd.normality_test(x, rank_deficient="project")
    assert r.d == 4
    assert r.statistic == pytest.approx(smmd.normality_test(X).statistic, abs=1e-9)
    assert any("Projected" in note or "Left out" in note for note in r.notes)


def test_more_columns_than_rows_within_the_span_is_still_refused():
    with pytest.raises(ValueError, match="n=10 rows, which span 9 dimensions"):
        smmd.normality_test(RNG.standard_normal((10, 20)), rank_deficient="project")


def test_more_columns_than_rows_works_where_no_covariance_is_estimated():
    wide = RNG.standard_normal((20, 60))
    assert smmd.normality_test(wide, "standard", n_resamples=99).d == 60


@pytest.mark.parametrize(
    "x",
    [RNG.integers(1, 6, (99, 3)), RNG.standard_normal((99, 3)).round(), RNG.random((99, 2)) > 0.5],
    ids=["ordinal", "rounded", "boolean"],
)  # fmt: skip
def test_heavy_ties_warn(x):
    with pytest.warns(TiesWarning, match="heavily tied") as caught:
        r = smmd.normality_test(x)
    assert "heavily tied" in str(r)
    assert caught[0].filename == __file__


def test_ordinary_rounding_does_not_warn():
    smmd.normality_test(np.round(RNG.standard_normal((500, 3)), 2))


def test_hints_about_odd_tables():
    counted = np.column_stack([X, np.arange(80.0)])
    assert "count the rows" in str(smmd.normality_test(counted))
    assert "repeat another row" in str(smmd.normality_test(np.concatenate([X, X])))
    nearly = np.column_stack([X, X[:, 0] + 1e-6 * RNG.standard_normal(80)])
    assert "nearly dependent" in str(smmd.normality_test(nearly))
