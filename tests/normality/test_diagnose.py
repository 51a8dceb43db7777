"""A planted departure is found where it was planted, and nowhere else."""

import json

import numpy as np
import pytest
from scipy import stats

import smmd
from smmd.normality.multiplicity import holm
from smmd.normality.rows import parts_of

pytestmark = pytest.mark.filterwarnings("ignore::smmd.normality.TiesWarning")
RNG = np.random.default_rng(20260108)


def test_the_bad_column_is_named():
    x = RNG.standard_normal((300, 4)) * [1.0, 20.0, 1e-3, 5.0] + 3.0
    x[:, 2] = np.exp(RNG.standard_normal(300))
    d = smmd.diagnose(x)
    assert [column.rejected for column in d.columns] == [False, False, True, False]
    assert d.columns[2].shape == "skewed to the right, heavy tails"
    assert d.columns[2].adjusted == pytest.approx(4 * d.columns[2].pvalue)
    assert "not normal" in str(d)


@pytest.mark.parametrize(
    ("sampler", "words"),
    [
        (lambda n: RNG.standard_t(3, n), "heavy tails"),
        (lambda n: RNG.uniform(size=n), "light tails"),
        (lambda n: np.where(RNG.random(n) < 0.5, -3, 3) + RNG.standard_normal(n), "two modes"),
        (lambda n: -RNG.exponential(size=n), "skewed to the left"),
    ],
)
def test_shapes_in_words(sampler, words):
    shape = smmd.diagnose(sampler(400)[:, None]).columns[0].shape
    assert words in shape


def test_a_turned_direction_is_found_and_its_p_value_is_of_other_rows():
    n, d = 500, 5
    z = RNG.standard_normal((n, d))
    z[:, 0] = np.where(RNG.random(n) < 0.5, -0.9, 0.9) + 0.4 * RNG.standard_normal(n)
    mixing = np.linalg.qr(RNG.standard_normal((d, d)))[0] @ np.diag([1.0, 2.0, 3.0, 0.1, 1.0])
    x = z @ mixing
    truth = np.linalg.inv(mixing)[:, 0]
    found = smmd.diagnose(x).directions[0]
    cosine = abs(found.weights @ truth) / np.linalg.norm(found.weights) / np.linalg.norm(truth)
    assert cosine > 0.98
    assert found.adjusted < 1e-6
    assert np.linalg.norm(found.loadings) == pytest.approx(1.0)
    # The direction that each weight describes, on columns in their own units.
    other = smmd.diagnose(x * 1000.0).directions[0]
    np.testing.assert_allclose(other.loadings, found.loadings, rtol=1e-6, atol=1e-8)


def test_p_values_of_directions_are_honest():
    """Of normal data: where they were found SMMD² is large, on the other rows it is not."""
    rng = np.random.default_rng(4)
    found, p = [], []
    for _ in range(30):
        x = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 3))
        best = smmd.diagnose(x, n_directions=1, n_rows=0).directions[0]
        found.append(best.found)
        p.append(best.pvalue)
    assert np.mean(np.array(found) > 1.0) > 0.7
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("null", ["standard", "diagonal", "normal"])
@pytest.mark.parametrize("kernel", [smmd.Gaussian(), smmd.IMQ(), smmd.Gaussian(100.0)], ids=str)
def test_what_rows_add_is_the_statistic(null, kernel):
    z = smmd.whiten(RNG.gamma(4.0, size=(60, 3)))
    parts = parts_of(z, kernel, null)
    assert parts.share.sum() == pytest.approx(float(smmd.smmd(z, kernel=kernel)), abs=1e-8)
    # The doubly centred kernel by hand, for one row, in null standard deviations.
    mixture = kernel.resolve(60, 3)
    a, w = np.array(mixture.precisions), np.exp(mixture.log_weights)

    def k(r2):
        return np.exp(-0.5 * np.multiply.outer(r2, a)) @ w

    def e(z2):
        return (np.exp(-0.5 * np.multiply.outer(z2, a / (1 + a))) / (1 + a) ** 1.5) @ w

    others = np.delete(z, 7, axis=0)
    h = (
        k(((others - z[7]) ** 2).sum(axis=1))
        - e((z[7] ** 2).sum())
        - e((others**2).sum(axis=1))
        + ((1 + 2 * a) ** -1.5) @ w
    )
    unit = smmd.null_variance(60, 3, kernel) ** 0.5
    assert parts.share[7] == pytest.approx(h.mean() / 60 / unit, rel=1e-6, abs=1e-9)


def test_rows_of_a_clump_add_most():
    x = RNG.standard_normal((400, 2))
    x[100:130] = [1.5, 1.5] + 0.05 * RNG.standard_normal((30, 2))
    rows = smmd.diagnose(x, n_rows=8).rows
    assert all(100 <= row.index < 130 for row in rows)
    assert all(row.witness > 0 for row in rows)
    assert rows[0].share >= rows[-1].share


def test_a_far_outlier_to_which_the_test_is_blind_is_told():
    x = np.random.default_rng(6).standard_normal((500, 3))
    x[17] = [4.0, -4.0, 4.0]
    d = smmd.diagnose(x)
    assert not d.test.rejected
    assert d.outliers.blind
    assert [row.index for row in d.outliers.rows] == [17]
    assert "Row 17 lies farther out" in str(d)
    assert "blind" in str(d)
    assert d.outliers.without is not None
    assert d.outliers.without.n == 499


@pytest.mark.parametrize("far", [30.0, 1e9])
def test_mmd_does_not_see_how_far_out_a_row_is(far):
    """Against N(0, I), where no covariance swells with the outlier (paper, section 3.2)."""
    x = np.random.default_rng(6).standard_normal((500, 3))
    x[17] = far
    d = smmd.diagnose(x, "standard")
    assert d.outliers.blind
    assert d.outliers.largest == pytest.approx(far * 3**0.5)
    assert d.outliers.largest_pvalue < 1e-100


def test_an_outlier_on_which_a_rejection_rests_is_told():
    x = np.random.default_rng(6).standard_normal((300, 3))
    x[5] = 100.0
    d = smmd.diagnose(x)
    assert d.test.rejected
    assert not d.outliers.blind
    assert "the rejection rests on it" in d.outliers.text


def test_heavy_tails_are_no_outliers_and_normal_rows_are_not_far():
    heavy = smmd.diagnose(RNG.standard_cauchy((300, 2)))
    assert "no outliers but heavy tails" in heavy.outliers.text
    none = smmd.diagnose(np.random.default_rng(1).standard_normal((300, 2)))
    assert none.outliers.count == 0
    assert "No row lies farther out" in str(none)


def test_rows_keep_their_places_when_others_are_left_out():
    x = np.random.default_rng(6).standard_normal((200, 3))
    x[17] = [5.0, -5.0, 5.0]
    x[[2, 9]] = np.nan
    d = smmd.diagnose(x, nan_policy="omit")
    assert d.outliers.rows[0].index == 17
    assert d.test.n_omitted == 2


def test_large_samples_are_judged_by_a_part():
    x = RNG.standard_normal((3000, 2))
    d = smmd.diagnose(x, max_rows=500)
    assert d.test.n == 3000
    assert len(d.values) == 500
    assert any("500 rows drawn at random from 3,000" in note for note in d.notes)
    again = smmd.diagnose(x, max_rows=500)
    assert [row.index for row in again.rows] == [row.index for row in d.rows]


def test_small_and_one_dimensional_samples():
    small = smmd.diagnose(RNG.standard_normal((15, 3)))
    assert small.directions == ()
    assert any("too few" in note for note in small.notes)
    line = smmd.diagnose(RNG.standard_normal((50, 1)))
    assert line.directions == ()
    assert len(line.plot().axes) == 2
    many = smmd.diagnose(RNG.standard_normal((100, 15)), n_directions=1)
    assert "and 3 more" in str(many)


def test_plain_numbers_and_plot():
    d = smmd.diagnose(RNG.gamma(2.0, size=(150, 3)))
    plain = json.loads(json.dumps(d.to_dict()))
    assert len(plain["columns"]) == 3
    assert set(plain["directions"][0]["weights"]) == {"0", "1", "2"}
    assert len(d.plot().axes) == 3


def test_spans_and_constants():
    x = RNG.standard_normal((100, 3))
    x = np.column_stack([x, x[:, 0] + x[:, 1], np.ones(100)])
    d = smmd.diagnose(x, rank_deficient="project")
    assert len(d.columns) == 4
    assert d.test.d == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_directions": -1}, ValueError),
        ({"max_rows": 10}, ValueError),
        ({"n_rows": 2.5}, TypeError),
        ({"null": "none"}, ValueError),
        ({"kernel": "rbf"}, TypeError),
    ],
)
def test_nonsense_is_refused(options, error):
    with pytest.raises(error, match=next(iter(options))):
        smmd.diagnose(RNG.standard_normal((50, 2)), **options)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_an_outlier_at_the_end_of_float64():
    """Squares of it overflow; nothing warns, and the column and the row are named."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    x[3, 0] = 1e200
    found = smmd.diagnose(x)
    assert [column.rejected for column in found.columns] == [True, False, False]
    assert [row.index for row in found.outliers.rows] == [3]
    assert "the rejection rests on it" in str(found).replace("\n", " ")
