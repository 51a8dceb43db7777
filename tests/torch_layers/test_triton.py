"""CodeNorm's Triton kernels: right in the interpreter, and accepted by the compiler."""

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


def test_kernels_give_what_operators_give(tmp_path):
    assert work(tmp_path, True) == ["ok"]


@pytest.mark.slow
def test_kernels_compile_for_a_gpu(tmp_path):
    names = work(tmp_path, False, "compile")
    assert names == ["standardize_rows", "standardize_rows", "standardize_rows_backward"]
