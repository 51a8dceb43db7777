"""The paper's WAEs, trained by ``smmd.wae.fit``, and what is measured of them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from smmd import mardia, smmd
from smmd.errors import MissingExtra
from smmd.kernels import Adaptive, Gaussian
from smmd.monitor import BStatistic
from smmd.paper.work import N, Settings, Work

if TYPE_CHECKING:
    from smmd.wae import Dataset, Run

#: As in the paper: the B-statistic's batches.
BATCHES = 50
#: What is measured of a run.
MEASURES = ("mse", "kurtosis", "skewness", "b", "b_fixed")


def fit(*args: Any, **options: Any) -> list[Run]:
    """``smmd.wae.fit``, or a word on what is missing."""
    try:
        from smmd.wae import fit as train
    except ImportError as error:  # pragma: no cover - the tests have PyTorch
        raise MissingExtra("Training auto-encoders", "train", error.name or "torch") from error
    return list(train(*args, **options))


@lru_cache(maxsize=4)
def dataset(settings: Settings) -> Dataset:
    """The images that all items of a run learn from."""
    from smmd.wae import data

    return data.load(settings.data, data_dir=settings.data_dir)


@lru_cache(maxsize=4)
def runs(settings: Settings, version: str, device: str) -> tuple[Run, ...]:
    """The trained networks of a version, one for each seed; in one process trained only once."""
    sizes = settings.sizes
    found = fit(
        dataset(settings),
        preset=sizes.wae_preset,
        version=version,
        epochs=_epochs(sizes.wae_epochs, version),
        seed=first_seed(settings),
        seeds=sizes.waes,
        device=device,
    )
    return tuple(found)


def first_seed(settings: Settings) -> int:
    """Runs of another seed share no network with this one's."""
    return 1000 * settings.seed


def _epochs(base: int | None, version: str) -> int | None:
    """The adaptive versions get a third more, as in the paper."""
    return None if base is None or version == "code-norm" else round(base * 4 / 3)


def measured(work: Work, run: Run) -> dict[str, float]:
    """Test error, Mardia's moments and B-statistics of the codes of the test images.

    ``b`` is by the run's own kernel, ``b_fixed`` by the fixed width for all; B's batches are m = 50
    of n = 100 in an order drawn by lot, for MNIST's test images come in two halves that differ.
    """
    test = dataset(work.settings).test
    codes = run.encode(test).astype(np.float64)
    pixels = test.astype(np.float64) / (255.0 if test.dtype == np.uint8 else 1.0)
    moments = mardia(codes)
    own = Adaptive(run.config.scale) if run.config.adaptive else Gaussian(run.config.scale)
    order = np.random.default_rng(0).permutation(len(codes))
    return {
        "mse": float(np.mean((run.decode(codes) - pixels) ** 2)),
        "kurtosis": float(moments.kurtosis),
        "skewness": float(moments.skewness),
        "b": b_statistic(codes[order], own),
        "b_fixed": b_statistic(codes[order], Gaussian(run.config.scale)),
    }


def b_statistic(codes: np.ndarray, kernel: Gaussian | Adaptive) -> float:
    """The mean SMMD² of up to 50 batches of 100 codes."""
    count = min(BATCHES, len(codes) // N)
    if count < 1:
        raise ValueError(f"there are only {len(codes)} codes; a batch has {N}")
    statistic = BStatistic()
    for value in smmd(codes[: count * N].reshape(count, N, -1), kernel=kernel):
        statistic.update(float(value))
    return statistic.value


def over_seeds(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, float, float]]:
    """(mean, its standard error, standard deviation between seeds) of each measure."""
    found = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        found[name] = (float(values.mean()), sd / len(values) ** 0.5, sd)
    return found


def pack(images: np.ndarray) -> dict[str, Any]:
    """Images in 0…1 (rows, columns, height, width) as JSON."""
    eight = np.round(255.0 * np.clip(images, 0.0, 1.0)).astype(np.uint8)
    text = base64.b64encode(zlib.compress(eight.tobytes(), 9)).decode()
    return {"shape": list(eight.shape), "zlib": text}


def unpack(packed: dict[str, Any]) -> np.ndarray:
    """The inverse of ``pack``, as one picture (rows·height, columns·width)."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), np.uint8)
    rows, columns, height, width = packed["shape"]
    tiles = raw.reshape(rows, columns, height, width)
    return tiles.transpose(0, 2, 1, 3).reshape(rows * height, columns * width)
