"""Exact moments at finite n: against quadrature, formulas in 40 digits, and simulation."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import smmd
from smmd.nulls import graph_moments as graphs
from smmd.nulls.estimated import mean, raw_moment, third_cumulant, variance
from smmd.nulls.frame_integrals import _confluent
from smmd.nulls.means import mean_of_smmd
from smmd.nulls.moments import null_moments, standardized_cube
from smmd.nulls.projected_cube import projected_cube
from smmd.nulls.spectrum import projected_spectrum


def grid(d, count):
    """Gauss–Hermite points and weights for N(0, I_d)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    weights = weights / weights.sum()
    x = np.stack([g.ravel() for g in np.meshgrid(*[nodes] * d, indexing="ij")], axis=1)
    w = np.prod(np.stack(np.meshgrid(*[weights] * d, indexing="ij")), axis=0).ravel()
    return x, w


def projected_kernel(null, d, gamma2, count):
    """h on the grid, and the weights: the kernel, projected numerically."""
    x, w = grid(d, count)
    columns = [np.ones(len(x))]
    if null != "standard":
        columns += [x[:, k] for k in range(d)] + [x[:, k] ** 2 for k in range(d)]
    if null == "normal":
        columns += [x[:, i] * x[:, j] for i in range(d) for j in range(i)]
    p, _ = np.linalg.qr(np.stack(columns, axis=1) * np.sqrt(w)[:, None])
    p = p / np.sqrt(w)[:, None]  # orthonormal functions
    k = np.exp(-((x[:, None] - x[None]) ** 2).sum(axis=-1) / (2 * gamma2))
    k = k - p @ ((p * w[:, None]).T @ k)
    return k - (k @ (p * w[:, None])) @ p.T, w


@pytest.mark.parametrize("null", ["standard", "diagonal", "normal"])
@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.6), (1, 4.0), (2, 1.0), (2, 6.0)])
def test_third_moment_of_the_projected_kernel(null, d, gamma2):
    h, w = projected_kernel(null, d, gamma2, 100 if d == 1 else 32)
    exact = np.einsum("i,j,ij->", w, w, h**3)
    assert projected_cube(null, d, gamma2) == pytest.approx(exact, rel=2e-5)


@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.6), (1, 4.0), (2, 1.0), (2, 6.0)])
def test_graph_moments(d, gamma2):
    h, w = projected_kernel("standard", d, gamma2, 100 if d == 1 else 32)
    second = h**2 @ w
    weighted = w[:, None] * h * w[None, :]
    oracle = {
        graphs.SAME_EDGE_TWICE: w @ second,
        graphs.SAME_EDGE_THRICE: w @ h**3 @ w,
        graphs.SAME_EDGE_FOUR_TIMES: w @ h**4 @ w,
        graphs.TWO_DOUBLE_EDGES: w @ second**2,
        graphs.TRIANGLE: np.sum((weighted @ h) * h * w[None, :]),
        graphs.TRIANGLE_WITH_DOUBLE_EDGE: np.sum((h * w) @ h * (h**2).T * w[:, None] * w[None, :]),
    }
    for edges, exact in oracle.items():
        assert graphs.centred_edge_product(edges, d, gamma2) == pytest.approx(exact, rel=2e-5)


@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.25), (2, 2.0), (8, 1.0), (16, 8.0), (32, 32.0)])
def test_standard_skewness_from_the_printed_formulas(d, gamma2):
    """κ₃ = [4·E h³ + 8(n−2)·T] / (n²(n−1)²), in 60 digits."""
    n = 37
    with mpmath.workdps(60):
        u, half = mpmath.mpf(1) / mpmath.mpf(gamma2), mpmath.mpf(d) / 2
        c, q = (1 + 2 * u) ** -half, ((1 + u) * (1 + 3 * u)) ** -half
        p = ((1 + 2 * u) * (1 + 4 * u + 2 * u**2)) ** -half
        triangle = (1 + 3 * u) ** (-2 * half) - 3 * p + 3 * c * q - c**3
        cube = (1 + 6 * u) ** -half - 6 * (1 + 6 * u + 6 * u**2) ** -half
        cube += 3 * c * (1 + 4 * u) ** -half + 4 * ((1 + u) ** 2 * (1 + 4 * u)) ** -half
        cube += 6 * p - 12 * c * q + 4 * c**3
        t2 = c**2 + (1 + 4 * u) ** -half - 2 * q
        third = (4 * cube + 8 * (n - 2) * triangle) / mpmath.sqrt(n * (n - 1))
        exact = float(third / (2 * t2) ** 1.5)
    assert null_moments("standard", n, d, gamma2).skewness == pytest.approx(exact, rel=1e-7)
    if d <= 8:
        assert projected_cube("standard", d, gamma2) == pytest.approx(float(cube), rel=1e-8)


def test_wide_kernels_keep_their_skewness():
    """E h³ is lost in rounding there; its ratio to T_2^(3/2) is about 3.2/γ² (d = 4)."""
    for gamma2 in (4e2, 4e3, 4e4, 4e6, 4e8):
        assert standardized_cube("standard", 4, gamma2) == pytest.approx(3.2 / gamma2, abs=3e-4)


@pytest.mark.parametrize("stretch", [1.0, 25 / 24])
@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.5), (3, 3.0), (8, 1.0), (16, 16.0)])
def test_composite_mean_is_the_printed_hypergeometric(d, gamma2, stretch):
    n = 25
    with mpmath.workdps(40):
        g = mpmath.mpf(gamma2)
        u, freedom, half = 1 / g, n - 1, mpmath.mpf(d) / 2
        c0, c1 = (1 + 2 * u) ** -half, (1 + u) ** -half
        x1 = -mpmath.mpf(stretch) * freedom**2 / (2 * n * (1 + g))
        x2 = -mpmath.mpf(stretch) * freedom * u
        f = lambda a, x: mpmath.hyp1f1(a, mpmath.mpf(freedom) / 2, x)  # noqa: E731
        exact = {
            "diagonal": c0 - 2 * c1 * f(0.5, x1) ** d + f(0.5, x2) ** d,
            "normal": c0 - 2 * c1 * f(half, x1) + f(half, x2),
        }
    for null, value in exact.items():
        mean = (1 + 2 / gamma2) ** (-d / 2) + raw_moment(1, null, n, d, gamma2, stretch=stretch)
        assert mean == pytest.approx(float(value), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("freedom", [40, 99, 999])
@pytest.mark.parametrize("size", [1, 2, 7, 32])
def test_confluent_function_to_rounding(size, freedom):
    """SciPy's, with freedom 999 and x = 1000, is off by 4e-14 (size 1) to 5e-13 (size 2)."""
    x = np.array([1e-3, 1.0, 30.0, 100.0, 500.0, 1e3, 1e4, 1e5])
    with mpmath.workdps(40):
        exact = [mpmath.hyp1f1(size / 2, freedom / 2, -mpmath.mpf(v)) for v in x]
    # products of size/2 factors, and SciPy's own error where x and freedom are small
    np.testing.assert_allclose(_confluent(size, freedom, x), np.float64(exact), rtol=1e-14)


def sample(null, n, d, count, seed):
    """Normalized samples, written out here: centre and scale, or centre and whiten (n − 1)."""
    z = np.random.default_rng(seed).standard_normal((count, n, d))
    if null == "standard":
        return z
    z -= z.mean(axis=1, keepdims=True)
    if null == "diagonal":
        return z / z.std(axis=1, ddof=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("bni,bnj->bij", z, z) / (n - 1))
    return z @ (vectors / np.sqrt(values)[:, None, :])


def mmd2_of(z, gamma2, biased):
    """MMD² as the paper's equation reads, with an n×n array."""
    n, d = z.shape[1:]
    norms = np.sum(z * z, axis=-1)
    r2 = norms[:, :, None] + norms[:, None, :] - 2 * z @ z.transpose(0, 2, 1)
    k = np.exp(-np.maximum(r2, 0.0) / (2 * gamma2))
    off = k.sum(axis=(1, 2)) - np.trace(k, axis1=1, axis2=2)
    pairs = (off + n) / n**2 if biased else off / (n * (n - 1))
    cross = np.exp(-norms / (2 * (1 + gamma2))).mean(axis=1)
    c0, c1 = (1 + 2 / gamma2) ** (-d / 2), (1 + 1 / gamma2) ** (-d / 2)
    return c0 - 2 * c1 * cross + pairs


def k_statistics(x):
    """Unbiased mean, variance and third cumulant with standard errors from 50 batches."""
    parts = x.reshape(50, -1)
    m = parts.mean(axis=1)
    size = parts.shape[1]
    e = parts - m[:, None]
    second = (e**2).sum(axis=1) / (size - 1)
    third = (e**3).sum(axis=1) * size / ((size - 1) * (size - 2))
    found = np.stack([m, second, third])
    return found.mean(axis=1), found.std(axis=1, ddof=1) / math.sqrt(50)


COMPOSITE = [(6, 1, 0.5), (7, 2, 1.0), (8, 3, 3.0), (12, 8, 4.0), (20, 4, 1.0)]


@pytest.mark.parametrize("null", ["diagonal", "normal"])
@pytest.mark.parametrize(("n", "d", "gamma2"), COMPOSITE)
@pytest.mark.parametrize("biased", [False, True])
def test_composite_mean_variance_and_third_cumulant_by_simulation(null, n, d, gamma2, biased):
    z = sample(null, n, d, 40_000, seed=n * 100 + d)
    found, error = k_statistics(mmd2_of(z, gamma2, biased))
    first_two = [part(null, n, d, gamma2, biased) for part in (mean, variance)]
    if biased:
        first, second, third = (raw_moment(p, null, n, d, gamma2, True) for p in (1, 2, 3))
        cumulant = third - 3 * first * second + 2 * first**3
    else:
        cumulant = third_cumulant(null, n, d, gamma2)
    # seeds are fixed; over the 60 numbers of this test the largest |z| expected is about 2.5
    assert np.all(np.abs(found - np.array([*first_two, cumulant])) < 4.0 * error)


@pytest.mark.parametrize(("n", "d"), [(10, 1), (25, 3), (60, 8)])
def test_counted_coincidences_agree_with_degenerate_formulas(n, d):
    """Where nothing is estimated, moments are known otherwise; a mixture's variance is too."""
    kernel = smmd.MultiScale((1 / 8, 1 / 2, 2.0))
    mixture = kernel.resolve(n, d)
    widths = tuple(1.0 / a for a in mixture.precisions)
    weights = tuple(np.exp(mixture.log_weights).tolist())
    # All are differences of terms of order 1: their errors are absolute.
    assert abs(mean("standard", n, d, widths, weights=weights)) < 1e-15
    exact = smmd.null_variance(n, d, kernel)
    assert abs(variance("standard", n, d, widths, weights=weights) - exact) < 1e-15
    known = null_moments("standard", n, d, d / 8)
    exact = known.skewness * (known.variance / (n * (n - 1))) ** 1.5
    assert abs(third_cumulant("standard", n, d, d / 8) - exact) < 1e-16


@pytest.mark.parametrize(("n", "d", "gamma2"), [(10, 1, 0.5), (10, 3, 0.4), (20, 8, 1.0)])
def test_standard_moments_by_simulation(n, d, gamma2):
    values = mmd2_of(sample("standard", n, d, 100_000, seed=n + d), gamma2, biased=False)
    x = values * math.sqrt(n * (n - 1))
    exact = null_moments("standard", n, d, gamma2)
    found, error = k_statistics(x)
    third = exact.skewness * exact.variance**1.5
    assert np.all(np.abs(found - np.array([0.0, exact.variance, third])) < 4.0 * error)
    parts = x.reshape(50, -1)
    fourth = ((parts - x.mean()) ** 4).mean(axis=1)
    error4 = fourth.std(ddof=1) / math.sqrt(50)
    expected = (exact.kurtosis + 3.0) * exact.variance**2
    assert abs(fourth.mean() - expected) < 4.0 * error4


def test_standard_fourth_cumulant_term_by_term():
    """n = 4: E of the fourth power of the U-statistic, all 6⁴ products by Gaussian integrals."""
    n, d, gamma2 = 4, 2, 0.8
    pairs = list(itertools.combinations(range(n), 2))
    total = 0.0
    for chosen in itertools.combinations_with_replacement(range(len(pairs)), 4):
        edges = tuple(pairs[i] for i in chosen)
        labels = sorted({v for e in edges for v in e})
        degree = [sum(v in e for e in edges) for v in labels]
        if min(degree) < 2:
            continue  # degenerate: a lone vertex integrates to nothing
        relabelled = tuple(tuple(labels.index(v) for v in e) for e in edges)
        ways = math.factorial(4)
        for i in set(chosen):
            ways //= math.factorial(chosen.count(i))
        total += ways * graphs.centred_edge_product(relabelled, d, gamma2)
    exact = null_moments("standard", n, d, gamma2)
    fourth = total * (2.0 / math.sqrt(n * (n - 1))) ** 4 / exact.variance**2
    assert exact.kurtosis + 3.0 == pytest.approx(fourth, rel=1e-9)


@pytest.mark.parametrize("null", ["diagonal", "normal"])
@pytest.mark.parametrize(("d", "gamma2"), [(1, 1.0), (4, 1.0), (8, 2.0)])
def test_large_samples_continue_what_small_ones_are(null, d, gamma2, monkeypatch):
    """Terms in 1/n fitted at 150 and 300 give the exact moments at 600, and the limit's at 10⁷."""
    from smmd.nulls import moments

    exact = null_moments(null, 600, d, gamma2)
    monkeypatch.setattr(moments, "_LARGEST_N", 300)
    null_moments.cache_clear()
    fitted, far = (null_moments(null, n, d, gamma2) for n in (600, 10**7))
    null_moments.cache_clear()
    assert fitted.variance == pytest.approx(exact.variance, rel=1e-4)
    assert fitted.skewness == pytest.approx(exact.skewness, rel=3e-3)
    spectrum = projected_spectrum(null, d, gamma2)
    limit = 2 * spectrum.trace(2)
    assert far.variance == pytest.approx(limit, rel=1e-5)
    assert far.skewness == pytest.approx(8 * spectrum.trace(3) / limit**1.5, rel=1e-4)
    # mean of X: minus what projection took from the trace, but for the constant's part
    removed = projected_spectrum("standard", d, gamma2).trace(1) - spectrum.trace(1)
    assert far.mean == pytest.approx(-removed, rel=1e-5)


@pytest.mark.parametrize("n", [10**4, 10**6])
def test_the_mean_at_a_million_rows(n):
    """Against 40 digits; in SMMD² (sd 1) an error of 1e-7 would be visible in no p-value."""
    d, gamma2 = 8, 1.0
    with mpmath.workdps(40):
        u, freedom, half = 1 / mpmath.mpf(gamma2), mpmath.mpf(n - 1), mpmath.mpf(d) / 2

        def transform(a):  # E exp(−a t), t ~ Beta(d/2, (N−d)/2), in x = N t, which is about χ²_d
            top = (freedom - d) / 2 - 1
            log_beta = (
                mpmath.loggamma(half)
                + mpmath.loggamma(freedom / 2 - half)
                - mpmath.loggamma(freedom / 2)
                + half * mpmath.log(freedom)
            )
            f = lambda x: mpmath.exp(  # noqa: E731
                (half - 1) * mpmath.log(x) + top * mpmath.log1p(-x / freedom)
                - a * x / freedom - log_beta
            )  # fmt: skip
            return mpmath.quad(f, [0, 1, 4, 8, 16, 32, 64, 128, 256])

        c0, c1 = (1 + 2 * u) ** -half, (1 + u) ** -half
        cross = transform(freedom**2 / (2 * n * (1 + mpmath.mpf(gamma2))))
        mean = mpmath.sqrt(n * (n - 1)) * (c0 - 2 * c1 * cross + transform(freedom * u))
    exact = float(mean) / math.sqrt(2 * projected_spectrum("standard", d, gamma2).trace(2))
    ours = mean_of_smmd(smmd.Gaussian(gamma=gamma2**0.5), "normal", n, d)
    assert ours == pytest.approx(exact, abs=1e-7)


def test_smmd_is_standardized_by_the_librarys_null_variance():
    from smmd.nulls.moments import simple_variance

    for d, scale in ((1, 1.0), (8, 1 / 8), (32, 1 / 32), (64, 100.0)):
        variance = smmd.null_variance(50, d, smmd.Gaussian(scale))
        assert simple_variance(d, scale * d) == pytest.approx(50 * 49 * variance, rel=1e-10)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="n must be at least 12 for null 'normal' with d = 8"):
        null_moments("normal", 11, 8, 1.0)
    with pytest.raises(ValueError, match="n must be at least 4, got 3"):
        null_moments("standard", 3, 8, 1.0)
