"""Codes to be decoded (random draws, a plane through the origin, ways from one code to another,
steps along each axis), and files of what they are decoded to."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np

from smmd import files
from smmd.wae import images


def draws(n: int, d: int, seed: int = 0) -> np.ndarray:
    """n codes from N(0, I_d)."""
    return np.random.default_rng(seed).standard_normal((n, d))


def plane(d: int, seed: int = 0) -> np.ndarray:
    """Two orthonormal directions (2, d), uniformly distributed; for d = 1 one (1, 1)."""
    directions = np.random.default_rng(seed).standard_normal((d, min(2, d)))
    turned, triangle = np.linalg.qr(directions)
    return np.asarray((turned * np.sign(np.diag(triangle))).T)


def plane_slice(d: int, side: int, reach: float = 2.5, seed: int = 0) -> np.ndarray:
    """Codes on the regular grid of a plane through the origin, row by row from its top (paper,
    Figure "WAE-results" c): (side², d), or (side, d) on the line that d = 1 has instead."""
    ticks = np.linspace(-reach, reach, side)
    directions = plane(d, seed)
    if d == 1:
        return ticks[:, None] * directions
    right, up = np.meshgrid(ticks, ticks[::-1])
    return right.reshape(-1, 1) * directions[:1] + up.reshape(-1, 1) * directions[1:]


def between(ends: np.ndarray, steps: int) -> np.ndarray:
    """``steps`` codes from each row of ``ends`` (2, n, d) to its partner, along great circles.

    A straight line between two normal codes passes nearer to the origin than normal codes lie;
    this way keeps to their distance: direction by the angle, length linearly.
    """
    first, second = ends[0], ends[1]
    lengths = [np.linalg.norm(end, axis=1, keepdims=True) for end in (first, second)]
    a, b = (end / np.maximum(length, 1e-12) for end, length in zip(ends, lengths, strict=True))
    angle = np.arccos(np.clip(np.sum(a * b, axis=1, keepdims=True), -1.0, 1.0))
    sine = np.sin(angle)
    # Nearly parallel or opposite ends have no great circle of their own: a straight line then.
    straight = sine < 1e-6
    rows = []
    for t in np.linspace(0.0, 1.0, steps):
        around = (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.where(straight, 1, sine)
        length = (1 - t) * lengths[0] + t * lengths[1]
        rows.append(np.where(straight, (1 - t) * first + t * second, length * around))
    return np.stack(rows, axis=1).reshape(-1, first.shape[1])


def along_axes(axes: np.ndarray, d: int, steps: int, reach: float = 3.0) -> np.ndarray:
    """``steps`` codes along each of the axes through the origin: (len(axes)·steps, d)."""
    codes = np.zeros((len(axes), steps, d))
    codes[np.arange(len(axes)), :, axes] = np.linspace(-reach, reach, steps)
    return codes.reshape(-1, d)


def columns_for(n: int, height: int, width: int) -> int:
    """How many images make a row of a sheet about as wide as high."""
    return max(1, min(n, round(math.sqrt(n * height / width))))


def slice_of(n: int, d: int, reach: float, seed: int) -> tuple[np.ndarray, int]:
    """About n codes of a slice, and how many make a row."""
    side = n if d == 1 else max(1, round(math.sqrt(n)))
    return plane_slice(d, side, reach, seed), side


def ways(n: int, steps: int, d: int, seed: int) -> tuple[np.ndarray, int]:
    """About n codes on ways of ``steps`` codes between random pairs, and how many make a row."""
    count = max(1, n // steps)
    return between(draws(2 * count, d, seed).reshape(2, count, d), steps), steps


def check_target(path: Path) -> None:
    """Refuse what could not be written later, before any work is done."""
    if path.suffix.lower() in (".png", ".npy"):
        if path.is_dir():
            raise ValueError(f"{path} is a folder; name a file")
    elif path.suffix and not path.is_dir():
        raise ValueError(
            f"{path}: images are written as .png (side by side), as .npy (the array), or into a "
            "folder, whose name has no ending"
        )
    elif path.exists() and not path.is_dir():
        raise ValueError(f"{path} exists and is not a folder")


def write(path: Path, pictures: np.ndarray, columns: int | None = None) -> str:
    """Images (n, c, h, w) as a PNG, an NPY array (n, h, w, c) or a folder of PNGs; says where."""
    if path.suffix.lower() == ".npy":
        with files.replacing(path) as file:
            np.save(file, images.to_bytes(pictures), allow_pickle=False)
        return str(path)
    if path.suffix.lower() == ".png":
        columns = columns or columns_for(len(pictures), *pictures.shape[2:])
        files.atomic_write(path, images.encode(images.tile(pictures, columns)))
        return str(path)
    digits = len(str(len(pictures) - 1))
    for k in range(len(pictures)):
        name = path / f"{k:0{digits}d}.png"
        files.atomic_write(name, images.encode(images.tile(pictures[k : k + 1], 1)))
    return f"{path}{os.sep}"
