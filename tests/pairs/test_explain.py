"""Which path, why, and how to have another."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import smmd
from smmd import pairs
from smmd.pairs import gpu
from tests.pairs.radials import sample


def test_types_decide():
    z = sample(1100, 4)
    assert smmd.explain(z).path == "gram"
    assert smmd.explain(z.astype(np.float32)).path == "gram32"
    assert smmd.explain(z.astype(np.float32), smmd.Gaussian(1e4)).path == "gram"
    assert smmd.explain(torch.from_numpy(z).float()).path == "gram32"
    assert smmd.explain(sample(20, 4).astype(np.float32)).path == "gram"  # too few to gain by


@pytest.mark.parametrize("kernel", [smmd.Adaptive(), smmd.IMQ(), smmd.Sliced()], ids=repr)
def test_other_kernels(kernel):
    found = smmd.explain(sample(300, 4, 2), kernel)
    assert found.path == "gram"
    assert (found.n, found.d, found.samples) == (300, 4, 2)


def test_jax_has_one_path():
    jax = pytest.importorskip("jax")
    found = smmd.explain(jax.numpy.zeros((5, 2)))
    assert found.path == "dense"
    assert "jax" in found.why


def test_a_small_gradient_is_checked():
    z = sample(100, 3)
    assert "cancel" not in smmd.explain(z).why
    assert "cancel" in smmd.explain(z, gradient=True).why
    assert "cancel" not in smmd.explain(z.astype(np.float32), gradient=True).why


def test_it_is_a_sentence():
    text = str(smmd.explain(sample(30, 2)))
    assert text.startswith("n=30, d=2: 435 pairs on ")
    assert "because" in text


@pytest.mark.parametrize("path", ["difference", "gram", "gram32", "dense"])
def test_override(path, monkeypatch):
    z = sample(64, 3).astype(np.float32)
    usual = smmd.smmd(z)
    with pairs.use(path):
        assert smmd.explain(z).path == path
        assert smmd.smmd(z) == pytest.approx(usual, abs=1e-4)
        assert smmd.smmd(torch.from_numpy(z)).item() == pytest.approx(usual, abs=1e-4)
    monkeypatch.setenv("SMMD_PAIRS", path)
    assert smmd.explain(z).path == path
    with pairs.use("difference"):
        assert smmd.explain(z).path == "difference"


def test_a_wrong_name_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"path must be one of difference.*got 'fast'"), \
            pairs.use("fast"):  # fmt: skip
        pass
    monkeypatch.setenv("SMMD_PAIRS", "fast")
    with pytest.raises(ValueError, match="SMMD_PAIRS must be one of"):
        smmd.smmd(sample(5, 2))


def test_why_a_gpu_path_does_not_serve():
    z = torch.zeros(4, 2)
    assert "not on an NVIDIA GPU" in gpu.why_not(z)
    with pairs.use("dense"):
        assert "asked for" in gpu.why_not(z)
    assert "float32" in gpu._why_not("cuda", 0, "torch.float64")
    with pairs.use("triton"):
        assert gpu.why_not(z)  # a CPU, and no interpreter here
        assert smmd.explain(z).path != "triton"
