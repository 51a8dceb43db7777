"""Every Triton kernel against float64, on a CPU in Triton's interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.once import once

pytest.importorskip("triton")

ROOT = Path(__file__).parent.parent.parent
#: SMMD² in null standard deviations, whatever n up to 4096.
VALUE = 1e-4
#: How much of that may come from an error that all pairs share.
SHARED = 2e-5
#: A gradient's relative error, by path.  Differences: rounding, and TF32 products in three parts.
#: At once: weights as two bfloat16.  Strips: weights as one, off by 2^-9 / √3 each at random.
GRADIENT = {"direct": 2e-6, "fused": 1e-4, "strips": 2e-3}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    def make(folder):
        here = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        here["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), here.get("PYTHONPATH")]))
        worker = Path(__file__).with_name("worker.py")
        done = subprocess.run(
            [sys.executable, str(worker), str(folder / "errors.json")],
            env=here, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]

    folder = once(tmp_path_factory, "triton", make)
    return json.loads((folder / "errors.json").read_text())


def of(found, *paths):
    """The cases of these paths; at least one each."""
    cases = {k: v for k, v in found.items() if k.split()[0] in paths}
    assert {k.split()[0] for k in cases} == set(paths)
    return cases


@pytest.mark.parametrize("path", GRADIENT)
def test_value_and_gradient(found, path):
    for name, case in of(found, path).items():
        assert case["value"] < VALUE, name
        assert case.get("alone", 0.0) < VALUE, name
        assert case["gradient"] < GRADIENT[path], name


def test_batches_far_points_and_the_biased_estimator(found):
    for name, case in of(found, "batch", "far", "biased").items():
        assert case["value"] < VALUE, name
        assert case["gradient"] < GRADIENT["direct"], name


def test_half_precision_data_are_rounded_only_at_the_end(found):
    # Eleven and eight bits of the answer, of which the interpreter cuts the rest off.
    for dtype, bits in (("float16", 11), ("bfloat16", 8)):
        case = found[f"type torch.{dtype}"]
        assert case["value"] < 2.0 ** (1 - bits)
        assert case["gradient"] < 2.0 ** (1 - bits)


def test_second_derivative(found):
    assert found["second derivative"]["gradient"] < 1e-5


def test_one_operator_in_one_graph_that_never_waits(found):
    assert found["no waiting"]["value"] < VALUE
    assert found["no waiting"]["gradient"] < GRADIENT["direct"]
    assert found["compiled"] == {"value": 0.0, "gradient": 0.0}
    assert "registry" in found


def test_rows_of_one_rank(found):
    for name, case in of(found, "rows", "ranks,").items():
        path = name.split()[1] if name.startswith("rows") else "direct"
        assert case["value"] < VALUE, name
        assert case.get("gradient", 0.0) < GRADIENT[path], name


def test_profiles_have_no_error_that_all_pairs_share(found):
    """It would be amplified n times: 6e-9 of the sliced kernel's values is 3e-4 in SMMD²."""
    for name, case in of(found, "mean").items():
        assert case["value"] < SHARED, name


def test_rounded_norms_shift_nothing_in_many_dimensions(found):
    for name, case in of(found, "norms").items():
        assert case["value"] < SHARED, name


def test_the_same_bits_each_time(found):
    assert all(case["value"] == 0.0 for case in of(found, "bits").values())


def test_explain_names_the_kernels(found):
    assert found["explained"] == ["direct", "triton"]
