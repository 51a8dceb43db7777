"""``smmd evaluate`` and ``smmd sample`` on real, tiny runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

import smmd
from tests.wae.standin import digits


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two seeds, an epoch each, of a few digits kept in a file."""
    top = tmp_path_factory.mktemp("runs")
    data = digits(300, 120)
    np.savez(
        top / "digits.npz",
        x_train=data.train,
        x_test=data.test,
        y_train=data.train_labels,
        y_test=data.test_labels,
    )
    smmd.wae.fit(top / "digits.npz", out=top / "several", seeds=2, epochs=1, latent=2)
    return top


def test_one_run(run, folder):
    where = folder / "several" / "seed-0"
    outcome = run("evaluate", where)
    assert outcome.status == 0, outcome.err
    assert "seed-0: code-norm on digits, d = 2, seed 0" in outcome.out
    assert "B-statistic" in outcome.out
    assert f"Seen in {where / 'report.html'}" in outcome.out
    assert (where / "report.html").is_file()
    kept = json.loads((where / "evaluation.json").read_text(encoding="utf-8"))
    again = run("evaluate", where, "--json", "--no-report")
    assert json.loads(again.out) == kept
    assert kept["mse"] == pytest.approx(smmd.wae.load(where).log[-1]["val_mse"], rel=1e-4)


def test_several_seeds_and_their_spread(run, folder):
    where = folder / "several"
    outcome = run("evaluate", where)
    assert outcome.status == 0, outcome.err
    lines = outcome.out.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:5]] == [
        "mean",
        "sd",
        "seed 0",
        "seed 1",
    ]
    assert "of 2 seeds. Test MSE" in outcome.out
    kept = json.loads((where / "evaluation.json").read_text(encoding="utf-8"))
    each = [run_["mse"] for run_ in kept["runs"]]
    assert kept["mean"]["mse"] == pytest.approx(np.mean(each))
    assert kept["sd"]["mse"] == pytest.approx(np.std(each, ddof=1))
    for page in ("report.html", "seed-0/report.html", "seed-1/report.html"):
        assert (where / page).is_file()
    shown = json.loads(run("evaluate", where, "--json", "--no-report").out)
    assert shown["seeds"] == [0, 1]
    assert shown["each"]["mse"] == each


def test_samples_in_every_form(run, folder):
    where = folder / "several" / "seed-1"
    assert run("sample", where, "-n", "9").out == f"9 images in {where / 'samples.png'}\n"
    with Image.open(where / "samples.png") as sheet:
        assert sheet.size == (84, 84)
    array = folder / "x.npy"
    assert run("sample", where, "--n", "5", "--seed", "3", "-o", array).status == 0
    first = np.load(array)
    assert (first.shape, first.dtype) == ((5, 28, 28, 1), np.uint8)
    run("sample", where, "--n", "5", "--seed", "3", "-o", array)
    assert np.array_equal(np.load(array), first)
    loaded = smmd.wae.load(where)
    expected = loaded.decode(np.random.default_rng(3).standard_normal((5, 2)))
    assert np.abs(first[..., 0] - expected[:, 0] * 255).max() <= 0.51
    outcome = run("sample", where, "-n", "12", "--interpolate", "6", "-o", folder / "ways")
    assert "12 images in" in outcome.out
    assert len(list((folder / "ways").glob("*.png"))) == 12
    run("sample", where, "-n", "16", "--slice", "--reach", "2", "-o", folder / "slice.png")
    with Image.open(folder / "slice.png") as sheet:
        assert sheet.size == (112, 112)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "nothing"], "is not the folder of a run: no config.json"),
        (["sample", "nothing"], "is not the folder of a run: no config.json"),
        (["sample", "several"], "it holds the runs seed-0, seed-1: name one of them"),
        (["sample", "several/seed-0", "--slice", "--interpolate", "3"], "exclude each other"),
        (["sample", "several/seed-0", "--reach", "-1"], "--reach must be positive"),
        (["sample", "several/seed-0", "-o", "x.gif"], "images are written as .png"),
        (["evaluate", "several/seed-0", "--device", "teapot"], "--device 'teapot' cannot be used"),
    ],
)
def test_mistakes_end_in_one_line(run, folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    outcome = run(*arguments)
    assert outcome.status == 2
    assert message in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1


def test_numbers_out_of_range_are_named(run, folder):
    outcome = run("sample", folder / "several" / "seed-0", "-n", "0")
    assert outcome.status == 2
    assert "'-n' / '--n'" in outcome.err


def test_data_that_changed_since_training_are_refused(run, folder):
    smmd.wae.fit(folder / "digits.npz", out=folder / "changed", epochs=1, latent=1)
    data = digits(300, 130)
    copy = folder / "digits.npz"
    before = copy.read_bytes()
    try:
        np.savez(copy, x_train=data.train, x_test=data.test)
        outcome = run("evaluate", folder / "changed")
    finally:
        copy.write_bytes(before)
    assert outcome.status == 2
    assert "is not what the run was trained on" in outcome.err


def test_help_says_what_is_written(run):
    assert "evaluation.json and report.html into RUN" in " ".join(run("evaluate", "-h").out.split())
    assert "--interpolate" in run("sample", "-h").out
