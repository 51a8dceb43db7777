"""Simulated nulls: p-values and thresholds of a list, what is drawn, and where it is computed."""

import functools
import types

import numpy as np
import pytest
import torch

import smmd
from smmd.nulls import NULLS, analytic_law, montecarlo
from smmd.nulls.montecarlo import SimulatedNull

LAW = SimulatedNull(np.arange(1.0, 100.0))  # 1 ... 99: B + 1 = 100
value = functools.partial(smmd.smmd, scale=1 / 8)


def drawn(null="normal", n_resamples=300, **options):
    return montecarlo.simulate(value, null, 20, 3, n_resamples=n_resamples, **options)


@pytest.mark.parametrize(
    ("x", "p"), [(0.0, 1.0), (1.0, 1.0), (1.5, 0.99), (95.0, 0.06), (99.0, 0.02), (1e9, 0.01)]
)
def test_a_p_value_counts_the_sample_itself(x, p):
    """(k + 1)/(B + 1), k values being at least x."""
    assert LAW.sf(x) == pytest.approx(p, abs=1e-15)
    assert LAW.standard_error(p) == pytest.approx(np.sqrt(p * (1 - p) / 100))


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.051, 0.3, 0.999])
def test_a_threshold_is_where_p_reaches_alpha(alpha):
    threshold = LAW.isf(alpha)
    assert LAW.sf(np.nextafter(threshold, np.inf)) <= alpha < LAW.sf(threshold) + 0.01 + 1e-12
    assert LAW.isf_standard_error(0.3) == pytest.approx(np.sqrt(0.3 * 0.7 * 99), abs=1.0)


def test_too_few_values_say_nothing_about_a_small_level():
    assert LAW.isf(0.0099) == np.inf


@pytest.mark.parametrize("divisor", ["n-1", "n"])
def test_samples_are_normalized_as_the_nulls_say(divisor):
    z = np.random.default_rng(0).gamma(2.0, size=(5, 30, 4))
    assert montecarlo.normalize(z, "standard") is z
    scaled = montecarlo.normalize(z, "diagonal", divisor=divisor)
    whitened = montecarlo.normalize(z, "normal", divisor=divisor)
    ddof = 1 if divisor == "n-1" else 0
    np.testing.assert_allclose(scaled.std(axis=1, ddof=ddof), 1.0)
    for sample in whitened:
        np.testing.assert_allclose(sample.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.cov(sample.T, ddof=ddof), np.eye(4), atol=1e-12)


def test_values_do_not_depend_on_batches_but_on_the_seed():
    base = drawn(rng=7)
    np.testing.assert_allclose(drawn(rng=7, batch=11), base, atol=1e-12)
    np.testing.assert_allclose(drawn(rng=np.random.default_rng(7)), base, atol=1e-12)
    np.testing.assert_array_equal(drawn(), drawn())  # without a seed: always the same ones
    assert not np.array_equal(drawn(rng=8), base)
    assert np.all(np.diff(base) >= 0.0)


@pytest.mark.parametrize("null", NULLS)
def test_the_values_have_the_exact_mean_and_variance(null):
    values = drawn(null, 4000, rng=3)
    law = analytic_law(null, 20, 3, 3 / 8)
    assert abs(values.mean() - law.mean) < 4 * law.sd / np.sqrt(values.size)
    assert values.std() == pytest.approx(law.sd, rel=4 * np.sqrt((2 + 3) / (4 * values.size)))


class TestTheGPU:
    def test_is_not_looked_for_without_one(self):
        z = np.zeros((2, 3, 1))
        assert torch.cuda.is_available() or montecarlo.on_fast_device(z) is z

    def test_computes_the_same_values_from_the_same_draws(self, monkeypatch):
        """A stand-in that is asked for "cuda" and answers with tensors on the CPU."""
        asked = []

        def as_tensor(z, device):
            asked.append(device)
            return torch.as_tensor(z)

        stand_in = types.SimpleNamespace(
            cuda=types.SimpleNamespace(is_available=lambda: True), as_tensor=as_tensor
        )
        plain = drawn(rng=5)
        with monkeypatch.context() as patch:
            patch.setattr(montecarlo, "sys", types.SimpleNamespace(modules={"torch": stand_in}))
            fast = drawn(rng=5)
        assert asked == ["cuda"]
        np.testing.assert_allclose(fast, plain, atol=1e-10)
