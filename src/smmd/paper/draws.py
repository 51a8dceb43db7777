"""Random numbers where the work is done: NumPy's on a CPU, PyTorch's on a GPU.

The two give different numbers for the same seed, each the same ones every time.
"""

from __future__ import annotations

import zlib
from typing import Any, Protocol

import numpy as np


class Draws(Protocol):
    """A stream of random numbers; arrays of the device's framework in float64."""

    def normal(self, *shape: int) -> Any:
        """N(0, 1)."""

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        """U[low, high]."""

    def integers(self, bound: int, *shape: int) -> Any:
        """Whole numbers from 0 to bound − 1."""

    def take(self, rows: np.ndarray) -> Any:
        """An array of the caller's on the device."""


def draws(device: str, *keys: object) -> Draws:
    """The stream of these keys: it depends on them and on the kind of device, on nothing else."""
    numbers = [key if isinstance(key, int) else zlib.crc32(str(key).encode()) for key in keys]
    sequence = np.random.SeedSequence(numbers)
    if device == "cpu":
        return _OnCpu(np.random.default_rng(sequence))
    return _OnGpu(device, int(sequence.generate_state(1, np.uint64)[0] >> 1))


def distinct(stream: Draws, count: int, size: int, population: int) -> Any:
    """(count, size) indices below ``population``: each row without repetition, all alike likely.

    Rows that hold an index twice are drawn again as a whole.
    """
    if size > population:
        raise ValueError(f"size={size} different rows cannot come from {population}")
    if 4 * population < size * size:  # rows without repetition would be too rare
        order = stream.uniform(0.0, 1.0, count, population).argsort(-1)
        return order[:, :size]
    found = stream.integers(population, count, size)
    while True:
        in_order = found.sort(-1)[0] if hasattr(found, "cpu") else np.sort(found, axis=-1)
        wrong = (in_order[:, 1:] == in_order[:, :-1]).any(-1)
        again = int(wrong.sum())
        if again == 0:
            return found
        found[wrong] = stream.integers(population, again, size)


class _OnCpu:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def normal(self, *shape: int) -> Any:
        return self.rng.standard_normal(shape)

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        return self.rng.uniform(low, high, shape)

    def integers(self, bound: int, *shape: int) -> Any:
        return self.rng.integers(bound, size=shape)

    def take(self, rows: np.ndarray) -> Any:
        return rows


class _OnGpu:
    def __init__(self, device: str, seed: int) -> None:
        import torch

        self.torch, self.device = torch, torch.device(device)
        self.generator = torch.Generator(device=self.device).manual_seed(seed)

    def _options(self) -> dict[str, Any]:
        return {
            "generator": self.generator,
            "device": self.device,
            "dtype": self.torch.float64,
        }

    def normal(self, *shape: int) -> Any:
        return self.torch.randn(shape, **self._options())

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        return low + (high - low) * self.torch.rand(shape, **self._options())

    def integers(self, bound: int, *shape: int) -> Any:
        return self.torch.randint(bound, shape, generator=self.generator, device=self.device)

    def take(self, rows: np.ndarray) -> Any:
        return self.torch.as_tensor(rows, device=self.device)
