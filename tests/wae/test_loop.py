"""A training step against one written by hand, and what an epoch shuffles."""

import numpy as np
import pytest
import torch

import smmd
from smmd.wae import model
from smmd.wae.config import choose
from smmd.wae.loop import Learner

SMALL = {"batch": 50, "latent": 2, "threads": 1}


def learner(version="code-norm", seed=0, spots=None, **options):
    config = choose("quick", version=version, seed=seed, **SMALL, **options)
    return Learner(config, model.build(config, spots.shape), torch.from_numpy(spots.train))


@pytest.mark.parametrize("version", ["code-norm", "adaptive-bn", "adaptive-plain"])
def test_a_step_minimizes_what_the_paper_writes(version, spots):
    """mse + 0.01 smmd by smmd's NumPy formulas, on codes normalized by NumPy."""
    one = learner(version, spots=spots)
    one.begin(1)
    x = spots.train[one.order[0].numpy()].astype(np.float32) / 255
    with torch.no_grad():
        raw = one.model.encoder(torch.from_numpy(x)).numpy().astype(np.float64)
        z, entered = raw, raw
        if version == "code-norm":
            z = entered = (raw - raw.mean(0)) / raw.std(0, ddof=1)
        if version == "adaptive-bn":
            entered = (raw - raw.mean(0)) / np.sqrt(raw.var(0) + 1e-3)
        y = one.model.decoder(torch.from_numpy(entered.astype(np.float32))).numpy()
    one.step()
    mse, penalty = one.measured[0].tolist()
    assert mse == pytest.approx(float(((y - x) ** 2).mean()), rel=1e-4)
    expected = smmd.smmd(z, adaptive=version != "code-norm")
    assert penalty == pytest.approx(float(expected), rel=1e-3)


def test_adam_is_keras(spots):
    """The first step moves every weight by rate · g/(|g| + ε), ε = 1e-7."""
    one = learner(spots=spots)
    one.begin(1)
    before = {n: p.detach().clone() for n, p in one.model.named_parameters()}
    one.step()
    name, parameter = next(iter(one.model.named_parameters()))
    gradient = parameter.grad
    expected = before[name] - 2e-3 * gradient / (gradient.abs() + 1e-7)
    torch.testing.assert_close(parameter.detach(), expected, rtol=0, atol=2e-7)


def test_an_epoch_sees_every_image_once(spots):
    one = learner(spots=spots)
    orders = []
    for epoch in (1, 2):
        one.begin(epoch)
        assert sorted(one.order.flatten().tolist()) == list(range(400))
        orders.append(one.order.clone())
    assert not torch.equal(*orders)
    one.begin(1)
    assert torch.equal(one.order, orders[0])
    other = learner(seed=1, spots=spots)
    other.begin(1)
    assert not torch.equal(other.order, orders[0])


def test_the_last_images_of_an_uneven_epoch_wait(spots):
    config = choose("quick", **{**SMALL, "batch": 90})
    one = Learner(config, model.build(config, spots.shape), torch.from_numpy(spots.train))
    assert one.order.shape == (4, 90)


def test_learning_rate_follows_the_stages(spots):
    one = learner(spots=spots, stages=((1, 0.5), (2, 0.25)))
    rates = []
    for epoch in (1, 2, 3):
        one.begin(epoch)
        rates.append(one.optimizer.param_groups[0]["lr"])
    assert rates == [0.5, 0.25, 0.25]


def test_validation_uses_running_statistics(spots):
    one = learner(spots=spots)
    one.begin(1)
    for _ in range(8):
        one.step()
    found = one.validate(torch.from_numpy(spots.test))
    norm = one.model.norm
    with torch.no_grad():
        x = torch.from_numpy(spots.test) / 255
        z = (one.model.encoder(x) - norm.running_mean) / norm.running_var.sqrt()
        mse = ((one.model.decoder(z) - x) ** 2).mean()
    assert found.mse == pytest.approx(float(mse), rel=1e-5)
    lot = torch.randperm(len(z), generator=torch.Generator().manual_seed(0))
    values = [float(smmd.smmd(batch.double().numpy())) for batch in z[lot].split(50)]
    np.testing.assert_allclose(found.smmd, values, rtol=1e-3, atol=1e-3)
    assert one.model.training


def test_random_encoders_decode_draws(spots):
    one = learner("random", spots=spots)
    one.begin(1)
    x = torch.from_numpy(spots.train)[one.order[0]] / 255
    with torch.no_grad():
        mu, log_variance = one.model.encoder(x).double().chunk(2, 1)
        var = log_variance.exp()
        total = (mu**2 + var).mean(0) - mu.mean(0) ** 2
        mu, var = (mu - mu.mean(0)) / total.sqrt(), var / total
        z = mu + var.sqrt() * one.noise[0]
        mse = ((one.model.decoder(z.float()) - x) ** 2).mean()
    one.step()
    assert float(one.measured[0, 0]) == pytest.approx(float(mse), rel=1e-5)
    expected = float(smmd.smmd(mu.numpy(), var=var.numpy()))
    assert float(one.measured[0, 1]) == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(("batch", "words"), [(401, "only 400"), (50, "multiple of 3")])
def test_batches_that_cannot_be_are_refused(batch, words, spots):
    from smmd.wae.ranks import Ranks

    config = choose("quick", **{**SMALL, "batch": batch})
    with pytest.raises(ValueError, match=words):
        Learner(
            config, model.build(config, spots.shape), torch.from_numpy(spots.train), Ranks(0, 3)
        )
