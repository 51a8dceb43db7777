"""Blocks on the CPU against the formulas as they read, at shapes that do not fit the blocks."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import smmd
from smmd import pairs
from smmd.pairs import blocks, dense, threads
from smmd.radial import Exponentials
from tests.pairs.radials import KERNELS, pair_term, sample

#: Gram distances may change a kernel value by 2e-13 (``plan.GRAM_TOLERANCE``); sums of |f| by that.
RELATIVE = 4e-13


def size(z, radial):
    """Σ |f| over pairs: what a relative error of the terms adds up to at most."""
    r2 = cdist(z, z, "sqeuclidean")
    values = np.abs(radial.value(np, r2))
    return values.sum() - np.trace(values)


@pytest.mark.parametrize("path", ["difference", "gram"])
@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 8), (41, 3), (257, 2), (401, 8), (300, 65)])
@pytest.mark.parametrize("name", KERNELS)
def test_value_and_gradient(name, n, d, path):
    if name == "sliced" and d == 1:
        name = "narrow"
    z, radial = sample(n, d), pair_term(name, n, d)
    with pairs.use(path):
        alone, _ = blocks.pair_sum(z, radial)
        value, gradient = blocks.pair_sum(z, radial, gradient=True)
    scale = size(z, radial)
    assert abs(value - dense.pair_sum(z, radial)) <= RELATIVE * scale
    assert abs(alone - value) <= RELATIVE * scale
    exact = dense.pair_gradient(z, radial)
    # A row's gradient sums n terms of like size, each of that relative error.
    np.testing.assert_allclose(gradient, exact, rtol=0.0, atol=1e-12 * n * np.abs(exact).max())


@pytest.mark.parametrize("name", KERNELS)
def test_float32_is_within_its_bound(name):
    # 1e-4 null standard deviations is what ``plan`` promises; radials are in these units.
    n, d = 2100, 8
    z = sample(n, d).astype(np.float32)
    radial = pair_term(name, n, d)
    with pairs.use("difference"):
        exact, slope = blocks.pair_sum(z.astype(np.float64), radial, gradient=True)
    value, gradient = blocks.pair_sum(z, radial, gradient=True, single=True)
    assert abs(value - exact) / (n * (n - 1)) < 1e-4
    assert np.linalg.norm(gradient - slope) < 1e-5 * np.linalg.norm(slope)


@pytest.mark.parametrize("shape", [(3, 2, 41, 3), (700, 12, 2), (2, 600, 5), (0, 7, 2), (4, 0, 2)])
def test_batches_are_their_samples(shape):
    *batch, n, d = shape
    z = sample(n, d, *batch)
    radial = pair_term("scales", max(n, 2), d)
    value, gradient = blocks.pair_sum(z, radial, gradient=True)
    assert value.shape == tuple(batch)
    assert gradient.shape == z.shape
    for index in list(np.ndindex(*batch))[:: max(1, value.size // 7)]:
        alone, slope = blocks.pair_sum(z[index], radial, gradient=True)
        np.testing.assert_allclose(value[index], alone, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(gradient[index], slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("m", "n"), [(1, 5), (41, 300), (900, 3), (0, 4)])
def test_rows_against_other_columns(m, n):
    x, y = sample(m, 3, seed=1), sample(n, 3, seed=2)
    for name in ("narrow", "wide", "imq"):
        radial = pair_term(name, 50, 3)
        value, gradient = blocks.cross_sum(x, y, radial, gradient=True)
        values = radial.value(np, cdist(x, y, "sqeuclidean"))
        assert value == pytest.approx(values.sum(), rel=1e-11, abs=1e-9)
        exact = dense.row_gradient(x, y, radial)
        np.testing.assert_allclose(gradient, exact, rtol=1e-9, atol=1e-11)


def test_widths_that_follow_the_data():
    # One width a sample: wide and narrow ones side by side.
    z = sample(30, 2, 5)
    a = np.array([[8.0], [1e-6], [1.0], [1e-3], [2.0]])
    base = (a < 0.01).astype(np.float64)
    radial = Exponentials(a, 0.0 * a, 1.0 + a, base)
    value, gradient = blocks.pair_sum(z, radial, gradient=True)
    for i in range(5):
        one = Exponentials((a[i, 0],), (0.0,), (1.0 + a[i, 0],), (base[i, 0],))
        alone, slope = blocks.pair_sum(z[i], one, gradient=True)
        assert value[i] == pytest.approx(alone, rel=1e-12)
        np.testing.assert_allclose(gradient[i], slope, rtol=1e-10, atol=1e-15)


def test_far_from_the_origin_nothing_is_lost():
    z = sample(300, 4)
    with pairs.use("difference"):
        near = smmd.smmd(z)
    # 2^20 leaves 33 bits after the point: z is rounded to these, so shift the rounded one back.
    far = z + 2.0**20
    with pairs.use("difference"):
        back = blocks.pair_sum(far - 2.0**20, pair_term("narrow", 300, 4))[0]
    assert blocks.pair_sum(far, pair_term("narrow", 300, 4))[0] == pytest.approx(back, rel=1e-12)
    assert np.isfinite(near)


def test_one_far_point_is_noticed():
    z = sample(300, 2)
    z[0] = 1e9
    found = smmd.explain(z)
    assert found.path == "difference"
    assert "far-out" in found.why
    with pairs.use("dense"):
        exact = smmd.smmd(z)
    assert smmd.smmd(z) == pytest.approx(exact, rel=1e-12)


def test_the_same_bits_each_time():
    z = sample(1500, 3)
    radial = pair_term("narrow", 1500, 3)
    first = blocks.pair_sum(z, radial, gradient=True)
    for _ in range(2):
        again = blocks.pair_sum(z, radial, gradient=True)
        assert first[0] == again[0]
        assert np.array_equal(first[1], again[1])


@pytest.mark.parametrize("single", [False, True])
def test_memory_is_linear_in_n(single):
    # An n×n matrix would hold 144 or 72 MB; the input is 0.8 MB.
    z = sample(6000, 16).astype(np.float32 if single else np.float64)
    tracemalloc.start()
    blocks.pair_sum(z, pair_term("narrow", 6000, 16), gradient=True, single=single)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 14e6


def test_every_pair_of_tasks_meets_once():
    for count in range(1, 12):
        rounds = list(threads.all_pairs(count))
        met = [pair for tasks in rounds for pair in tasks]
        assert sorted(met) == [(i, j) for i in range(count) for j in range(i, count)]
        for tasks in rounds[1:]:
            players = [p for pair in tasks for p in pair]
            assert len(players) == len(set(players))


def test_an_error_in_a_thread_comes_out(monkeypatch):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        threads.run_rounds([[fail, fail]], 2)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-13])
def test_gradients_of_near_duplicates_keep_their_digits(gap):
    # Each point has one close by, whose slope outweighs those of all others: kernels that narrow.
    z = sample(20, 3)
    z[10:] = z[:10] + gap * sample(10, 3, seed=1)
    radial = Exponentials((40.0,), (0.0,), (1.0,), (0.0,))
    _, gradient = blocks.pair_sum(z, radial, gradient=True)
    exact = dense.pair_gradient(z, radial)
    sizes = np.linalg.norm(exact, axis=1, keepdims=True)
    np.testing.assert_allclose(gradient / sizes, exact / sizes, rtol=0.0, atol=1e-10)
