"""Encoders and decoders: the paper's, a quick one for small machines, a residual one for colour.

An encoder takes images (n, channels, height, width) in 0…1 and gives ``outputs`` numbers each; a
decoder goes back from d codes.  Any other pair of ``nn.Module`` that does so can take their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from smmd.torch.precision import at_least_single
from smmd.wae.config import Config

Shape = tuple[int, int, int]
Pair = tuple[nn.Module, nn.Module]
#: A pair of networks, or what makes one; several seeds need the latter.
Custom = Pair | Callable[[], Pair] | None

#: The largest side that the residual network is made for.
LARGEST_SIDE = 64


class FullLinear(nn.Linear):
    """A linear layer that stays in full precision where the layers around it do not.

    Codes feel rounding: their distribution is what the penalty measures.
    """

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(at_least_single(x))


class Flat(nn.Module):
    """Images to vectors, channels last as Keras flattens; free for tensors stored that way."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)


class Unflat(nn.Module):
    """The inverse of ``Flat``."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        super().__init__()
        self.shape = (height, width, channels)

    def forward(self, x: Tensor) -> Tensor:
        return x.unflatten(1, self.shape).permute(0, 3, 1, 2)


class Crop(nn.Module):
    """The top left part of images, for sides that are no multiple of the network's stride."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height, self.width = height, width

    def forward(self, x: Tensor) -> Tensor:
        return x[..., : self.height, : self.width]


def paper(shape: Shape, latent: int, outputs: int) -> Pair:
    """Appendix Code of the paper, layer by layer: 3,411,342 weights at d = 8 for 28×28 grey.

    "same" padding as Keras has it: an even kernel pads below and to the right.  For other sizes
    and channels the same layers; sides must be even.
    """
    channels, height, width = shape
    if height % 2 or width % 2:
        raise ValueError(
            f"network='paper' halves the image once, so that its sides must be even; got "
            f"{height}×{width}: use network='residual', or pass size="
        )
    h, w, relu = height // 2, width // 2, nn.ReLU
    encoder = nn.Sequential(
        nn.ZeroPad2d((0, 1, 0, 1)),
        nn.Conv2d(channels, channels, 2), relu(),
        nn.Conv2d(channels, 64, 2, stride=2), relu(),
        nn.Conv2d(64, 64, 3, padding=1), relu(),
        nn.Conv2d(64, 64, 3, padding=1), relu(),
        Flat(),
        nn.Linear(h * w * 64, 128), relu(),
        FullLinear(128, outputs),
    )  # fmt: skip
    decoder = nn.Sequential(
        FullLinear(latent, 128), relu(),
        nn.Linear(128, h * w * 64), relu(),
        Unflat(64, h, w),
        nn.ConvTranspose2d(64, 64, 3, padding=1), relu(),
        nn.ConvTranspose2d(64, 64, 3, padding=1), relu(),
        nn.ConvTranspose2d(64, 64, 3, stride=2), relu(),
        nn.Conv2d(64, channels, 2), nn.Sigmoid(),
    )  # fmt: skip
    return encoder, decoder


def quick(shape: Shape, latent: int, outputs: int) -> Pair:
    """Dense layers only: what two CPU cores do best, at a twentieth of the paper's arithmetic."""
    channels, height, width = shape
    pixels, relu = channels * height * width, nn.ReLU
    encoder = nn.Sequential(
        Flat(),
        nn.Linear(pixels, 512), relu(),
        nn.Linear(512, 256), relu(),
        FullLinear(256, outputs),
    )  # fmt: skip
    decoder = nn.Sequential(
        FullLinear(latent, 256), relu(),
        nn.Linear(256, 512), relu(),
        nn.Linear(512, pixels), nn.Sigmoid(),
        Unflat(channels, height, width),
    )  # fmt: skip
    return encoder, decoder


class Residual(nn.Module):
    """x + f(x): two 3×3 convolutions, the second starting at zero so that depth does no harm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.first(torch.nn.functional.silu(x))
        return x + self.second(torch.nn.functional.silu(inner))


def residual(shape: Shape, latent: int, outputs: int) -> Pair:
    """Two residual blocks at each size, halved down to at most 8 pixels: for colour up to 64×64."""
    channels, height, width = shape
    if max(height, width) > LARGEST_SIDE:
        raise ValueError(
            f"network='residual' is made for sides up to {LARGEST_SIDE}, got {height}×{width}: "
            "pass a smaller size=, or networks of your own"
        )
    halvings = max(1, math.ceil(math.log2(max(height, width) / 8)))
    widths = [min(64 * 2**k, 256) for k in range(halvings + 1)]
    h, w = (-(-side // 2**halvings) for side in (height, width))
    down: list[nn.Module] = [nn.Conv2d(channels, widths[0], 3, padding=1)]
    for before, after in pairwise(widths):
        down += [Residual(before), nn.Conv2d(before, after, 3, stride=2, padding=1)]
    down += [Residual(widths[-1]), Residual(widths[-1]), nn.SiLU(), Flat()]
    encoder = nn.Sequential(
        *down, nn.Linear(h * w * widths[-1], 256), nn.SiLU(), FullLinear(256, outputs)
    )
    up: list[nn.Module] = [
        FullLinear(latent, 256), nn.SiLU(), nn.Linear(256, h * w * widths[-1]),
        Unflat(widths[-1], h, w), Residual(widths[-1]), Residual(widths[-1]),
    ]  # fmt: skip
    for before, after in pairwise(widths[::-1]):
        up += [nn.ConvTranspose2d(before, after, 4, stride=2, padding=1), Residual(after)]
    up += [nn.SiLU(), nn.Conv2d(widths[0], channels, 3, padding=1), Crop(height, width)]
    return encoder, nn.Sequential(*up, nn.Sigmoid())


MAKERS = {"paper": paper, "quick": quick, "residual": residual}


def build(config: Config, shape: Shape, custom: Custom = None) -> Pair:
    """The encoder and decoder that a run asks for, with the initial weights of its seed."""
    # A random encoder gives a mean and a log-variance for each code.
    outputs = 2 * config.latent if config.random else config.latent
    if config.network == "custom":
        if custom is None:
            raise ValueError(
                "network='custom' needs networks=(encoder, decoder), or a function that makes them"
            )
        pair: Any = custom
        if not isinstance(pair, tuple | nn.Module):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(config.seed)
                pair = pair()
        _check(pair, shape, config.latent, outputs)
        encoder, decoder = pair
        return encoder, decoder
    made = MAKERS[config.network](shape, config.latent, outputs)
    generator = torch.Generator().manual_seed(config.seed)
    for network in made:
        glorot(network, generator)
    _revive(made[0], generator)
    return made


@torch.no_grad()
def glorot(network: nn.Module, generator: torch.Generator) -> None:
    """Keras' initial weights: uniform within √(6/(inputs + outputs)), zero bias.

    The last convolution of a residual block starts at zero.
    """
    for name, layer in network.named_modules():
        if not isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            continue
        weight = layer.weight
        area = math.prod(weight.shape[2:])
        bound = math.sqrt(6.0 / (area * (weight.shape[0] + weight.shape[1])))
        weight.uniform_(-bound, bound, generator=generator)
        if name.endswith(".second"):
            weight.zero_()
        if layer.bias is not None:
            layer.bias.zero_()


@torch.no_grad()
def _revive(encoder: nn.Module, generator: torch.Generator) -> None:
    """Draw the first layer's filters again while none lets anything through.

    The paper's first layer has a single 2×2 filter.  In one draw of sixteen its four weights are
    all negative, and the ReLU behind it then gives 0 for every image, for ever.
    """
    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d):
            bound = math.sqrt(6.0 / (layer.weight[0].numel() + layer.weight[:, 0].numel()))
            while bool((layer.weight <= 0).all()):
                layer.weight.uniform_(-bound, bound, generator=generator)
            return


@torch.no_grad()
def _check(pair: Any, shape: Shape, latent: int, outputs: int) -> None:
    """Run two images through; a mismatch is named now and not in the middle of training."""
    ok = isinstance(pair, tuple) and len(pair) == 2
    if not ok or not all(isinstance(network, nn.Module) for network in pair):
        raise TypeError(f"networks must be a pair (encoder, decoder) of modules, got {pair!r}")
    encoder, decoder = pair
    modes = [network.training for network in pair]
    device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
    codes = encoder.eval()(torch.zeros(2, *shape, device=device))
    if tuple(codes.shape) != (2, outputs):
        raise ValueError(
            f"the encoder gives {tuple(codes.shape)} for two images, but (2, {outputs}) is needed "
            f"for latent={latent}" + (" (means and log-variances)" if outputs != latent else "")
        )
    images = decoder.eval()(torch.zeros(2, latent, device=device))
    if tuple(images.shape) != (2, *shape):
        raise ValueError(
            f"the decoder gives {tuple(images.shape)} for two codes, but the images are "
            f"{(2, *shape)}"
        )
    for network, mode in zip(pair, modes, strict=True):
        network.train(mode)
