"""How items compute: their sizes, their random numbers, their device, what they keep on the way."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import numpy as np

import smmd as package
from smmd.errors import MissingExtra
from smmd.files import atomic_write, replacing
from smmd.paper import draws, many
from smmd.paper.draws import Draws

#: The paper's sample size.
N = 100
#: The dimensions of the paper's tables.
DIMENSIONS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Sizes:
    """How often what is repeated; each item's result depends on those it names."""

    #: Samples for each violin and histogram (the paper: 10,000).
    violin: int = 10_000
    #: Samples on each side behind each τ (the paper: 200).
    repeats: int = 1_000
    thresholds: int = 10_000
    shifts: int = 20
    deltas: int = 10_000
    #: Samples of Gaussian codes.
    encoder_codes: int = 2_000
    #: Auto-encoders trained for each dimension, for how many epochs, and samples from each.
    encoders: int = 3
    encoder_epochs: int = 20
    encoder_repeats: int = 500
    #: WAEs trained for each version; their preset, and how many epochs if not the preset's own.
    waes: int = 2
    wae_preset: str = "quick"
    wae_epochs: int | None = None
    #: For how many epochs a trained network goes on when code normalization is taken away.
    removal_epochs: int = 6

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


QUICK = Sizes()
FULL = Sizes(
    repeats=10_000,
    thresholds=40_000,
    shifts=30,
    deltas=40_000,
    encoder_codes=4_000,
    encoders=5,
    encoder_epochs=20,
    encoder_repeats=1_000,
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
#: A stream of random numbers and a count to as many samples (count, n, d).
Draw = Callable[[Draws, int], Any]


def silent(message: str, share: float) -> None:
    """Shows nothing."""


class Work:
    """One item's computation: reproducible draws, and parts that survive an interruption."""

    def __init__(
        self,
        item: str,
        settings: Settings,
        folder: Path,
        progress: Progress = silent,
        asked: Mapping[str, Any] = MappingProxyType({"key": ""}),
    ) -> None:
        self.item, self.settings, self.sizes = item, settings, settings.sizes
        self.folder, self._progress = folder, progress
        #: What the numbers were asked for, with a key that changes with it.
        self.asked = asked
        self.device = device(settings.device)
        #: Seconds that an interrupted run spent on parts which this one only read.
        self.spent_before = 0.0

    def draws(self, *keys: object) -> Draws:
        """Random numbers that depend on seed, item and keys only, not on what ran before."""
        return draws.draws(self.device, self.settings.seed, self.item, *keys)

    def batches(self, stream: Draws, total: int, d: int, draw: Draw | None = None) -> Iterator[Any]:
        """``total`` samples (count, N, d) some at a time: standard normal, or as ``draw`` says."""
        step = many.at_once(self.device, d, N)
        for start in range(0, total, step):
            count = min(step, total - start)
            yield stream.normal(count, N, d) if draw is None else draw(stream, count)

    def made(self, seconds: float, torch_too: bool) -> dict[str, Any]:
        """``Result.made``: what was asked for, how long it took, and what computed it."""
        spent = round(self.spent_before + seconds, 1)
        return {**self.asked, "seconds": spent, **versions(self.device, torch_too)}

    def show(self, message: str, share: float) -> None:
        """Tell how far the item is; that it is done is the runner's to say."""
        self._progress(message, min(share, 0.99))

    def part(self, name: str, share: float, compute: Callable[[], Any]) -> Any:
        """``compute()``, or what an interrupted run had already stored for it (JSON values)."""
        self._progress(name, share)
        path = self.folder / f"{_safe(name)}.json"
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            found = json.loads(path.read_text(encoding="utf-8"))
            self.spent_before += found["seconds"]
            return found["value"]
        start = time.perf_counter()
        value = compute()
        seconds = round(time.perf_counter() - start, 3)
        text = json.dumps({"seconds": seconds, "value": value})
        atomic_write(path, text)
        return json.loads(text)["value"]

    def arrays(self, name: str, compute: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        """The same for a list of arrays; ``compute`` shows how far it is."""
        path = self.folder / f"{_safe(name)}.npz"
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, BadZipFile):
            with np.load(path, allow_pickle=False) as found:
                kept = [found[f"arr_{k}"] for k in range(len(found.files) - 1)]
                self.spent_before += float(found["seconds"])
            return kept
        start = time.perf_counter()
        values = compute()
        with replacing(path) as file:
            np.savez(file, *values, seconds=time.perf_counter() - start)
        return values

    def forget_parts(self) -> None:
        """Remove the parts, once the whole is stored."""
        shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # the folder of all unfinished items, if empty
            self.folder.parent.rmdir()


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


def versions(used: str, torch_too: bool = False) -> dict[str, str]:
    """What computed: the machine in words, and the versions that matter."""
    import scipy

    found = {
        "device": _cpu_name(),
        "smmd": package.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }
    if used != "cpu" or torch_too:
        import torch

        found["torch"] = torch.__version__
    if used != "cpu":
        found["device"] = torch.cuda.get_device_name(torch.device(used))
    return found


def _cpu_name() -> str:
    """The processor in words, where Linux tells."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = f"{count} CPU core" + ("" if count == 1 else "s")
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line for line in lines if line.startswith("model name"))
        return f"{cores}, {name.partition(':')[2].strip()}"
    return cores


def _safe(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)
