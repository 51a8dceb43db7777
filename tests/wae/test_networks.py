"""The networks: layer by layer the paper's, Keras' initial weights, and your own."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from smmd.wae import model, networks
from smmd.wae.config import choose

PAPER = choose("paper")


def test_weights_of_the_papers_network():
    built = model.build(PAPER, (1, 28, 28))
    assert sum(p.numel() for p in built.parameters()) == 3_411_342


def test_layers_of_the_papers_network():
    # (kind, kernel, stride, inputs, outputs), read off the appendix "Code".
    encoder, decoder = networks.build(PAPER, (1, 28, 28))

    def layers(network):
        return [
            (type(layer).__name__, *layer.kernel_size, *layer.stride, layer.in_channels)
            + (layer.out_channels,)
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d)
            else ("Dense", layer.in_features, layer.out_features)
            for layer in network
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear)
        ]

    assert layers(encoder) == [
        ("Conv2d", 2, 2, 1, 1, 1, 1),
        ("Conv2d", 2, 2, 2, 2, 1, 64),
        ("Conv2d", 3, 3, 1, 1, 64, 64),
        ("Conv2d", 3, 3, 1, 1, 64, 64),
        ("Dense", 14 * 14 * 64, 128),
        ("Dense", 128, 8),
    ]
    assert layers(decoder) == [
        ("Dense", 8, 128),
        ("Dense", 128, 14 * 14 * 64),
        ("ConvTranspose2d", 3, 3, 1, 1, 64, 64),
        ("ConvTranspose2d", 3, 3, 1, 1, 64, 64),
        ("ConvTranspose2d", 3, 3, 2, 2, 64, 64),
        ("Conv2d", 2, 2, 1, 1, 64, 1),
    ]


def test_same_padding_is_at_the_end():
    # Keras pads an even kernel below and to the right: the last row and column see a zero there.
    encoder, _ = networks.build(PAPER, (1, 28, 28))
    with torch.no_grad():
        encoder[1].weight.copy_(torch.tensor([[[[0.0, 0.0], [0.0, 1.0]]]]))
        image = torch.arange(784.0).reshape(1, 1, 28, 28)
        shifted = encoder[1](encoder[0](image))[0, 0]
    assert torch.equal(shifted[:27, :27], image[0, 0, 1:, 1:])
    assert not shifted[27].any()
    assert not shifted[:, 27].any()


@pytest.mark.parametrize("network", ["paper", "quick", "residual"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 8, 12)])
def test_images_come_back_in_their_own_shape(network, shape):
    built = model.build(choose("paper", network=network, latent=5), shape)
    x = torch.rand(3, *shape)
    z, variance = built.eval().encode(x)
    assert z.shape == (3, 5)
    assert variance is None
    y = built.decode(z).detach()
    assert y.shape == x.shape
    assert 0 <= float(y.min()) <= float(y.max()) <= 1


@pytest.mark.parametrize(
    ("network", "shape", "words"),
    [("paper", (1, 27, 28), "even"), ("residual", (3, 65, 65), "up to 64")],
)
def test_shapes_that_do_not_fit_are_named(network, shape, words):
    with pytest.raises(ValueError, match=words):
        networks.build(choose("paper", network=network), shape)


def test_initial_weights_are_glorot_uniform():
    encoder, decoder = networks.build(PAPER, (1, 28, 28))
    for layer in [*encoder, *decoder]:
        if not isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            continue
        weight = layer.weight.detach().double()
        area = math.prod(weight.shape[2:])
        bound = math.sqrt(6 / (area * (weight.shape[0] + weight.shape[1])))
        assert float(weight.abs().max()) <= bound
        assert not layer.bias.any()
        if weight.numel() > 1000:
            # A uniform law's second moment is bound²/3, with standard error bound² √(4/45)/√n.
            spread = 5 * bound**2 * math.sqrt(4 / 45 / weight.numel())
            assert float((weight**2).mean()) == pytest.approx(bound**2 / 3, abs=spread)


def test_a_seed_is_a_network():
    first, again = (networks.build(choose("paper", seed=3), (1, 28, 28))[0] for _ in range(2))
    other = networks.build(choose("paper", seed=4), (1, 28, 28))[0]
    assert torch.equal(first[1].weight, again[1].weight)
    assert not torch.equal(first[1].weight, other[1].weight)


def test_no_seed_has_a_first_layer_that_lets_nothing_through():
    # One draw in sixteen would: some of these seeds are redrawn.
    redrawn = 0
    for seed in range(48):
        config = choose("quick", network="paper", seed=seed)
        encoder, _ = networks.paper((1, 4, 4), 2, 2)
        generator = torch.Generator().manual_seed(seed)
        networks.glorot(encoder, generator)
        redrawn += bool((encoder[1].weight <= 0).all())
        encoder, _ = networks.build(config, (1, 4, 4))
        assert (encoder[1].weight > 0).any()
    assert redrawn > 0


def test_a_residual_block_starts_as_the_identity():
    encoder, _ = networks.build(choose("paper", network="residual"), (3, 16, 16))
    block = next(layer for layer in encoder if isinstance(layer, networks.Residual))
    x = torch.randn(2, 64, 16, 16, generator=torch.Generator().manual_seed(0))
    assert torch.equal(block(x), x)


def test_random_encoder_has_means_and_variances():
    built = model.build(choose("paper", version="random", latent=3), (1, 8, 8)).eval()
    z, variance = built.encode(torch.rand(4, 1, 8, 8))
    assert z.shape == variance.shape == (4, 3)
    assert (variance > 0).all()


def test_batch_norm_is_keras():
    # Biased variance with ε = 1e-3 added; momentum 0.99 of the old value.
    layer = model.BatchNorm(2, 0.99)
    z = torch.tensor([[1.0, 10.0], [3.0, 10.5], [8.0, 9.5]])
    out = layer(z).detach().numpy()
    values = z.numpy().astype(np.float64)
    expected = (values - values.mean(0)) / np.sqrt(values.var(0) + 1e-3)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    np.testing.assert_allclose(layer.running_mean, 0.01 * values.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.running_var, 0.99 + 0.01 * values.var(0), rtol=1e-5)
    layer.eval()
    expected = (values - layer.running_mean.numpy()) / np.sqrt(layer.running_var.numpy() + 1e-3)
    np.testing.assert_allclose(layer(z).detach().numpy(), expected, rtol=1e-5)


def _own(outputs=2, pixels=64):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(pixels, outputs))
    decoder = nn.Sequential(nn.Linear(2, pixels), nn.Sigmoid(), nn.Unflatten(1, (1, 8, 8)))
    return encoder, decoder


def test_own_networks_are_taken_and_checked():
    config = choose("paper", network="custom", latent=2)
    pair = _own()
    assert networks.build(config, (1, 8, 8), pair) == pair
    assert isinstance(networks.build(config, (1, 8, 8), _own), tuple)
    with pytest.raises(ValueError, match=r"encoder gives \(2, 3\).*\(2, 2\) is needed"):
        networks.build(config, (1, 8, 8), _own(3))
    with pytest.raises(ValueError, match="means and log-variances"):
        networks.build(
            choose("paper", network="custom", latent=2, version="random"), (1, 8, 8), _own
        )
    with pytest.raises(TypeError, match="pair"):
        networks.build(config, (1, 8, 8), pair[0])
    with pytest.raises(ValueError, match="networks="):
        networks.build(config, (1, 8, 8))


def test_own_networks_start_from_the_seed():
    made = [
        networks.build(choose("paper", network="custom", latent=2, seed=s), (1, 8, 8), _own)[0]
        for s in (1, 1, 2)
    ]
    assert torch.equal(made[0][1].weight, made[1][1].weight)
    assert not torch.equal(made[0][1].weight, made[2][1].weight)
