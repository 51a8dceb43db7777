"""``smmd train`` as a user meets it."""

import json

import numpy as np
import pytest
import torch

import smmd


@pytest.fixture
def spots(tmp_path):
    grid = np.arange(8)
    at = np.random.default_rng(0).uniform(1, 6, (120, 2, 1))
    rows, cols = np.exp(-((grid - at) ** 2) / 3).transpose(1, 0, 2)
    path = tmp_path / "spots.npy"
    np.save(path, rows[:, :, None] * cols[:, None, :])
    return path


SMALL = ("--batch", 20, "--latent", 2, "--epochs", 2, "--no-report")


def test_a_run_is_kept_and_continued(run, spots, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("train", "--data", spots, *SMALL)
    assert done.status == 0
    assert "epoch 2/2" in done.out
    assert "kept in runs/spots-code-norm" in done.out
    log = (tmp_path / "runs/spots-code-norm/log.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in log] == [1, 2]
    # Python's ``fit`` gives what is kept.
    kept = smmd.wae.load("runs/spots-code-norm")
    same = smmd.wae.fit(spots, batch=20, latent=2, epochs=2)
    for mine, theirs in zip(same.model.parameters(), kept.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert [{**row, "seconds": 0} for row in same.log] == [
        {**row, "seconds": 0} for row in kept.log
    ]
    # A second run gets a folder of its own.
    assert "kept in runs/spots-code-norm-2" in run("train", "--data", spots, *SMALL).out
    again = run(
        "train", "--out", "runs/spots-code-norm", "--resume", "--data", spots, "--no-report"
    )
    assert again.status == 0
    assert "continued after epoch 2" in again.out


def test_several_seeds(run, spots, tmp_path):
    out = tmp_path / "seeds"
    done = run("train", "--data", spots, "--out", out, "--seeds", 2, "--quiet", *SMALL)
    assert done.status == 0
    assert done.out == f"kept in {out}\n"
    assert sorted(p.name for p in out.iterdir()) == ["seed-0", "seed-1"]


def test_it_ends_in_a_report(run, spots, tmp_path):
    out = tmp_path / "run"
    done = run("train", "--data", spots, "--out", out, *SMALL[:-1])
    assert done.status == 0, done.err
    assert "B-statistic" in done.out
    assert (out / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--resume",), "--resume needs --out"),
        (("--data", "nothing-here"), "data='nothing-here'"),
        (("--version", "bn"), "version must be one of code-norm"),
        (("--device", "cuda:99"), "device"),
        (("--latent", "0"), "latent must be at least 1"),
    ],
)
def test_mistakes_are_one_line(run, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("train", *arguments)
    assert done.status == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_a_folder_in_use_is_not_overwritten(run, spots, tmp_path):
    arguments = ("train", "--data", spots, "--out", tmp_path / "run", *SMALL)
    assert run(*arguments).status == 0
    again = run(*arguments)
    assert again.status == 2
    assert "--resume" in again.err
