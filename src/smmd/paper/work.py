"""How items compute: their sizes, their random numbers, their device, what they keep on the way."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import smmd as package
from smmd import arrays
from smmd.errors import MissingExtra
from smmd.files import atomic_write

#: The paper's sample size.
N = 100
#: The dimensions of the paper's tables.
DIMENSIONS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Sizes:
    """How often what is repeated; each item's result depends on those it names."""

    #: Samples for each violin and histogram (the paper: 10,000).
    violin: int = 10_000
    #: Samples behind each τ of a closed-form and of a sampled method (the paper: 200).
    analytic: int = 1_000
    sampled: int = 500
    thresholds: int = 10_000
    shifts: int = 40
    deltas: int = 10_000
    #: Auto-encoders trained for each dimension, and for how many epochs.
    encoders: int = 3
    encoder_epochs: int = 20
    #: WAEs trained for each version; their preset, and how many epochs if not the preset's own.
    waes: int = 2
    wae_preset: str = "quick"
    wae_epochs: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


QUICK = Sizes()
FULL = Sizes(
    analytic=10_000,
    sampled=10_000,
    thresholds=40_000,
    shifts=200,
    deltas=40_000,
    encoders=10,
    encoder_epochs=50,
    waes=10,
    wae_preset="paper",
)


@dataclass(frozen=True)
class Settings:
    """What a run was asked for; together with an item's recipe it decides every number."""

    seed: int = 0
    sizes: Sizes = QUICK
    data: str = "mnist-subset"
    data_dir: str | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.seed, bool) or not isinstance(self.seed, int):
            raise TypeError(f"seed must be a whole number, got {self.seed!r}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")

    def fingerprint(self, uses: tuple[str, ...], needs_training: bool) -> dict[str, Any]:
        """What a stored result must have been made with to be used again."""
        asked: dict[str, Any] = {"seed": self.seed}
        asked.update({name: getattr(self.sizes, name) for name in uses})
        if needs_training:
            asked["data"] = self.data
        return asked


Progress = Callable[[str, float], None]


def silent(message: str, share: float) -> None:
    """Shows nothing."""


class Work:
    """One item's computation: reproducible draws, and parts that survive an interruption."""

    def __init__(
        self, item: str, settings: Settings, folder: Path, progress: Progress = silent
    ) -> None:
        self.item, self.settings, self.sizes = item, settings, settings.sizes
        self._folder, self._progress = folder, progress
        self.device = device(settings.device)

    def rng(self, *keys: object) -> np.random.Generator:
        """Random numbers that depend on seed, item and keys only, not on what ran before."""
        return np.random.default_rng([self.settings.seed, _code(self.item), *map(_code, keys)])

    def on_device(self, z: np.ndarray) -> Any:
        """``z`` where the work is done: a GPU if there is one."""
        if self.device == "cpu":
            return z
        import torch

        return torch.as_tensor(z, device=self.device)

    def values(self, statistic: Callable[[Any], Any], samples: Iterator[np.ndarray]) -> np.ndarray:
        """The statistic of every sample (…, n, d) of the stream of batches."""
        parts = [to_numpy(statistic(self.on_device(z))) for z in samples]
        return np.concatenate(parts)

    def show(self, message: str, share: float) -> None:
        """Tell how far the item is."""
        self._progress(message, share)

    def part(self, name: str, share: float, compute: Callable[[], Any]) -> Any:
        """``compute()``, or what an interrupted run had already stored for it (JSON values)."""
        self._progress(name, share)
        path = self._folder / f"{_safe(name)}.json"
        if path.is_file():
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                path.unlink()
        value = compute()
        atomic_write(path, json.dumps(value))
        return json.loads(path.read_text(encoding="utf-8"))

    def forget_parts(self) -> None:
        """Remove the parts, once the whole is stored."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                path.unlink()
            self._folder.rmdir()


def to_numpy(values: Any) -> np.ndarray:
    return np.asarray(arrays.to_numpy(values, "the reproduction"), dtype=np.float64)


def counts(total: int, d: int, n: int = N) -> Iterator[int]:
    """How many samples to hold at once: some 64 MB of them, and 1 GB of their pairs on a GPU."""
    step = max(1, min((1 << 23) // (n * d), (1 << 27) // (n * n)))
    for start in range(0, total, step):
        yield min(step, total - start)


def batches(rng: np.random.Generator, total: int, n: int, d: int) -> Iterator[np.ndarray]:
    """``total`` standard normal samples, some at a time."""
    for count in counts(total, d, n):
        yield rng.standard_normal((count, n, d))


def device(asked: str | None = None) -> str:
    """``asked``, or "cuda" where PyTorch has a GPU, or "cpu"."""
    if asked is not None and asked.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"device must be 'cpu' or 'cuda' (or 'cuda:1', ...), got {asked!r}")
    if asked == "cpu" or importlib.util.find_spec("torch") is None:
        if asked not in (None, "cpu"):
            raise MissingExtra(f"device={asked!r}", "torch", "torch")
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return asked or "cuda"
    if asked is not None:
        raise ValueError(f"device={asked!r}, but PyTorch finds no GPU here; leave device out")
    return "cpu"


def versions(used: str) -> dict[str, str]:
    """What computed: the machine in words, and the versions that matter."""
    import scipy

    found = {
        "device": f"{os.cpu_count()} CPU cores",
        "smmd": package.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    if used != "cpu":
        import torch

        found["torch"] = torch.__version__
        found["device"] = torch.cuda.get_device_name(torch.device(used))
    return found


def _code(key: object) -> int:
    return zlib.crc32(str(key).encode("utf-8"))


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)
