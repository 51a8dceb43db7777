"""The numbers of an evaluation against independent ones, and what it says in words."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy import linalg, stats
from sklearn.decomposition import PCA

import smmd
from smmd.kernels import Gaussian
from smmd.normality.words import p_short, rounded_up
from smmd.wae import latent, quality, report
from smmd.wae.data import Dataset
from smmd.wae.evaluation import FILE, Evaluation, evaluate, p_text
from tests.wae.standin import Linear, Normal, some_digits, tinted


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "digits"
    return evaluate(Linear(folder, some_digits(), 4)), folder


def test_it_is_kept_and_read_again(evaluation):
    found, folder = evaluation
    kept = json.loads((folder / FILE).read_text(encoding="utf-8"))
    assert Evaluation.from_json(kept) == found
    assert sorted(p.name for p in folder.iterdir()) == [FILE]


def test_the_same_run_gives_the_same_numbers(evaluation):
    found, folder = evaluation
    quality._judge.cache_clear()  # train the judge anew, too
    again = evaluate(Linear(folder, some_digits(), 4), write=False)
    assert again == found


def test_a_linear_run_is_as_good_as_principal_components(evaluation):
    found, _ = evaluation
    data = some_digits()
    train, test = (x.reshape(len(x), -1) / 255.0 for x in (data.train, data.test))
    pca = PCA(4, svd_solver="full").fit(train)
    back = pca.inverse_transform(pca.transform(test))
    assert found.mse_principal == pytest.approx(np.mean((back - test) ** 2), rel=1e-5)
    assert found.mse == pytest.approx(np.mean((np.clip(back, 0, 1) - test) ** 2), rel=1e-5)


def test_mardia_and_its_null_moments(evaluation):
    found, _ = evaluation
    data = some_digits()
    codes = Linear(None, data, 4).encode(data.test)
    inner = codes @ codes.T
    assert found.skewness == pytest.approx(np.mean(inner**3))
    assert found.kurtosis == pytest.approx(np.mean(np.diag(inner) ** 2) - 24)
    squares = stats.chi2(4)
    assert found.kurtosis_sd**2 * 400 == pytest.approx(squares.moment(4) - squares.moment(2) ** 2)
    rng = np.random.default_rng(0)
    null = [float(smmd.mardia(rng.standard_normal((400, 4))).skewness) for _ in range(200)]
    error = np.std(null) / np.sqrt(len(null))
    assert abs(np.mean(null) - found.skewness_null) < 4 * error


def test_normal_codes_read_as_normal_and_others_not(evaluation):
    found, _ = evaluation
    assert not found.b.inside
    assert found.whole.pvalue < 1e-6
    assert "off N(0, I)" in found.verdict()
    normal = evaluate(Normal(None, some_digits(), 4))
    assert normal.b.inside
    assert normal.whole.pvalue > 0.01
    assert not any(axis.departs for axis in normal.axes)
    assert "The latent space is normal as far as batches of 100 can tell" in normal.verdict()


def test_the_spread_of_b_counts_codes_that_several_batches_share():
    kernel, rng = Gaussian(), np.random.default_rng(3)
    readings = [
        latent.b_statistic(rng.standard_normal((250, 2)), kernel, seed=k) for k in range(120)
    ]
    values = np.array([reading.value for reading in readings])
    sd = readings[0].sd
    assert sd > 2 / np.sqrt(50)
    # The standard deviation of 120 values is known to about 1/√240; SMMD² has heavier tails.
    assert np.std(values) == pytest.approx(sd, rel=3 * 1.5 / np.sqrt(240))
    assert abs(values.mean()) < 4 * sd / np.sqrt(120)
    large = latent.b_statistic(rng.standard_normal((5000, 2)), kernel)
    assert large.sd == pytest.approx(1 / np.sqrt(50), rel=1e-12)
    low, high = large.exact
    assert -large.band[1] < low < 0 < large.band[1] < high


def test_very_few_test_images_still_give_a_reading():
    reading = latent.b_statistic(np.random.default_rng(0).standard_normal((30, 2)), Gaussian())
    assert reading.size == 30
    assert reading.sd == pytest.approx(1.0)


def test_holm_by_its_definition():
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.9])
    # statsmodels.stats.multitest.multipletests(p, method="holm")[1]
    assert latent._holm(p) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.9])


def test_a_planted_outlier_is_found():
    codes = np.random.default_rng(0).standard_normal((500, 3))
    codes[17] = [5.0, -4.0, 3.0]
    many, found = latent.outliers(codes)
    assert many == 1
    assert found[0].index == 17
    assert found[0].radius == pytest.approx(np.sqrt(50))
    assert found[0].expected_beyond == pytest.approx(500 * stats.chi2.sf(50, 3))


def test_a_collapsed_axis_departs():
    codes = np.random.default_rng(0).standard_normal((500, 2))
    codes[:, 1] = 0.25
    first, second = latent.axes(codes, Gaussian())
    assert not first.departs
    assert second.departs
    assert (second.sd, second.skewness, second.kurtosis) == (0.0, 0.0, 0.0)


def test_frechet_against_the_matrix_square_root():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 5))
    b = rng.standard_normal((200, 5)) @ rng.standard_normal((5, 5)) + 1.0
    first, second = np.cov(a.T), np.cov(b.T)
    gap = a.mean(0) - b.mean(0)
    expected = gap @ gap + np.trace(first + second - 2 * linalg.sqrtm(first @ second).real)
    assert quality.frechet(a, b) == pytest.approx(expected, rel=1e-9)
    assert quality.frechet(a, a) == pytest.approx(0.0, abs=1e-9 * np.trace(first))
    assert quality.frechet(a, a + 2.0) == pytest.approx(20.0)
    assert quality.frechet(a[:, :1], 3 * a[:, :1]) == pytest.approx(
        4 * (a[:, 0].mean() ** 2 + np.var(a[:, 0], ddof=1))
    )


def assess(data, samples, reconstructions):
    features = quality.judge_of(data).features
    return quality.assess(data, features(samples), features(reconstructions))


def test_the_judge_knows_good_images_from_bad_ones():
    data = some_digits()
    rng = np.random.default_rng(0)
    noise = rng.random((400, 1, 28, 28)).astype(np.float32)
    ones = data.test[data.test_labels == 1]
    one_class = ones[rng.integers(0, len(ones), 400)]
    judged = assess(data, one_class, data.test)
    assert judged.accuracy is not None
    assert judged.accuracy > 0.85
    assert judged.reconstructions == pytest.approx(0.0, abs=1e-6)
    assert judged.floor < 0.2 < judged.samples
    assert judged.coverage is not None
    assert judged.coverage <= 2
    assert judged.class_distance is not None
    assert judged.class_distance > 0.8
    assert assess(data, noise, data.test).samples > 1.0


def test_without_labels_distances_are_taken_in_principal_components():
    data = some_digits(labels=False)
    judged = assess(data, data.train[:400], data.test)
    assert judged.features == "principal components"
    assert (judged.accuracy, judged.coverage, judged.classes) == (None, None, None)
    assert judged.samples < 0.2
    found = evaluate(Linear(None, tinted(), 2))
    assert "classes" not in str(found)
    assert "no labels" in str(found)


def test_labels_need_not_be_counted_from_zero():
    data = some_digits()
    shifted = dataclasses.replace(
        data,
        train_labels=data.train_labels * 10 - 30,
        test_labels=data.test_labels * 10 - 30,
        classes=(),
    )
    judged = assess(shifted, data.test, data.test)
    assert judged.classes == judged.coverage == 10
    assert judged.class_distance == 0.0


def test_codes_of_a_diverged_run_are_refused():
    class Diverged(Linear):
        def encode(self, pictures, *, rng=None):
            return np.full((len(pictures), 2), np.nan)

    with pytest.raises(ValueError, match="not finite; the run has diverged"):
        evaluate(Diverged(None, tinted(), 2))


def test_a_random_encoder_is_judged_by_draws():
    asked = []

    class Random(Normal):
        def encode(self, pictures, *, rng=None):
            asked.append(rng)
            return super().encode(pictures)

    evaluate(Random(None, tinted(), 2))
    assert 0 in asked  # codes whose normality counts are draws ...
    assert None in asked  # ... and reconstructions are of the means


def test_printed_as_people_write_it(evaluation):
    found, _ = evaluation
    text = str(found)
    assert "digits: code-norm on some digits, d = 4, seed 0" in text
    assert f"{found.mse:.4f}" in text
    assert "not FID" in text
    assert found.verdict() in text
    assert (p_short(0.1234), p_short(3.2e-7), p_short(0.0)) == ("0.123", "3.2e-07", "<1e-300")
    assert (p_text(0.02), p_text(0.0)) == ("p = 0.020", "p < 1e-300")
    assert (rounded_up(57.2), rounded_up(1234.5), rounded_up(3.0)) == ("58", "1,300", "3")


def test_very_few_test_images_still_make_a_report(tmp_path):
    data = tinted()
    for count in (2, 5):
        small = Dataset("few", data.train[:20], data.test[:count])
        run = Linear(tmp_path, small, 2)
        found = evaluate(run)
        assert found.n == count
        assert np.isfinite(found.quality.samples)
        assert report.write(run, found).is_file()


def test_images_that_are_read_only_draw_no_warning():
    data = tinted()
    for part in (data.train, data.test):
        part.flags.writeable = False
    labelled = dataclasses.replace(
        data, train_labels=np.arange(len(data.train)) % 2, test_labels=np.arange(60) % 2
    )
    assert assess(labelled, data.test, data.test).classes == 2
