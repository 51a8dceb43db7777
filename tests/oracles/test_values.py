"""MMD² and SMMD² of every kind of sample under kernels of every width, against 50 digits."""

import numpy as np
import pytest
import torch

import smmd
from tests import cases, exact

#: The oracle of the inverse multiquadric takes a second each: here a few, and all of them in
#: `python -m benchmarks.accuracy`.
IMQ_PAIRS = {
    ("normal 8x2", "IMQ(0.125)"),
    ("normal 5x32", "IMQ(1e-06)"),
    ("one point at 1e6, 6x4", "IMQ(0.125)"),
    ("one point at 1e6, 6x4", "IMQ(1e+09)"),
    ("shifted by 1e6, 6x3", "IMQ(1000)"),
    ("all at 1, 5x8", "IMQ(0.125)"),
}


def pairs():
    for _, name, z in cases.samples():
        for case in cases.KERNELS:
            if case.label.startswith("IMQ") and (name, case.label) not in IMQ_PAIRS:
                continue
            if not (case.kernel.adaptive and not z.any()):  # no width for points on the origin
                yield name, case


def truths(case, z):
    """The oracle's unbiased and biased MMD² and SMMD²."""
    oracle = case.oracle(z)
    unbiased = exact.mmd2(oracle, z)
    spread = exact.mp.sqrt(exact.null_variance(oracle, len(z)))
    return unbiased, exact.mmd2(oracle, z, unbiased=False), unbiased / spread


@pytest.mark.parametrize(("name", "case"), list(pairs()), ids=str)
def test_values(name, case):
    z = cases.sample(name)
    if not cases.worth_trying(case, z):
        with pytest.raises(ValueError, match=f"too narrow in d={z.shape[1]} dimensions"):
            smmd.smmd(z, kernel=case.kernel)
        return
    unbiased, biased, standardized = truths(case, z)
    for x in (z, torch.tensor(z)):
        for got, truth in (
            (smmd.mmd2(x, case.kernel), unbiased),
            (smmd.mmd2(x, case.kernel, unbiased=False), biased),
            (smmd.smmd(x, kernel=case.kernel), standardized),
        ):
            assert got.dtype == x.dtype
            assert cases.error(got, truth) <= cases.DOUBLE

    single = z.astype(np.float32)
    if not np.array_equal(single, z):
        again = single.astype(np.float64)
        if not cases.worth_trying(case, again):
            return
        unbiased, biased, standardized = truths(case, again)
    for x in (single, torch.tensor(single)):
        for got, truth in (
            (smmd.mmd2(x, case.kernel), unbiased),
            (smmd.mmd2(x, case.kernel, unbiased=False), biased),
            (smmd.smmd(x, kernel=case.kernel), standardized),
        ):
            assert got.dtype == x.dtype
            assert np.isfinite(float(got))
            if abs(truth) < float(np.finfo(np.float32).max):  # else the largest float32
                assert cases.error(got, truth) <= cases.SINGLE


def test_the_samples_are_of_every_kind():
    kinds = {kind for kind, _, _ in cases.samples()}
    assert kinds == {
        "ordinary", "two points", "high dimension", "far away", "near-duplicates", "collapsed",
        "all equal",
    }  # fmt: skip
    assert len(list(pairs())) > 500


def test_error_counts_relative_to_one_or_the_value():
    assert cases.error(1e-13, exact.mpf(0)) == pytest.approx(1e-13)
    assert cases.error(1e6 + 1e-6, exact.mpf(10) ** 6) == pytest.approx(1e-12, rel=1e-3)
    assert cases.error(float("nan"), exact.mpf(0)) == float("inf")


def test_largest_finite_numbers():
    """No NaN or infinity on any input that the type can hold."""
    for x in (
        np.array([[3e38, -3e38], [1e38, 2.0], [0.0, 1e-40]], dtype=np.float32),
        np.array([[1e150, -1e150], [1.0, 2.0], [0.0, 1e-310]]),
        np.full((4, 3), 3.4e38, dtype=np.float32),
    ):
        for kernel in (
            smmd.Gaussian(), smmd.Gaussian(1e9), smmd.Gaussian(1e-6), smmd.HenzeZirkler(),
            smmd.Adaptive(), smmd.MultiScale(), smmd.IMQ(), smmd.IMQ(1e9), smmd.Sliced(),
        ):  # fmt: skip
            for sample in (x, torch.tensor(x)):
                assert np.isfinite(float(smmd.smmd(sample, kernel=kernel)))
                assert np.isfinite(float(smmd.mmd2(sample, kernel)))
            _, gradient = smmd.value_and_grad(x, kernel)
            assert np.isfinite(gradient).all()
            point = torch.tensor(x, requires_grad=True)
            smmd.smmd(point, kernel=kernel).backward()
            assert point.grad is not None
            assert torch.isfinite(point.grad).all()
