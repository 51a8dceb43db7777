"""No n×n array on the way: memory above the input is a few blocks and what is linear in n.

`python -m benchmarks.memory` measures the full size, 100,000 × 8, in a process of its own.
"""

import tracemalloc

import numpy as np
import pytest

import smmd


def peak(function):
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_value_and_gradient_are_linear_in_n(dtype):
    """20 copies of the sample and 60 MB of blocks; an n×n array of 12,000 points has 1.1 GB."""
    n, d = 12_000, 8
    z = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    smmd.value_and_grad(z[:2000])  # imports, caches
    assert peak(lambda: smmd.value_and_grad(z)) < 20 * n * d * 8 + 60e6


def test_the_other_functions_too():
    z = np.random.default_rng(1).standard_normal((6000, 4))
    kernels = (smmd.Gaussian(), smmd.IMQ(), smmd.Sliced(), smmd.MultiScale())
    for kernel in kernels:
        assert peak(lambda kernel=kernel: smmd.smmd(z, kernel=kernel)) < 80e6
    assert peak(lambda: smmd.witness(z, z[:3000])) < 150e6
    assert peak(lambda: smmd.mardia(z)) < 150e6


def test_far_points_take_differences_in_blocks():
    z = 1e6 * np.random.default_rng(2).standard_normal((4000, 8))
    assert peak(lambda: smmd.value_and_grad(z)) < 80e6
