"""Keras 3 on its torch and JAX backends, a process each, against the NumPy functions.

The same answers on TensorFlow, which is no dependency of the tests:
``KERAS_BACKEND=tensorflow python -m tests.keras_layers.worker folder``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import smmd

N, D = 32, 3
KERNELS = {
    "gaussian": smmd.Gaussian(),
    "adaptive": smmd.Adaptive(1 / 4),
    "scales": smmd.MultiScale((1 / 16, 1 / 4)),
    "imq": smmd.IMQ(),
    "sliced": smmd.Sliced(),
}
#: SMMD² in float32 promises 5 digits; JAX sums in float32.
SINGLE = 1e-4


def codes(n=N, seed=0):
    return (1.3 * np.random.default_rng(seed).standard_normal((n, D)) + 0.3).astype(np.float32)


@pytest.fixture(scope="module")
def all_answers(tmp_path_factory):
    """Both backends at once: starting one takes most of the time."""
    folder = tmp_path_factory.mktemp("keras")
    root = Path(__file__).parents[2]
    # Keras itself still calls NumPy in a way that NumPy 2 deprecates.
    command = [sys.executable, "-W", "error", "-W", "ignore:__array__:DeprecationWarning"]
    running = {}
    for backend in ("torch", "jax"):
        (folder / backend).mkdir()
        running[backend] = subprocess.Popen(
            [*command, "-m", "tests.keras_layers.worker", str(folder / backend)],
            env={**os.environ, "KERAS_BACKEND": backend}, cwd=root,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    found = {}
    for backend, process in running.items():
        said, _ = process.communicate(timeout=400)
        assert process.returncode == 0, said[-4000:]
        found[backend] = json.loads((folder / backend / f"{backend}.json").read_text())
    return found


@pytest.fixture(params=["torch", "jax"])
def answers(request, all_answers):
    return all_answers[request.param]


@pytest.mark.parametrize("name", KERNELS)
def test_penalty_is_the_functions_value(answers, name):
    z = codes().astype(np.float64)
    assert answers["penalties"][name]["same"]
    expected = 0.5 * smmd.smmd(z, kernel=KERNELS[name])
    assert answers["penalties"][name]["loss"] == pytest.approx(expected, abs=SINGLE)


@pytest.mark.parametrize("name", ["gaussian", "sliced"])
def test_gradient_reaches_the_encoder_undivided(answers, name):
    # One step of rate 1 on a linear encoder W at W = I moves it by z' ∂SMMD²/∂z.
    z = codes().astype(np.float64)
    _, slope = smmd.value_and_grad(z, KERNELS[name])
    expected = z.T @ slope
    found = np.array(answers["steps"][name])
    np.testing.assert_allclose(found, expected, atol=SINGLE * abs(expected).max())


def test_random_encoder(answers):
    expected = smmd.smmd(codes().astype(np.float64), var=np.full((N, D), 0.2))
    assert answers["encoder"] == pytest.approx(expected, abs=SINGLE)


def test_code_norm(answers):
    found, z, other = answers["code norm"], codes(), codes(seed=1)
    np.testing.assert_allclose(found["train"], smmd.standardize(z), atol=2e-6)
    mean = 0.1 * (0.9 * z.mean(0) + other.mean(0))
    var = 0.81 + 0.1 * (0.9 * z.var(0, ddof=1) + other.var(0, ddof=1))
    np.testing.assert_allclose(found["mean"], mean, atol=1e-6)
    np.testing.assert_allclose(found["var"], var, rtol=1e-5)
    np.testing.assert_allclose(found["eval"], (z - mean) / np.sqrt(var), atol=1e-5)
    assert (found["weights"], found["trainable"]) == (["moving_mean", "moving_variance"], 0)
    assert found["half dtype"] == "float16"
    np.testing.assert_allclose(found["half"], smmd.standardize(z), atol=2e-3)


def test_metric_is_the_b_statistic(answers):
    values = [smmd.smmd(codes(seed=seed).astype(np.float64)) for seed in range(4)]
    assert answers["metric"]["result"] == pytest.approx(np.mean(values), abs=SINGLE)
    assert answers["metric"]["again"] == pytest.approx(values[0], abs=SINGLE)
    assert answers["metric"]["verdict"].startswith("B = 1.03 over 4 batches is in the three-sigma")


def test_metric_of_a_named_output(answers):
    whole = codes(64).astype(np.float64)
    expected = np.mean([smmd.smmd(whole[:32]), smmd.smmd(whole[32:])])
    assert answers["named"]["code_smmd"] == pytest.approx(expected, abs=SINGLE)


def test_papers_listing_trains_saves_and_loads(answers):
    found = answers["training"]
    assert found["same"]
    assert found["goes on"] == 1
    assert {"CodeNorm", "SMMDPenalty"} <= set(found["kinds"])
    assert found["evaluated"][0] == pytest.approx(found["evaluated"][1], rel=1e-6)


def test_callback_logs_flat_floats(answers):
    found = answers["training"]
    history, z = found["history"], np.array(found["codes"])
    expected = np.mean([smmd.smmd(z[:32]), smmd.smmd(z[32:])])
    assert history["val_smmd_b"][-1] == pytest.approx(expected, rel=1e-3)
    assert history["val_smmd_b_high"][-1] == pytest.approx(3 / np.sqrt(2))
    assert found["batches"] == 6
    # Codes normalized by their own batch: the band lies lower.
    assert "normalized by itself" in found["train"]
    low, high = history["smmd_e_low"][-1], history["smmd_e_high"][-1]
    assert 0.5 * (low + high) < -0.02
    assert "normalized by itself" not in found["validation"]


def test_errors_say_what_to_do(answers):
    said = answers["errors"]
    assert "Flatten" in said["images"]
    assert "training=False" in said["one row"]
    assert "Gaussian, HenzeZirkler" in said["kernel"]
    assert "encoder and x together" in said["half"]
