"""A Wasserstein auto-encoder: encoder, what is done to its codes, decoder, and the two losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from smmd.samples import moments, pooled_moments
from smmd.torch import CodeNorm, GaussianCodeNorm, SMMDLoss
from smmd.torch.distributed import Group, gather, resolve
from smmd.torch.precision import at_least_single
from smmd.wae import networks
from smmd.wae.config import Config

#: exp of a log-variance outside this is of no use, and would overflow further out.
LOG_VARIANCES = (-20.0, 5.0)


class BatchNorm(nn.Module):
    """Keras' BatchNormalization, as AdaptiveBN has it before the decoder.

    Biased variance with ε = 1e-3 added, in running averages, too; a learned scale and shift.
    Statistics are those of the rows of all ranks.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, d: int, momentum: float, *, eps: float = 1e-3, group: Group = None) -> None:
        super().__init__()
        self.momentum, self.eps, self.group = momentum, eps, group
        self.weight, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))
        self.register_buffer("running_var", torch.ones(d))

    def forward(self, z: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, _, squares = moments(z)
            count = torch.full_like(mean, len(z))
            group = resolve(self.group)
            if group is not None:
                parts = gather(torch.cat([count, mean, squares]), group)
                count, mean, squares = pooled_moments(*parts.split(1, dim=-2))
            mean, var = mean[0], (squares / count)[0]
            with torch.no_grad():
                self.running_mean.lerp_(mean, 1.0 - self.momentum)
                self.running_var.lerp_(var, 1.0 - self.momentum)
        return (z - mean) * (var + self.eps).rsqrt() * self.weight + self.bias


class Autoencoder(nn.Module):
    """The model of a run.  ``forward`` gives what is minimized, in training or in evaluation.

    version       codes                                 before the decoder
    code-norm     CodeNorm(encoder(x))
    adaptive-bn   encoder(x)                            BatchNorm
    adaptive-plain  encoder(x)
    random        GaussianCodeNorm(mean, variance)      a draw: mean + √variance · noise
    """

    def __init__(self, config: Config, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__()
        self.version, d = config.version, config.latent
        options: dict[str, Any] = {"momentum": 1.0 - config.momentum, "group": "world"}
        self.encoder, self.decoder = encoder, decoder
        self.norm: nn.Module = nn.Identity()
        self.entrance: nn.Module = nn.Identity()
        if config.version == "code-norm":
            self.norm = CodeNorm(d, **options)
        elif config.version == "random":
            self.norm = GaussianCodeNorm(d, **options)
        elif config.version == "adaptive-bn":
            self.entrance = BatchNorm(d, config.momentum, group="world")
        self.penalty = SMMDLoss(config.scale, adaptive=config.adaptive, group="world")
        #: Narrow arithmetic inside the networks: None, or torch.bfloat16.
        self.narrow: torch.dtype | None = None
        #: What trains in place of the encoder and the decoder, if something faster was made.
        self.fast: dict[str, Callable[[Tensor], Tensor]] = {}

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The codes of images in 0…1, and a random encoder's variances."""
        with self._autocast(x):
            z = self._network("encoder")(x)
        z = at_least_single(z)
        if self.version != "random":
            return self.norm(z), None
        mean, log_variance = z.chunk(2, dim=1)
        mean, variance = self.norm(mean, log_variance.clamp(*LOG_VARIANCES).exp())
        return mean, variance

    def decode(self, z: Tensor) -> Tensor:
        """Images in 0…1 of codes."""
        z = self.entrance(z)
        with self._autocast(z):
            images: Tensor = self._network("decoder")(z)
        return at_least_single(images)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> Tensor:
        """Mean squared error and SMMD² of a batch, as a tensor of two.

        ``noise`` (n, d) is standard normal, for random encoders.
        """
        z, variance = self.encode(x)
        point = z if variance is None or noise is None else z + variance.sqrt() * noise
        error = self.decode(point) - x
        return torch.stack([(error * error).mean(), self.penalty(z, variance)])

    def _network(self, name: str) -> Callable[[Tensor], Tensor]:
        network: nn.Module = getattr(self, name)
        return self.fast.get(name, network) if self.training else network

    def _autocast(self, x: Tensor) -> Any:
        narrow = self.narrow if self.training else None
        return torch.autocast(x.device.type, narrow, enabled=narrow is not None)


def build(config: Config, shape: networks.Shape, custom: networks.Custom = None) -> Autoencoder:
    """A new model with the initial weights of the run's seed."""
    return Autoencoder(config, *networks.build(config, shape, custom))
