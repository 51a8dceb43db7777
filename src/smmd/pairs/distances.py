"""Affine functions g = c₀ + c₁ r² of the squared distances within a group of samples, by blocks.

Each class prepares a group x (samples, n, d) once, fills blocks of g, and collects the moments of
the slopes, from which the gradient 4 Σ_j f'(r²_ij)(x_i − x_j) is made.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from smmd.pairs.products import product


class Distances(Protocol):
    """What the sum over blocks needs; ``rows`` and ``cols`` are ranges of points."""

    dtype: np.dtype[Any]

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        """g for a block of pairs."""

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        """Add a block of slopes; one off the diagonal stands for its mirror image too."""

    def gradient(self) -> np.ndarray:
        """4 Σ_j slope_ij (x_i − x_j) in float64."""


class Gram:
    """One matrix product gives g, norms and constant included: its inner dimension is d + 2.

    With y = √|2c₁|·x and h = ½|y|²,  g = c₀ ± ½|y − y'|² = [∓y, ±h + c₀, 1]·[y', 1, ±h'].
    In float32, h and c₀ take two columns each, so that a row's norm carries no rounding error
    that all its pairs would share.
    """

    def __init__(self, x: np.ndarray, c0: Any, c1: Any, dtype: Any, slopes: bool) -> None:
        samples, n, d = x.shape
        self.dtype = np.dtype(dtype)
        sign = -1.0 if np.all(np.asarray(c1) < 0.0) else 1.0
        y = np.multiply(x, np.sqrt(np.abs(2.0 * np.asarray(c1, dtype=np.float64))), dtype=dtype)
        norms = np.einsum("...k,...k->...", y, y, dtype=np.float64)
        norms *= 0.5 * sign
        split = 2 if self.dtype == np.float32 else 1
        self.left = np.ones((samples, n, d + 2 * split), dtype)
        self.right = np.ones((samples, d + 2 * split, n), dtype)
        np.multiply(y, -sign, out=self.left[..., :d])
        self.right[:, :d] = y.swapaxes(-1, -2)
        constant = np.asarray(c0, dtype=np.float64)
        self._split(
            norms + constant.reshape(constant.shape[:1] + (1,) * (constant.ndim > 0)),
            self.left[..., d:],
            split,
        )
        self._split(norms, self.right[:, d + split :].swapaxes(-1, -2), split)
        self.points = self.moments = None
        if slopes:
            self.points = np.concatenate(
                [x.astype(dtype, copy=False), np.ones((samples, n, 1), dtype)], axis=-1
            )
            self.moments = np.zeros((samples, n, d + 1))
            self.x = x

    @staticmethod
    def _split(values: np.ndarray, out: np.ndarray, parts: int) -> None:
        """``values`` as the sum of the first ``parts`` columns of ``out``."""
        for k in range(parts):
            out[..., k] = values
            values = values - out[..., k]

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        product(self.left[:, rows], self.right[..., cols], out)

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        part = np.empty((*slope.shape[:2], self.points.shape[-1]), self.dtype)
        self.moments[:, rows] += product(slope, self.points[:, cols], part)
        if rows != cols:
            part = np.empty((*slope.shape[::2], self.points.shape[-1]), self.dtype)
            mirrored = slope.swapaxes(-1, -2)
            self.moments[:, cols] += product(mirrored, self.points[:, rows], part)

    def gradient(self) -> np.ndarray:
        result = self.x * self.moments[..., -1:]
        result -= self.moments[..., :-1]
        result *= 4.0
        return result


class Differences:
    """Coordinate by coordinate: nothing cancels, wherever the points lie."""

    dtype = np.dtype(np.float64)

    def __init__(self, x: np.ndarray, c0: Any, c1: Any, slopes: bool) -> None:
        # Coordinates first, each one's points side by side.
        self.columns = np.ascontiguousarray(np.moveaxis(x, -1, 0))
        self.c0, self.c1 = (np.reshape(c, (-1, 1, 1)) if np.ndim(c) else c for c in (c0, c1))
        self.pull = np.zeros_like(self.columns) if slopes else None

    def fill(self, rows: slice, cols: slice, out: np.ndarray) -> None:
        step = np.empty_like(out)
        out[...] = 0.0
        for column in self.columns:
            np.subtract(column[:, rows, None], column[:, None, cols], out=step)
            np.multiply(step, step, out=step)
            out += step
        out *= self.c1
        out += self.c0

    def collect(self, slope: np.ndarray, rows: slice, cols: slice) -> None:
        step = np.empty_like(slope)
        for column, pull in zip(self.columns, self.pull, strict=True):
            np.subtract(column[:, rows, None], column[:, None, cols], out=step)
            step *= slope
            pull[:, rows] += step.sum(axis=-1)
            if rows != cols:
                pull[:, cols] -= step.sum(axis=-2)

    def gradient(self) -> np.ndarray:
        return 4.0 * np.moveaxis(self.pull, 0, -1)
