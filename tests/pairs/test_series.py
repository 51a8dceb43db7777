"""Series over bounded distances against the long ones, and the sums both are evaluated by."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.polynomial import chebyshev as reference
from scipy.spatial.distance import cdist

import smmd
from smmd import measure, radial, sharpen
from smmd.pairs import blocks, dense
from tests.pairs.radials import pair_term, sample


@pytest.mark.parametrize("lengths", [(1,), (2,), (13,), (40, 31), (87, 103), (9, 1, 30)])
def test_chebyshev_series(lengths):
    rng = np.random.default_rng(0)
    several = tuple(tuple(rng.standard_normal(k) * 0.8 ** np.arange(k)) for k in lengths)
    y = np.cos(np.linspace(0.0, np.pi, 9003)).reshape(3, 3001)  # more than one stretch
    found = radial.chebyshev(radial.rectangle(several), y)
    for got, series in zip(found, several, strict=True):
        np.testing.assert_allclose(got, reference.chebval(y, series), rtol=0.0, atol=2e-14)


@pytest.mark.parametrize("d", [2, 8, 64])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 6.0, 1e4])
def test_short_series_are_the_long_ones(d, spread):
    # From kernels so wide that one term does to so narrow that none are fewer.
    term, z = pair_term("sliced", 60, d), spread * sample(60, d)
    value, gradient = blocks.pair_sum(z, term, gradient=True)
    values = term.value(np, cdist(z, z, "sqeuclidean").astype(np.longdouble))
    np.fill_diagonal(values, 0.0)
    assert abs(value - values.sum()) <= 4e-13 * abs(values.sum())
    exact = dense.pair_gradient(z, term)
    np.testing.assert_allclose(gradient, exact, rtol=0.0, atol=1e-11 * np.abs(exact).max())


@pytest.mark.parametrize("d", [2, 8, 64])
def test_in_float32_they_keep_to_their_bound(d):
    n = 1500
    term = pair_term("sliced", n, d)
    z = np.random.default_rng(d).standard_normal((n, d)).astype(np.float32)
    choice = blocks.prepare(z.astype(np.float64)[None], None, term, True)[0]
    assert choice.path == "gram32"
    value, gradient = blocks.pair_sum(z, term, gradient=True, single=True)
    exact, slope = blocks.pair_sum(z, term, gradient=True)
    assert abs(value - exact) / (n * (n - 1)) < choice.bound
    assert np.linalg.norm(gradient - slope) < 1e-6 * np.linalg.norm(slope)


@pytest.mark.parametrize("n", [4, 100, 500])
@pytest.mark.parametrize("kernel", [smmd.IMQ(), smmd.Sliced(), smmd.Gaussian(30.0)], ids=repr)
def test_one_operator_serves_only_where_nothing_is_mended(kernel, n, monkeypatch):
    """``sharpen`` mends values in NumPy; PyTorch's operator on a CPU does not ask it."""
    mended = []
    monkeypatch.setattr(
        sharpen, "centred_mean_of_points", lambda z, mixture: mended.append(len(z)) or 0.0
    )
    for z in (np.zeros((n, 3)), np.full((n, 3), 1e4) + sample(n, 3)):
        mended.clear()
        smmd.smmd(z, kernel=kernel)
        options = {"standardized": True, "unbiased": True}
        served = measure._fused(torch.from_numpy(z), None, kernel, **options)
        assert served is None or not mended
