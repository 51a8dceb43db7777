"""How good generated images look to a small classifier trained on the same data.

The Fréchet distance here is *not* FID.  FID measures in the features of one large network trained
on photographs; this one in the 64 features of a small network trained on the run's own training
images, or, where there are no labels, in their leading principal components.  It needs nothing
from outside and suits small grey digits as well as photographs, but its values compare runs on
the same data only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from smmd.wae.data import Dataset

#: The classifier sees at most this many training images, this often, in batches of this size.
TRAIN_ON, EPOCHS, BATCH = 10_000, 5, 64
FEATURES = 64
#: A class is covered if samples show it at least this share as often as the data.
COVERED = 0.25


@dataclass(frozen=True)
class Quality:
    """Distances between sets of images, in units of the real features' total variance.

    features         where the distance is measured: "classifier" or "principal components"
    accuracy         the classifier's share of right answers on test images, or None
    samples          Fréchet distance of random samples to the test images; 0 is best, and 1 is
                     what one picture repeated for ever gets at best
    reconstructions  the same for reconstructed test images
    floor            the same for real training images: what perfect samples would get
    coverage         classes that samples show at least a quarter as often as the data, or None
    classes          how many classes there are, or None
    class_distance   total variation distance between the classes of samples and of test images,
                     both as the classifier sees them: 0 to 1, or None
    """

    features: str
    accuracy: float | None
    samples: float
    reconstructions: float
    floor: float
    coverage: int | None
    classes: int | None
    class_distance: float | None


@dataclass(frozen=True, eq=False)
class Judge:
    """Features (n, 64) of images and, with labels, the class that features seem to show."""

    kind: str
    features: Callable[[np.ndarray], np.ndarray]
    classify: Callable[[np.ndarray], np.ndarray] | None
    accuracy: float | None
    classes: int | None


def assess(dataset: Dataset, samples: np.ndarray, reconstructions: np.ndarray) -> Quality:
    """Compare generated images with the data set's, all by the features that ``judge_of`` gives."""
    judge = judge_of(dataset)
    real = judge.features(dataset.test)
    train = judge.features(dataset.train[_some(len(dataset.train), len(dataset.test))])
    scale = max(float(real.var(axis=0, ddof=1).sum()), 1e-12)
    coverage = class_distance = None
    if judge.classify is not None and judge.classes is not None:
        shares = [
            np.bincount(judge.classify(x), minlength=judge.classes) / len(x)
            for x in (samples, real)
        ]
        present = shares[1] > 0
        coverage = int(np.sum(shares[0][present] >= COVERED * shares[1][present]))
        class_distance = float(0.5 * np.abs(shares[0] - shares[1]).sum())
    return Quality(
        features=judge.kind,
        accuracy=judge.accuracy,
        samples=frechet(samples, real) / scale,
        reconstructions=frechet(reconstructions, real) / scale,
        floor=frechet(train, real) / scale,
        coverage=coverage,
        classes=judge.classes,
        class_distance=class_distance,
    )


def frechet(a: np.ndarray, b: np.ndarray) -> float:
    """‖mean a − mean b‖² + tr(A + B − 2(AB)^½), the squared 2-Wasserstein distance of the
    normal distributions with the samples' means and covariances A, B."""
    gap = a.mean(axis=0) - b.mean(axis=0)
    first, second = np.atleast_2d(np.cov(a, rowvar=False)), np.atleast_2d(np.cov(b, rowvar=False))
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(np.clip(values, 0.0, None))) @ vectors.T
    # tr (AB)^½ = tr (A^½ B A^½)^½, which is symmetric.
    crossed = np.linalg.eigvalsh(root @ second @ root)
    overlap = np.sqrt(np.clip(crossed, 0.0, None)).sum()
    return max(0.0, float(gap @ gap + np.trace(first) + np.trace(second) - 2.0 * overlap))


def judge_of(dataset: Dataset) -> Judge:
    """The judge of a data set; the same data give the same one, trained once."""
    key = _Key(dataset)
    return _judge(key)


class _Key:
    """A data set as a dictionary's key, by its content."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        digests = (
            "" if labels is None else hashlib.sha256(labels.tobytes()).hexdigest()
            for labels in (dataset.train_labels, dataset.test_labels)
        )
        self.content = (dataset.checksum, *digests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.content)


@lru_cache(maxsize=2)
def _judge(key: _Key) -> Judge:
    dataset = key.dataset
    labels = dataset.train_labels
    if labels is None or dataset.test_labels is None or len(np.unique(labels)) < 2:
        return _principal(dataset)
    return _classifier(dataset)


def principal_components(pictures: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and leading orthonormal directions (pixels, count), from at most 2,000 images."""
    rows = unit(pictures[_some(len(pictures), 2000)]).reshape(min(len(pictures), 2000), -1)
    mean = rows.mean(axis=0)
    count = min(count, len(rows) - 1, rows.shape[1])
    _, _, directions = np.linalg.svd(rows - mean, full_matrices=False)
    return mean, np.ascontiguousarray(directions[:count].T)


def _principal(dataset: Dataset) -> Judge:
    mean, directions = principal_components(dataset.train, FEATURES)

    def features(pictures: np.ndarray) -> np.ndarray:
        parts = [
            (unit(chunk).reshape(len(chunk), -1) - mean) @ directions for chunk in chunks(pictures)
        ]
        return np.concatenate(parts).astype(np.float64)

    return Judge("principal components", features, None, None, None)


def _classifier(dataset: Dataset) -> Judge:
    """Trained on the CPU by one thread, whatever the run was trained on, so that every machine asks
    the same judge (to the rounding of its matrix products)."""
    import torch

    assert dataset.train_labels is not None
    assert dataset.test_labels is not None
    names, labels = np.unique(dataset.train_labels, return_inverse=True)
    chosen = _some(len(labels), TRAIN_ON)
    x = torch.from_numpy(unit(dataset.train[chosen]))
    y = torch.from_numpy(labels[chosen].astype(np.int64))
    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body, head = _network(dataset.shape[0], len(names))
        parameters = [*body.parameters(), *head.parameters()]
        steps = EPOCHS * -(-len(x) // BATCH)
        optimizer = torch.optim.Adam(parameters, lr=2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
        loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.05)
        body.train()
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(x)).split(BATCH):
                optimizer.zero_grad(set_to_none=True)
                loss_of(head(body(x[rows])), y[rows]).backward()
                optimizer.step()
                schedule.step()
    body.eval()

    def features(pictures: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            parts = [body(torch.from_numpy(unit(chunk))).numpy() for chunk in chunks(pictures)]
        return np.concatenate(parts).astype(np.float64)

    def classify(found: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(head(torch.from_numpy(found.astype(np.float32))).argmax(dim=1))

    right = names[classify(features(dataset.test))] == dataset.test_labels
    return Judge("classifier", features, classify, float(right.mean()), len(names))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Layers this small gain nothing from a second thread, and lose much where cores are busy."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _network(channels: int, classes: int) -> tuple[Any, Any]:
    from torch import nn

    body = nn.Sequential(
        nn.Conv2d(channels, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        # 28×28 pixels have become 4×4; other sizes are brought there.
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * 16, FEATURES),
        nn.ReLU(),
    )
    return body, nn.Linear(FEATURES, classes)


def _some(n: int, count: int) -> np.ndarray:
    """At most ``count`` of n rows, always the same ones."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:count])


def chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    """A thousand rows at a time."""
    return (rows[start : start + 1000] for start in range(0, len(rows), 1000))


def unit(pictures: np.ndarray) -> np.ndarray:
    """Images as float32 in 0…1."""
    if pictures.dtype == np.uint8:
        return pictures.astype(np.float32) / np.float32(255.0)
    return np.require(pictures, np.float32, ["C", "W"])
