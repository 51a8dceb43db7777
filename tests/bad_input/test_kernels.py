"""Kernels and counts that mean nothing are refused when they are made or first used."""

import numpy as np
import pytest
import torch

import smmd

Z = np.random.default_rng(0).standard_normal((10, 3))


@pytest.mark.parametrize("kernel", [smmd.Gaussian, smmd.IMQ, smmd.Adaptive, smmd.Sliced])
def test_widths_that_are_none(kernel):
    name = "gamma" if kernel is smmd.Sliced else "scale"
    for value in (0, -1, 0.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"{name} must be positive and finite, got"):
            kernel(value)
    for value in ("1/8", True, 1j, np.ones(2), torch.tensor(0.5)):
        with pytest.raises(TypeError, match=f"{name} must be a positive number, got"):
            kernel(value)
    assert kernel(np.float32(0.5)) == kernel(0.5)


def test_scale_and_gamma_exclude_each_other():
    for kernel in (smmd.Gaussian, smmd.IMQ):
        with pytest.raises(ValueError, match="scale or gamma, not both: got scale=1, gamma=2"):
            kernel(1, gamma=2)


def test_scales_that_are_none():
    with pytest.raises(ValueError, match="scales is empty; give at least one scale, such as"):
        smmd.MultiScale(())
    with pytest.raises(ValueError, match="scales must be positive and finite, got -1"):
        smmd.MultiScale((1, -1))
    for scales in (0.5, "abc", (1, "2")):
        with pytest.raises(TypeError, match="scales must be a sequence of positive numbers"):
            smmd.MultiScale(scales)


@pytest.mark.parametrize("kernel", [smmd.Gaussian, 0.125, "gaussian"])
def test_what_is_no_kernel(kernel):
    for call in (
        lambda: smmd.mmd2(Z, kernel),
        lambda: smmd.smmd(Z, kernel=kernel),
        lambda: smmd.null_variance(10, 3, kernel),
        lambda: smmd.witness(Z, Z, kernel),
        lambda: smmd.optimal_shift(Z, kernel),
        lambda: smmd.explain(Z, kernel),
    ):
        with pytest.raises(TypeError, match=r"kernel must be one of smmd.Gaussian"):
            call()


def test_arguments_of_smmd_that_exclude_each_other():
    with pytest.raises(ValueError, match=r"adaptive=True and kernel=... exclude each other"):
        smmd.smmd(Z, adaptive=True, kernel=smmd.IMQ())
    with pytest.raises(ValueError, match=r"scale=0.5 and kernel=.* exclude each other"):
        smmd.smmd(Z, 0.5, kernel=smmd.IMQ())
    with pytest.raises(TypeError, match=r"pass it as kernel=IMQ\(scale=0.125\)"):
        smmd.smmd(Z, smmd.IMQ())


@pytest.mark.parametrize(("scale", "d"), [(1e-9, 512), (1e-12, 128)])
def test_kernels_of_which_nothing_is_left(scale, d):
    z = np.zeros((5, d))
    for call in (
        lambda: smmd.smmd(z, scale),
        lambda: smmd.smmd(torch.tensor(z), scale),
        lambda: smmd.null_variance(5, d, smmd.Gaussian(scale)),
    ):
        with pytest.raises(ValueError, match=f"{scale!r}.*too narrow in d={d} dim.*larger scale"):
            call()


def test_widths_beyond_float64():
    with pytest.raises(ValueError, match=r"squared width γ² = 3e-200, outside.*nearer to 1/8"):
        smmd.smmd(Z, 1e-200)
    with pytest.raises(ValueError, match="outside"):
        smmd.mmd2(Z, smmd.Sliced(1e80))


def test_counts_that_are_none():
    for n, d, error, message in (
        (1, 3, ValueError, "n must be at least 2, got 1"),
        (10, 0, ValueError, "d must be at least 1, got 0"),
        (10.5, 3, TypeError, "n must be a whole number, got 10.5"),
        ("a", 3, TypeError, "n must be a whole number, got 'a'"),
        (10, None, TypeError, "d must be a whole number, got None"),
        (float("inf"), 3, TypeError, "n must be a whole number, got inf"),
        (True, 3, TypeError, "n must be a whole number, got True"),
    ):
        for function in (smmd.null_variance, smmd.null_mean):
            with pytest.raises(error, match=message):
                function(n, d)
    assert smmd.null_variance(np.int64(10), 3.0) == smmd.null_variance(10, 3)
    assert smmd.null_variance(1, 3, unbiased=False) > 0.0
