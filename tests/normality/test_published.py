"""Statistics and p-values that other programs print for classical data."""

import numpy as np
import pytest
import sklearn.datasets as data

import smmd

pytestmark = pytest.mark.filterwarnings("ignore::smmd.normality.TiesWarning")


def part(name, group=None, columns=None):
    loaded = getattr(data, f"load_{name}")()
    x = loaded.data if group is None else loaded.data[loaded.target == group]
    return x if columns is None else x[:, :columns]


SETOSA = ("iris", 0)


def test_henze_zirkler_of_iris_setosa_as_r_prints_it():
    # R: MVN::mvn(iris[1:50, 1:4], mvnTest = "hz") and others: HZ 0.9488453160, p 0.0499535562.
    r = smmd.normality_test(part(*SETOSA), statistic="henze-zirkler")
    assert r.statistic == pytest.approx(0.9488453160, abs=5e-11)
    assert r.pvalue == pytest.approx(0.0499535562, abs=5e-11)
    assert r.method == "analytic"
    assert r.rejected
    assert r.threshold < r.statistic


# pingouin 0.7.0 (Henze-Zirkler by the population covariance, log-normal p), scikit-learn's data:
#   pg.multivariate_normality(x).hz, .pval
PINGOUIN = [
    (("iris", 0), 0.9488453160016664, 0.04995355617921849),
    (("iris", 1), 0.8388008907266171, 0.22619914870360824),
    (("iris", 2), 0.7570095243363533, 0.4970236922155525),
    (("iris",), 2.336394200315432, 4.141311629928743e-19),
    (("wine", 0), 0.9927945523544933, 0.19873295812968045),
    (("wine", 1), 1.014507509981307, 4.1601952839048475e-06),
    (("wine", 2), 0.9885863133762611, 0.37211481648242734),
    (("wine", None, 4), 2.1229780479957157, 1.6977115152205846e-16),
    (("breast_cancer", 0, 10), 1.4607418966807157, 1.5847438850686582e-268),
    (("breast_cancer", None, 2), 7.801267162041766, 1.677510368545547e-17),
]


@pytest.mark.parametrize(("which", "hz", "p"), PINGOUIN, ids=lambda v: str(v)[:24])
def test_henze_zirkler_as_pingouin_prints_it(which, hz, p):
    r = smmd.normality_test(part(*which), statistic="henze-zirkler")
    assert r.statistic == pytest.approx(hz, rel=1e-9)
    # The parameters of the log-normal law are differences of large terms: pingouin's p-values
    # far in the tail carry some 1e-8 of rounding.
    assert r.pvalue == pytest.approx(p, rel=1e-6 if p > 1e-30 else 0.05)


# R: mnt::BHEP(as.matrix(iris[1:50, 1:4]), a); then the same in 40 digits (mpmath), from which R is
# off by its own rounding.
BHEP = [
    (0.5, 0.157003881742, 0.157003881734313512),
    (1.0, 0.782843341644, 0.782843341631517132),
    (2.0, 1.06018579859, 1.06018579858709615),
]


@pytest.mark.parametrize(("a", "r", "exact"), BHEP)
def test_bhep_of_iris_setosa(a, r, exact):
    kernel = smmd.Gaussian(gamma=1 / a)
    value = smmd.normality_test(part(*SETOSA), statistic="bhep", kernel=kernel).statistic
    assert value == pytest.approx(exact, rel=1e-13)
    assert value == pytest.approx(r, abs=2e-11)


def test_mardia_of_iris_setosa_as_r_prints_it():
    # R: MVN::mvn(iris[1:50, 1:4], mvnTest = "mardia")
    skewness = smmd.normality_test(part(*SETOSA), statistic="mardia-skewness")
    kurtosis = smmd.normality_test(part(*SETOSA), statistic="mardia-kurtosis")
    assert skewness.statistic == pytest.approx(25.66434452, abs=5e-9)
    assert skewness.pvalue == pytest.approx(0.1771859, abs=5e-8)
    assert kurtosis.statistic == pytest.approx(1.29499224, abs=5e-9)
    assert kurtosis.pvalue == pytest.approx(0.1953229, abs=5e-8)


def test_the_shipped_sample_is_the_classical_one():
    from smmd.cli import tables

    source = tables.read(None, group_by="species")
    setosa = source.table.values[source.groups == "setosa"]
    np.testing.assert_array_equal(setosa, part(*SETOSA))


@pytest.mark.parametrize("null", ["standard", "diagonal", "normal"])
@pytest.mark.parametrize("scale", [1 / 8, 1.0])
def test_smmd_by_the_printed_formula(null, scale):
    """Every pair by itself, from the paper's MMD²_u and Var; normalized as its appendix says."""
    rng = np.random.default_rng(5)
    x = rng.gamma(3.0, size=(25, 3))
    if null == "standard":
        z = x
    else:
        cov = np.cov(x.T) if null == "normal" else np.diag(np.diag(np.cov(x.T)))
        values, vectors = np.linalg.eigh(cov)
        z = (x - x.mean(axis=0)) @ vectors @ np.diag(values**-0.5) @ vectors.T
    n, d = z.shape
    g = scale * d
    pairs = sum(
        np.exp(-np.sum((z[i] - z[j]) ** 2) / (2 * g)) for i in range(n) for j in range(n) if i != j
    )
    cross = sum(np.exp(-np.sum(row**2) / (2 * (1 + g))) for row in z)
    mmd2 = (
        (g / (2 + g)) ** (d / 2) - 2 / n * (g / (1 + g)) ** (d / 2) * cross + pairs / (n * (n - 1))
    )
    variance = (
        2 / (n * (n - 1))
        * (
            (g / (2 + g)) ** d
            + (g / (4 + g)) ** (d / 2)
            - 2 * (g**2 / ((1 + g) * (3 + g))) ** (d / 2)
        )
    )  # fmt: skip
    found = smmd.normality_test(x, null, kernel=smmd.Gaussian(scale)).statistic
    assert found == pytest.approx(mmd2 / variance**0.5, rel=1e-10)
