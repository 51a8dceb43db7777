"""Laws of mixtures of kernels: their spectra against closed forms, their levels by simulation."""

import itertools
import math

import numpy as np
import pytest

import smmd
from smmd.nulls import NULLS, law_for, projected_spectrum
from smmd.nulls import graph_moments as graphs
from smmd.nulls.estimated import variance
from smmd.nulls.mixture import Terms, mixture_spectrum
from smmd.nulls.montecarlo import normalize


def terms_of(kernel, n, d):
    mixture = kernel.resolve(n, d)
    return Terms(tuple(mixture.precisions), mixture.log_weights)


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize(("d", "scale"), [(1, 1 / 16), (2, 1 / 4), (8, 1 / 8), (40, 1.0)])
def test_a_mixture_of_one_is_the_gaussian_kernel(null, d, scale):
    """1e-9 of the trace of squares is left out on purpose, per sector and over sectors."""
    found = mixture_spectrum(Terms((1.0 / (scale * d),), (0.0,)), null, d)
    known = projected_spectrum(null, d, scale * d)
    for power in (2, 3, 4):
        assert found.trace(power) == pytest.approx(known.trace(power), rel=5e-9)


@pytest.mark.parametrize("d", [1, 3, 17])
@pytest.mark.parametrize("kernel", [smmd.MultiScale((1 / 16, 1 / 2)), smmd.MultiScale()], ids=repr)
def test_traces_are_gaussian_integrals(kernel, d):
    """T₂ = E h², T₃ = E h(x,y) h(y,z) h(z,x), by determinants, every triple of widths by itself."""
    mixture = kernel.resolve(100, d)
    terms = list(zip(mixture.precisions, np.exp(mixture.log_weights), strict=True))
    spectrum = mixture_spectrum(terms_of(kernel, 100, d), "standard", d)
    for power, edges in ((2, graphs.SAME_EDGE_TWICE), (3, graphs.TRIANGLE)):
        total = 0.0
        for chosen in itertools.product(terms, repeat=power):
            widths = tuple(1.0 / a for a, _ in chosen)
            weight = math.prod(w for _, w in chosen)
            total += weight * graphs.centred_edge_product(edges, d, widths)
        assert spectrum.trace(power) == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize(
    ("kernel", "d"), [(smmd.IMQ(), 2), (smmd.IMQ(1.0), 9), (smmd.Sliced(), 5)], ids=repr
)
def test_the_variance_by_which_smmd_is_standardized(kernel, d):
    n = 50
    mean_of_squares = smmd.null_variance(n, d, kernel) * n * (n - 1) / 2.0
    found = mixture_spectrum(terms_of(kernel, n, d), "standard", d)
    assert found.trace(2) == pytest.approx(mean_of_squares, rel=1e-8)


# Levels against 8,000 samples: four standard errors.
@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize(
    ("kernel", "n", "d"),
    [
        (smmd.Sliced(), 50, 8),
        (smmd.IMQ(), 20, 4),
        (smmd.MultiScale((1 / 8, 1 / 2, 2.0)), 60, 8),
    ],
    ids=repr,
)
def test_levels_by_direct_simulation(kernel, n, d, null):
    z = normalize(np.random.default_rng(n + d).standard_normal((8_000, n, d)), null)
    values = smmd.mmd2(z, kernel) / math.sqrt(smmd.null_variance(n, d, kernel))
    law = law_for(kernel, null, n, d).law
    assert law.valid, law.reason
    assert abs(values.mean() - law.mean) < 4 * law.sd / math.sqrt(values.size)
    assert values.std() == pytest.approx(law.sd, rel=4 * math.sqrt((2 + 3) / (4 * values.size)))
    for alpha in (0.2, 0.05, 0.01):
        level = np.mean(values > law.isf(alpha))
        assert abs(level - alpha) < 4 * math.sqrt(alpha * (1 - alpha) / values.size)


def test_one_scale_outside_the_region_spoils_the_mixture():
    assert law_for(smmd.MultiScale((1 / 8, 1 / 2)), "standard", 100, 16).valid
    narrow = law_for(smmd.MultiScale((1 / 32, 2.0)), "standard", 100, 16)
    assert "reaches 0.00026 of 100 points" in narrow.reason
    assert (
        "scale s = 4 is above 2"
        in law_for(smmd.MultiScale((1 / 4, 4.0)), "standard", 100, 4).reason
    )


def test_a_mixture_without_end_is_refused():
    found = law_for(smmd.Sliced(1e-3), "standard", 100, 3)
    assert not found.valid
    assert "use a wider one" in found.reason


@pytest.mark.parametrize("null", ["diagonal", "normal"])
@pytest.mark.parametrize("scale", [1 / 8, 1.0])
def test_exact_variance_of_a_mixture(null, scale):
    """One kernel, written as a mixture of itself, and a mixture of two against samples."""
    n, d = 20, 3
    gamma2 = scale * d
    single = variance(null, n, d, gamma2)
    split = variance(null, n, d, (gamma2, gamma2), weights=(0.25, 0.75))
    assert split == pytest.approx(single, rel=1e-9)
    z = normalize(np.random.default_rng(5).standard_normal((20_000, n, d)), null)
    values = sum(0.5 * smmd.mmd2(z, smmd.Gaussian(s)) for s in (scale, 3.0 * scale))
    exact = variance(null, n, d, (gamma2, 3.0 * gamma2), weights=(0.5, 0.5))
    error = math.sqrt(np.var((values - values.mean()) ** 2) / values.size)
    assert abs(values.var() - exact) < 4 * error
