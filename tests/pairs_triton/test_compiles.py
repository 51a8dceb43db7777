"""The kernels compile for a Hopper GPU, which needs none: the interpreter takes more than does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")


@pytest.mark.slow
def test_every_kernel_compiles(tmp_path):
    """On a machine with a GPU the same would be found out at the first call."""
    here = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("compiler.py"))],
        env={**here, "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    names = set(done.stdout.split())
    assert names == {"direct", "split", "gram", "apply_weights", "finish", "mixture_table"}
