"""The eigenvalues behind the limit laws, against quadrature and published traces."""

import math

import mpmath
import numpy as np
import pytest

from smmd.nulls import NULLS, kernel_spectrum, projected_spectrum

SHAPES = [(1, 1.0), (1, 0.1), (2, 2.0), (3, 0.4), (8, 1.0), (8, 8.0), (32, 4.0), (64, 64.0)]


def nystrom(d: int, gamma2: float, null: str) -> np.ndarray:
    """Largest eigenvalues of the projected kernel, discretized on a tensor Gauss–Hermite grid.

    Nothing of the closed form enters: kernel values, quadrature weights, and an orthonormal
    basis of the polynomials that the null estimates, by QR.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80 if d == 1 else 28)
    weights = weights / weights.sum()
    grids = np.meshgrid(*[nodes] * d, indexing="ij")
    x = np.stack([g.ravel() for g in grids], axis=1)
    w = np.prod(np.meshgrid(*[weights] * d, indexing="ij"), axis=0).ravel()
    columns = [np.ones(len(x))]
    if null != "standard":
        columns += [x[:, k] for k in range(d)] + [x[:, k] ** 2 for k in range(d)]
    if null == "normal":
        columns += [x[:, i] * x[:, j] for i in range(d) for j in range(i)]
    basis, _ = np.linalg.qr(np.stack(columns, axis=1) * np.sqrt(w)[:, None])
    r2 = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    kernel = np.exp(-r2 / (2 * gamma2)) * np.sqrt(w[:, None] * w[None, :])
    kernel -= basis @ (basis.T @ kernel)
    kernel -= (kernel @ basis) @ basis.T
    return np.sort(np.linalg.eigvalsh(kernel))[::-1]


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.7), (1, 3.0), (1, 60.0), (2, 1.5), (2, 9.0)])
def test_eigenvalues_are_those_of_the_discretized_projected_kernel(null, d, gamma2):
    spectrum = projected_spectrum(null, d, gamma2)
    ours = np.repeat(spectrum.eigenvalues, np.round(spectrum.multiplicities).astype(int))[:9]
    theirs = nystrom(d, gamma2, null)[: ours.size]
    # the discretized kernel has norm 1 before projection: eigenvalues are off by some 1e-16
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize(("d", "gamma2"), SHAPES)
def test_traces_before_projection_are_gaussian_integrals(d, gamma2):
    """T_1 = E k(x, x) = 1, T_2 = E k² = (1+4u)^(−d/2), T_3 = det over a triangle."""
    u = 1 / gamma2
    spectrum = kernel_spectrum(d, gamma2)
    assert spectrum.trace(1) == pytest.approx(1.0, rel=1e-13)
    assert spectrum.trace(2) == pytest.approx((1 + 4 * u) ** (-d / 2), rel=1e-12)
    # eigenvalues of a triangle's Laplacian: 0, 3, 3
    assert spectrum.trace(3) == pytest.approx((1 + 3 * u) ** -d, rel=1e-12)


@pytest.mark.parametrize(("d", "gamma2"), [*SHAPES, (8, 1e4), (8, 1e8), (300, 37.5)])
def test_standard_traces(d, gamma2):
    """T_1 = 1 − c, T_2 the bracket of Var(γ, d, n), T_3 = E h₁₂h₂₃h₃₁ (60 digits)."""
    with mpmath.workdps(60):
        u, half = mpmath.mpf(1) / mpmath.mpf(gamma2), mpmath.mpf(d) / 2
        c = (1 + 2 * u) ** -half
        q = ((1 + u) * (1 + 3 * u)) ** -half
        p = ((1 + 2 * u) * (1 + 4 * u + 2 * u**2)) ** -half
        exact = [1 - c, c**2 + (1 + 4 * u) ** -half - 2 * q]
        exact.append((1 + 3 * u) ** (-2 * half) - 3 * p + 3 * c * q - c**3)
    spectrum = projected_spectrum("standard", d, gamma2)
    for power, value in enumerate(exact, start=1):
        assert spectrum.trace(power) == pytest.approx(float(value), rel=2e-11)


@pytest.mark.parametrize(("d", "gamma2"), SHAPES)
def test_normal_traces_are_henze_and_zirklers_moments(d, gamma2):
    """Henze & Zirkler 1990, theorem 3.1: mean T_1 and variance 2 T_2, with β = 1/γ."""
    with mpmath.workdps(40):
        b = 1 / mpmath.sqrt(gamma2)
        half = mpmath.mpf(d) / 2
        a = 1 + 2 * b**2
        w = (1 + b**2) * (1 + 3 * b**2)
        mean = 1 - a**-half * (1 + d * b**2 / a + d * (d + 2) * b**4 / (2 * a**2))
        variance = 2 * (1 + 4 * b**2) ** -half
        inner = 1 + 2 * d * b**4 / a**2 + 3 * d * (d + 2) * b**8 / (4 * a**4)
        variance += 2 * a**-d * inner
        inner = 1 + 3 * d * b**4 / (2 * w) + d * (d + 2) * b**8 / (2 * w**2)
        variance -= 4 * w**-half * inner
    spectrum = projected_spectrum("normal", d, gamma2)
    assert spectrum.trace(1) == pytest.approx(float(mean), rel=1e-9)
    assert 2 * spectrum.trace(2) == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize(("d", "gamma2"), SHAPES)
def test_diagonal_traces(d, gamma2):
    """Mean and variance of the limit, written out (moments of x², x⁴ under tilted Gaussians)."""
    with mpmath.workdps(40):
        u, half = mpmath.mpf(1) / mpmath.mpf(gamma2), mpmath.mpf(d) / 2
        a = 1 + 2 * u
        w = (1 + u) * (1 + 3 * u)
        mean = 1 - a**-half * (1 + d * u / a + 3 * d * u**2 / (2 * a**2))
        inner = 1 + 2 * d * u**2 / a**2 + d * (d + 8) * u**4 / (4 * a**4)
        variance = 2 * (1 + 4 * u) ** -half + 2 * a ** (-2 * half) * inner
        inner = 1 + 3 * d * u**2 / (2 * w) + 3 * d * u**4 / (2 * w**2)
        variance -= 4 * w**-half * inner
    spectrum = projected_spectrum("diagonal", d, gamma2)
    assert spectrum.trace(1) == pytest.approx(float(mean), rel=1e-9)
    assert 2 * spectrum.trace(2) == pytest.approx(float(variance), rel=1e-9)


@pytest.mark.parametrize(("d", "gamma2"), [(1, 0.5), (2, 1.5), (3, 3.0), (8, 4.0), (32, 20.0)])
@pytest.mark.parametrize("null", ["diagonal", "normal"])
def test_projection_removes_exactly_the_kernels_share_of_the_polynomials(null, d, gamma2):
    """T_1 falls by Σ_p E k p p over an orthonormal basis; by hand from E k x x' and E k e e'."""
    u = 1 / gamma2
    v = u / (1 + 2 * u)  # correlation of x, x' under the tilted pair law; variance (1+u)/(1+2u)
    c = (1 + 2 * u) ** (-d / 2)
    variance = 1 - v
    # E[x x'] = v;  E[(x²−1)(x'²−1)]/2 = (variance² − 2·variance + 1 + 2v²)/2
    square = 0.5 * (variance**2 - 2 * variance + 1 + 2 * v**2)
    removed = c * (1 + d * v + d * square)
    if null == "normal":  # E[x_i x_j x'_i x'_j] = v²
        removed += c * d * (d - 1) / 2 * v**2
    assert projected_spectrum(null, d, gamma2).trace(1) == pytest.approx(1 - removed, rel=1e-9)


def test_in_one_dimension_scaling_is_whitening():
    first, second = (projected_spectrum(null, 1, 0.4) for null in ("diagonal", "normal"))
    np.testing.assert_array_equal(first.eigenvalues, second.eigenvalues)
    np.testing.assert_array_equal(first.multiplicities, second.multiplicities)


@pytest.mark.parametrize("null", NULLS)
def test_the_two_bases_agree_where_they_meet(null, monkeypatch):
    from smmd.nulls import spectrum

    d, gamma2 = 5, 7.0
    traces = []
    for wide in (0.0, 1.0):
        monkeypatch.setattr(spectrum, "_WIDE_KERNEL", wide)
        found = spectrum.projected_spectrum.__wrapped__(null, d, gamma2)
        traces.append([found.trace(k) for k in (1, 2, 3, 4)])
    np.testing.assert_allclose(traces[0], traces[1], rtol=1e-10)


def test_multiplicities_are_whole_and_complete():
    """Each null takes its own number of functions out of the spectrum."""
    d, gamma2 = 4, 4.0
    whole = kernel_spectrum(d, gamma2)
    removed = {"standard": 1, "diagonal": 1 + 2 * d, "normal": 1 + d + d * (d + 1) // 2}
    for null, taken in removed.items():
        spectrum = projected_spectrum(null, d, gamma2)
        np.testing.assert_allclose(spectrum.multiplicities, np.round(spectrum.multiplicities))
        # Cauchy's interlacing: the k-th eigenvalue after projection lies between the k-th and the
        # (k + taken)-th before it
        before = np.repeat(whole.eigenvalues, whole.multiplicities.astype(int))[:400]
        after = np.repeat(spectrum.eigenvalues, spectrum.multiplicities.astype(int))[:300]
        assert np.all(after <= before[:300] * (1 + 1e-12))
        assert np.all(after >= before[taken : 300 + taken] * (1 - 1e-12))


@pytest.mark.parametrize("d", [100, 400])
def test_hundreds_of_dimensions_and_narrow_kernels(d):
    spectrum = projected_spectrum("normal", d, d / 16)
    assert np.all(np.isfinite(spectrum.multiplicities))
    assert 0 < spectrum.trace(1) <= 1
    assert math.isfinite(spectrum.trace(4))


def test_what_is_no_null_or_no_kernel_is_refused():
    with pytest.raises(ValueError, match="null must be one of standard, diagonal, normal, got 'n'"):
        projected_spectrum("n", 2, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="gamma2 must be positive and finite, got 0"):
        projected_spectrum("normal", 2, 0.0)
    with pytest.raises(ValueError, match="d must be at least 1, got 0"):
        projected_spectrum("normal", 0, 1.0)
