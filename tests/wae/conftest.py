"""Small images that train in a moment."""

import numpy as np
import pytest

from smmd.wae.data import Dataset


def blobs(n: int, seed: int = 0, side: int = 8) -> np.ndarray:
    """Grey images of a soft spot somewhere: a two-dimensional family."""
    rng = np.random.default_rng(seed)
    grid = np.arange(side)
    at = rng.uniform(1, side - 2, (n, 2, 1))
    rows, cols = np.exp(-((grid - at) ** 2) / 3).transpose(1, 0, 2)
    return np.rint(255 * rows[:, :, None] * cols[:, None, :]).astype(np.uint8)[:, None]


@pytest.fixture(scope="session")
def spots() -> Dataset:
    return Dataset("spots", blobs(400), blobs(200, 1))


@pytest.fixture
def spots_file(tmp_path):
    path = tmp_path / "spots.npz"
    np.savez(path, x_train=blobs(400)[:, 0], x_test=blobs(200, 1)[:, 0])
    return path
