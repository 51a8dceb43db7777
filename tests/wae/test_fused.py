"""The fused step against the layers' own arithmetic, and its kernels in Triton's interpreter."""

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from smmd.wae import fused, fused_kernels, model
from smmd.wae.config import choose
from smmd.wae.loop import Learner

#: The fused step's learning rate and count of steps are float32 numbers.
RATE = 1e-6


@pytest.fixture(autouse=True)
def in_double():
    """So that agreement means agreement of formulas."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def pair(network, version="code-norm", shape=(1, 8, 8), **options):
    config = choose("paper", network=network, version=version, batch=20, latent=3, **options)
    images = (torch.rand(60, *shape, generator=torch.Generator().manual_seed(0)) * 255).byte()
    made = [
        Learner(config, model.build(config, shape), images, fused=is_fused)
        for is_fused in (False, True)
    ]
    for learner in made:
        learner.begin(1)
    return made


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        ("paper", (1, 8, 8)),
        ("paper", (3, 8, 8)),
        ("quick", (3, 8, 8)),
        ("residual", (3, 8, 8)),
    ],
)
def test_steps_agree(network, shape):
    plain, quick = pair(network, shape=shape)
    assert bool(quick.model.fast) == (network != "residual")
    for _ in range(3):
        plain.step()
        quick.step()
    torch.testing.assert_close(quick.measured, plain.measured, rtol=RATE, atol=RATE)
    tensors = quick.tensors()
    for name, tensor in plain.tensors().items():
        torch.testing.assert_close(tensors[name], tensor, rtol=100 * RATE, atol=RATE, msg=name)


@pytest.mark.parametrize("version", ["adaptive-bn", "adaptive-plain", "random"])
def test_versions_agree(version):
    plain, quick = pair("paper", version)
    for _ in range(3):
        plain.step()
        quick.step()
    torch.testing.assert_close(quick.measured, plain.measured, rtol=RATE, atol=RATE)


def test_gradients_agree():
    plain, quick = pair("paper")
    plain.step()
    quick.step()
    theirs = dict(plain.model.named_parameters())
    for name, parameter in quick.model.named_parameters():
        torch.testing.assert_close(
            parameter.grad, theirs[name].grad, rtol=1e-9, atol=1e-12, msg=name
        )


def test_a_state_moves_between_the_two():
    plain, quick = pair("paper")
    plain.step()
    quick.restore(plain.tensors())
    quick.place += 1
    plain.step()
    quick.step()
    for name, tensor in plain.tensors().items():
        torch.testing.assert_close(quick.tensors()[name], tensor, rtol=100 * RATE, atol=RATE)


def test_back_to_plain_layers():
    plain, quick = pair("paper")
    plain.step()
    quick.step()
    back = quick.unfused()
    assert not back.model.fast
    back.begin(1)
    back.place += 1
    for learner in (plain, back):
        learner.step()
    for name, tensor in plain.tensors().items():
        torch.testing.assert_close(back.tensors()[name], tensor, rtol=100 * RATE, atol=RATE)


def test_narrow_copies_follow_the_weights():
    config = choose("paper", batch=20, latent=3)
    built = model.build(config, (1, 8, 8))
    built.narrow = torch.bfloat16
    images = (torch.rand(60, 1, 8, 8, generator=torch.Generator().manual_seed(0)) * 255).byte()
    one = Learner(config, built, images, fused=True)
    one.begin(1)
    for _ in range(2):
        one.step()
        for parameter, narrow in one.optimizer.copies.items():
            assert torch.equal(narrow, parameter.bfloat16())
    other = Learner(config, model.build(config, (1, 8, 8)), images)
    other.begin(1)
    other.step()
    # bfloat16 has 8 bits: the losses agree to about that.
    torch.testing.assert_close(one.measured[0], other.measured[0], rtol=0.05, atol=0.05)


def test_what_is_fusible():
    encoder, _ = (model.build(choose("paper"), (1, 8, 8)).encoder, None)
    assert fused.fusible(encoder)
    assert not fused.fusible(torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False)))
    assert not fused.fusible(torch.nn.Sequential(torch.nn.Conv2d(2, 2, 3, groups=2)))
    assert not fused.fusible(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))


def test_what_the_layers_of_the_paper_become():
    _, quick = pair("paper")
    found = [
        [getattr(step, "how", None) or type(step).__name__ for step in made.steps]
        for made in quick.model.fast.values()
    ]
    none, behind = fused_kernels.Zeros(0, 0, 0, 0), fused_kernels.Zeros(0, 1, 0, 1)
    assert found == [
        [
            fused_kernels.Convolution("in", (1, 1), behind, "relu"),
            fused_kernels.Convolution("in", (2, 2), none, "relu"),
            *["_Convolution"] * 2, "Flat", *["_Dense"] * 2,
        ],
        [
            *["_Dense"] * 2, "Unflat", *["_Convolution"] * 3,
            fused_kernels.Convolution("out", (1, 1), none, "sigmoid"),
        ],
    ]  # fmt: skip


@pytest.mark.parametrize("behind_relu", [True, False])
@pytest.mark.parametrize("layer", [(2, 3, 2, 2), (2, 5, 2, 1), (5, 2, 2, 1), (2, 30, 2, 1, 1)])
def test_thin_convolutions_anywhere(layer, behind_relu):
    """With a gradient in the input, too."""
    torch.manual_seed(0)
    thin = [torch.nn.Conv2d(*layer), torch.nn.ReLU()]
    below = [torch.nn.Conv2d(4, layer[0], 3), torch.nn.ReLU()] if behind_relu else []
    plain = torch.nn.Sequential(*below, *thin)
    network = copy.deepcopy(plain)
    adam = fused.FlatAdam(network, None, 1e-7)
    quick = fused.Sequence(network, adam, first=False)
    adam.adopt([step for step in quick.steps if isinstance(step, fused._Layer)])
    x = torch.randn(6, plain[0].in_channels, 7, 7)
    answers = []
    for apply, parameters in ((plain, plain.parameters()), (quick, network.parameters())):
        point = x.clone().requires_grad_()
        y = apply(point)
        (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape)).sum().backward()
        if apply is quick:
            adam.step()
        answers.append([y, point.grad, *(p.grad for p in parameters)])
    for mine, theirs in zip(*answers, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.skipif(not fused_kernels.HAVE_TRITON, reason="Triton exists for Linux")
def test_kernels_in_the_interpreter():
    worker = Path(__file__).with_name("triton_worker.py")
    done = subprocess.run(
        [sys.executable, worker],
        env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
