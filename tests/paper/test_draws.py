"""Random numbers: the same for the same keys, however many are asked for at once."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from smmd.paper.draws import _OnGpu, distinct, draws

# The stream of a GPU runs on PyTorch's CPU generator just as well.
STREAMS = {"numpy": lambda *k: draws("cpu", 0, *k), "torch": lambda *k: _OnGpu("cpu", len(k))}


@pytest.mark.parametrize("make", STREAMS.values(), ids=list(STREAMS))
def test_laws_of_the_streams(make):
    normal = np.asarray(make("a").normal(500, 20))
    uniform = np.asarray(make("a").uniform(-2.0, 1.0, 500, 20))
    whole = np.asarray(make("a").integers(5, 500, 20))
    # Means of 10,000 numbers, within four standard errors.
    assert abs(normal.mean()) < 0.04
    assert abs(normal.var() - 1.0) < 4 * np.sqrt(2.0) / 100
    assert abs(uniform.mean() + 0.5) < 4 * np.sqrt(0.75) / 100
    assert -2.0 <= uniform.min() < uniform.max() <= 1.0
    assert set(np.unique(whole)) == set(range(5))
    assert normal.dtype == uniform.dtype == np.float64


def test_keys_and_seed_decide_and_nothing_else():
    def some(*keys):
        return draws("cpu", *keys).normal(3)

    np.testing.assert_array_equal(some(0, "violin", 8), some(0, "violin", 8))
    others = [some(0, "violin", 8), some(1, "violin", 8), some(0, "tau", 8), some(0, "violin", 4)]
    assert all(not np.array_equal(a, b) for a, b in pairwise(others))


def test_samples_do_not_depend_on_how_many_are_held_at_once():
    whole, parts = draws("cpu", 0, "a"), draws("cpu", 0, "a")
    np.testing.assert_array_equal(
        whole.normal(7, 5, 2), np.concatenate([parts.normal(3, 5, 2), parts.normal(4, 5, 2)])
    )


@pytest.mark.parametrize("make", STREAMS.values(), ids=list(STREAMS))
@pytest.mark.parametrize(("size", "population"), [(5, 6), (10, 400), (6, 6)])
def test_distinct_rows(make, size, population):
    rows = np.asarray(distinct(make("a", "b"), 2000, size, population))
    assert rows.shape == (2000, size)
    assert all(len(set(row)) == size for row in rows.tolist())
    # Every index is alike likely: counts are binomial about 2000·size/population.
    counts = np.bincount(rows.ravel(), minlength=population)
    share = size / population
    spread = np.sqrt(max(2000 * share * (1 - share), 1e-9))
    assert np.all(np.abs(counts - 2000 * share) <= 4.5 * spread + 1e-6)


def test_more_distinct_rows_than_there_are():
    with pytest.raises(ValueError, match="size=7"):
        distinct(draws("cpu", 0), 1, 7, 6)


def test_arrays_of_the_caller_go_to_the_device():
    assert isinstance(STREAMS["torch"]("a").take(np.ones(2)), torch.Tensor)
    assert isinstance(STREAMS["numpy"]("a").take(np.ones(2)), np.ndarray)
