"""Several processes give what one gives: real gloo processes, two and three of them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import smmd
from tests.once import once
from tests.pairs import rank_worker
from tests.pairs.rank_worker import KERNELS, SPLITS, Encoder, points

CASES = [(world, split) for world, splits in SPLITS.items() for split in splits]
#: Sums are taken in another order, and float32 results are rounded to float32 at the end.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    def make(folder):
        torch.multiprocessing.spawn(rank_worker.work, (str(folder),), nprocs=3)

    folder = once(tmp_path_factory, "ranks", make)
    return [torch.load(folder / f"{rank}.pt", weights_only=False) for rank in range(3)]


def of_ranks(answers, world, split, name):
    return [answers[rank][world, split][name] for rank in range(world)]


def close(found, expected, dtype):
    scale = max(1.0, float(expected.double().abs().max()))
    torch.testing.assert_close(found, expected, rtol=0.0, atol=TOLERANCE[dtype] * scale)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("world", "split"), CASES, ids=str)
def test_value_and_gradient_are_those_of_one_process(answers, world, split, name, dtype):
    leaf = points(dtype)[0].requires_grad_()
    value = smmd.smmd(leaf, kernel=KERNELS[name])
    (slope,) = torch.autograd.grad((value * torch.tensor([1.0, 3.0])).sum(), leaf)
    found = of_ranks(answers, world, split, f"{name} {dtype}")
    for rank in range(world):
        assert torch.equal(found[rank][0], found[0][0])
    close(found[0][0], value.detach(), dtype)
    # DDP takes the mean of the ranks' gradients, so that each rank's is ``world`` times as large.
    close(torch.cat([g for _, g in found], dim=1) / world, slope, dtype)
    for alone, _ in of_ranks(answers, world, split, f"{name} {dtype} value"):
        close(alone, value.detach(), dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", [k for k in KERNELS if k not in ("imq", "sliced")])
@pytest.mark.parametrize(("world", "split"), CASES, ids=str)
def test_random_encoders(answers, world, split, name, dtype):
    mu, var = (v.requires_grad_() for v in points(dtype))
    value = smmd.smmd(mu, kernel=KERNELS[name], var=var)
    slopes = torch.autograd.grad(value.sum(), (mu, var))
    found = of_ranks(answers, world, split, f"{name} {dtype} encoder")
    close(found[0][0], value.detach(), dtype)
    for k in range(2):
        whole = torch.cat([slope[k] for _, slope in found], dim=1)
        close(whole / world, slopes[k], dtype)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("world", "split"), CASES, ids=str)
def test_biased_estimators(answers, world, split, dtype):
    z, var = points(dtype)
    (plain, _), *_ = of_ranks(answers, world, split, f"biased {dtype}")
    close(plain, smmd.mmd2(z, unbiased=False), dtype)
    (encoder, _), *_ = of_ranks(answers, world, split, f"biased {dtype} encoder")
    close(encoder, smmd.mmd2(z, var=var, unbiased=False), dtype)


@pytest.mark.parametrize(("world", "split"), CASES, ids=str)
def test_ddp_averages_to_the_global_gradient(answers, world, split):
    model = Encoder()
    smmd.smmd(model(points()[0][0])).backward()
    for found in of_ranks(answers, world, split, "ddp"):
        for parameter, gradient in zip(model.parameters(), found, strict=True):
            close(gradient, parameter.grad, torch.float64)


def test_backward_pass_has_no_collective(answers):
    # Had there been one, the rank that differentiates alone would have waited for ever.
    assert all(torch.equal(a["alone"], answers[0]["alone"]) for a in answers)


def test_errors_are_the_same_on_every_rank(answers):
    for found in answers:
        assert "dimension d" in found["errors"]["dimension"]
        assert "3 ranks together" in found["errors"]["points"]
        assert "differentiable once" in found["errors"]["second"]


def test_one_process_needs_no_group():
    from smmd import distributed

    z = points()[0]
    assert torch.equal(distributed.smmd(z), smmd.smmd(z))


def test_a_destroyed_group_is_gone():
    """Were it alive at exit, gloo's threads would be too, and now and then abort the process."""
    code = """
import tempfile, weakref, torch, torch.distributed as dist
from smmd import distributed
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/here", rank=0, world_size=1)
    group = weakref.ref(dist.group.WORLD)
    distributed.smmd(torch.randn(20, 3), group=dist.group.WORLD)
    dist.destroy_process_group()
    assert group() is None
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_torchrun_reads_a_file(tmp_path):
    z = np.random.default_rng(0).standard_normal((501, 4))
    np.save(tmp_path / "codes.npy", z)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m",
         "smmd.distributed", str(tmp_path / "codes.npy")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"SMMD² = {smmd.smmd(z):.6g}  (n = 501, d = 4, 2 processes)" in done.stdout
