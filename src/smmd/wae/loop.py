"""The training loop, from images on the device to trained weights.

Nothing in a step waits for the device or looks at the host: a step's place in the epoch is a number
on the device, which picks the step's row of the epoch's order, and what it measures goes to the
same row of a table.  So one step can be recorded once and replayed (``graphs.py``), and an epoch
costs the host a few calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smmd import measure
from smmd.kernels import Adaptive, Gaussian
from smmd.wae import schedule
from smmd.wae.config import Config
from smmd.wae.fused import FlatAdam, fuse
from smmd.wae.model import Autoencoder
from smmd.wae.ranks import Ranks

#: Adam's ε as Keras has it (PyTorch's own default is 1e-8).
EPSILON = 1e-7
#: Images that are encoded at once outside training, and the B-statistic's number of batches.
CHUNK, MOST_BATCHES = 1000, 50


@dataclass(frozen=True)
class Validation:
    """What a model does on images it was not trained on, with running statistics."""

    mse: float
    smmd: list[float]  # of each batch


class Learner:
    """One seed: its model, optimizer, order of images, and what its steps measured."""

    def __init__(
        self,
        config: Config,
        model: Autoencoder,
        images: Tensor,
        ranks: Ranks = Ranks(),
        *,
        fused: bool = False,
    ) -> None:
        if len(images) < config.batch:
            raise ValueError(
                f"batch={config.batch}, but there are only {len(images)} training images"
            )
        if config.batch % ranks.world:
            raise ValueError(
                f"batch={config.batch} cannot be shared out evenly among {ranks.world} processes; "
                f"choose a multiple of {ranks.world}"
            )
        self.config, self.model, self.images, self.ranks = config, model, images, ranks
        device, share = images.device, config.batch // ranks.world
        self.steps = len(images) // config.batch
        self.place = torch.zeros(1, dtype=torch.long, device=device)
        self.order = torch.zeros(self.steps, share, dtype=torch.long, device=device)
        self.noise = None
        if config.random:
            self.noise = torch.zeros(self.steps, share, config.latent, device=device)
        self.measured = torch.zeros(self.steps, 2, device=device)
        #: Of what is minimized, error + weight · penalty, in the two.
        self.gradient = torch.tensor([1.0, config.weight], device=device)
        self.fused = fused
        self.optimizer: Any = fuse(model, EPSILON) if fused else _adam(model, device)
        self.module: nn.Module = model
        if ranks.world > 1:
            # Running statistics are of the global batch, so the same everywhere already.
            self.module = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)

    def unfused(self) -> Learner:
        """The same, at the same place, with plain layers and PyTorch's Adam."""
        tensors = {name: tensor.clone() for name, tensor in self.tensors().items()}
        self.model.fast.clear()
        for parameter in self.model.parameters():
            parameter.grad = None
        plain = Learner(self.config, self.model, self.images, self.ranks)
        plain.restore(tensors)
        return plain

    def begin(self, epoch: int) -> None:
        """The order of ``epoch``: a function of seed and epoch alone, whatever came before."""
        config = self.config
        generator = torch.Generator().manual_seed(seed_of(config.seed, epoch))
        order = torch.randperm(len(self.images), generator=generator)
        order = order[: self.steps * config.batch].reshape(self.steps, config.batch)
        # Each rank takes its columns of the global batch, whose last few images stay out.
        here = slice(self.ranks.rank, None, self.ranks.world)
        self.order.copy_(order[:, here])
        if self.noise is not None:
            shape = (self.steps, config.batch, config.latent)
            self.noise.copy_(torch.randn(shape, generator=generator)[:, here])
        self.place.zero_()
        rate = schedule.rate(config.stages, epoch)
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        self.model.train()

    def step(self) -> None:
        """One batch: look up, forward, backward, update."""
        x = self.pixels(self.images[self.order.index_select(0, self.place)[0]])
        noise = None if self.noise is None else self.noise.index_select(0, self.place)[0]
        self.optimizer.zero_grad(set_to_none=True)
        losses = self.module(x, noise)
        losses.backward(self.gradient)
        self.optimizer.step()
        self.measured.index_copy_(0, self.place, losses.detach()[None])
        self.place += 1

    def pixels(self, x: Tensor) -> Tensor:
        """Images in 0…1 as the networks take them."""
        x = x / 255 if x.dtype == torch.uint8 else x
        return x.contiguous(memory_format=torch.channels_last) if x.is_cuda else x

    @torch.no_grad()
    def validate(self, images: Tensor) -> Validation:
        """Reconstruction error, and SMMD² of up to 50 batches, on held-out images."""
        self.model.eval()
        config, parts, error = self.config, [], torch.zeros((), device=images.device)
        generator = torch.Generator().manual_seed(0)
        for chunk in images.split(CHUNK):
            x = self.pixels(chunk)
            z, variance = self.model.encode(x)
            error += ((self.model.decode(z) - x) ** 2).sum()
            if variance is not None:  # a draw: what the decoder will meet
                noise = torch.randn(z.shape, generator=generator).to(z.device)
                z = z + variance.sqrt() * noise
            parts.append(z)
        self.model.train()
        codes = torch.cat(parts)
        # Batches by lot: images next to each other are alike (MNIST's are by the same writers), and
        # batches of such would not be normal though the codes as a whole are.
        codes = codes[torch.randperm(len(codes), generator=generator).to(codes.device)]
        size = min(config.batch, len(codes))
        batches = min(len(codes) // size, MOST_BATCHES)
        values = measure.smmd(
            codes[: batches * size].reshape(batches, size, -1), kernel=kernel(config)
        )
        return Validation(float(error) / images.numel(), values.double().tolist())

    def tensors(self) -> dict[str, Tensor]:
        """Everything that training changes, by name: weights, running statistics, Adam's."""
        found = {f"model.{name}": t for name, t in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            state = self.optimizer.state[parameter]
            found |= {f"adam.{key}.{name}": state[key] for key in sorted(state)}
        return found

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Put back what ``tensors`` gave, in place."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
        if isinstance(self.optimizer, FlatAdam):
            self.optimizer.refresh()


def seed_of(seed: int, epoch: int) -> int:
    """What an epoch of a run draws from."""
    state = np.random.SeedSequence([seed, epoch]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def kernel(config: Config) -> Gaussian | Adaptive:
    """The kernel of the run's penalty."""
    return Adaptive(config.scale) if config.adaptive else Gaussian(config.scale)


def _adam(model: nn.Module, device: torch.device) -> torch.optim.Adam:
    on_gpu = device.type == "cuda"
    rate: Any = torch.tensor(1e-3, device=device) if on_gpu else 1e-3
    parameters = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, lr=rate, eps=EPSILON, fused=True, capturable=on_gpu)
    for parameter in parameters:
        # Made now and not in the first step, so that a checkpoint finds its place.
        adam.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return adam


def advance(learners: Sequence[Learner]) -> Iterator[int]:
    """The epoch's steps of every seed, one after the other; yields the steps done."""
    steps = learners[0].steps
    for done in range(steps):
        for learner in learners:
            learner.step()
        yield done + 1
