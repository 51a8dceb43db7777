"""Triton kernels of CodeNorm and SlicedLoss: right in the interpreter, and they compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]


def work(folder, interpret, *arguments):
    here = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    here.update({"TRITON_INTERPRET": "1"} if interpret else {})
    done = subprocess.run(
        [sys.executable, "-m", "tests.torch_layers.triton_worker", *arguments],
        env={**here, "TRITON_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"},
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


@pytest.mark.parametrize("layer", ["norm", pytest.param("slices", marks=pytest.mark.slow)])
def test_kernels_give_what_operators_give(tmp_path, layer):
    assert work(tmp_path, True, layer) == ["ok"]


@pytest.mark.slow
def test_kernels_compile_for_a_gpu(tmp_path):
    names = work(tmp_path, False, "compile")
    norm = ["standardize_rows", "standardize_rows", "standardize_rows_backward"]
    assert names == norm + 2 * ["wave_sums", "wave_slopes"]
