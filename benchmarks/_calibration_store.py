"""What is kept of a simulated part: enough order statistics for any level, and four moments."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks import _null_values as null_values
from benchmarks._null_values import Simulation

#: From here on a part has fewer samples.
LARGE_N = 400
#: Samples in one part, for few rows and for many: a few minutes of one core, seconds of a GPU.
PARTS = {"cpu": (100_000, 5_000), "cuda": (200_000, 50_000)}


def part_size(n: int, device: str) -> int:
    return PARTS[device][n >= LARGE_N]


def path(folder: Path, n: int, d: int, seed: int, part: int) -> Path:
    return folder / f"n{n}-d{d}-seed{seed}-part{part}.npz"


def ranks(count: int) -> np.ndarray:
    """Which of the values are kept, counted from the largest: 4.5 % apart, 3 % in the bulk.

    Between them the count is interpolated; at rank r that adds 0.1/√r to the relative error,
    a tenth of the simulation's own.
    """
    tail = np.round(np.geomspace(1, 0.35 * count, 220))
    bulk = np.round(np.linspace(0.35 * count, count, 24))
    return np.unique(np.concatenate([tail, bulk])).astype(np.int64)


def simulate(folder: Path, n: int, d: int, seed: int, part: int, device: str) -> None:
    """One part, written whole or not at all."""
    count = part_size(n, device)
    found = Simulation(n, d, seed, part, device).values(count)
    names = list(found)
    values = torch.stack([found[name] for name in names])
    mean = values.mean(dim=1, keepdim=True)
    e = values - mean
    square = e * e
    moments = torch.stack([mean[:, 0], *(f.mean(dim=1) for f in (square, square * e, square**2))])
    values = values.float().sort(dim=1, descending=True).values
    kept = ranks(count)
    place = path(folder, n, d, seed, part)
    folder.mkdir(parents=True, exist_ok=True)
    partial = place.with_suffix(".part")
    with partial.open("wb") as file:
        np.savez(
            file,
            names=np.array(names),
            count=np.int64(count),
            values=values[:, torch.as_tensor(kept - 1, device=values.device)].cpu().numpy(),
            moments=moments.cpu().numpy(),
        )
    partial.replace(place)


@dataclass(frozen=True)
class Series:
    """All parts of one statistic in one cell."""

    count: int
    parts: tuple[tuple[int, np.ndarray], ...]
    mean: float
    variance: float
    skewness: float
    kurtosis: float

    def level(self, threshold: float) -> float:
        """The share of values at or above the threshold."""
        above = 0.0
        for count, values in self.parts:
            if threshold <= values[0]:
                position = np.interp(-threshold, -values, np.log(ranks(count)))
                above += float(np.exp(position))
        return above / self.count

    def error(self, level: float) -> float:
        """The standard error of a level."""
        return float(np.sqrt(level * (1.0 - level) / self.count))

    def quantile(self, level: float) -> float:
        """The threshold exceeded with probability ``level``."""
        low, high = (pick(v[k] for _, v in self.parts) for pick, k in ((min, -1), (max, 0)))
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.level(middle) > level else (low, middle)
        return float(0.5 * (low + high))


class Cell:
    """The series of one n and d."""

    def __init__(self, n: int, d: int, files: list[Path]) -> None:
        self.n, self.d = n, d
        self._parts = []
        for file in files:
            with np.load(file, allow_pickle=False) as stored:
                self._parts.append({key: stored[key] for key in stored.files})
        self.names = [str(name) for name in self._parts[0]["names"]] if self._parts else []

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def series(self, name: str) -> Series:
        rows = [(p, [str(s) for s in p["names"]].index(name)) for p in self._parts]
        counts = np.array([int(p["count"]) for p, _ in rows], dtype=float)
        share = counts / counts.sum()
        mean, m2, m3, m4 = np.array([p["moments"][:, k] for p, k in rows]).T
        middle = float(share @ mean)
        e = mean - middle
        second = float(share @ (m2 + e**2))
        third = float(share @ (m3 + 3 * e * m2 + e**3))
        fourth = float(share @ (m4 + 4 * e * m3 + 6 * e**2 * m2 + e**4))
        return Series(
            count=int(counts.sum()),
            parts=tuple((int(p["count"]), p["values"][k].astype(float)) for p, k in rows),
            mean=middle,
            variance=second,
            skewness=third / second**1.5,
            kurtosis=fourth / second**2 - 3.0,
        )


def load(folder: Path, n: int, d: int, seed: int | None = None) -> Cell:
    """The parts of a cell in ``folder``, of one seed or of all; unreadable ones are left out."""
    files = []
    for file in sorted(folder.glob(f"n{n}-d{d}-seed{'*' if seed is None else seed}-part*.npz")):
        try:
            with np.load(file, allow_pickle=False) as stored:
                files += [file] if "values" in stored.files else []
        except (OSError, ValueError, zipfile.BadZipFile):
            continue
    return Cell(n, d, files)


__all__ = ["Cell", "Series", "load", "null_values", "part_size", "path", "ranks", "simulate"]
