"""Two processes train what one trains, to rounding: real ones, over gloo."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from smmd.wae import fit, load
from tests.wae.rank_worker import OPTIONS, VERSIONS, work


@pytest.fixture(scope="module")
def trained(tmp_path_factory, spots):
    folder = tmp_path_factory.mktemp("ranks")
    data = folder / "spots.npz"
    np.savez(data, x_train=spots.train[:, 0], x_test=spots.test[:, 0])
    torch.multiprocessing.spawn(work, (2, str(data), str(folder)), nprocs=2)
    return folder


@pytest.fixture
def in_double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def _vector(weights):
    return torch.cat([weights[name].double().flatten() for name in sorted(weights)])


@pytest.mark.parametrize("version", VERSIONS)
def test_the_trajectory_is_that_of_one_process(trained, version, in_double):
    alone = fit(trained / "spots.npz", version=version, **OPTIONS)
    both = [torch.load(trained / f"{version}-{rank}.pt") for rank in (0, 1)]
    assert all(torch.equal(v, both[1]["weights"][k]) for k, v in both[0]["weights"].items())
    assert both[0]["log"] == both[1]["log"]
    one, two = _vector(alone.model.state_dict()), _vector(both[0]["weights"])
    torch.testing.assert_close(two, one, rtol=1e-6, atol=1e-9)
    for mine, theirs in zip(alone.log, both[0]["log"], strict=True):
        for name in ("mse", "smmd", "val_mse", "b"):
            assert theirs[name] == pytest.approx(mine[name], rel=1e-6, abs=1e-8), name


def test_both_continue_where_the_first_stopped(trained):
    whole = torch.load(trained / "code-norm-0.pt")["weights"]
    for rank in (0, 1):
        resumed = torch.load(trained / f"resumed-{rank}.pt")
        assert all(torch.equal(v, resumed[k]) for k, v in whole.items())


def test_a_mistake_ends_both(trained):
    for rank in (0, 1):
        assert "holds a run already" in (trained / f"error-{rank}").read_text()


@pytest.mark.slow
def test_torchrun(trained):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "smmd"]
    command += ["train", "--data", trained / "spots.npz", "--out", trained / "cli"]
    command += ["--epochs", "2", "--batch", "48", "--latent", "2", "--no-report"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kept in") == 1
    assert done.stdout.count("epoch 2/2") == 1
    assert load(trained / "cli").finished
