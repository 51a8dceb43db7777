"""What training does to modules: autocast, compilation, checkpointing, accumulation, a device."""

from __future__ import annotations

import copy
import resource
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import smmd
import smmd.torch

D = 4
LOSSES = {
    "gaussian": lambda: smmd.torch.SMMDLoss(),
    "adaptive": lambda: smmd.torch.SMMDLoss(adaptive=True),
    "scales": lambda: smmd.torch.SMMDLoss(kernel=smmd.MultiScale()),
    "sliced": lambda: smmd.torch.SMMDLoss(kernel=smmd.Sliced()),
    "slices": lambda: smmd.torch.SlicedLoss(64),
}
#: Compiled and eager graphs add the same float32 numbers in other orders.
SINGLE = {"rtol": 1e-4, "atol": 1e-5}


class Model(nn.Module):
    """Encoder, code normalization, loss: everything at once."""

    def __init__(self, loss):
        super().__init__()
        self.linear, self.norm, self.loss = nn.Linear(D, D), smmd.torch.CodeNorm(D), loss

    def forward(self, x):
        return self.loss(self.norm(torch.tanh(self.linear(x))))


def model_and_data(name, n=48):
    torch.manual_seed(0)
    return Model(LOSSES[name]()), torch.randn(n, D)


def gradients(model):
    return [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "slices"])
def test_compiles_into_one_graph(name):
    model, x = model_and_data(name)
    twin = copy.deepcopy(model)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        value, expected = compiled(x), model(x)
        value.backward()
        expected.backward()
        torch.testing.assert_close(value, expected, **SINGLE)
    torch.testing.assert_close(gradients(twin), gradients(model), **SINGLE)
    torch.testing.assert_close(twin.state_dict(), model.state_dict(), **SINGLE)


def test_encoder_and_its_normalization_compile():
    torch.manual_seed(0)
    layer, loss = smmd.torch.GaussianCodeNorm(D), smmd.torch.SMMDLoss()
    mu, var = torch.randn(32, D, requires_grad=True), torch.rand(32, D, requires_grad=True)

    def both(mu, var):
        return loss(*layer(mu, var))

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    for found, expected in zip(
        torch.autograd.grad(compiled(mu, var), (mu, var)),
        torch.autograd.grad(both(mu, var), (mu, var)),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, **SINGLE)


@pytest.mark.parametrize("name", LOSSES)
def test_autocast_leaves_float32_alone(name):
    model, x = model_and_data(name)
    z = model.linear(x).detach()
    plain, cast = (copy.deepcopy(model) for _ in range(2))
    expected = plain.loss(plain.norm(z))
    with torch.autocast("cpu", torch.bfloat16):
        found = cast.loss(cast.norm(z))
        assert model(x).dtype == torch.float32
    assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", LOSSES)
def test_half_codes_are_computed_in_float32(name, dtype):
    loss, z = LOSSES[name](), torch.randn(64, D, generator=torch.Generator().manual_seed(1))
    half = z.to(dtype).requires_grad_()
    value = loss(half)
    value.backward()
    assert (value.dtype, half.grad.dtype) == (torch.float32, dtype)
    assert torch.equal(value, LOSSES[name]()(half.float()))
    norm = smmd.torch.CodeNorm(D)
    assert norm(half).dtype == dtype
    assert norm.running_mean.dtype == torch.float32
    torch.testing.assert_close(norm(half), norm(half.float()).to(dtype))


@pytest.mark.parametrize("name", ["gaussian", "adaptive"])
def test_checkpointing_counts_a_batch_once(name):
    model, x = model_and_data(name)
    twin = copy.deepcopy(model)
    model(x).backward()
    checkpoint(twin, x, use_reentrant=False).backward()
    torch.testing.assert_close(gradients(twin), gradients(model), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(twin.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_random_directions_are_not_recomputed_as_others():
    model, x = model_and_data("slices")
    with pytest.raises(RuntimeError, match="resample=False"):
        checkpoint(model, x, use_reentrant=False).backward()


def test_accumulated_gradients_add_up():
    model, x = model_and_data("gaussian")
    parts = x.split(16)
    for part in parts:
        (model(part) / len(parts)).backward()
    accumulated = gradients(model)
    model.zero_grad()
    torch.stack([model(part) for part in parts]).mean().backward()
    torch.testing.assert_close(accumulated, gradients(model), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "adaptive", "slices"])
def test_nothing_is_read_from_a_device(name):
    """The "meta" device has no numbers: whatever asked for one would fail."""
    model = Model(LOSSES[name]()).to("meta")
    x = torch.empty(32, D, device="meta")
    model(x).backward()
    assert model.linear.weight.grad.device.type == "meta"
    norm = smmd.torch.GaussianCodeNorm(D, device="meta")
    mu, var = norm(x, x)
    if name != "slices":
        model.loss(mu, var)
    with pytest.raises((RuntimeError, NotImplementedError)):
        mu.sum().item()  # the test can fail


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux for its memory")
def test_random_encoders_leave_no_n2_numbers_in_memory():
    def used():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    n, d = 2000, 8
    mu, var = torch.randn(n, d, requires_grad=True), torch.rand(n, d, requires_grad=True)
    before = used()
    value = smmd.torch.SMMDLoss()(mu, var)
    # The differences alone are n²d numbers, and four such arrays would be kept for backward.
    assert used() - before < 8 * n * n * d
    assert value.requires_grad
