"""A run that needs no training: principal components as encoder and decoder."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from smmd.wae import config, data
from smmd.wae.data import Dataset


def digits(train: int = 1500, test: int = 400, *, labels: bool = True) -> Dataset:
    """A part of the shipped digits."""
    whole = data.shipped()
    assert whole.train_labels is not None
    assert whole.test_labels is not None
    rows, others = (
        np.random.default_rng(0).permutation(len(x))[:k]
        for x, k in ((whole.train, train), (whole.test, test))
    )
    return Dataset(
        "some digits",
        whole.train[rows],
        whole.test[others],
        whole.train_labels[rows] if labels else None,
        whole.test_labels[others] if labels else None,
        whole.classes if labels else (),
    )


def tinted(side: int = 12, n: int = 240) -> Dataset:
    """Colour images without labels: discs of random place and colour."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:side, :side]
    place = rng.uniform(0.3, 0.7, (n, 2)) * side
    inside = (x - place[:, :1, None]) ** 2 + (y - place[:, 1:, None]) ** 2 < (side / 4) ** 2
    colour = rng.uniform(0.2, 1.0, (n, 3, 1, 1))
    pictures = (inside[:, None] * colour).astype(np.float32)
    return Dataset("discs", pictures[: n - 60], pictures[n - 60 :])


def _unit(pictures: np.ndarray) -> np.ndarray:
    scale = 255.0 if pictures.dtype == np.uint8 else 1.0
    return pictures.reshape(len(pictures), -1) / scale


@dataclass
class Linear:
    """Codes are principal components with unit variance."""

    folder: Path | None
    images: Dataset
    latent: int
    version: str = "code-norm"
    config: Any = None
    record: dict[str, Any] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = config.choose("quick", latent=self.latent, version=self.version)
        self.record = {"config": self.config.to_json()}
        self.log = [
            {
                "epoch": k,
                "rate": 1e-3 if k < 4 else 1e-4,
                "mse": 0.03 + 0.04 / k,
                "val_mse": 0.031 + 0.04 / k,
                "b": 30.0 / k**3,
                "b_low": -0.4,
                "b_high": 0.4,
                "e": 5.0 / k**2,
                "e_low": -0.2,
                "e_high": 0.2,
            }
            for k in range(1, 7)
        ]
        rows = _unit(self.images.train)
        self.mean = rows.mean(axis=0)
        _, sizes, turned = np.linalg.svd(rows - self.mean, full_matrices=False)
        self.spread = sizes[: self.latent] / np.sqrt(len(rows) - 1)
        self.directions = turned[: self.latent]

    def encode(self, pictures: Any, *, rng: Any = None) -> np.ndarray:
        return np.asarray((_unit(pictures) - self.mean) @ self.directions.T / self.spread)

    def decode(self, codes: Any) -> np.ndarray:
        rows = self.mean + (np.asarray(codes) * self.spread) @ self.directions
        shape = (len(rows), *self.images.shape)
        return np.clip(rows, 0.0, 1.0).astype(np.float32).reshape(shape)

    def dataset(self) -> Dataset:
        return self.images


class Normal(Linear):
    """A run whose test codes are drawn from N(0, I)."""

    def encode(self, pictures: Any, *, rng: Any = None) -> np.ndarray:
        return np.random.default_rng(len(pictures)).standard_normal((len(pictures), self.latent))


@lru_cache
def some_digits(labels: bool = True) -> Dataset:
    """The same digits for every test."""
    return digits(labels=labels)
