"""Every example runs, in a few steps, and shows what it says."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
CHECKS = {}


def check(function):
    CHECKS[function.__name__] = function
    return function


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for path in FOLDER.glob("*.py"):
        sys.modules.pop(path.stem, None)


@check
def torch_loop(module, folder, said):
    found = module.main(steps=80)
    assert found[0.01] < 0.5 * found[0.0]
    assert said().count("three-sigma band") == 2


@check
def random_encoder(module, folder, said):
    module.main(steps=5)
    assert "mean σ" in said()


@check
def jax_loop(module, folder, said):
    before, after = module.main(steps=100)
    assert after < before


@check
def ddp(module, folder, said):
    # float32 sums of 96 rows in another order.
    assert module.main() < 1e-5


@check
def sigreg_migration(module, folder, said):
    (normal, low, shifted) = module.main()
    assert abs(normal[0] - 1.0524) < 4 * 0.091
    for _, converted, exact in (low, shifted):
        # 1024 directions out of all: some percent of a value far from zero.
        assert converted == pytest.approx(exact, rel=0.1)


@check
def monitors(module, folder, said):
    found = module.main()
    assert found["b"].converged
    assert found["e"].converged
    assert not found["naive"].converged
    assert not found["off"].converged
    assert "That is no overfitting" in said()


@check
def weight_carries_over(module, folder, said):
    module.RUNS[2:] = []
    module.main(steps=3)
    first, second = said().splitlines()[1:]
    plain, raw = (part.strip() for part in first.split("|")[3:])
    assert plain == raw  # the same loss
    assert len(set(second.split("|")[2:])) == 3  # three different ones


@check
def lightning_run(module, folder, said):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's own
        verdicts = module.main(folder, epochs=1)
    assert set(verdicts) == {"train", "validation"}
    assert "B by epoch: " in said()


@check
def keras_wae(module, folder, said):
    """In a process of its own, since Keras chooses its backend when it is imported."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "keras_wae.py")], cwd=folder, check=True, text=True,
        env={**os.environ, "KERAS_BACKEND": "torch"}, capture_output=True,
    )  # fmt: skip
    losses = [float(v) for v in done.stdout.splitlines()[0].split()[1:]]
    assert losses[-1] < losses[0]
    assert "each normalized by itself" in done.stdout


def test_every_example_is_checked():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(CHECKS)
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path.name


@pytest.mark.parametrize("name", CHECKS)
def test_example(name, example, tmp_path, capsys):
    module = None if name == "keras_wae" else example(name)
    CHECKS[name](module, tmp_path, lambda: capsys.readouterr().out)
