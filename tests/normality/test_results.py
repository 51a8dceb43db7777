"""What comes back from a test: numbers that agree with each other, and text that says so."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

import smmd
from smmd.normality import SimulatedWarning, reference, words
from smmd.normality.statistics import STATISTICS
from smmd.nulls.means import mean_of_smmd

RNG = np.random.default_rng(20260105)
NORMAL = RNG.normal(3.0, 2.0, (120, 3)) @ RNG.normal(size=(3, 3))
UNIFORM = RNG.uniform(size=(150, 3))
ALL = [
    ("smmd", "standard"), ("smmd", "diagonal"), ("smmd", "normal"),
    ("bhep", "standard"), ("bhep", "diagonal"), ("bhep", "normal"),
    ("henze-zirkler", "normal"), ("mardia-skewness", "normal"), ("mardia-kurtosis", "normal"),
]  # fmt: skip


@pytest.mark.parametrize(("statistic", "null"), ALL)
@pytest.mark.parametrize("method", ["analytic", "monte-carlo"])
def test_every_statistic_agrees_with_its_law(statistic, null, method):
    x = smmd.whiten(NORMAL) if null == "standard" else NORMAL
    resamples = {"n_resamples": 199} if method == "monte-carlo" else {}
    r = smmd.normality_test(x, null, statistic=statistic, method=method, alpha=0.1, **resamples)
    assert (r.n, r.d, r.null, r.statistic_name) == (120, 3, null, statistic)
    assert r.method == method
    assert r.n_resamples == (199 if method == "monte-carlo" else 0)
    assert (r.pvalue_standard_error is None) == (method == "analytic")
    value = abs(r.statistic) if statistic == "mardia-kurtosis" else r.statistic
    assert r.rejected == (r.pvalue <= 0.1) == (value > r.threshold)
    assert r.pvalue == pytest.approx(float(r.null_distribution.sf(value)))
    assert float(r.null_distribution.sf(r.threshold + 1e-9)) <= 0.1 + 1e-6
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.pvalue = 0.0


def test_simulated_p_values_repeat_and_are_never_zero():
    first = smmd.normality_test(UNIFORM, method="monte-carlo", n_resamples=199, rng=3)
    again = smmd.normality_test(UNIFORM, method="monte-carlo", n_resamples=199, rng=3, batch=7)
    other = smmd.normality_test(UNIFORM, method="monte-carlo", n_resamples=199, rng=4)
    assert first.pvalue == again.pvalue == 1 / 200
    assert first.threshold == again.threshold != other.threshold
    assert first.pvalue_standard_error == pytest.approx(np.sqrt(0.005 * 0.995 / 200))
    assert "the smallest that 199 simulated samples can give" in str(first)


def test_analytic_and_simulated_p_values_agree():
    """The simulated one has a known error; 4 of them."""
    for null in ("standard", "diagonal", "normal"):
        x = NORMAL if null != "standard" else smmd.whiten(NORMAL)
        exact = smmd.normality_test(x, null)
        simulated = smmd.normality_test(x, null, method="monte-carlo", n_resamples=4999)
        assert exact.method == "analytic"
        assert abs(exact.pvalue - simulated.pvalue) < 4 * simulated.pvalue_standard_error + 0.002


def test_p_values_of_normal_samples_are_uniform():
    """120 samples with odd means and covariances; Kolmogorov's test."""
    rng = np.random.default_rng(11)
    turn = rng.normal(size=(3, 3))
    p = [smmd.normality_test(rng.normal(size=(60, 3)) @ turn + 7.0).pvalue for _ in range(120)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_location_scale_and_turns_do_not_matter():
    base = smmd.normality_test(UNIFORM)
    turn = np.random.default_rng(2).normal(size=(3, 3))
    moved = smmd.normality_test(UNIFORM @ turn * 1e-5 + [1e3, -5.0, 0.0])
    assert moved.statistic == pytest.approx(base.statistic, rel=1e-6)
    scaled = smmd.normality_test(UNIFORM * [1e-8, 1.0, 1e9], "diagonal")
    same = smmd.normality_test(UNIFORM, "diagonal")
    assert scaled.statistic == pytest.approx(same.statistic, rel=1e-9)


def test_where_no_analytic_law_holds_it_says_so_and_simulates():
    r = smmd.normality_test(NORMAL[:15], kernel=smmd.IMQ(), n_resamples=99)
    assert r.method == "monte-carlo"
    assert r.n_resamples == 99
    assert any(note.startswith("Simulated, because") for note in r.notes)
    assert "n = 15 is below 20" in str(r)


class TestManyRows:
    def test_are_simulated_by_fewer_and_moved_to_the_exact_mean(self):
        found = reference.find(
            STATISTICS["smmd"], smmd.IMQ(), "diagonal", 4000, 2,
            method="monte-carlo", n_resamples=199,
        )  # fmt: skip
        assert "simulated with 1000 rows a sample, and moved to its exact mean" in found.notes[0]
        exact = mean_of_smmd(smmd.IMQ(), "diagonal", 4000, 2)
        assert abs(found.law.mean - exact) < 4 * found.law.sd / np.sqrt(199)

    def test_are_refused_where_no_simulation_would_end(self):
        for statistic in ("smmd", "bhep"):
            with pytest.raises(ValueError, match=r"would take weeks; choose a kernel of fixed"):
                reference.find(
                    STATISTICS[statistic], smmd.Adaptive(), "standard", 10**7, 2,
                    method="analytic",
                )  # fmt: skip


def test_text_of_a_rejection():
    text = str(smmd.normality_test(UNIFORM))
    assert "Are these 150 rows of 3 columns a sample from" in text
    assert "means and covariances unknown" in text
    assert "Normality is rejected at the 5 % level" in text
    assert "SMMD²" in text
    assert "analytic law" in text


def test_text_of_no_rejection_claims_no_normality():
    text = str(smmd.normality_test(NORMAL))
    assert "Normality is not rejected at the 5 % level" in text
    assert "does not show that the data are normal" in text


def test_text_of_many_rows_tells_the_size_of_what_was_found():
    rng = np.random.default_rng(8)
    r = smmd.normality_test(rng.standard_t(9, (3000, 2)))
    assert r.rejected
    assert "departures too small to matter" in str(r)
    assert 100 < r.rows_needed < 3000
    fewer = [
        smmd.normality_test(rng.standard_t(9, (int(r.rows_needed), 2))).rejected for _ in range(40)
    ]
    # About as many rows as are needed see it about every second time.
    assert 0.2 < np.mean(fewer) < 0.85


def test_json_and_p_values_that_underflow():
    far = np.concatenate([np.zeros((400, 1)), np.ones((400, 1))]) + 1e-3 * RNG.normal(size=(800, 1))
    r = smmd.normality_test(far)
    assert 0.0 < r.pvalue < 1e-100
    assert json.loads(json.dumps(r.to_dict()))["pvalue"] == r.pvalue
    assert "p" in str(r)


@pytest.mark.parametrize("null", ["standard", "diagonal", "normal"])
@pytest.mark.parametrize("method", ["analytic", "monte-carlo"])
def test_plot_shows_the_law_and_the_distances(null, method):
    x = smmd.whiten(NORMAL) if null == "standard" else NORMAL
    figure = smmd.normality_test(x, null, method=method, n_resamples=99).plot()
    law, distances = figure.axes
    assert law.get_xlabel() == "SMMD²"
    assert any("threshold" in text.get_text() for text in law.texts)
    assert distances.get_ylabel() == "Mahalanobis distance of the rows"


def test_plot_of_a_value_far_off_the_law_and_of_two_sided_statistics():
    far = smmd.normality_test(UNIFORM.repeat(3, axis=0) + 1e-9 * RNG.normal(size=(450, 3)))
    assert "→" in "".join(text.get_text() for text in far.plot().axes[0].texts)
    smmd.normality_test(UNIFORM, statistic="mardia-kurtosis").plot()
    smmd.normality_test(RNG.normal(size=(5000, 2))).plot()


def test_distances_follow_their_law():
    """n D²/(n−1)² of one row is beta: 400 samples, Kolmogorov's test."""
    rng = np.random.default_rng(12)
    n, d = 15, 3
    first = [
        smmd.normality_test(rng.normal(size=(n, d)), n_resamples=19, statistic="bhep",
                            method="monte-carlo").distances[0]
        for _ in range(400)
    ]  # fmt: skip
    law = stats.beta(d / 2, (n - d - 1) / 2, scale=(n - 1) ** 2 / n)
    assert stats.kstest(first, law.cdf).pvalue > 1e-3


class TestThreshold:
    # 5000 samples, normalized by hand; 4 standard errors.
    @pytest.mark.parametrize("null", ["standard", "diagonal"])
    def test_is_exceeded_by_one_normal_sample_in_twenty(self, null):
        z = np.random.default_rng(13).standard_normal((5000, 40, 4))
        if null == "diagonal":
            z = (z - z.mean(axis=1, keepdims=True)) / z.std(axis=1, ddof=1, keepdims=True)
        level = float(np.mean(smmd.smmd(z) > smmd.threshold(40, 4, null=null)))
        assert abs(level - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 5000)

    def test_is_what_the_test_uses(self):
        r = smmd.normality_test(NORMAL, "diagonal", alpha=0.01)
        assert smmd.threshold(120, 3, 0.01, null="diagonal") == r.threshold

    def test_is_simulated_with_a_warning_where_it_must(self):
        with pytest.warns(SimulatedWarning, match="n = 15 is below 20"):
            value = smmd.threshold(15, 2, kernel=smmd.IMQ(), n_resamples=499)
        simulated = smmd.threshold(15, 2, kernel=smmd.IMQ(), n_resamples=499, method="monte-carlo")
        assert value == simulated

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ((1, 2), ValueError, "n must be at least 2"),
            ((10.5, 2), TypeError, "n must be a whole number"),
            ((10, 0), ValueError, "d must be at least 1"),
            ((10, 2, 1.5), ValueError, "alpha must lie between 0 and 1"),
            ((10, 2, "x"), TypeError, "alpha must be a number"),
        ],
    )
    def test_refuses_nonsense(self, arguments, error, message):
        with pytest.raises(error, match=message):
            smmd.threshold(*arguments)

    def test_refuses_too_few_rows_and_wrong_names(self):
        with pytest.raises(ValueError, match="at least 10 for null 'normal' and d=8"):
            smmd.threshold(9, 8, null="normal")
        with pytest.raises(ValueError, match="null must be one of"):
            smmd.threshold(9, 2, null="gaussian")
        with pytest.raises(TypeError, match="kernel must be one of"):
            smmd.threshold(9, 2, kernel="gaussian")
        with pytest.raises(ValueError, match="method must be"):
            smmd.threshold(9, 2, method="exact")


@pytest.mark.parametrize(
    ("p", "error", "resamples", "text"),
    [
        (0.0346, None, 0, "0.0346"),
        (1.03e-14, None, 0, "1.03e-14"),
        (1e-305, None, 0, "below 1e-300"),
        (0.6806, 0.0047, 9999, "0.681 ± 0.005"),
        (0.0321, 0.0018, 9999, "0.032 ± 0.002"),
    ],
)
def test_p_values_in_words(p, error, resamples, text):
    assert words.p_value(p, error, resamples) == text
