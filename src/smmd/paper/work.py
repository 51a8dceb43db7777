"""How items compute: their sizes, their random numbers, their device, what they keep on the way."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import smmd as package
from smmd import arrays
from smmd.errors import MissingExtra

#: The paper's sample size.
N = 100
#: The dimensions of the paper's tables.
DIMENSIONS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Sizes:
    """How often what is repeated."""

    #: Samples for each violin and histogram (the paper: 10,000).
    violin: int = 10_000
    #: Samples behind each τ of a closed-form and of a sampled method (the paper: 200).
    analytic: int = 1_000
    sampled: int = 400
    thresholds: int = 10_000
    shifts: int = 40
    deltas: int = 10_000
    #: Auto-encoders and WAEs trained for each cell, and for how many epochs.
    encoders: int = 5
    encoder_epochs: int = 20
    waes: int = 10
    #: A factor on the paper's 60 and 80 epochs.
    wae_epochs: float = 1.0


QUICK = Sizes()
FULL = replace(QUICK, analytic=10_000, sampled=10_000, thresholds=40_000, deltas=40_000)


@dataclass(frozen=True)
class Settings:
    """What a run was asked for; together with an item's recipe it decides every number."""

    full: bool = False
    seed: int = 0
    sizes: Sizes = QUICK
    data: str = "mnist-subset"
    data_dir: str | None = None
    device: str | None = None

    @staticmethod
    def of(full: bool, **others: Any) -> Settings:
        return Settings(full=full, sizes=FULL if full else QUICK, **others)

    def fingerprint(self, needs_training: bool) -> dict[str, Any]:
        """What a stored result must have been made with to be used again."""
        asked: dict[str, Any] = {"seed": self.seed, **asdict(self.sizes)}
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
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(value))
        return json.loads(path.read_text(encoding="utf-8"))

    def forget_parts(self) -> None:
        """Remove the parts, once the whole is stored."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                path.unlink()
            self._folder.rmdir()


def to_numpy(values: Any) -> np.ndarray:
    return np.asarray(arrays.to_numpy(values, "the reproduction"), dtype=np.float64)


def batches(rng: np.random.Generator, total: int, n: int, d: int) -> Iterator[np.ndarray]:
    """``total`` standard normal samples, some 64 MB at a time."""
    step = max(1, (1 << 23) // (n * d))
    for start in range(0, total, step):
        yield rng.standard_normal((min(step, total - start), n, d))


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write the whole file or nothing."""
    temporary = path.with_name(path.name + ".part")
    raw = content.encode("utf-8") if isinstance(content, str) else content
    with open(temporary, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


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
