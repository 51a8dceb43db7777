"""Plain auto-encoders for Table "Discrimination-power-table-mnist": many small nets at once.

Encoder 784–128–128–d, decoder d–128–128–784, ReLU between layers, no regularization.  What the
paper does not say is chosen here: sigmoid output, mean squared error, Adam with learning rate
0.001, batches of 200.  All nets (each dimension, several seeds) train side by side as one batched
network: a net with d < 32 has the codes from d on masked to zero, in which case their weights never
receive a gradient.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

HIDDEN = 128
BATCH = 200
RATE = 1e-3


def codes(
    images: np.ndarray,
    held_out: np.ndarray,
    dimensions: tuple[int, ...],
    *,
    epochs: int,
    seed: int,
    device: str,
    progress: Callable[[int], None] = lambda epoch: None,
) -> tuple[list[np.ndarray], list[float]]:
    """Each net's codes (m, d) of the held-out images, and its held-out mean squared error.

    ``dimensions`` has an entry for each net; the same dimension twice is two nets of different
    initial weights.
    """
    train, test = (_pixels(x, device) for x in (images, held_out))
    nets = _Nets(train.shape[1], dimensions, seed, device)
    optimizer = torch.optim.Adam(nets.parameters, lr=RATE, fused=True)
    order = torch.Generator(device=device).manual_seed(seed)
    step = _stepper(nets, optimizer, train)
    size = min(BATCH, len(train))
    for epoch in range(epochs):
        progress(epoch)
        # Every net sees the images in its own order.
        shape = (len(dimensions), len(train))
        shuffled = torch.rand(shape, generator=order, device=device).argsort(1)
        for start in range(0, len(train) - size + 1, size):
            step(shuffled[:, start : start + size])
    errors = torch.zeros(len(dimensions), device=device)
    with torch.no_grad():
        parts = []
        for rows in test.split(2000):
            z = nets.encode(rows.expand(len(dimensions), *rows.shape))
            errors += ((nets.decode(z) - rows) ** 2).sum(dim=(1, 2))
            parts.append(z)
        every = torch.cat(parts, dim=1).cpu().numpy()
    found = [every[net, :, :d] for net, d in enumerate(dimensions)]
    return found, (errors / test.numel()).tolist()


def _pixels(images: np.ndarray, device: str) -> Tensor:
    flat = torch.from_numpy(images.reshape(len(images), -1).copy()).to(device)
    return flat.float() / 255.0 if flat.dtype == torch.uint8 else flat.float()


class _Nets:
    """Weights (net, in, out) and biases (net, 1, out) of all nets, layer by layer."""

    def __init__(self, pixels: int, dimensions: tuple[int, ...], seed: int, device: str) -> None:
        widest = max(dimensions)
        generator = torch.Generator(device="cpu").manual_seed(seed)
        sizes = [pixels, HIDDEN, HIDDEN, widest, HIDDEN, HIDDEN, pixels]
        self.weights, self.biases = [], []
        for layer, (before, after) in enumerate(itertools.pairwise(sizes)):
            weight = torch.empty(len(dimensions), before, after)
            for net, d in enumerate(dimensions):
                # Glorot uniform, with the net's own number of codes.
                fans = (before if layer != 3 else d) + (after if layer != 2 else d)
                bound = math.sqrt(6.0 / fans)
                weight[net].uniform_(-bound, bound, generator=generator)
            self.weights.append(weight.to(device).requires_grad_())
            self.biases.append(
                torch.zeros(len(dimensions), 1, after, device=device).requires_grad_()
            )
        mask = torch.arange(widest)[None, :] < torch.tensor(dimensions)[:, None]
        self.mask = mask[:, None, :].float().to(device)

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def _layers(self, x: Tensor, first: int) -> Tensor:
        for layer in range(first, first + 3):
            x = torch.baddbmm(self.biases[layer], x, self.weights[layer])
            if layer < first + 2:
                x = torch.relu(x)
        return x

    def encode(self, x: Tensor) -> Tensor:
        return self._layers(x, 0) * self.mask

    def decode(self, z: Tensor) -> Tensor:
        return torch.sigmoid(self._layers(z, 3))


def _stepper(nets: _Nets, optimizer: Any, train: Tensor) -> Callable[[Tensor], None]:
    """One training step on the images of the given indices (net, batch)."""

    def step(index: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        x = train[index]
        # The sum over nets of each net's mean: the nets do not see each other.
        loss = ((nets.decode(nets.encode(x)) - x) ** 2).mean(dim=(1, 2)).sum()
        loss.backward()
        optimizer.step()

    return step
