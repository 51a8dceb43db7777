"""``benchmarks.mnist``: what it keeps, also of a training that ends early, and its page."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import _mnist_page, mnist
from smmd.wae import session


@pytest.fixture
def arguments(spots_file, tmp_path, monkeypatch):
    out = tmp_path / "results"
    options = ["--data", spots_file, "--out", out, "--preset", "quick", "--epochs", "2"]
    monkeypatch.setattr(sys, "argv", ["mnist", *map(str, options), "--seeds", "1,2"])
    return out


def test_results_and_page(arguments, tmp_path):
    with pytest.raises(SystemExit) as ended:
        mnist.main()
    assert ended.value.code == 0
    results = json.loads((arguments / "results.json").read_text())
    assert [part["seeds"] for part in results["parts"]] == [1, 2]
    two = results["parts"][1]
    assert [row["seed"] for row in two["measures"]] == [0, 1]
    assert two["measures"][0]["mse"] == pytest.approx(two["log"][-1][0]["val_mse"], rel=1e-4)
    assert two["train_s"] == pytest.approx(sum(r["seconds"] for rows in two["log"] for r in rows))
    with np.load(arguments / "codes.npz") as codes:
        assert {name: codes[name].shape for name in codes.files} == {
            "seed_0": (200, 8),
            "seed_1": (200, 8),
        }
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    shutil.copy(Path(_mnist_page.DOCS) / "training.md", docs)
    for _ in range(2):  # written again, it takes the same place
        _mnist_page.write(arguments, docs)
    text = (docs / "training.md").read_text(encoding="utf-8")
    assert text.count("<!-- mnist -->") == 1
    written = text.partition("<!-- mnist -->")[2].partition("<!-- /mnist -->")[0]
    assert written.count("| test MSE |") == 1
    assert f"| 2 | {two['train_s']:.1f} |" in written
    assert (docs / "images" / "mnist.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_done_is_kept(arguments, monkeypatch):
    true = session.Session._epoch

    def epoch(self, number):
        if number == 2 and len(self.learners) == 2:
            raise RuntimeError("the machine went away")
        return true(self, number)

    monkeypatch.setattr(session.Session, "_epoch", epoch)
    with pytest.raises(SystemExit) as ended:
        mnist.main()
    assert ended.value.code == 1
    one, two = json.loads((arguments / "results.json").read_text())["parts"]
    assert "measures" in one
    assert len(two["log"]) == 1
    assert "the machine went away" in two["error"]
