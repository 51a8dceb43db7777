"""``fit`` and what it returns, from Python and from the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import smmd
from smmd.wae import Run, fit, load
from smmd.wae.config import PRESETS, Config, choose

SMALL = {"batch": 50, "latent": 2, "threads": 1}


@pytest.fixture(scope="module")
def run(spots) -> Run:
    return fit(spots, epochs=30, **SMALL)


def test_it_learns(run, spots):
    # Spots are a two-dimensional family: two codes say most about them, one image nothing.
    assert run.log[-1]["val_mse"] < 0.3 * spots.test.var() / 255**2
    assert run.log[-1]["mse"] < run.log[0]["mse"]
    assert run.epoch == 30
    assert run.finished


def test_codes_and_images_are_numpy(run, spots):
    codes = run.encode(spots.test)
    assert codes.shape == (200, 2)
    assert codes.dtype == np.float32
    pictures = run.decode(codes)
    assert pictures.shape == spots.test.shape
    assert 0 <= pictures.min() <= pictures.max() <= 1
    mse = np.mean((pictures - spots.test / 255.0) ** 2)
    assert mse == pytest.approx(run.log[-1]["val_mse"], rel=1e-4)
    # Another number of images at once rounds differently.
    np.testing.assert_allclose(run.reconstruct(spots.test[:9]), pictures[:9], atol=1e-5)
    # Floating-point images are the same images.
    floats = (spots.test / 255).astype(np.float32)
    np.testing.assert_allclose(run.encode(floats), codes, atol=1e-4)
    # Held-out batches are drawn by lot, always the same one.
    lot = torch.randperm(200, generator=torch.Generator().manual_seed(0)).numpy()
    values = [smmd.smmd(batch) for batch in codes[lot].reshape(-1, 50, 2).astype(float)]
    assert np.mean(values) == pytest.approx(run.log[-1]["b"], rel=1e-3)


def test_samples(run):
    assert run.sample(3, rng=0).shape == (3, 1, 8, 8)
    np.testing.assert_array_equal(run.sample(3, rng=0), run.sample(3, rng=0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.encode(np.zeros((3, 1, 9, 8), np.uint8)), "trained on"),
        (lambda run: run.decode(np.zeros((3, 4))), r"\(n, 2\), got \(3, 4\)"),
    ],
)
def test_other_shapes_are_refused(run, call, words):
    with pytest.raises(ValueError, match=words):
        call(run)


def test_random_encoders_give_means_or_draws(spots):
    run = fit(spots, version="random", epochs=1, **SMALL)
    mean, variance = run.encode_moments(spots.test)
    np.testing.assert_array_equal(run.encode(spots.test), mean)
    draws = np.stack([run.encode(spots.test, rng=seed) for seed in range(200)])
    deviations = (draws - mean) / np.sqrt(variance)
    assert abs(deviations.mean()) < 5 / np.sqrt(deviations.size)
    assert abs(deviations.var() - 1) < 5 * np.sqrt(2 / deviations.size)
    np.testing.assert_array_equal(run.encode(spots.test, rng=1), draws[1])


def test_the_same_seed_is_the_same_run(run, spots):
    again = fit(spots, epochs=30, **SMALL)
    for first, second in zip(run.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(first, second)


def _own():
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    return encoder, nn.Sequential(nn.Linear(2, 64), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))


def test_own_networks(spots_file, tmp_path):
    run = fit(spots_file, networks=_own(), out=tmp_path / "own", epochs=2, **SMALL)
    assert run.config.network == "custom"
    again = load(tmp_path / "own", networks=_own)
    pictures = run.dataset().test
    np.testing.assert_array_equal(again.encode(pictures), run.encode(pictures))
    with pytest.raises(ValueError, match="networks="):
        load(tmp_path / "own")
    runs = fit(spots_file, networks=_own, seeds=2, epochs=1, **SMALL)
    assert len(runs) == 2
    with pytest.raises(ValueError, match="function"):
        fit(spots_file, networks=_own(), seeds=2, epochs=1, **SMALL)


def test_an_array_in_memory_is_not_kept(tmp_path, spots):
    fit(spots, out=tmp_path / "run", epochs=1, **SMALL)
    with pytest.raises(ValueError, match="array in memory"):
        load(tmp_path / "run").dataset()
    again = load(tmp_path / "run", data=spots)
    assert again.dataset() is spots
    with pytest.raises(ValueError, match="checksum"):
        load(tmp_path / "run", data=spots.train)
    # With the same array again it can be continued.
    assert fit(spots, out=tmp_path / "run", resume=True).finished


def test_presets():
    paper = choose("paper")
    assert paper.stages == ((20, 0.001), (20, 0.001 / 4), (20, 0.001 / 16))
    assert (paper.batch, paper.weight, paper.scale, paper.latent) == (100, 0.01, 1 / 8, 8)
    assert choose("paper", version="adaptive-bn").stages[0] == (40, 0.001)
    assert choose("paper", epochs=6).stages == ((2, 0.001), (2, 0.001 / 4), (2, 0.001 / 16))
    for preset in PRESETS:
        config = choose(preset)
        assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "papr"}, "preset must be one of"),
        ({"version": "bn"}, "version must be one of"),
        ({"network": "vgg"}, "network must be one of"),
        ({"precision": "int8"}, "precision must be one of"),
        ({"latent": 0}, "latent must be at least 1"),
        ({"batch": 1}, "batch must be at least 2"),
        ({"batch": 2.5}, "batch must be a whole number"),
        ({"weight": -1}, "weight must be"),
        ({"scale": 0}, "scale must be"),
        ({"momentum": 1.0}, "momentum must be"),
        ({"threads": 0}, "threads must be"),
        ({"epochs": 0}, "epochs must be"),
        ({"epochs": 2.5}, "epochs must be"),
        ({"stages": ()}, "stages is empty"),
        ({"stages": ((1.5, 0.1),)}, "a stage is"),
        ({"stages": ((1, -0.1),)}, "learning rate"),
        ({"lattent": 3}, "unknown option lattent"),
        ({"seeds": 0}, "seeds must be"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"batch": 500}, "only 400"),
    ],
)
def test_mistakes_are_named(spots, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fit(spots, **options)


def test_images_that_are_read_only_are_taken_without_a_warning(spots):
    for part in (spots.train, spots.test):
        part.flags.writeable = False
    try:
        assert fit(spots, epochs=1, **SMALL).finished
    finally:
        for part in (spots.train, spots.test):
            part.flags.writeable = True


def test_bf16_only_where_it_was_compared(monkeypatch):
    from smmd.wae import training

    gpu = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    asked = choose("paper")
    assert training._precision(asked, torch.device("cpu")) == "float32"
    assert training._precision(asked, gpu) == "bf16"
    assert training._precision(replace(asked, precision="tf32"), gpu) == "tf32"
    assert training._precision(replace(asked, network="residual"), gpu) == "tf32"
    assert training._precision(choose("paper", version="random"), gpu) == "tf32"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert training._precision(asked, gpu) == "tf32"
